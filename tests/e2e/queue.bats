#!/usr/bin/env bats
# Waiting: in order, with the reason and the expected time, until the user stops waiting.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# Reserves all GPUs for an hour.
take_all() { gpurota reserve --gpus "$(value 'len(gpus)')" --for 1h >taken; }
queue_length() {
  gpurota queue --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["requests"]))'
}
waiting() { [ "$(queue_length)" = "$1" ]; }

@test "run waits for a GPU, says why, and runs when it is its turn" {
  take_all
  in_background waits gpurota run -- sh -c 'echo runs on $CUDA_VISIBLE_DEVICES'
  wait_until says waits \
    'waiting as R1, position 1: waits for GPU [01]: .* reservation (L1) ends at '
  gpurota release
  wait "$BACKGROUND_PID"
  says waits 'runs on [0-9]'
  says waits 'got GPU [0-9] as L2 after [0-9]* s'
  # The request waited for the user's own reservation, and printed a hint once.
  [ "$(grep -c 'You hold L1 on GPU 0,1.*: gpurota run --lease L1 -- …' waits)" = 1 ]
}

@test "--quiet says nothing of the waiting" {
  take_all
  in_background waits gpurota run --quiet -- echo it ran
  wait_until waiting 1
  gpurota release --quiet
  wait "$BACKGROUND_PID"
  [ "$(cat waits)" = 'it ran' ]
}

@test "first come, first served: no later request passes" {
  take_all
  in_background first gpurota run --gpus 2 -- sh -c 'echo first; sleep 0.3'
  wait_until waiting 1
  local first=$BACKGROUND_PID
  in_background second gpurota run -- sh -c 'date +%s.%N >second.at'
  wait_until waiting 2
  run -75 gpurota run --nonblock -- true
  gpurota release
  wait "$first" "$BACKGROUND_PID"
  says first first
}

@test "free GPUs are kept for a large request for a while, not for ever" {
  local all
  all=$(value 'len(gpus)')
  gpurota reserve --gpus 1 --for 1h
  in_background large gpurota run --gpus "$all" -- true
  wait_until waiting 1
  run -75 gpurota run --nonblock -- true
  in_background small gpurota run -- sleep 60
  wait_until waiting 2
  printf '%s\n' 'keep_free_gpus = "100ms"' >"$E2E_DIR/gpurota.toml"
  gpurota reload
  wait_until eval '[ "$(value "len(leases)")" = 2 ]'
}

@test "--nonblock says how many are free and who has the others" {
  take_all
  run -75 gpurota run --nonblock -- true
  grep -q "0 of .* free" <<<"$output"
  grep -q "$(id -un)" <<<"$output"
}

@test "--wait is not exceeded" {
  take_all
  run -75 timeout 20 gpurota run --wait 1s -- true
  grep -q 'gave up after 1 s' <<<"$output"
  wait_until waiting 0
}

@test "control-C leaves the queue at once, and so does a kill -9" {
  take_all
  in_background one env --default-signal=INT gpurota run -- true
  wait_until waiting 1
  kill -INT "$BACKGROUND_PID"
  wait_until waiting 0
  in_background two gpurota run -- true
  wait_until waiting 1
  kill -KILL "$BACKGROUND_PID"
  wait_until waiting 0
}

@test "the impossible fails at once instead of waiting for ever" {
  run -125 timeout "$PATIENCE" gpurota run --gpus 15 -- true
  grep -q 'this machine has' <<<"$output"
  run -125 timeout "$PATIENCE" gpurota run --gpu-ids 99 -- true
  run -125 timeout "$PATIENCE" gpurota run --memory 4T -- true
  waiting 0
}

@test "a mistyped command holds nothing and waits for nothing" {
  take_all
  run -127 timeout "$PATIENCE" gpurota run -- no-such-command
  waiting 0
}

@test "kill -9 of the daemon: a waiting request keeps its place" {
  take_all
  in_background first gpurota run --gpu-ids 0 -- sh \
    -c 'echo first; while [ ! -e go ]; do sleep 0.05; done'
  wait_until waiting 1
  local first=$BACKGROUND_PID
  in_background second gpurota run --gpu-ids 0 -- sh -c 'echo second'
  wait_until waiting 2
  kill_daemon
  wait_until says second 'waiting for it to come back'
  start_daemon
  wait_until waiting 2
  gpurota release
  wait_until says first '^first'
  lacks '^second' "$E2E_DIR/second"
  touch go
  wait "$first" "$BACKGROUND_PID"
  says second '^second'
}

@test "queue and explain show a waiting request, and cancel ends it" {
  take_all
  in_background waits gpurota run --as anna -- true
  wait_until waiting 1
  gpurota queue >table
  local ends='reservation \(L1\) ends at [0-9 A-Za-z]*:[0-9]{2}'
  grep -E "1 +R1 +$(id -un) \(anna\) +1 .*waits for GPU [01]: .* $ends" table
  gpurota explain R1 | grep 'at the latest'
  gpurota explain | grep 'R1, position 1'
  gpurota explain L1 | grep "R1 of .* waits for it"
  [ "$(gpurota cancel R1)" = 'cancelled R1' ]
  ends_with 122 "$BACKGROUND_PID"
  says waits 'cancelled'
  [ "$(gpurota queue)" = "the queue is empty" ]
}

@test "a waiting request shows a request that would start now, and that one starts" {
  local size
  size=$(value "gpus[0]['available_bytes'] >> 20")
  gpurota reserve --gpu-ids 0 --swap --memory "$((size * 3 / 4))M" --for 1h
  gpurota reserve --gpu-ids 1 --for 1h
  [ "$(value "gpus[1]['available_bytes']")" = 0 ]
  in_background waits gpurota run --memory "$((size / 2))M" -- true
  wait_until waiting 1
  local memory
  gpurota explain R1 >said
  memory=$(sed -n 's/^  starts now with --memory \([0-9]*[GM]\), on GPU 0$/\1/p' said)
  grep -q '^  starts now with --swap, on GPU 0$' said
  wait_until says waits '; starts now with --memory [0-9]*[GM] or with --swap$'
  gpurota queue | grep -q '; starts now with --memory [0-9]*[GM] or with --swap$'
  in_background server gpurota run --memory "$((size / 2))M" --latency interactive -- true
  wait_until waiting 2
  run -0 gpurota explain R2
  [[ $output == *"starts now with --memory"* && $output != *--swap* ]] # turns are not for it
  gpurota cancel R2
  gpurota explain R1 --json >json
  python3 - <<'END'
import json
ways = json.load(open("json"))["alternatives"]
assert ([(way["request_id"], way["change"], way["labels"]) for way in ways]
        == [("R1", "memory", ["0"]), ("R1", "swap", ["0"])]), ways
END
  # R1 is first in the queue, and keeps the GPU until it is cancelled.
  gpurota cancel R1
  gpurota run --nonblock --memory "$memory" -- true
  gpurota run --nonblock --swap --memory "$((size / 2))M" -- true
}

@test "a refused request shows the time limit that would fit" {
  gpurota reserve --gpu-ids 0 --for 20m
  in_background large gpurota run --gpus "$(value 'len(gpus)')" --timeout 1h -- true
  wait_until waiting 1
  run -75 --separate-stderr gpurota run --nonblock --gpu-ids 1 -- true
  # shellcheck disable=SC2154 # `run --separate-stderr` sets it
  grep -E '^gpurota: .*; starts now with --timeout 1[0-9]m$' <<<"$stderr"
  gpurota run --nonblock --gpu-ids 1 --timeout 15m -- true
}

@test "the reason for waiting is the same sentence everywhere, with its time" {
  gpurota reserve --gpu-ids 1 --for 2h --quiet
  in_background waits gpurota run --gpu-ids 1 -- true
  wait_until waiting 1
  gpurota job add later --gpu-ids 1 -- true
  later_waits() { gpurota job show later | grep -q 'waiting as R2'; }
  wait_until later_waits
  gpurota queue --json >json
  local why
  why=$(python3 - <<'END'
import datetime, json
first, second = json.load(open("json"))["requests"]
reason = first["wait_reason"]
assert ((reason["code"], reason["remedy"])
        == ("leased_until", "starts now without --gpu-ids")), reason
assert second["wait_reason"]["code"] == "behind_request", second
time = datetime.datetime.fromisoformat(reason["time"].replace("Z", "+00:00")).astimezone()
day = "%H:%M" if time.date() == datetime.date.today() else "%a %H:%M"
print(reason["text"].replace("{time}", time.strftime(day)))
END
  )
  wait_until says waits "waiting as R1, position 1: $why; starts now without --gpu-ids$"
  gpurota queue | grep -qF "$why; starts now without --gpu-ids"
  gpurota explain R1 | grep -qxF "R1, position 1: $why"
  local behind='waits for GPU 1: R1 of .* gets it first, when L1 ends at .*; '
  behind+='starts now without --gpu-ids'
  gpurota job show later | grep -qE "^state .*: $behind$"
  gpurota job list | grep -qE "$behind"
  gpurota job remove later --force
}

@test "a capacity below a lease's memory is given as the reason for waiting" {
  local size
  size=$(value "gpus[0]['available_bytes'] >> 20")
  in_background lease gpurota run --gpu-ids 0 --swap --memory "$((size * 3 / 4))M" -- sleep 60
  wait_until holds "len(leases) == 1"
  printf '%s\n' '[turns.gpu.0]' "capacity = \"$((size / 2))M\"" >"$E2E_DIR/gpurota.toml"
  gpurota reload
  in_background waits gpurota run --gpu-ids 0 --swap --memory "$((size / 4))M" -- true
  wait_until says waits \
    'waits for GPU 0: its capacity of .* is less than the .* that leases there may have'
}

@test "explain says how an ended lease ended" {
  gpurota reserve --gpu-ids 0
  gpurota release L1
  gpurota explain L1 | grep -q "^L1 is over since .*: it was released by $(id -un)"
  run -1 gpurota explain L99
}

@test "the GPU that the first request needs is held for it, and shown as held" {
  gpurota reserve --gpu-ids 0 >taken
  in_background both gpurota run --gpus "$(value 'len(gpus)')" -- true
  wait_until waiting 1
  wait_until holds "gpus[1]['held_for'] == 'R1'"
  run -75 gpurota run --nonblock --gpu-ids 1 -- true
  grep -q 'GPU 1 is free until .*, then R1 of .*, which goes first, starts there' <<<"$output"
  # A command that ends before R1 can start may use the GPU.
  gpurota run --nonblock --gpu-ids 1 --timeout 10s -- true
}

@test "a drained GPU gets no new lease until it is back" {
  gpurota drain 0 --reason "new fan"
  holds "gpus[0]['state'] == 'draining' and gpus[0]['detail'] == 'new fan'"
  run -75 gpurota run --nonblock --gpu-ids 0 -- true
  grep -q 'is draining: new fan' <<<"$output"
  kill_daemon
  start_daemon
  holds "gpus[0]['state'] == 'draining'"
  in_background waits gpurota run --gpu-ids 0 -- true
  wait_until says waits 'GPU 0 is draining: new fan'
  gpurota undrain 0
  wait "$BACKGROUND_PID"
}

@test "--timeout ends the whole tree with 124, at once when all heed SIGTERM" {
  in_background tree gpurota run --timeout 1s -- sh -c 'sleep 600 & echo child $!; wait'
  local pid=$BACKGROUND_PID
  wait_until says tree child
  ends_with 124 "$pid"
  wait_until gone "$(sed -n 's/^child //p' tree)"
  wait_until no_leases
}

@test "--timeout ends with SIGKILL, after the grace, what ignores SIGTERM or has left its session" {
  printf 'grace = "1s"\n' >gpurota.toml
  gpurota reload
  in_background tree gpurota run --timeout 1s -- sh -c \
    'trap "" TERM; setsid sh -c '"'"'trap "" TERM; echo child $$; while :; do sleep 1; done'"'"' &
    while :; do sleep 1; done'
  local pid=$BACKGROUND_PID
  wait_until says tree child
  ends_with 124 "$pid"
  wait_until gone "$(sed -n 's/^child //p' tree)"
  wait_until no_leases
}
