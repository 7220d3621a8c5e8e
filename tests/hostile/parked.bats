#!/usr/bin/env bats
# Connections that nobody uses are closed.

load ../e2e/helpers

setup() { start_daemon; }
teardown() { end_test; }

@test "a connection that has not said hello ends, even if it was refused or asked for a lease" {
  python3 -B "$BATS_TEST_DIRNAME/parked.py"
}
