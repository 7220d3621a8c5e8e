#!/usr/bin/env bats
# The system runs short of a resource, once, at each call of the daemon (failing_calls.c): a request
# fails, and nothing else. These cases test only every STRIDE-th call; with E2E_FAILING_STRIDE=1
# they test every call, which takes an hour or two.

load ../e2e/helpers

setup() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  [ -e "${E2E_FAILING_LIBRARY:-}" ] || skip "needs what the build has made"
  make_folders
  chmod 755 . run
  printf '[automatic]\nenabled = true\nmemory = "256M"\n' >gpurota.toml
  export E2E_FAILING_CALLS=$E2E_DIR/failing
  head -c 20 /dev/zero >failing
  # shellcheck disable=SC2034 # start_daemon reads it
  DAEMON[1]="LD_PRELOAD=${E2E_LOOP_GUARD:-}:$E2E_FAILING_LIBRARY"
  start_daemon
  learn_context_cost
}
teardown() {
  if [ -n "${DAEMON_PID:-}" ]; then kill_daemon; fi
  end_test
}

# fail_calls KIND STRIDE
fail_calls() {
  # shellcheck disable=SC2086 # names of pieces
  python3 -B "$BATS_TEST_DIRNAME/failing_calls.py" "$1" "${E2E_FAILING_STRIDE:-$2}" \
    ${E2E_FAILING_PIECES:-} \
    >>"${E2E_REPORT:-/dev/stdout}"
}

# begin_with KIND STRIDE: kills the daemon of the case and starts others, which end with the case.
begin_with() {
  DAEMON_PID=
  python3 -B "$BATS_TEST_DIRNAME/failing_calls.py" "$1" "${E2E_FAILING_STRIDE:-$2}" begin \
    "${DAEMON[@]}" \
    >>"${E2E_REPORT:-/dev/stdout}"
}

@test "no memory ends nothing but a request" {
  fail_calls memory 500
}
@test "no memory for a while ends nothing but requests" {
  E2E_FAILING_TIMES=${E2E_FAILING_TIMES:-20} fail_calls memory 700
}
@test "no thread ends nothing but a request" {
  fail_calls threads 1
}
@test "no descriptor ends nothing but a request" {
  fail_calls descriptors 5
}
@test "no room on the disk ends nothing but a request" {
  fail_calls disk 3
}

@test "a daemon that begins without memory takes up all there is, or ends and the next one does" {
  begin_with memory 400
}
@test "a daemon that begins without threads takes up all there is, or ends and the next one does" {
  begin_with threads 1
}
@test "a daemon that begins without descriptors takes up all there is, or ends and the next one does" {
  begin_with descriptors 7
}
@test "a daemon that begins without room on the disk takes up all there is, or ends and the next one does" {
  begin_with disk 3
}

@test "a daemon that can have no more memory refuses, keeps what there is, and serves again when it can" {
  in_background holder gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder holding
  python3 -B "$BATS_TEST_DIRNAME/no_memory.py"
  kill -0 "$BACKGROUND_PID"
  gpurota release --all
  wait_until no_leases
}
