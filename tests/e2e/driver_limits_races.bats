#!/usr/bin/env bats
# The driver's limits are right, whatever order leases, processes, others and the daemon's ends come
# in. Runs for E2E_RACES_SECONDS (20), with the seed E2E_SEED. tests/stress/hours.sh runs this file
# for hours, many instances at once.
#
# machine: demo-r615

load helpers
load driver_limits_helpers

setup() { make_groups; }
teardown() {
  end_test
  remove_groups
}

@test "no limit outlives its lease, another's limit stays, and a slice has exactly one" {
  local seed=${E2E_SEED:-$$}
  echo "seed $seed"
  python3 -B "$BATS_TEST_DIRNAME/limit_races.py" "${E2E_RACES_SECONDS:-20}" "$seed" "$PROGRAM" \
    "${DAEMON[@]}" --log-level debug 3>&- >counts || { cat counts && return 1; }
  sed 's/^/# /' counts | tee -a "${E2E_REPORT:-/dev/null}"
}
