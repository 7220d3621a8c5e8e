#!/usr/bin/env bats
# A disk that blocks for any time (stuck_disk.c): only the client that asked for a change waits for
# the disk. If the daemon's loop waits, the guard ends the daemon, and the case fails.

load helpers

setup() {
  [ -e "${E2E_STUCK_LIBRARY:-}" ] || skip "needs what the build has made"
  make_folders
  export E2E_STUCK_DISK=$E2E_DIR/stuck
  # shellcheck disable=SC2034 # start_daemon reads it
  DAEMON[1]="LD_PRELOAD=${E2E_LOOP_GUARD:-}:$E2E_STUCK_LIBRARY"
  start_daemon
}
teardown() {
  rm -f "${E2E_DIR:-/nonexistent}"/stuck{,.logs}
  end_test
}

stick() { : >stuck; }
let_go() { rm stuck; }
waits_for_disk() { [ -s stuck.waiting ]; }
runs() { kill -0 "$1" 2>/dev/null; }

@test "programs get memory and everybody gets answers while a change waits for the disk" {
  # The program has its lease, and asks for memory later.
  in_background program gpurota run --memory 4G -- \
    bash -c "echo ready; while [ ! -e go ]; do sleep 0.02; done; exec $PROGRAM hold 1000"
  wait_until says program ready
  stick
  in_background reserved gpurota reserve --memory 1G --short
  local asker=$BACKGROUND_PID
  wait_until waits_for_disk
  : >go
  wait_until says program holding
  for _ in {1..20}; do timeout 10 gpurota status >/dev/null; done
  timeout 10 gpurota ps >/dev/null
  timeout 10 gpurota queue >/dev/null
  # The reservation is made but not reported, because the disk may still lose it.
  holds 'len(leases) == 2'
  runs "$asker"
  [ ! -s reserved ]
  let_go
  wait_until test -s reserved
  wait_until gone "$asker"
}

@test "a program gets its automatic lease when the lease is on the disk" {
  printf '[automatic]\nenabled = true\nmemory = "1G"\n' >gpurota.toml
  gpurota reload
  stick
  in_background given env "LD_PRELOAD=$(find "$E2E_PREFIX" -name libgpurota.so)" "$PROGRAM" hold 100
  local given=$BACKGROUND_PID
  wait_until holds 'len(leases) == 1'
  wait_until waits_for_disk
  for _ in {1..20}; do timeout 10 gpurota status >/dev/null; done
  runs "$given"
  [ ! -s given ]
  let_go
  wait_until says given holding
}

@test "changes of many clients share one wait for the disk, and survive a kill" {
  stick
  local i
  for i in {1..8}; do in_background "reserved$i" gpurota reserve --memory 512M --short; done
  wait_until holds 'len(leases) == 8'
  for i in {1..8}; do [ ! -s "reserved$i" ]; done
  # No client has been told of its change yet. A kill of the daemon must not lose these changes.
  kill_daemon
  rm stuck
  start_daemon
  holds 'len(leases) == 8'
}

@test "a release that waits for the disk ends nobody else's lease, and a program ends without it" {
  in_background held gpurota run --memory 1G -- "$PROGRAM" hold 100
  local holder=$BACKGROUND_PID
  wait_until says held holding
  gpurota reserve --memory 1G --short
  stick
  in_background released gpurota release L2
  wait_until waits_for_disk
  # Meanwhile the program's lease ends by itself, and nobody waits until its end is stored.
  pkill -TERM -P "$holder"
  wait_until holds 'leases == []'
  let_go
  wait_until gone "$BACKGROUND_PID"
}

@test "a daemon that stops has stored everything" {
  stick
  in_background reserved gpurota reserve --memory 1G --short
  # The lease must be among the changes that wait for the disk. A change of the history alone can
  # also wait for the disk, so this case waits for the lease first.
  wait_until holds 'len(leases) == 1'
  wait_until waits_for_disk
  kill -TERM "$DAEMON_PID"
  rm stuck
  wait "$DAEMON_PID"
  DAEMON_PID=
  [ ! -e state/gpurota.db-wal ]
  start_daemon
  holds 'len(leases) == 1'
}

@test "a log is read while everybody else gets answers, however long its disk takes" {
  gpurota job add talker --memory 1G -- bash -c 'echo said; sleep 1000'
  wait_until job_said
  : >stuck.logs
  in_background read gpurota job logs talker
  wait_until test -s stuck.logs.waiting
  for _ in {1..20}; do timeout 10 gpurota status >/dev/null; done
  timeout 10 gpurota job list >/dev/null
  [ ! -s read ]
  rm stuck.logs
  wait_until says read said
  wait_until gone "$BACKGROUND_PID"
  gpurota job remove --force talker
}
job_said() { gpurota job logs talker | grep -q said; }
