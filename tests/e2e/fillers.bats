#!/usr/bin/env bats
# `gpurota filler`: programs that use idle GPUs.

# SC2094: `info` is an argument of the program and the name of a file. SC2154: filler_helpers sets
# `machine`.
# shellcheck disable=SC2094,SC2154
load helpers
load filler_helpers

setup() { start_daemon; }
teardown() {
  remove_fillers >/dev/null 2>&1 || true
  end_test
}

add() { add_filler "$@"; }
# Adds a filler that takes nearly all memory.
add_holder() { add hold -- "$(command -v gpurota)" burn --hold --memory 88%; }
holds_memory() {
  holds 'any(l["kind"] == "filler" and l["gpus"][0]["used_bytes"] > 6 << 30 for l in leases)'
}
list_says() { gpurota filler list | grep -q -- "$1"; }
in_state() { filler_is "$1" "f['state'] == '$2'"; }

@test "a GPU with a filler is available, and is free when the newcomer's first allocation comes" {
  add_holder
  wait_until holds_memory
  gpurota status | grep -q '  0 filler '
  holds 's["findings"] == [] and gpus[0]["state"] == "available" and len(gpus[0]["leases"]) == 1'
  # The program allocates 90 % of the GPU, which would be refused while the filler holds 88 %.
  in_background newcomer gpurota run --gpu-ids 0 -- "$PROGRAM" hold 7372
  wait_until says newcomer holding
  is_off
  event_is 'filler_started.*nobody has used it for'
  event_is 'filler_yielded.*leaves GPU 0: .* needs its GPU'
  filler_is hold 'p["state"] in ("busy", "resting") and f["state"] == "waiting"'
  # Until the next reading, the list names the request that wanted the GPU, not the lease.
  wait_until list_says 'a lease has GPU 0'
}

@test "a filler comes back when nobody needs the GPU any more" {
  add_holder
  wait_until holds_memory
  gpurota run --gpu-ids 0 -- true
  wait_until is_on hold
  [ "$(count_of filler_started)" = 2 ]
}

@test "--nonblock counts a GPU with a filler as free, and a slice has it to itself" {
  add_holder
  wait_until holds_memory
  gpurota run --nonblock --gpu-ids 0 --memory 90% -- "$PROGRAM" info >info
  grep -q 'size=' info
  is_off
}

@test "a request that needs another GPU leaves the filler alone" {
  add_holder
  wait_until is_on hold
  gpurota run -- sh -c 'echo $CUDA_VISIBLE_DEVICES >where'
  [ "$(cat where)" = 1 ]
  is_on hold
}

@test "a process without a lease makes the filler leave, and it does not return too often" {
  # The filler waits longer than the stranger stays away, even on a slow machine.
  add hold --idle-after 3s -- "$(command -v gpurota)" burn --hold --memory 88%
  wait_until holds_memory
  local i started yielded
  for i in 1 2 3 4 5; do
    stranger "stranger$i" 100
    wait_until is_off
    kill -KILL "$STRANGER"
    sleep 0.5
  done
  event_is 'filler_yielded.*a process without a lease'
  yielded=$(count_of filler_yielded) started=$(count_of filler_started)
  [ "$started" -le 2 ]
  # The last filler may have started again.
  [ "$yielded" -ge $((started - 1)) ]
}

@test "a program that asks for an automatic lease gets it when the filler has left" {
  printf '[automatic]\nenabled = true\nmemory = "90%%"\n' >>gpurota.toml
  stop_daemon
  start_daemon
  gpurota filler add both --idle-after 1s "${machine[@]}" -- "$(command -v gpurota)" burn \
    --hold --memory 88%
  wait_until holds 'len(leases) == 2 and all(l["gpus"][0]["used_bytes"] > 6 << 30 for l in leases)'
  LD_PRELOAD=$(find "$E2E_PREFIX" -name libgpurota.so) in_background newcomer "$PROGRAM" hold 6000
  wait_until says newcomer holding
  holds 'sorted(l["kind"] for l in leases) == ["filler", "run"]'
}

@test "a process that the configuration ignores does not make the filler leave" {
  printf '[[watch.ignore]]\nexecutable = "%s"\n' "$(readlink -f "$PROGRAM")" >>gpurota.toml
  stop_daemon
  start_daemon
  add_holder
  wait_until holds_memory
  stranger desktop 50
  wait_until sh -c "gpurota ps --json | grep -q '\"pid\": *$STRANGER'"
  is_on hold
  [ "$(count_of filler_yielded)" = 0 ]
}

@test "kill -9 of the daemon: the next one finds the filler, which leaves as before" {
  add_holder
  wait_until holds_memory
  local lease
  lease=$(value 'leases[0]["lease_id"]')
  kill_daemon
  start_daemon
  is_on hold
  [ "$(value 'leases[0]["lease_id"]')" = "$lease" ]
  wait_until holds_memory
  in_background newcomer gpurota run --gpu-ids 0 -- "$PROGRAM" hold 7372
  wait_until says newcomer holding
  [ "$(count_of filler_started)" = 1 ]
}

@test "a filler that has ended while the daemon was down is started again, as after a reboot" {
  add_holder
  wait_until holds_memory
  local lease keeper
  lease=$(value 'leases[0]["lease_id"]')
  keeper=$(pgrep -f "^gpurota-keeper $E2E_DIR/")
  kill_daemon
  kill -KILL "$keeper"
  start_daemon
  wait_until is_on hold
  wait_until holds_memory
  [ "$(value 'leases[0]["lease_id"]')" != "$lease" ]
  [ "$(count_of filler_started)" = 2 ]
}

@test "pause, resume, logs, remove" {
  add talk -- sh -c 'echo "pid $$ on $CUDA_VISIBLE_DEVICES"; exec sleep 600'
  wait_until talked
  local pid
  pid=$(gpurota filler logs talk | sed -n 's/^pid \([0-9]*\) on 0$/\1/p')
  gpurota filler pause talk
  wait_until gone "$pid"
  wait_until in_state talk paused
  wait_until is_off
  stop_daemon
  start_daemon
  in_state talk paused
  gpurota filler resume talk
  wait_until is_on talk
  wait_until talked_twice
  gpurota filler remove talk
  wait_until is_off
  wait_until no_fillers
  wait_until no_files
}
talked() { gpurota filler logs talk | grep -q 'pid '; }
talked_twice() { [ "$(gpurota filler logs talk | grep -c 'pid ')" = 2 ]; }
no_fillers() { [ "$(gpurota filler list)" = 'no fillers' ]; }
no_files() { [ -z "$(ls "$E2E_DIR/state/fillers")" ]; }

@test "the values of a filler's variables are shown nowhere" {
  TOKEN=very-secret add quiet --env TOKEN -- sh -c 'echo "has ${#TOKEN}"; exec sleep 600'
  wait_until eval 'gpurota filler logs quiet | grep -q "has 11"'
  {
    gpurota filler list
    gpurota filler list quiet --json
    gpurota events --json
    gpurota status --json
    gpurota ps --json
    find "$E2E_DIR/state/audit" -type f -exec cat {} +
    cat gpurotad.log
  } >shown
  cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' >>shown || true
  lacks very-secret shown
  grep -q TOKEN shown
  grep -q AddFiller shown
  [ -z "$(find "$E2E_DIR/state" -perm /077 -type f)" ]
}

@test "a filler that ignores TERM is killed when its grace is over" {
  add deaf --grace 1s -- sh -c 'trap "" TERM; echo ready; while :; do sleep 0.05; done'
  wait_until deaf_is_ready
  gpurota run --gpu-ids 0 -- true
  is_off
}
deaf_is_ready() { gpurota filler logs deaf | grep -q ready; }

@test "a filler that fails is started again with pauses, and its end is shown" {
  add broken -- sh -c 'exit 7'
  wait_until in_state broken failing
  filler_is broken 'f["detail"] == "exited 7"'
  event_is 'filler_ended.*by itself: exited 7'
}

@test "a filler that can have no lease says why" {
  gpurota drain 0 1
  add much --memory 1G -- sleep 600
  gpurota set --gpu-ids 0,1 --capacity 500M
  gpurota undrain 0 1
  wait_until in_state much failing
  filler_is much '"1 GiB is more than GPU 0 has" in f["detail"]'
}

@test "a share of free memory is of the memory that is free at its start" {
  gpurota set --gpu-ids all --capacity 4G
  run -1 gpurota filler add both --memory 1G --of-free 50% -- true
  [[ $output == *"not both"* ]]
  add half --of-free 50% -- sleep 600
  wait_until has_half
}
has_half() {
  gpurota status --json | python3 -c '
import json, sys
limits = [g["limit_bytes"] for l in json.load(sys.stdin)["leases"] if l["kind"] == "filler"
          for g in l["gpus"]]
sys.exit(not limits or any(limit != 2 << 30 for limit in limits))'
}

@test "a filler that ends well at once is started again with longer and longer pauses" {
  add brief -- true
  wait_until started_four_times
  gpurota events --json | python3 -c '
import json, sys
from datetime import datetime
lines = [json.loads(line) for line in sys.stdin]
starts = [datetime.fromisoformat(e["time"].replace("Z", "+00:00")) for e in lines
          if e["type"] == "filler_started"]
gaps = [(b - a).total_seconds() for a, b in zip(starts, starts[1:])]
assert gaps[1] >= 1.9 and gaps[2] >= 3.9, gaps'
  filler_is brief 'f["state"] != "failing" and not f["detail"]'
}
started_four_times() { [ "$(count_of filler_started)" -ge 4 ]; }

@test "a filler has its limit, and one instance is on one GPU at a time" {
  gpurota filler add one --instances 1 --idle-after 1s \
    --memory 1G "${machine[@]}" -- "$PROGRAM" greedy 100
  wait_until one_is_on
  wait_until limited
  sleep 1.5
  [ "$(value 'len(leases)')" = 1 ]
}
one_is_on() { holds 'len(leases) == 1 and leases[0]["gpus"][0]["used_bytes"] > 0'; }
limited() {
  holds '0 < leases[0]["gpus"][0]["used_bytes"] <= 1 << 30 and leases[0]["share"] == "slice"'
}

@test "reports show a filler as such, and it counts against no limit" {
  printf '[limits]\ngpus = 0\n' >>gpurota.toml
  stop_daemon
  start_daemon
  add_holder
  wait_until holds_memory
  gpurota report --by kind | grep -q filler
}

@test "a command that cannot be a filler is refused in words" {
  add a -- sleep 600
  run -1 gpurota filler add a -- true
  [[ "$output" == *'there is a filler a already'* ]]
  run -2 gpurota filler add x --on-yield linger -- true
  [[ "$output" == *'--on-yield: '*'not stop or evict'* ]]
  run -1 gpurota filler add x --gpu-ids 9 -- true
  [[ "$output" == *9* ]]
  run -1 gpurota filler add ../x -- true
  run -1 gpurota filler pause nobody
  [[ "$output" == *'no filler nobody'* ]]
  run -2 gpurota filler add x
  [[ "$output" == *"after '--'"* ]]
}


@test "another user's filler is reported as not found; administrators see and remove it" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  as_nobody gpurota filler add theirs --workdir / --idle-after 1s --gpu-ids 0 -- sh \
    -c 'id -u; exec sleep 600'
  wait_until theirs_runs
  add mine -- sleep 600
  [ "$(as_nobody gpurota filler list | grep -c mine)" = 0 ]
  run -1 as_nobody gpurota filler pause mine --user root
  [[ "$output" == *'only administrators'* ]]
  run -1 as_nobody gpurota filler logs mine --user root
  [[ "$output" == *'only administrators'* ]]
  gpurota filler remove theirs --user nobody
  wait_until theirs_gone
}
theirs_runs() { gpurota filler logs theirs --user nobody | grep -q 65534; }
theirs_gone() { ! gpurota filler list | grep -q theirs; }
