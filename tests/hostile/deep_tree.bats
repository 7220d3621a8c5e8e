#!/usr/bin/env bats
# A question about many processes below a deep tree is answered in pieces, between answers to
# others.

load ../e2e/helpers

setup() {
  make_folders
  start_daemon
}
teardown() { end_test; }

@test "processes of a lease are listed rightly, whatever is asked at once, and however deep" {
  gpurota run --gpu-ids 0 --memory 1G -- python3 -B "$BATS_TEST_DIRNAME/deep_tree.py"
}

@test "a tenant that leaves in the middle of an answer harms nobody" {
  for _ in {1..3}; do
    DEEP_TREE_LEAVES=1 gpurota run --gpu-ids 0 --memory 1G -- python3 \
      -B "$BATS_TEST_DIRNAME/deep_tree.py"
  done
  gpurota run --gpu-ids 0 --memory 1G -- python3 -B "$BATS_TEST_DIRNAME/deep_tree.py"
  kill -0 "$DAEMON_PID"
}
