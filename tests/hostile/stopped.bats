#!/usr/bin/env bats
# Programs that are stopped while they have what others need.

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

probe() { # probe NAME SECONDS SEED
  in_background "$1" env PROBE_BUFFERS=32 gpurota run --gpu-ids 0 --swap --memory 700M -- "$E2E_SWAP_PROBE" torture "$2" "$3"
}
explained() { gpurota explain "$1" 2>&1 | grep -q "$2"; }
resident_mib() { gpurota turns --json | python3 -c "import json, sys; print(json.load(sys.stdin)['gpus'][0]['leases'][0]['resident_bytes'] >> 20)"; }

@test "a holder that is stopped loses its lease once somebody has needed its memory for so long" {
  probe holder 60 1
  wait_until eval '[ "$(value "len(leases)")" = 1 ] && [ "$(resident_mib)" -gt 450 ]'
  local lease pid
  lease=$(value 'leases[0]["lease_id"]') pid=$(value 'leases[0]["pid"]')
  stop_process "$pid"
  sleep 3 # nobody needs it
  [ "$(value "leases[0]['lease_id']")" = "$lease" ]
  probe other 8 2
  wait_until eval 'explained L3 "waits for memory of a stopped process.* it belongs to L2 of .*, which is ended in" || grep -q "^done$" other'
  wait_until grep -q '^done$' other
  run -1 kill -0 "$pid"
  gpurota events | grep "$lease" | grep -q 'one of its processes stayed stopped'
}

@test "one that is stopped, and goes on in time, loses nothing" {
  probe holder 20 3
  wait_until eval '[ "$(value "len(leases)")" = 1 ] && [ "$(resident_mib)" -gt 450 ]'
  local pid
  pid=$(value 'leases[0]["pid"]')
  stop_process "$pid"
  probe other 5 4
  sleep 1
  kill -CONT "$pid"
  wait_until grep -q '^done$' holder
  wait_until grep -q '^done$' other
}
