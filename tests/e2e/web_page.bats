#!/usr/bin/env bats
# The web page of gpurota-web as a program sees it: which files are served to whom, and that no
# client harms another. web_browser.bats tests how the page looks.
# machine: h100x2

# shellcheck disable=SC2030,SC2031 # each case is a process of its own
load helpers

setup() { start_daemon; }
teardown() { end_test; }

# start_web [OPTION…]
start_web() {
  in_background web gpurota-web --listen 127.0.0.1:0 "$@"
  wait_until says web 'listens on'
  URL=$(sed -n 's/.*listens on //p' web)
}

# ask PATH [HEADER]…: prints the status, the headers, and the body, which is uncompressed.
ask() {
  python3 - "$URL" "$@" <<'END'
import gzip, http.client, sys
url, path, *headers = sys.argv[1:]
connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
connection.request("GET", path, headers=dict(header.split(": ", 1) for header in headers))
answer = connection.getresponse()
body = answer.read()
if answer.getheader("Content-Encoding") == "gzip":
    body = gzip.decompress(body)
print(answer.status)
for name, value in answer.getheaders():
    print(name + ": " + value)
print()
sys.stdout.write(body.decode())
END
}
body() { ask "$@" | sed '1,/^$/d'; }
all_of_it() { for path in now turns hours/24h events; do body /api/$path; done; }
answers() { ask "$1" | grep -qF -- "$2"; }
needs_page() {
  if says web 'built without the page'; then skip "gpurota-web was built without the page"; fi
}

@test "the page has its files, and everything forbids what it does not need" {
  start_web
  needs_page
  local path tag
  for path in / /page.js /page.css /icon.svg; do
    ask $path 'Accept-Encoding: gzip' >answer
    [ "$(head -n 1 answer)" = 200 ]
    local policy="default-src 'none'; script-src 'self'; style-src 'self'; .*frame-ancestors 'none'"
    grep -q "^Content-Security-Policy: $policy$" answer
    grep -q '^X-Content-Type-Options: nosniff$' answer
    grep -q '^Referrer-Policy: no-referrer$' answer
    sed '/^$/q' answer >headers
    lacks 'unsafe|Access-Control|Set-Cookie' headers
    tag=$(sed -n 's/^ETag: //p' headers)
    [ "$(ask $path "If-None-Match: $tag" | head -n 1)" = 304 ]
    # A client without gzip gets the same content.
    ask $path 'Accept-Encoding: br' >plain
    [ "$(head -n 1 plain)" = 200 ]
    lacks 'Content-Encoding' plain
    cmp <(sed '1,/^$/d' answer) <(sed '1,/^$/d' plain)
  done
  # No style or script in the HTML, and nothing from elsewhere.
  body / 'Accept-Encoding: gzip' >html
  grep -q '<title>' html
  lacks '<style|style=|\bon[a-z]+=|https?://' html
}

@test "other names, other methods and tricks with paths get nothing" {
  start_web --page names
  local path
  for path in / /api/now /api/live /api/events; do
    [ "$(ask $path 'Host: evil.example' | head -n 1)" = 421 ]
  done
  for path in /../page.js //page.js /page.js/ /page.js%00 /api /api/ /api/history /api/history/2y \
    '/api/history/..%2fnow' /.git/config; do
    [ "$(ask "$path" | head -n 1)" = 404 ]
  done
  [ "$(python3 -c '
import http.client, sys
c = http.client.HTTPConnection(sys.argv[1], timeout=20)
c.request("POST", "/api/now", "{}")
print(c.getresponse().status)' "${URL#http://}")" = 405 ]
}

@test "totals name nobody; names show users, and never their notes or commands" {
  in_background holder gpurota run --memory 2G --as '<img src=x>' --note 'secret <script>' \
    --name secret-name -- "$PROGRAM" hold 100
  wait_until says holder holding
  start_web
  wait_until answers /api/now '"leases_by_kind":{"run":1}'
  all_of_it >totals
  lacks "secret|img|L1\b|R1\b|\"user\"|$PROGRAM" totals
  grep -q '"level":"totals"' totals
  kill "$BACKGROUND_PID"
  start_web --page names
  wait_until answers /api/now '"lease_id":"L1"'
  all_of_it >names
  grep -q "\"user\":\"$(id -un)\"" names
  grep -qF '"as_name":"\u003cimg src=x\u003e"' names
  grep -q '"type":"lease_made"' names
  lacks "secret|<img|$PROGRAM" names
}

@test "--page none serves metrics, but no page" {
  start_web --page none
  local path
  for path in / /page.js /api/now /api/live; do [ "$(ask $path | head -n 1)" = 404 ]; done
  ask / | grep -q -- '--page none'
  answers /metrics 'gpurota_up 1'
  run -2 gpurota-web --page everything
  [[ $output == *"unknown --page 'everything': write none, totals, names or signed-in"* ]]
}

@test "GPU hours are there for all ranges, and for users where names are shown" {
  local range
  gpurota run --memory 2G -- "$PROGRAM" info >leased
  start_web --page names
  for range in 24h 7d 90d; do
    body /api/hours/$range >answer
    grep -q '"gpus":\[{"label":"0",' answer
    grep -q "\"users\":\[{\"user\":\"$(id -un)\",\"leases\":1," answer
  done
}

@test "the history has all ranges, with gaps as null" {
  start_web
  local range
  for range in 15m 1h 24h 7d 90d; do
    ask /api/history/$range | tail -n 1 >answer
    python3 - answer <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
assert answer["step_seconds"] >= 1
for gpu in answer["gpus"]:
    for name, figures in gpu.items():
        assert name in ("uuid", "label") or len(figures) == answer["steps"], name
END
  done
}

# Reads events as a viewer, and prints a line for each change of "up".
watch_events() {
  cat >watch.py <<'END'
import json, socket, sys
host, port = sys.argv[1].removeprefix("http://").split(":")
viewer = socket.create_connection((host, int(port)))
viewer.sendall(b"GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
last = None
for line in viewer.makefile(encoding="utf-8"):
    if line.startswith("data: "):
        up = json.loads(line[6:])["daemon"]["up"]
        if up != last:
            print("up" if up else "gone", flush=True)
        last = up
END
  in_background events python3 watch.py "$URL"
}

@test "viewers see within ten seconds that the daemon is gone, and that it is back" {
  start_web
  watch_events
  wait_until says events '^up'
  local before=$SECONDS
  kill_daemon
  wait_until says events '^gone'
  ((SECONDS - before <= 10))
  start_daemon
  wait_until sees_it_again
  # A stopped daemon is shown as gone.
  stop_process "$DAEMON_PID"
  before=$SECONDS
  wait_until sees_it_stand
  ((SECONDS - before <= 10))
  kill -CONT "$DAEMON_PID"
}
sees_it_again() { [ "$(grep -c '^up' events)" = 2 ]; }
sees_it_stand() { [ "$(grep -c '^gone' events)" = 2 ]; }

@test "too many viewers, and some that do not read, cost nobody else anything" {
  start_web --page names
  cat >viewers.py <<'END'
import socket, sys, time
host, port = sys.argv[1].removeprefix("http://").split(":")
viewers, answers = [], []
for i in range(220):
    each = socket.socket()
    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    each.connect((host, int(port)))
    each.sendall(b"GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answers.append(each.recv(12))
    viewers.append(each)
print("watching", answers.count(b"HTTP/1.1 200"), "refused", answers.count(b"HTTP/1.1 503"),
      flush=True)
time.sleep(1000)
END
  in_background viewers python3 viewers.py "$URL"
  wait_until says viewers watching
  grep -qx 'watching 200 refused 20' viewers
  for _ in 1 2 3; do
    answers /healthz ok
    answers /metrics 'gpurota_up 1'
    answers /api/now '"up":true'
  done
  ask /api/live | grep -q '200 viewers watch already'
  kill "$BACKGROUND_PID"
  watch_events
  wait_until says events '^up'
}
