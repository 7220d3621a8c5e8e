#!/usr/bin/env bats
# machine: demo-r615
# A lease is parked only with a driver with which that was measured, or that the site lists.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

@test "another driver is refused until gpurota.toml lists it" {
  in_background program gpurota run --gpu-ids 0 --memory 2G -- \
    "$E2E_PARK_PROGRAM" compute "$E2E_DIR/stop"
  local program=$BACKGROUND_PID
  wait_until says program ready
  run gpurota park L1
  [[ "$status" = 1 && "$output" = *"parking was not measured with driver 615"* ]]
  [[ "$output" = *'list "615" in [park] drivers of gpurota.toml'* ]]
  printf '[park]\ndrivers = ["615"]\n' >gpurota.toml
  gpurota reload
  gpurota park L1
  gpurota unpark L1
  touch "$E2E_DIR/stop"
  ends_with 0 "$program"
  says program right
}
