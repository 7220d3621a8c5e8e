#!/usr/bin/env bats
# Programs that are stopped while they hold memory that others need.

load ../e2e/helpers

setup() {
  start_daemon # makes the folder
  kill_daemon
  printf '%s\n' '[turns]' 'stopped_deadline = "2s"' >"$E2E_DIR/gpurota.toml"
  start_daemon
  learn_context_cost
  gpurota set --gpu-ids 0 --capacity 1G --quantum 300ms
}
teardown() { end_test; }

# worker NAME SECONDS: starts a program that works on 500 MiB, and reads back every byte it has
# written.
worker() {
  in_background "$1" gpurota run --gpu-ids 0 --swap --memory 700M -- "$E2E_PROGRAM" compute 500 "$2"
}
explained() { gpurota explain "$1" 2>&1 | grep -q "$2"; }
resident_mib() {
  gpurota turns --json | python3 -c \
    "import json, sys; print(json.load(sys.stdin)['gpus'][0]['leases'][0]['resident_bytes'] >> 20)"
}

@test "a stopped holder loses its lease once its memory has been needed for long" {
  worker holder 60
  wait_until eval '[ "$(value "len(leases)")" = 1 ] && [ "$(resident_mib)" -gt 450 ]'
  local lease pid
  lease=$(value 'leases[0]["lease_id"]') pid=$(value 'leases[0]["pid"]')
  stop_process "$pid"
  sleep 3 # nobody needs its memory
  [ "$(value "leases[0]['lease_id']")" = "$lease" ]
  worker other 8
  local why='waits for memory of a stopped process.* it belongs to L2 of .*, which is ended in'
  wait_until eval "explained L3 '$why' || grep -q '^done: .*, 0 wrong$' other"
  wait_until grep -q '^done: .*, 0 wrong$' other
  run -1 kill -0 "$pid"
  gpurota events | grep "$lease" | grep -q 'one of its processes stayed stopped'
}

@test "a holder that is stopped and continues in time loses nothing" {
  worker holder 20
  wait_until eval '[ "$(value "len(leases)")" = 1 ] && [ "$(resident_mib)" -gt 450 ]'
  local pid
  pid=$(value 'leases[0]["pid"]')
  stop_process "$pid"
  worker other 5
  sleep 1
  kill -CONT "$pid"
  wait_until grep -q '^done: .*, 0 wrong$' holder
  wait_until grep -q '^done: .*, 0 wrong$' other
}
