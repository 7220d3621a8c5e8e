#!/usr/bin/env bats
# The peer of a connection is the process that made it, not a later process with the same number.

load ../e2e/helpers

setup() {
  make_folders
  chmod 755 . run
}
teardown() { end_test; }

# in_pid_namespace CASE: runs a case of stale_peer.py. All its processes end with the namespace.
in_pid_namespace() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  if ! unshare -pf --mount-proc -- sh -c 'echo 1000 >/proc/sys/kernel/ns_last_pid' 2>/dev/null; then
    skip "no pid namespace can be made here, or its counter not set"
  fi
  timeout 120 unshare -pf --mount-proc --kill-child -- \
    python3 -B "$BATS_TEST_DIRNAME/stale_peer.py" "$1" "${DAEMON[@]}"
}

@test "a process that got the number of one that has ended is not killed with that one's lease" {
  in_pid_namespace no_stranger_is_killed
}

@test "a connection whose process has ended does not get the token of a lease" {
  in_pid_namespace no_token_is_given_away
}

@test "a connection whose process has ended does not act for the process that reuses its number" {
  in_pid_namespace nobody_asks_in_anothers_name
}
