#!/usr/bin/env bats
# `gpurota filler add --on-yield evict`: fillers that are evicted instead of ended.

# SC2094: `info` is an argument of the program and the name of a file. SC2154: filler_helpers sets
# `machine`.
# shellcheck disable=SC2094,SC2154
load helpers
load filler_helpers

export PROBE_BUFFERS=60
setup() { start_daemon; }
teardown() {
  remove_fillers >/dev/null 2>&1 || true
  end_test
}

# add NAME -- COMMAND…: adds a filler on GPU 0 (8 GiB) that starts as soon as it may.
add() { add_filler "$1" --on-yield evict --env PROBE_BUFFERS "${@:2}"; }
# Adds a filler, and sets PID to its pid. Beside the filler's memory, 90 % of the GPU do not fit.
add_holder() {
  add hold -- sh -c 'echo "pid $$"; exec "$@"' sh "$PROGRAM" hold 1200
  wait_until holds_memory
  PID=$(gpurota filler logs hold | sed -n 's/^pid \([0-9]*\)$/\1/p')
}

is_evicted() {
  filler_is "$1" 'p["state"] == "evicted" and p["lease_id"] and f["state"] == "evicted"'
}
holds_memory() {
  holds 'any(l["kind"] == "filler" and l["gpus"][0]["used_bytes"] > 900 << 20 for l in leases)'
}
# Whether all memory that can be moved is evicted. Contexts stay; a program may have several of
# them.
is_out() {
  gpurota turns --gpu-ids 0 --json | python3 -c '
import json, sys
sys.exit(any(lease["resident_bytes"] for lease in json.load(sys.stdin)["gpus"][0]["leases"]))'
}
newcomer() { # starts a program with 90 % of the GPU
  in_background "$1" gpurota run --gpu-ids 0 --memory 90% -- "$PROGRAM" hold 7000
  NEWCOMER=$BACKGROUND_PID
  wait_until says "$1" holding
}
is_back() { is_on hold && holds_memory; }

@test "a filler is evicted before the newcomer's first allocation, and loses no byte" {
  add check -- "$E2E_SWAP_PROBE" torture 20 1
  wait_until holds_memory
  newcomer newcomer
  is_evicted check
  is_out
  event_is 'filler_yielded.*is moved from GPU 0 to host memory: .* needs its GPU'
  holds 'gpus[0]["state"] == "in_use" and len(leases) == 2'
  gpurota filler list | grep -q evicted
  kill -TERM "$NEWCOMER"
  wait_until is_on check
  event_is 'filler_resumed.*continues on GPU 0'
  wait_until checked
  [ "$(count_of filler_started)" = 1 ]
}
checked() {
  if gpurota filler logs check | grep -e '^line' -e '^no context'; then return 2; fi
  gpurota filler logs check | grep -q '^done$'
}

@test "an evicted filler's GPU is available to others, and several of them share it" {
  add_holder
  gpurota run --gpu-ids 0 --memory 1G -- true
  is_evicted hold
  gpurota status | grep -q '  0 filler '
  in_background one gpurota run --nonblock --gpu-ids 0 --memory 3G -- "$PROGRAM" hold 2000
  wait_until says one holding
  in_background two gpurota run --nonblock --gpu-ids 0 --memory 3G -- "$PROGRAM" hold 2000
  wait_until says two holding
  is_evicted hold
  kill -0 "$PID"
}

@test "a request for the whole GPU ends the filler, whether it runs or is evicted" {
  add_holder
  gpurota run --gpu-ids 0 -- "$PROGRAM" info >/dev/null
  wait_until gone "$PID"
  event_is 'filler_yielded.*leaves GPU 0: .* needs its GPU'
  [ "$(count_of filler_resumed)" = 0 ]
  wait_until is_back
  wait_until pid_is_new
  gpurota run --gpu-ids 0 --memory 1G -- true
  is_evicted hold
  gpurota run --gpu-ids 0 -- "$PROGRAM" info >/dev/null
  wait_until gone "$PID"
}
pid_is_new() {
  local pid
  pid=$(gpurota filler logs hold | sed -n 's/^pid \([0-9]*\)$/\1/p' | tail -n 1)
  [ "$pid" != "$PID" ] && PID=$pid
}

@test "a lease that takes turns ends the filler, if it does not fit beside the memory that stays" {
  add_holder
  in_background swap gpurota run --gpu-ids 0 --swap --memory 5G -- "$PROGRAM" hold 4000
  wait_until says swap holding
  is_evicted hold
  in_background slice gpurota run --gpu-ids 0 --memory 3000M -- "$PROGRAM" hold 2500
  wait_until says slice holding
  wait_until gone "$PID"
}

@test "a process without a lease evicts the filler, which is restored when the process ends" {
  add_holder
  stranger stranger 100
  wait_until is_evicted hold
  is_out
  event_is 'filler_yielded.*is moved from GPU 0 to host memory: a process without a lease'
  kill -KILL "$STRANGER"
  wait_until is_back
  [ "$(count_of filler_started)" = 1 ]
  kill -0 "$PID"
}

@test "an evicted filler does not return too often when others come and go" {
  add_holder
  local i
  for i in 1 2 3 4; do
    stranger "stranger$i" 100
    wait_until is_evicted hold
    kill -KILL "$STRANGER"
    sleep 0.5
  done
  [ "$(count_of filler_resumed)" -le 1 ]
  kill -0 "$PID"
}

@test "a daemon that starts while the filler is evicted keeps it so, and restores it later" {
  add_holder
  newcomer newcomer
  is_evicted hold
  kill_daemon
  start_daemon
  wait_until is_evicted hold
  is_out
  [ "$(count_of filler_resumed)" = 0 ]
  kill -TERM "$NEWCOMER"
  wait_until is_back
  kill -0 "$PID"
  [ "$(count_of filler_started)" = 1 ]
}

@test "a filler that is paused and resumed keeps its state" {
  add_holder
  gpurota filler pause hold
  wait_until is_out
  wait_until filler_is hold 'p["state"] == "evicted" and f["state"] == "paused"'
  kill -0 "$PID"
  gpurota filler resume hold
  wait_until is_back
  gpurota filler remove hold
  wait_until gone "$PID"
}

@test "a filler that cannot be moved is ended, with the reason" {
  add_holder
  stop_process "$PID"
  newcomer newcomer
  wait_until gone "$PID"
  event_is 'filler_yielded.*is ended instead of moved to host memory'
}

@test "without room in host memory the filler is ended, with the reason" {
  printf '[turns]\nhost_budget = "100M"\n' >>gpurota.toml
  gpurota reload
  add_holder
  newcomer newcomer
  wait_until gone "$PID"
  event_is 'filler_yielded.*host memory has no room for its memory'
}
