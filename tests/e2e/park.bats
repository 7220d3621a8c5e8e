#!/usr/bin/env bats
# Leases are parked and brought back while their programs compute, and while a second thread asks
# without pause whether work has ended (park_program.cpp).
# shellcheck disable=SC2030,SC2031  # each case is a process of its own

load helpers
load watch_helpers
load park_helpers

setup() { start_daemon; }
teardown() {
  gpurota-sim set park_delay_ms=0 2>/dev/null || true
  end_test
}

# The computation waits, and the questions are answered.
waits_parked() {
  wait_until grows polls "$(figure polls)"
  local before
  before=$(figure steps)
  sleep 0.3
  [ "$(figure steps)" = "$before" ]
}
state_is() { holds "leases[0].get('parked') == $1"; }
helper_pid() { pgrep -f "gpurota-park $1 --lock $E2E_DIR/" | head -n 1; }
runs_helper() { helper_pid "$1" >/dev/null; }

@test "a slice is parked in the middle of computing, gives all its memory back, and comes back" {
  begin compute --memory 2G
  goes_on
  gpurota park L1 | grep -q "L1 is parked: 'gpurota unpark L1' brings it back"
  state_is '"parked"'
  wait_until used_on_gpu '== 0'
  gpurota status | grep -q parked
  gpurota ps | grep -q ' 0 B .* L1 '
  gpurota explain L1 | grep -q "is parked: its processes are in host memory"
  waits_parked
  event_is 'lease_parked.*L1 is parked: 1 process'
  gpurota unpark L1 | grep -q 'L1 is back on its GPU'
  state_is None
  wait_until used_on_gpu '> 0'
  goes_on
  event_is 'lease_unparked.*L1 is back'
  ends_right
}

@test "a slice is parked ten times in a row and computes right" {
  begin compute --memory 2G
  for _ in $(seq 10); do
    gpurota park L1
    gpurota unpark L1
    goes_on
  done
  ends_right
}

@test "a swap lease is parked, has no turn meanwhile, and comes back" {
  begin compute --swap
  goes_on
  for _ in $(seq 3); do
    gpurota park L1
    wait_until used_on_gpu '== 0'
    waits_parked
    gpurota unpark L1
    goes_on
  done
  ends_right
}

@test "two swap leases take turns while a third one is parked" {
  begin compute --swap
  in_background other gpurota run --gpu-ids 0 --swap -- "$E2E_PARK_PROGRAM" compute "$E2E_DIR/stop"
  local other=$BACKGROUND_PID
  wait_until says other ready
  gpurota park L1
  waits_parked
  local before
  before=$(wc -l <"$E2E_DIR/other")
  sleep 0.3
  (($(wc -l <"$E2E_DIR/other") > before))
  gpurota unpark L1
  goes_on
  touch "$E2E_DIR/stop"
  ends_with 0 "$other"
  ends_right
}

@test "all processes of a lease are parked together" {
  # shellcheck disable=SC2016 # the inner shell expands them
  in_background program gpurota run --gpu-ids 0 --memory 4G -- \
    sh -c '"$1" compute "$2" & "$1" compute "$2"; wait' sh "$E2E_PARK_PROGRAM" "$E2E_DIR/stop"
  PROGRAM_PID=$BACKGROUND_PID
  wait_until holds 'leases[0]["processes"] == 2'
  gpurota park L1
  wait_until used_on_gpu '== 0'
  event_is 'lease_parked.*L1 is parked: 2 processes'
  gpurota unpark L1
  goes_on
  touch "$E2E_DIR/stop"
  ends_with 0 "$PROGRAM_PID"
  [ "$(grep -c right "$E2E_DIR/program")" = 2 ]
}

@test "wrong use is refused with the reason, and changes nothing" {
  run gpurota park
  [[ "$output" = *"which lease?"* ]]
  run gpurota park L9
  [ "$status" = 1 ]
  begin compute --memory 2G
  run gpurota unpark L1
  [[ "$status" = 1 && "$output" = *"L1 is not parked"* ]]
  gpurota park L1
  gpurota park L1
  gpurota unpark L1
  in_background idle gpurota run --gpu-ids 1 -- sleep 1000
  wait_until holds 'len(leases) == 2'
  run gpurota park L2
  [[ "$status" = 1 && "$output" = *"has whole GPUs"* ]]
  in_background empty gpurota run --gpu-ids 0 --memory 1G -- sleep 1000
  wait_until holds 'len(leases) == 3'
  run gpurota park L3
  [[ "$status" = 1 && "$output" = *"there is nothing to park"* ]]
  if [ "$(id -u)" = 0 ]; then
    chmod 755 "$E2E_DIR" "$E2E_DIR/run"
    run as_nobody gpurota park L1
    [[ "$status" = 1 && "$output" = *"somebody else's lease"* ]]
  fi
  goes_on
  ends_right
}

@test "a program that cannot be parked continues as before" {
  begin managed --memory 2G
  run gpurota park L1
  [[ "$status" = 1 && "$output" = *"the driver's checkpoint failed: NOT_SUPPORTED"* ]]
  state_is None
  goes_on
  event_is 'park_failed.*L1 is not parked'
  gpurota explain L1 | grep -q 'L1 is not parked: process .* NOT_SUPPORTED'
  ends_right
}

@test "a program with host memory of cuMemCreate is refused before anything is locked" {
  begin host --memory 2G
  run gpurota park L1
  [[ "$status" = 1 && "$output" = *"has had memory of cuMemCreate on the host"* ]]
  goes_on
  ends_right
}

@test "a program that waits for work without end is refused, and continues" {
  begin blocked --memory 2G
  run gpurota park L1
  [[ "$status" = 1 && "$output" = *"waits for its work for longer than 10 s"* ]]
  state_is None
  ends_right
}

@test "a stopped program is refused" {
  begin compute --memory 2G
  local pid
  pid=$(gpurota ps --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["processes"][0]["pid"])')
  stop_process "$pid"
  run gpurota park L1
  kill -CONT "$pid"
  [[ "$status" = 1 && "$output" = *"is stopped or frozen"* ]]
  goes_on
  ends_right
}

@test "gpurota-park is killed: parking is undone, and a parked lease stays parked" {
  begin compute --memory 2G
  gpurota-sim set park_delay_ms=700
  for step in 0.2 1; do
    in_background park gpurota park L1
    wait_until runs_helper park
    sleep "$step"
    kill -KILL "$(helper_pid park)"
    ends_with 1 "$BACKGROUND_PID"
    says park 'gpurota-park was ended by signal 9'
    state_is None
    goes_on
  done
  gpurota park L1
  in_background unpark gpurota unpark L1
  wait_until runs_helper unpark
  sleep 0.2
  kill -KILL "$(helper_pid unpark)"
  ends_with 1 "$BACKGROUND_PID"
  state_is '"parked"'
  says unpark 'it stays parked'
  gpurota unpark L1
  goes_on
  ends_right
}

@test "the daemon is killed: a lease on its way is brought back, and a parked one stays parked" {
  for lease in "--memory 2G" "--swap"; do
    rm -f "$E2E_DIR/stop"
    # shellcheck disable=SC2086 # two words
    begin compute $lease
    local id
    id=$(value 'leases[0]["lease_id"]')
    gpurota-sim set park_delay_ms=500
    in_background park gpurota park "$id"
    wait_until runs_helper park
    sleep 0.2
    kill_daemon
    start_daemon
    wait_until state_is None
    goes_on
    gpurota-sim set park_delay_ms=0
    gpurota park "$id"
    kill_daemon
    waits_parked
    start_daemon
    sleep 1
    state_is '"parked"'
    waits_parked
    gpurota-sim set park_delay_ms=500
    in_background unpark gpurota unpark "$id"
    wait_until runs_helper unpark
    kill_daemon
    start_daemon
    wait_until state_is None
    gpurota-sim set park_delay_ms=0
    goes_on
    ends_right
    wait_until no_leases
  done
}

@test "a parked lease is released, and its program killed" {
  begin compute --memory 2G
  gpurota park L1
  gpurota release L1
  wait_until gone "$PROGRAM_PID"
  wait_until no_leases
  wait_until memory_is_back
  begin compute --swap
  gpurota park L2
  pkill -KILL -f "^$E2E_PARK_PROGRAM compute $E2E_DIR/"
  wait_until gone "$PROGRAM_PID"
  wait_until no_leases
}

@test "a lease comes back when a program without a lease has left its room" {
  begin compute --memory 2G
  gpurota park L1
  wait_until used_on_gpu '== 0'
  # The program takes all but a little.
  local mib
  mib=$(value 'gpus[0]["memory_bytes"] // 2**20 - 240')
  in_background stranger env -u GPUROTA_RUNTIME_DIR CUDA_VISIBLE_DEVICES=0 "$PROGRAM" hold "$mib"
  local stranger=$BACKGROUND_PID
  wait_until says stranger holding
  wait_until holds 'gpus[0]["unreserved_bytes"] > 0'
  run gpurota unpark --no-wait L1
  [[ "$output" = *'L1: GPU 0 has too little left beside what runs there without a lease'* ]]
  state_is '"waiting"'
  waits_parked
  kill -KILL "$stranger"
  wait_until gone "$stranger"
  wait_until state_is None
  goes_on
  ends_right
}

@test "a parked lease is never unused" {
  printf '[watch]\nunused = "stop"\nunused_after = "1s"\nunused_grace = "1s"\n' >gpurota.toml
  gpurota reload
  begin compute --memory 2G
  gpurota park L1
  sleep 4
  state_is '"parked"'
  gpurota unpark L1
  goes_on
  ends_right
}
