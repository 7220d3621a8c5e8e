#!/usr/bin/env bats
# Jobs: a daemon that is killed at a bad moment, and a daemon whose user has no account.

# shellcheck disable=SC2154 # machine is of job_helpers
load helpers
load job_helpers

# Each case starts a daemon in its own way.
setup() { :; }
no_job() { ! gpurota job show "$1" >/dev/null 2>&1; }

# change_state OLD NEW: replaces text in the stored records of jobs; "\0" is a NUL.
change_state() {
  python3 - "$E2E_DIR/state" "$@" <<'PYTHON'
import sqlite3, sys
old, new = (word.encode().replace(b"\\0", b"\0") for word in sys.argv[2:])
for path in [sys.argv[1] + "/gpurota.db"]:
    with sqlite3.connect(path) as store:
        for id, state in store.execute("SELECT id, state FROM job").fetchall():
            assert old in state, state
            state = state.replace(old, new)
            store.execute("UPDATE job SET state = ? WHERE id = ?", (state, id))
PYTHON
}

@test "a job being removed when the daemon is killed ends and is gone" {
  start_daemon
  add deaf --memory 1G --restart always "${machine[@]}" -- sh \
    -c 'trap "" TERM; echo "pid $$"; while [ ! -e go ]; do sleep 0.1; done'
  wait_until logged deaf 'pid '
  local pid
  pid=$(pid_of deaf)
  gpurota job remove --force deaf
  in_list deaf stopping
  kill_daemon
  start_daemon
  in_list deaf stopping
  run -1 gpurota job start deaf
  run -1 gpurota job add deaf -- true
  [[ "$output" == *'is just being removed'* ]]
  touch go
  wait_until no_jobs
  wait_until gone "$pid"
  kill_daemon
  start_daemon
  no_jobs
}
in_list() { gpurota job list | grep -q "^$1 .* $2 "; }

@test "a removal that a killed daemon did not finish is finished by the next one" {
  start_daemon
  add web --memory 1G -- sleep 600
  wait_until in_state web running
  kill_daemon
  mkdir "$E2E_DIR/state/jobs/999" && echo TOKEN >"$E2E_DIR/state/jobs/999/orders"
  mkdir -p "$E2E_DIR/state/fillers/999" && echo TOKEN >"$E2E_DIR/state/fillers/999/orders"
  start_daemon
  in_state web running
  [ ! -e "$E2E_DIR/state/jobs/999" ]
  [ ! -e "$E2E_DIR/state/fillers/999" ]
  [ "$(ls "$E2E_DIR/state/jobs")" = 1 ]
}

# Runs a job, and then kills the daemon.
run_once_and_kill() {
  start_daemon
  add once --memory 1G -- sh -c 'echo run'
  wait_until in_state once finished
  kill_daemon
}

@test "a start that was stored but not made is made by the next daemon, as a new run" {
  run_once_and_kill
  # Changes the files as if the daemon had been killed before there was a keeper.
  change_state finished running
  rm "$E2E_DIR"/state/jobs/*/report
  echo "not begun" >"$(echo "$E2E_DIR"/state/jobs/*)/lock"
  start_daemon
  wait_until in_state once finished
  [ "$(gpurota job logs once | grep -c run)" = 2 ]
  job_is once '[r["reason"] for r in j["runs"]] == ["exited", "exited"]'
  [ ! -s "$(echo "$E2E_DIR"/state/jobs/*)/lock" ]
}

@test "the first start of a job that was stored but not made is made by the next daemon" {
  run_once_and_kill
  change_state finished running
  rm "$E2E_DIR"/state/jobs/*/{report,lock}
  start_daemon
  wait_until in_state once finished
  [ "$(gpurota job logs once | grep -c run)" = 2 ]
}

@test "a start whose keeper has begun is not made again" {
  run_once_and_kill
  change_state finished running
  rm "$E2E_DIR"/state/jobs/*/report
  start_daemon
  wait_until in_state once failed
  job_is once '[r["reason"] for r in j["runs"]] == ["exited", "unknown"]'
  [ "$(gpurota job logs once | grep -c run)" = 1 ]
}

@test "a run that could not ask for its lease, as its daemon was killed, is made again" {
  run_once_and_kill
  change_state finished 'running\0asking\01'
  printf 'signalled\0000\0code\000125\0cannot_start\0\0whole\0001\0' \
    >"$(echo "$E2E_DIR"/state/jobs/*)/report"
  start_daemon
  wait_until in_state once finished
  [ "$(gpurota job logs once | grep -c run)" = 2 ]
  job_is once '[r["reason"] for r in j["runs"]] == ["exited", "exited"]'
}

@test "a run that had begun and left no report is not made twice" {
  run_once_and_kill
  change_state finished running
  rm "$E2E_DIR"/state/jobs/*/report
  start_daemon
  wait_until in_state once failed
  job_is once 'j["runs"][-1]["reason"] == "unknown"'
  [ "$(gpurota job logs once | grep -c run)" = 1 ]
}

@test "while the daemon is killed repeatedly, no job runs twice and none is lost" {
  make_folders
  echo 'grace = "1s"' >gpurota.toml
  local seed
  for seed in 1 "$RANDOM"; do
    python3 "$BATS_TEST_DIRNAME/jobs_hammer.py" "$seed" 8 "${DAEMON[@]}"
  done
}

@test "a daemon whose user has no account runs its own jobs and fillers, and nobody else's" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it becomes a user without an account"; fi
  as_stranger() { HOME=$E2E_DIR setpriv --reuid 3210987 --regid 3210987 --clear-groups "$@"; }
  run -2 getent passwd 3210987
  make_folders
  chown -R 3210987 .
  chmod 755 . run
  as_daemon() { HOME=$E2E_DIR exec setpriv --reuid 3210987 --regid 3210987 --clear-groups "$@"; }
  chmod -R a+rwX "$GPUROTA_SIM_DIR"
  chmod a+rx "$GPUROTA_SIM_DIR"
  start_daemon
  as_stranger gpurota job add own --memory 1G --env LD_LIBRARY_PATH --env GPUROTA_SIM_DIR -- \
    sh -c 'id -u; echo "$HOME $USER $GPUROTA_LEASE"; exec sleep 600'
  own_log() { as_stranger gpurota job logs own | grep -qx "$E2E_DIR 3210987 L[0-9]*"; }
  wait_until own_log
  [ "$(as_stranger gpurota job logs own | head -n 1)" = 3210987 ]
  run -1 gpurota job add mine -- true
  [[ "$output" == *'runs as uid 3210987 and cannot run a job of another user'* ]]
  as_stranger gpurota filler add fill --idle-after 1s -- sleep 600
  wait_until holds 'any(l["kind"] == "filler" for l in leases)'
  as_stranger gpurota filler remove fill
  as_stranger gpurota job remove --force own
  wait_until holds 'not leases'
}

@test "events just before a kill of the daemon are among those of the next" {
  start_daemon
  local i
  for i in 1 2 3 4 5; do
    gpurota run --note "run $i" --memory 1G -- true
    kill_daemon # before it has stored anything
    start_daemon
    gpurota events --json >happened
    python3 - "$i" <<'PYTHON'
import json, sys
events = [json.loads(line) for line in open("happened")]
mine = [e["type"] for e in events if f"(run {sys.argv[1]})" in (e["detail"] or "")]
sys.exit(0 if {"lease_made", "lease_started", "lease_ending"} <= set(mine)
         and len(set(e["event_id"] for e in events)) == len(events) else f"{mine}")
PYTHON
  done
}
