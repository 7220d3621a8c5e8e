#!/usr/bin/env bats
# A lease is not parked if host memory could not take what it has on its GPU. The control groups are
# simulated (cgroup_tree.c).

load helpers
load driver_limits_helpers

setup() { make_groups; }
teardown() {
  end_test
  remove_groups
}

@test "a control group that is 256 MiB too small is refused, and harms nothing" {
  start_daemon
  in_background program gpurota run --gpu-ids 0 --memory 2G -- \
    "$E2E_PARK_PROGRAM" compute "$E2E_DIR/stop"
  local program=$BACKGROUND_PID
  wait_until says program ready
  wait_until holds 'gpus[0]["used_bytes"] > 0'
  local used
  used=$(value 'gpus[0]["used_bytes"]')
  echo 0 >"$(group)/memory.current"
  echo $((used + (255 << 20))) >"$(group)/memory.max"
  run gpurota park L1
  [[ "$status" = 1 && "$output" = *"the control group of its programs has "*" left"* ]]
  echo max >"$(group)/memory.max"
  gpurota park L1
  gpurota unpark L1
  touch "$E2E_DIR/stop"
  ends_with 0 "$program"
  says program right
}
