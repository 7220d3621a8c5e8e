#!/usr/bin/env bats
# One user takes as much as possible of the resources that the daemon has for all users.

load ../e2e/helpers

setup() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  make_folders
  chmod 755 . run
}
# Some leases belong to other users, so nobody here could release them.
teardown() {
  if [ -n "${DAEMON_PID:-}" ]; then kill_daemon; fi
  end_test
}

# case_of NAME: runs this case of budgets.py.
case_of() { timeout 60 python3 -B "$BATS_TEST_DIRNAME/budgets.py" "$1"; }


@test "a user who uses up descriptors is refused, with the reason; others and root are served" {
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

@test "unread answers stay within the user's budget of memory, and a slow reader gets the newest state" {
  start_daemon
  case_of unread
}

@test "one user makes the daemon log a few lines and a number" {
  start_daemon
  case_of flood
  wait_until says gpurotad.log "more of the same within ten seconds, not written.*uid=54001"
  [ "$(grep -c 'uid=54001' gpurotad.log)" -lt 150 ]
}

@test "a user who makes leases in a loop is refused after some, and may continue slowly" {
  echo 'max_new_leases_per_hour = 20' >gpurota.toml
  start_daemon
  case_of new_leases
  gpurota doctor | grep 'new leases: .* uses 20 of 20'
}

@test "the output of a user's jobs and fillers has a bound on the disk, which one too many is refused for" {
  echo 'job_log_size_per_user = "32M"' >gpurota.toml
  start_daemon
  gpurota job add a --memory 1G -- sleep 600
  gpurota job add b --memory 1G -- sleep 600
  run gpurota job add c --memory 1G -- sleep 600
  [ "$status" != 0 ]
  [[ $output == *"could take 48 MiB, and the site allows 32 MiB"*job_log_size_per_user* ]]
  gpurota doctor | grep 'output of jobs and fillers: .* uses 32 MiB of 32 MiB'
  gpurota job remove --force a
  wait_until gpurota job add c --memory 1G -- sleep 600
  run gpurota filler add f -- sleep 600
  [ "$status" != 0 ]
  [[ $output == *job_log_size_per_user* ]]
  gpurota job remove --force b
  wait_until gpurota filler add f -- sleep 600
  run gpurota job add b --memory 1G -- sleep 600
  [[ $output == *"could take 48 MiB"* ]]
  gpurota filler remove f
  gpurota job remove --force c
  wait_until no_leases
}
