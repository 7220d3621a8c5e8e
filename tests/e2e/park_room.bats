#!/usr/bin/env bats
# The room of a parked lease is given to others, and the lease comes back when there is room again.
# The leases have 60% of a GPU each, so that only one of them fits.
# shellcheck disable=SC2030,SC2031  # each case is a process of its own

load helpers
load watch_helpers
load park_helpers

setup() { start_daemon; }
teardown() {
  gpurota-sim set park_delay_ms=0 2>/dev/null || true
  end_test
}

state_of() { # state_of LEASE STATE: STATE is None or a word
  holds "str([l for l in leases if l['lease_id'] == '$1'][0].get('parked')) == '$2'"
}
# another OPTION…: another lease of GPU 0, whose program takes half of the GPU's memory.
another() {
  in_background other gpurota run --gpu-ids 0 "$@" -- \
    "$PROGRAM" hold "$(value 'gpus[0]["memory_bytes"] // 2**21')"
  OTHER_PID=$BACKGROUND_PID
}
# another_user OPTION…: a lease of another user, if this test is run by root; its command does not
# use the GPU, as simulated GPUs are one user's.
another_user() {
  local -a who=()
  if [ "$(id -u)" = 0 ]; then
    who=(as_nobody)
    chmod 755 "$E2E_DIR" "$E2E_DIR/run"
  fi
  in_background other "${who[@]}" gpurota run --gpu-ids 0 "$@" -- sh -c 'echo holding; sleep 1000'
  OTHER_PID=$BACKGROUND_PID
}
ends_other() {
  gpurota release L2
  wait_until gone "$OTHER_PID"
}

@test "another lease gets the room of a parked slice, and unpark waits until it ends" {
  begin compute --memory 60%
  another_user --memory 60%
  wait_until says other 'waiting as R'
  gpurota park L1
  wait_until says other holding
  holds 'gpus[0]["reserved_bytes"] == leases[1]["gpus"][0]["limit_bytes"]'
  in_background unpark gpurota unpark L1
  local unpark=$BACKGROUND_PID
  wait_until state_of L1 waiting
  wait_until says unpark 'L1: waits for GPU 0: .*(L2)'
  gpurota explain L1 | grep -q 'brought back as soon as there is room'
  gpurota explain L1 | grep -q 'waits for GPU 0: .*(L2)'
  gpurota status | grep -q waiting
  event_is 'lease_updated.*L1 waits for room to be brought back'
  run gpurota run --gpu-ids 0 --memory 20% --nonblock -- true
  [ "$status" = 75 ]
  ends_other
  ends_with 0 "$unpark"
  says unpark 'L1 is back on its GPU'
  goes_on
  ends_right
}

@test "the wait survives a restart of the daemon" {
  begin compute --memory 60%
  gpurota park L1
  another --memory 60%
  wait_until says other holding
  in_background unpark gpurota unpark L1
  local unpark=$BACKGROUND_PID
  wait_until says unpark 'L1: waits for GPU 0'
  kill_daemon
  wait_until says unpark 'gpurotad has gone away'
  start_daemon
  state_of L1 waiting
  run gpurota run --gpu-ids 0 --memory 20% --nonblock -- true
  [ "$status" = 75 ]
  ends_other
  ends_with 0 "$unpark"
  goes_on
  ends_right
}

@test "nobody has to wait for unpark, and park ends the wait" {
  begin compute --memory 60%
  gpurota park L1
  another --memory 60%
  wait_until says other holding
  gpurota unpark --no-wait L1 | grep -q 'L1: waits for GPU 0.*brought back as soon as there is room'
  run gpurota unpark --wait 1s L1
  [[ "$status" = 75 && "$output" = *"gave up after 1 s: L1: waits for GPU 0"* ]]
  state_of L1 waiting
  gpurota park L1
  state_of L1 parked
  gpurota run --gpu-ids 0 --memory 20% -- true
  ends_other
  sleep 1
  state_of L1 parked
  gpurota unpark L1
  goes_on
  ends_right
}

@test "a whole GPU is given although a lease of it is parked" {
  begin compute --memory 60%
  gpurota park L1
  another
  wait_until says other holding
  gpurota unpark --no-wait L1
  state_of L1 waiting
  ends_other
  wait_until state_of L1 None
  goes_on
  ends_right
}

@test "a swap lease comes back beside a slice that came meanwhile only when that has ended" {
  begin compute --swap --memory 60%
  gpurota park L1
  another --memory 60%
  wait_until says other holding
  gpurota unpark --no-wait L1
  sleep 1
  state_of L1 waiting
  ends_other
  wait_until state_of L1 None
  goes_on
  ends_right
}

@test "a slice comes back between leases with turns, which move their memory first" {
  begin compute --memory 40%
  gpurota park L1
  local -a others=()
  for name in one two; do
    in_background "$name" gpurota run --gpu-ids 0 --swap --memory 50% -- \
      "$PROGRAM" hold "$(value 'gpus[0]["memory_bytes"] * 4 // 10 // 2**20')"
    others+=("$BACKGROUND_PID")
    wait_until says "$name" holding
  done
  gpurota unpark L1
  goes_on
  kill "${others[@]}"
  ends_right
}

@test "a program that starts in a parked lease gets no memory" {
  gpurota reserve --gpu-ids 0 --memory 60% --for 1h >/dev/null
  in_background program gpurota run --lease L1 -- "$E2E_PARK_PROGRAM" compute "$E2E_DIR/stop"
  # shellcheck disable=SC2034  # ends_right reads it
  PROGRAM_PID=$BACKGROUND_PID
  wait_until says program ready
  gpurota park L1
  run gpurota run --lease L1 -- "$PROGRAM" hold 16
  [ "$status" != 0 ]
  event_is 'a process of L1 gets no memory: L1 is parked'
  used_on_gpu '== 0'
  gpurota unpark L1
  in_background new gpurota run --lease L1 -- "$PROGRAM" hold 16
  wait_until says new holding
  goes_on
  ends_right
}

@test "a parked reservation whose programs have ended is not parked any more" {
  gpurota reserve --gpu-ids 0 --memory 60% --for 1h >/dev/null
  in_background program gpurota run --lease L1 -- "$E2E_PARK_PROGRAM" compute "$E2E_DIR/stop"
  wait_until says program ready
  gpurota park L1
  another --memory 60%
  wait_until says other holding
  pkill -KILL -f "^$E2E_PARK_PROGRAM compute $E2E_DIR/"
  wait_until state_of L1 waiting
  ends_other
  wait_until state_of L1 None
  event_is 'lease_unparked.*L1 is no longer parked: its processes have ended'
}
