# Helpers of the tests of jobs, with the setup and teardown of each case; load helpers first.
#
# shellcheck shell=bash disable=SC2034 # `machine` is used by the tests

setup() { start_daemon; }
teardown() {
  remove_jobs >/dev/null 2>&1 || true
  end_test
}

# Removes the jobs of all users.
remove_jobs() {
  local name uid
  while read -r name uid; do
    gpurota job remove --force "$name" --user "$uid"
  done < <(gpurota job list --json | python3 \
    -c 'import json,sys; [print(j["name"], j["uid"]) for j in json.load(sys.stdin)["jobs"]]')
  wait_until no_jobs
}
no_jobs() { [ "$(gpurota job list)" = 'no jobs' ]; }

# add NAME [OPTION…] -- COMMAND…: adds a job. ${machine[@]} has the variables that its program needs
# on a simulated machine.
add() { gpurota job add "$@"; }
machine=(--env LD_LIBRARY_PATH --env GPUROTA_SIM_DIR --env E2E_DIR)

# job_is NAME EXPRESSION: whether the expression is true of the job's JSON, j.
job_is() {
  gpurota job show "$1" --json | python3 -c '
import json, sys
sys.exit(0 if eval(sys.argv[1], {"j": json.load(sys.stdin)["jobs"][0]}) else 1)' "$2"
}
in_state() { job_is "$1" "j['state'] == '$2'"; }
logged() { gpurota job logs "$1" | grep -q -- "$2"; }

keepers() { pgrep -f "^gpurota-keeper $E2E_DIR/"; }
# pid_of NAME: the pid that the job has printed as "pid N".
pid_of() { gpurota job logs "$1" | sed -n 's/^pid //p' | tail -n 1; }

# Simulates a reboot: everything ends at once, and the next boot has another id.
reboot_machine() {
  kill_daemon
  local pid
  for pid in $(keepers); do
    # Ends the keeper and the programs below it.
    kill -KILL $(pgrep -P "$pid") "$pid" 2>/dev/null || true
  done
  kill_leftovers
  wait_until no_keepers
  python3 - "$E2E_DIR/state" <<'PYTHON'
import glob, sqlite3, sys
for path in glob.glob(sys.argv[1] + "/*.db") + glob.glob(sys.argv[1] + "/*.sqlite*"):
    if path.endswith(("-wal", "-shm")):
        continue
    with sqlite3.connect(path) as store:
        for table in ("job", "job_item", "lease", "request"):
            if store.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
                store.execute(f"UPDATE {table} SET boot_id = 'the boot before'")
PYTHON
}
no_keepers() { [ -z "$(keepers)" ]; }

# fill_disk: the daemon cannot make any file longer, as on a full disk. make_room: it can again.
fill_disk() { prlimit --pid "$DAEMON_PID" --fsize=0:unlimited; }
make_room() { prlimit --pid "$DAEMON_PID" --fsize=unlimited:unlimited; }
store_is() { gpurota doctor --json | python3 -c '
import json, sys
sys.exit(0 if any(c["name"] == "store" and c["status"] == sys.argv[1]
                  for c in json.load(sys.stdin)["checks"]) else 1)' "$1"; }
