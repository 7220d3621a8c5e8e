#!/usr/bin/env bats
# Sockets that a service manager keeps open: a client that connects while the daemon is killed,
# restarted or not started yet waits, and is answered.
#
# shellcheck disable=SC2034 # helpers.bash reads DAEMON_PID

load helpers

setup() { make_folders; }
teardown() { end_test; }

# Starts the daemon as systemd does, with both sockets, and restarts it whenever it ends.
held_daemon() {
  in_background gpurotad.log "$BATS_TEST_DIRNAME/socket_holder.py" "$E2E_DIR/run" "$E2E_DIR/pid" \
    "${DAEMON[@]}"
  HOLDER=$BACKGROUND_PID
  wait_until test -s "$E2E_DIR/pid"
  DAEMON_PID=$(cat "$E2E_DIR/pid")
}
stop_held() {
  DAEMON_PID=
  kill -TERM "$HOLDER"
  wait_until gone "$HOLDER"
}
serves_again() {
  local pid
  pid=$(cat "$E2E_DIR/pid") && [ "$pid" != "$1" ] && [ "$(serving)" -gt "$2" ]
}
# Sends this signal to the daemon repeatedly while 10,000 calls are made.
no_call_fails_while_sent() {
  held_daemon
  gpurota status >/dev/null
  in_background calls "$E2E_MANY_CALLS" "$E2E_DIR/run/control.sock" 10000
  local calls=$BACKGROUND_PID ends=0 before times
  while ! gone "$calls"; do
    before=$(cat "$E2E_DIR/pid") times=$(serving)
    kill -"$1" "$before"
    ends=$((ends + 1))
    wait_until serves_again "$before" "$times"
    sleep 0.1
  done
  stop_held
  cat calls
  echo "# SIG$1 $ends times; $(tail -n 1 calls)" >&3
  grep -q '^0 of 10000 calls failed' calls
  ((ends >= 3))
}
serving() { grep -c 'gpurotad serves.*listens=systemd' "$E2E_DIR/gpurotad.log"; }

@test "10,000 calls while the daemon is killed: none fails" {
  no_call_fails_while_sent KILL
}

@test "10,000 calls while the daemon is restarted: none fails" {
  no_call_fails_while_sent TERM
}

@test "a program under a limit, and a new one, do not notice that the daemon is killed" {
  held_daemon
  in_background computing gpurota run --memory 2G -- "$PROGRAM" compute 64 4
  wait_until says computing round
  local computing=$BACKGROUND_PID
  kill -KILL "$(cat pid)"
  gpurota run --memory 1G -- "$PROGRAM" info
  wait "$computing"
  grep ' 0 wrong' computing
  wait_until no_leases
  stop_held
}

@test "the sockets stay when the daemon ends, and get its mode" {
  held_daemon
  gpurota status >/dev/null
  stop_held
  [ -S run/control.sock ]
  [ -S run/tenant.sock ]
  # The socket is open to the user of the tests, or to everybody if root runs them.
  local mode=600
  if [ "$(id -u)" = 0 ]; then mode=666; fi
  [ "$(stat -c %a run/control.sock)" = "$mode" ]
}

@test "systemd-socket-activate: the first who asks starts the daemon" {
  command -v systemd-socket-activate >/dev/null || skip "systemd-socket-activate is not installed"
  in_background gpurotad.log systemd-socket-activate --listen="$E2E_DIR/run/control.sock" \
    --fdname=control -E E2E_DIR \
    -E LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" \
    -E GPUROTA_SIM_DIR="${GPUROTA_SIM_DIR:-}" "${DAEMON[@]}"
  wait_until test -S run/control.sock
  lacks 'gpurotad serves' gpurotad.log
  gpurota status >/dev/null
  grep -q 'gpurotad serves.*listens=systemd' gpurotad.log
  # The daemon did not get the tenant socket from systemd, so it makes that socket itself.
  gpurota run --memory 1G -- "$PROGRAM" info
}

@test "a socket elsewhere is refused, and the message says what to change" {
  command -v systemd-socket-activate >/dev/null || skip "systemd-socket-activate is not installed"
  in_background gpurotad.log systemd-socket-activate --listen="$E2E_DIR/run/other.sock" \
    --fdname=site.socket -E E2E_DIR \
    -E LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" \
    -E GPUROTA_SIM_DIR="${GPUROTA_SIM_DIR:-}" "${DAEMON[@]}"
  wait_until test -S run/other.sock
  python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' run/other.sock
  ends_with 1 "$BACKGROUND_PID"
  grep -q "a socket that gpurotad does not serve, 'site.socket': it is at $E2E_DIR/run/other.sock" \
    gpurotad.log
  grep -q 'change ListenStream=' gpurotad.log
}

@test "a user outside the group is turned away, also one who came before the daemon" {
  [ "$(id -u)" = 0 ] || skip "needs root"
  echo 'group = "daemon"' >gpurota.toml
  chmod 755 . run
  # The daemon is stopped before it serves, so the sockets are still open to all users.
  in_background gpurotad.log "$BATS_TEST_DIRNAME/socket_holder.py" "$E2E_DIR/run" "$E2E_DIR/pid" \
    sh -c 'until [ -e begin ]; do sleep 0.05; done; exec "$@"' sh "${DAEMON[@]}"
  HOLDER=$BACKGROUND_PID
  wait_until test -s pid
  in_background stranger as_nobody gpurota status
  local stranger=$BACKGROUND_PID
  in_background member setpriv --reuid 65534 --regid 65534 \
    --groups "$(getent group daemon | cut -d: -f3)" gpurota status
  local member=$BACKGROUND_PID
  wait_until waiting_clients 2
  touch begin
  ends_with 125 "$stranger" || ends_with 1 "$stranger"
  grep -q 'only members of the group' stranger
  ends_with 0 "$member"
  [ "$(stat -c %a:%G run/control.sock)" = 660:daemon ]
  stop_held
}
waiting_clients() { [ "$(grep -c " $E2E_DIR/run/control.sock\$" /proc/net/unix)" -gt "$1" ]; }
