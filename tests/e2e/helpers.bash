# Helpers of the end-to-end tests. Put `load helpers` at the top of a .bats file, then
#
#   setup() { start_daemon; }
#   teardown() { end_test; }
#
# Every case has a daemon and folders of its own below $E2E_DIR, so files and cases can run side by
# side, as any user. Nothing waits for a fixed time: wait_until polls with a deadline.
#
# shellcheck shell=bash disable=SC2034 # `output`, `status` and DAEMON_PID are read by the tests

bats_require_minimum_version 1.5.0

PATH=$E2E_PREFIX/bin:$E2E_PREFIX/sbin:$PATH
PROGRAM=$E2E_PROGRAM
# The longest that any of our waits can take on a busy machine with two CPUs.
PATIENCE=${E2E_PATIENCE:-30}

# Makes the folders of this case, and sets DAEMON, the command that starts its daemon.
make_folders() {
  E2E_DIR=$(mktemp -d "${TMPDIR:-/tmp}/gpurota-e2e.XXXXXX")
  mkdir -m 700 "$E2E_DIR/run" "$E2E_DIR/state"
  : >"$E2E_DIR/gpurota.toml"
  export E2E_DIR GPUROTA_RUNTIME_DIR=$E2E_DIR/run
  export LC_ALL=C.UTF-8 # whatever the caller has
  # The guard ends a daemon whose loop opens a file by which another process could block the loop
  # (loop_guard.c).
  DAEMON=(env "LD_PRELOAD=${E2E_LOOP_GUARD:-}" gpurotad --runtime-dir "$E2E_DIR/run" \
    --state-dir "$E2E_DIR/state" --config "$E2E_DIR/gpurota.toml")
  cd "$E2E_DIR" || return 1
}

# as_daemon COMMAND…: starts the daemon; a case may replace this function.
as_daemon() { exec "$@"; }

# start_daemon [ARGUMENT…]: starts or restarts the daemon of the case, and returns when it answers.
start_daemon() {
  [ -n "${E2E_DIR:-}" ] || make_folders
  # File descriptor 3 is bats' own; a daemon that kept it would keep bats waiting.
  as_daemon "${DAEMON[@]}" --log-level debug "$@" >>"$E2E_DIR/gpurotad.log" 2>&1 3>&- &
  DAEMON_PID=$!
  wait_until daemon_answers
}

# Afterwards the daemon knows the cost of a context on GPU 0.
learn_context_cost() { gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" info >/dev/null; }

daemon_answers() {
  kill -0 "$DAEMON_PID" 2>/dev/null || return 2
  gpurota status >/dev/null 2>&1
}

stop_daemon() {
  kill -TERM "$DAEMON_PID"
  local code=0
  wait "$DAEMON_PID" || code=$?
  DAEMON_PID=
  return "$code"
}

kill_daemon() {
  kill -KILL "$DAEMON_PID"
  wait "$DAEMON_PID" 2>/dev/null || true
  DAEMON_PID=
}

# Ends everything that the case started. If the case failed, the folders stay, and the log is
# printed.
end_test() {
  # Releases the leases of all users if allowed; otherwise the wait for no leases would time out.
  if [ -n "${DAEMON_PID:-}" ]; then
    gpurota release --all-users --yes >/dev/null 2>&1 || gpurota release --all >/dev/null 2>&1 ||
      true
  fi
  kill_background
  if [ -n "${DAEMON_PID:-}" ]; then
    # A daemon that is stopped leaves programs and cgroups to the next daemon. No daemon follows
    # this one, so the leases must end first.
    wait_until no_leases >/dev/null 2>&1 || true
    kill -TERM "$DAEMON_PID" 2>/dev/null || true
    wait_until gone "$DAEMON_PID" || kill -KILL "$DAEMON_PID"
    wait "$DAEMON_PID" 2>/dev/null || true
  fi
  cd /
  if [ -z "${E2E_DIR:-}" ]; then return 0; fi
  kill_leftovers
  if [ -n "${BATS_TEST_COMPLETED:-}" ]; then
    rm -rf "$E2E_DIR"
  else
    echo "--- kept: $E2E_DIR; its daemon said:"
    tail -n 200 "$E2E_DIR/gpurotad.log" 2>/dev/null || true
  fi
}

# Whether a process has this case's folder in its environment.
is_of_case() { grep -qzxF "E2E_DIR=$E2E_DIR" "/proc/$1/environ" 2>/dev/null; }
is_child() { grep -qsx "PPid:[[:space:]]*$BASHPID" "/proc/$1/status"; }

# Without a daemon, nothing ends the programs of a lease. A program that stays would keep ctest
# waiting for its output.
kill_leftovers() {
  local process
  for process in /proc/[0-9]*; do
    if is_of_case "${process#/proc/}"; then kill -KILL "${process#/proc/}" 2>/dev/null || true; fi
  done
}

# A process that was started long ago may have ended, and another process may have its number now.
kill_background() {
  local pid
  for pid in "${BACKGROUND[@]}"; do
    if is_child "$pid" || is_of_case "$pid"; then kill -KILL "$pid" 2>/dev/null || true; fi
  done
}

BACKGROUND=()

# in_background FILE COMMAND…: starts the command with its output in $E2E_DIR/FILE; its pid is
# $BACKGROUND_PID. The order of two background commands is not defined; E2E_JITTER (milliseconds)
# delays each at random to show that.
in_background() {
  local file=$E2E_DIR/$1
  shift
  : >"$file" # so that the file exists before the command has begun
  jittered "$@" >"$file" 2>&1 </dev/null 3>&- &
  BACKGROUND_PID=$!
  BACKGROUND+=("$BACKGROUND_PID")
}

jittered() {
  if [ -n "${E2E_JITTER:-}" ]; then sleep "$(printf '0.%03d' $((RANDOM % E2E_JITTER)))"; fi
  if [ "$(type -t "$1")" = file ]; then exec "$@"; fi
  "$@"
}

# wait_until COMMAND…: repeats the command until it succeeds. Fails after $PATIENCE seconds, or at
# once if the command returns 2.
wait_until() {
  local deadline=$((SECONDS + PATIENCE)) code
  while true; do
    code=0
    "$@" || code=$?
    if [ "$code" = 0 ]; then return 0; fi
    if [ "$code" = 2 ] || ((SECONDS > deadline)); then
      echo "waited in vain for: $*"
      return 1
    fi
    sleep 0.02
  done
}

# stop_process PID: sends SIGSTOP, and waits until each thread has stopped. A thread runs on until
# it has taken the signal.
stop_process() {
  kill -STOP "$1"
  wait_until has_stopped "$1"
}
has_stopped() { ! grep -q '^State:.[^T]' /proc/"$1"/task/*/status; }

# ends_with CODE PID: waits for the process, which must end with the exit status CODE.
ends_with() {
  local code=0
  wait "$2" || code=$?
  [ "$code" = "$1" ] || { echo "exit code $code, not $1" && return 1; }
}

gone() { ! kill -0 "$1" 2>/dev/null; }
# lacks PATTERN FILE: no line of the file matches (a bare `! grep` would not fail a case).
lacks() {
  if grep -qP -- "$1" "$2"; then
    echo "$2 has: $(grep -anP -- "$1" "$2" | head -n 3 | cat -v)" && return 1
  fi
}
# says FILE PATTERN: whether the output in FILE matches; false if FILE does not exist yet.
says() { grep -qs -- "$2" "$E2E_DIR/$1" || return 1; }

status_json() { gpurota status --json; }

# holds EXPRESSION: whether a Python expression is true of `gpurota status --json`; s is the whole
# answer, gpus and leases are its lists.
holds() {
  status_json | python3 -c '
import json, sys
s = json.load(sys.stdin)
sys.exit(0 if eval(sys.argv[1], {"s": s, "gpus": s["gpus"], "leases": s["leases"]}) else 1)' "$1"
}

# value EXPRESSION: prints the value of a Python expression of the same names.
value() {
  status_json | python3 -c '
import json, sys
s = json.load(sys.stdin)
print(eval(sys.argv[1], {"s": s, "gpus": s["gpus"], "leases": s["leases"]}))' "$1"
}

# as_nobody COMMAND…: runs as a user with an ordinary account; only for root.
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
# The number of processes of the first lease, by its GPUs; 0 while there is no lease.
counted_processes() {
  value 'sum(gpu["processes"] for lease in leases[:1] for gpu in lease["gpus"])'
}
no_leases() { holds 'leases == []'; }
memory_is_back() { holds 'all(g["reserved_bytes"] == 0 and not g["leases"] for g in gpus)'; }
