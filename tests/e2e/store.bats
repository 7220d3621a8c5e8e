#!/usr/bin/env bats
# Damage to the daemon's files: no daemon may lose leases without a message.

load helpers

setup() { start_daemon; }
teardown() {
  if [ -n "${DAEMON_PID:-}" ]; then gpurota release --all >/dev/null 2>&1 || true; fi
  end_test
}

DATABASE=state/gpurota.db

start_lease() {
  in_background program gpurota run --memory 2G -- "$PROGRAM" hold 100
  wait_until says program holding
}

# The daemon must end at once, and say what happened and what to do.
refuses_to_start() {
  run -1 timeout 20 "${DAEMON[@]}"
  [[ "$output" == *"$1"* ]]
  [[ "$output" == *"Nothing was changed"* ]]
  [[ "$output" == *"move "* ]]
}

@test "a daemon starts with an emptied database only when an administrator confirms it" {
  start_lease
  kill_daemon
  cp -r state saved
  : >"$DATABASE"
  refuses_to_start 'is lost: the file is empty'
  rm -r state
  cp -r saved state
  rm "$DATABASE" "$DATABASE-wal"
  refuses_to_start 'is lost: the file is not there'
  rm -r state
  mv saved state
  start_daemon
  holds 'len(leases) == 1'
}

@test "a daemon does not start with a database whose log was lost" {
  start_lease
  local holder=$BACKGROUND_PID
  kill_daemon
  cp -r state saved
  : >"$DATABASE-wal"
  refuses_to_start 'is damaged: it is older'
  [ ! -s "$DATABASE-wal" ]
  head -c 20000 /dev/urandom >"$DATABASE-wal"
  refuses_to_start 'is damaged: it is older'
  # Does what the message says, and starts with the remaining data. gpurota run then ends its
  # command.
  mv state/store.mark elsewhere
  start_daemon
  holds 'leases == []'
  wait_until gone "$holder"
}

@test "a daemon does not start with a database whose log lost a confirmed lease's bytes" {
  gpurota reserve --memory 1G --for 1h
  gpurota reserve --memory 1G --for 1h
  kill_daemon
  cp "$DATABASE-wal" whole
  truncate -s -7 "$DATABASE-wal"
  refuses_to_start 'gpurota.db-wal was lost or damaged'
  cp whole "$DATABASE-wal"
  start_daemon
  holds 'len(leases) == 2'
}

@test "a daemon that stops leaves all it knows in one file" {
  start_lease
  stop_daemon
  [ ! -e "$DATABASE-wal" ]
  start_daemon
  holds 'len(leases) == 1'
}

@test "a release that the disk has no room for is not reported as done" {
  gpurota reserve --memory 1G --short
  prlimit --pid "$DAEMON_PID" --fsize=0:unlimited
  run -1 gpurota release
  [[ "$output" == *'the end of L1: the change is in effect, but not stored: cannot '* ]]
  prlimit --pid "$DAEMON_PID" --fsize=unlimited:unlimited
  wait_until eval 'gpurota doctor --json | grep -A3 "\"store\"" | grep -q "\"ok\""'
  kill_daemon
  start_daemon
  holds 'leases == []'
}
