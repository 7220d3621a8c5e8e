#!/usr/bin/env bats
# The limit under pressure: many threads in many processes, and all of them killed at once.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# The figure KEY of the hammer's report.
figure() { python3 -c "import json,sys; print(json.load(open('out'))['$1'])"; }

@test "64 threads in 8 processes reach the limit, never exceed it, and get all that fits" {
  gpurota run --gpu-ids 0 --memory 4G -- "$E2E_HAMMER" 8 8 20 4096 >out || { cat out; false; }
  cat out
  [ "$(figure over_limit)" = 0 ]
  [ "$(figure wrongly)" = 0 ]
  [ "$(figure corrupt)" = 0 ]
  [ "$(figure refusals)" -gt 0 ]
  python3 -c "import sys; sys.exit(not $(figure peak_percent) >= 95)"
}

@test "after a kill -9 of all processes, nothing stays charged" {
  in_background hammer gpurota run --gpu-ids 0 --memory 4G -- "$E2E_HAMMER" 8 4 600 4096
  wait_until holds 'leases[0]["gpus"][0]["used_bytes"] > 2 * 2**30'
  pkill -9 -f "^$E2E_HAMMER 8 4 600"
  wait_until no_leases
  memory_is_back
  holds 'all(g["used_bytes"] == 0 for g in gpus)'
}
