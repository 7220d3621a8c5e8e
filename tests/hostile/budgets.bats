#!/usr/bin/env bats
# One user takes as much as it can of what the daemon has for all.

load ../e2e/helpers

setup() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  make_folders
  chmod 755 . run
}
# Leases of others are there, which nobody here could release.
teardown() {
  if [ -n "${DAEMON_PID:-}" ]; then kill_daemon; fi
  end_test
}

# case_of NAME: of budgets.py.
case_of() { timeout 60 python3 -B "$BATS_TEST_DIRNAME/budgets.py" "$1"; }


@test "who fills the table of descriptors is refused, and says why; others and root are served" {
  as_daemon() { ulimit -n 600 && exec "$@"; }
  start_daemon
  case_of descriptors
  says gpurotad.log "nobody may hold more than are left"
}

@test "programs under limits are counted for their user, over all leases" {
  echo 'max_tenants_per_user = 10' >gpurota.toml
  start_daemon
  case_of tenants
  says gpurotad.log "max_tenants_per_user"
}

@test "answers that nobody reads take memory within the user's budget, and a reader that is behind hears how things stand last" {
  start_daemon
  case_of unread
}

@test "what one user makes the daemon log is a few lines and a number" {
  start_daemon
  case_of flood
  wait_until says gpurotad.log "more of the same within ten seconds, not written.*uid=54001"
  [ "$(grep -c 'uid=54001' gpurotad.log)" -lt 150 ]
}
