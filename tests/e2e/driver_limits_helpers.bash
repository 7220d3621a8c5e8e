# Helpers of the tests of the driver's own limits, on the machine demo-r615 with simulated control
# groups (cgroup_tree.c); load helpers first.
#
# shellcheck shell=bash disable=SC2034 # start_daemon reads DAEMON

LIMITS=$BATS_TEST_DIRNAME/driver_limits.py

# For setup().
make_groups() {
  [ -e "${E2E_CGROUP_TREE:-}" ] || skip "needs what the build has made"
  TREE=$GPUROTA_SIM_DIR/cgroup
  rm -rf "$TREE"
  mkdir "$TREE"
  make_folders
  DAEMON[1]="LD_PRELOAD=${E2E_LOOP_GUARD:-}:$E2E_CGROUP_TREE"
}

# pod_lease ALLOCATION UID: takes 1 GiB of GPU 0 for a pod.
pod_lease() {
  python3 -B "$BATS_TEST_DIRNAME/pod_lease.py" "$E2E_DIR/run/control.sock" "$1" "$2" 0 1024
}

# For teardown(), after end_test.
remove_groups() { rm -rf "$TREE" "$TREE-slow"; }

enforce() {
  printf 'enforcement = "%s"\n[watch]\nnot_limited = "report"\n' "$1" >gpurota.toml
  start_daemon
}

lease() { holds "len(leases) == 1 and ($(printf '(lambda l: %s)(leases[0])' "$1"))"; }
by_driver() { lease 'l["enforced_by"] == "library_and_driver"'; }
# The hard limit in MiB of a control group, by default of the only one below the tree.
limit() { python3 "$LIMITS" get "${1:-$(group)}"; }
limit_is() { [ "$(limit "$2")" = "$1" ]; }
group() { find "$TREE" -name 'gpurota-*' -type d | head -n 1; }
no_group() { [ -z "$(group)" ]; }
