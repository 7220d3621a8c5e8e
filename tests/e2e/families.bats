#!/usr/bin/env bats
# Every family of device memory at random under a limit, with a model beside it (tests/stress/families).

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# The figure KEY of the report.
figure() { python3 -c "import json,sys; print(json.load(open('out'))['$1'])"; }

# FAMILIES_SECONDS and FAMILIES_SEED for longer and other runs.
stress() {
  gpurota run --gpu-ids 0 --memory "$3M" -- "$E2E_FAMILIES" "$1" "$2" "${FAMILIES_SECONDS:-3}" "$3" \
    "${FAMILIES_SEED:-$RANDOM}" >out || { cat out; false; }
  cat out
}

@test "all families in one process: nothing above the limit, nothing that fits refused, nothing left" {
  stress 1 4 2048
  [ "$(figure refused)" -gt 0 ]
}

@test "all families in three processes that share a limit" {
  stress 3 3 4096
  [ "$(figure refused)" -gt 0 ]
}
