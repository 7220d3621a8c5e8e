#!/usr/bin/env bats
# A tenant that does not read its answers.

load ../e2e/helpers

setup() { start_daemon; }
teardown() { end_test; }

@test "a tenant that reads nothing, with several answers outstanding, is disconnected and nothing else ends" {
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder holding
  python3 -B "$BATS_TEST_DIRNAME/unread.py"
  gpurota status | grep -q L1
  kill -0 "$DAEMON_PID"
}
