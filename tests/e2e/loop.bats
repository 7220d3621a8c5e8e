#!/usr/bin/env bats
# The daemon's loop must not wait for any process, not even for one whose files in /proc block their
# readers. A test fails if the loop would wait.

load helpers
load watch_helpers

# While a program holds the lock of its address space, readers of its files in /proc wait, so the
# FUSE server for which the program waits is killed first.
teardown() {
  local server
  server=$(sed -n 's/^server //p' "${E2E_DIR:-/nonexistent}/locked" 2>/dev/null || true)
  if [ -n "$server" ]; then kill -KILL "$server" 2>/dev/null || true; fi
  end_test
}

# Starts a program without a lease on the GPU, which holds the lock of its address space.
start_locked() {
  make_folders
  printf 'unreserved_threshold = "0"\n' >gpurota.toml
  mkdir mnt
  in_background locked "$E2E_LOCKED_PROGRAM" "$PWD/mnt"
  LOCKED=$BACKGROUND_PID
  wait_until grep -qsE '^held|^cannot' locked
  if grep '^cannot' locked; then skip "needs a file system of its own (FUSE)"; fi
}

# process EXPRESSION: whether a Python expression is true of the process p in `gpurota ps`.
process() {
  timeout 10 gpurota ps --json >ps.json || return 2
  python3 -c '
import json, sys
p = next(p for p in json.load(open("ps.json"))["processes"] if p.get("pid") == int(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2], {"p": p}) else 1)' "$LOCKED" "$1"
}
listed() { process True; }

@test "a process that nobody can read is shown without its command, and nobody waits for it" {
  start_locked
  start_daemon
  wait_until listed
  process 'not p.get("command")'
  timeout 10 gpurota status >/dev/null
  timeout 10 gpurota doctor >examined || [ $? != 124 ]
  grep 'event loop.*longest round' examined
  wait_until event_is "finding_begun.*pid $LOCKED"
  kill -KILL "$(sed -n 's/^server //p' locked)"
  wait_until process '"locked_program" in (p.get("command") or [""])[0]'
}

@test "a daemon that cannot read a process ends on SIGTERM" {
  start_locked
  start_daemon
  wait_until listed
  stop_daemon
}

@test "the guard of these tests finds what the loop must not open, and lets the rest pass" {
  make_folders
  [ -n "${E2E_LOOP_GUARD:-}" ] || skip "needs what the build has made"
  as_daemon() { (export LD_PRELOAD=$E2E_LOOP_GUARD && exec -a gpurotad "$@"); }
  as_daemon cat "/proc/$$/stat" "/proc/$$/status" "/proc/$$/cgroup" /proc/meminfo /proc/self/maps \
    >/dev/null
  run as_daemon cat "/proc/$$/cmdline"
  [ "$status" = 134 ]
  [[ $output == *"the thread of the loop opens /proc/$$/cmdline"* ]]
  for name in environ maps smaps auxv mem; do
    run as_daemon cat "/proc/$$/$name"
    [ "$status" = 134 ]
  done
  LD_PRELOAD=$E2E_LOOP_GUARD cat "/proc/$$/cmdline" >/dev/null
}
