#!/usr/bin/env bats
# Attacks of one user of the page on the others: taking its port, or their sessions.

# shellcheck disable=SC2030,SC2031 # each case is a process of its own
load ../e2e/helpers

setup() { start_daemon; }
teardown() { end_test; }

fetch() {
  python3 -c '
import sys, urllib.request as u
print(u.urlopen("http://127.0.0.1:%s/%s" % (sys.argv[1], sys.argv[2]),
                timeout=20).read().decode())' "$@"
}
answers() { fetch "$PORT" healthz >/dev/null 2>&1; }
started() { grep -c '^started' unit; }
started_again() { [ "$(started)" -gt "$1" ]; }

@test "with its socket unit nobody else can have the port while the program is killed and restarted" {
  mkfifo stay
  exec 9<>stay
  # shellcheck disable=SC2016
  in_background unit sh -c 'exec python3 -B "$@" <stay' sh "$BATS_TEST_DIRNAME/web_port.py" \
    gpurota-web --listen 127.0.0.1:0
  wait_until says unit '^[0-9]'
  PORT=$(head -n 1 unit)
  # If --listen names a different address from that of the socket unit, --listen takes effect, and a
  # message says so.
  wait_until says unit "gpurota-web.socket listens on 127.0.0.1:$PORT, and --listen says"
  kill_background
  in_background unit sh -c 'exec python3 -B "$@" <stay' sh "$BATS_TEST_DIRNAME/web_port.py" \
    gpurota-web
  wait_until says unit '^started'
  PORT=$(head -n 1 unit)
  wait_until answers
  lacks 'another user of this machine can take' unit
  in_background squatter python3 -c '
import socket, sys
tries = 0
while True:
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind(("127.0.0.1", int(sys.argv[1])))
        s.listen()
        print("taken", flush=True)
    except OSError:
        s.close()
        tries += 1
        if tries == 100: print("tries", flush=True)' "$PORT"
  wait_until says squatter tries
  local before
  for _ in 1 2 3; do
    before=$(started)
    kill -KILL "$(sed -n 's/^started //p' unit | tail -n 1)"
    # A client that asks meanwhile waits, and is answered by the next process.
    fetch "$PORT" healthz >/dev/null
    wait_until started_again "$before"
  done
  lacks taken squatter
  exec 9>&-
}

@test "without a socket unit it says that its port can be taken, and by whom it is" {
  in_background web gpurota-web --listen 127.0.0.1:0
  wait_until says web 'listens on'
  PORT=$(sed -n 's/.*listens on .*:\([0-9]*\)$/\1/p' web)
  if ! says web 'built without the page'; then
    says web "another user of this machine can take port $PORT"
  fi
  run -1 gpurota-web --listen "127.0.0.1:$PORT"
  [[ $output = *"Address already in use"*"ss -ltnp"* ]]
}

@test "repeated sign-ins of one user sign nobody else out" {
  [ "$(id -u)" = 0 ] || skip "needs root: it switches users"
  chmod 755 . run
  in_background web gpurota-web --listen 127.0.0.1:0
  wait_until says web 'listens on'
  if says web 'built without the page'; then skip "gpurota-web was built without the page"; fi
  local client=$BATS_TEST_DIRNAME/../e2e/web_client.py
  wait_until makes_link
  python3 "$client" sign-in "$(cat the_link)" alices >answer
  [ "$(head -n 1 answer)" = 200 ]
  # Twice as many sign-ins as the page keeps sessions of a user (src/web/known_sessions.h).
  for _ in {1..64}; do
    setpriv --reuid 65533 --regid 65533 --clear-groups gpurota web --quiet --no-open >hers
    python3 "$client" sign-in "$(cat hers)" mallorys >answer
    [ "$(head -n 1 answer)" = 200 ]
  done
  python3 "$client" call alices ListWebSessions '{}' >answer
  [ "$(head -n 1 answer)" = 200 ]
  [ "$(gpurota web --list --json |
    python3 -c 'import json, sys; print(len(json.load(sys.stdin)["sessions"]))')" -le 17 ]
}
makes_link() { gpurota web --quiet --no-open >the_link 2>/dev/null; }
