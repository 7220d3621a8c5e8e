#!/usr/bin/env bats
# Signing in at the web page: what a session may do, and which users get none.
# machine: h100x2

# shellcheck disable=SC2030,SC2031 # each case is a process of its own
load helpers

setup() { start_daemon; }
teardown() { end_test; }

CLIENT=$BATS_TEST_DIRNAME/web_client.py

# start_web [OPTION…]
start_web() {
  in_background web gpurota-web --listen 127.0.0.1:0 "$@"
  WEB_PID=$BACKGROUND_PID
  wait_until says web 'listens on'
  if says web 'built without the page'; then skip "gpurota-web was built without the page"; fi
  URL=$(sed -n 's/.*listens on //p' web)
  wait_until makes_links
}
makes_links() { gpurota web --quiet >the_link 2>/dev/null; }
# sign_in JAR [COMMAND…]: signs in, with a link that is made as the user that COMMAND switches to.
sign_in() {
  "${@:2}" gpurota web --quiet >the_link
  python3 "$CLIENT" sign-in "$(cat the_link)" "$1" >signed_in
  [ "$(head -n 1 signed_in)" = 200 ]
}
# call JAR METHOD PARAMETERS [HEADER…]: makes a call; its status and body are in `answer`.
call() { python3 "$CLIENT" call "$@" >answer; }
status_is() { [ "$(head -n 1 answer)" = "$1" ] || { cat answer && return 1; }; }
says_error() { status_is 200 && grep -q "\"error\":\"dev.gpurota.$1\"" answer; }

@test "a link signs in once, and the session acts as its user" {
  start_web
  sign_in jar
  grep -q '^gpurota-[0-9]*=.*; Path=/; HttpOnly; SameSite=Strict$' signed_in
  grep -q "\"user\":\"$(id -un)\"" signed_in
  call jar Acquire \
    '{"request": {"kind": "reservation", "gpus": 1, "seconds": 600, "note": "by the page"}}'
  status_is 200
  lacks 'GPUROTA_TOKEN|CUDA_VISIBLE' answer
  holds \
    'len(leases) == 1 and leases[0]["note"] == "by the page" and leases[0]["kind"] == "reservation"'
  local lease
  lease=$(value 'leases[0]["lease_id"]')
  call jar Status '{}'
  grep -q '"note":"by the page"' answer
  call jar Update "{\"lease_id\": \"$lease\", \"seconds\": 7200}"
  status_is 200
  call jar Release "{\"lease_id\": \"$lease\"}"
  status_is 200
  wait_until no_leases
  # The audit log has the user, and says that the call came through the web page.
  grep '"operation":"Release"' state/audit/"$(id -u)".jsonl |
    grep -q '"by":"web","session":"W[0-9]*"'
  grep -q '"session":"W[0-9]*".*"operation":"SignIn"' state/audit/"$(id -u)".jsonl
}

@test "the page can ask for the user of a link before it is used" {
  start_web
  python3 "$CLIENT" whose "$(cat the_link)" >answer
  status_is 200
  grep -q "\"user\":\"$(id -un)\"" answer
  lacks 'token' answer
  sign_in jar
  python3 "$CLIENT" whose "$(cat the_link)" >answer
  says_error Denied
  # Only the page itself can ask this: neither another page, nor a session, nor a client of the
  # socket.
  python3 "$CLIENT" whose "$(cat the_link)" 'Origin: http://evil.example' >answer
  status_is 403
  call jar GetWebLink '{"secret": "1.x"}'
  status_is 403
}

@test "a link that was used, or replaced, signs nobody in" {
  start_web
  sign_in jar
  python3 "$CLIENT" sign-in "$(cat the_link)" stolen >answer
  status_is 403
  grep -q "'gpurota web' prints another" answer
  [ ! -e stolen ]
  # A link signs in its first user only. The link's owner is refused, and can see and end the
  # session.
  gpurota web --quiet >the_link
  python3 "$CLIENT" sign-in "$(cat the_link)" stolen >answer
  status_is 200
  python3 "$CLIENT" sign-in "$(cat the_link)" mine >answer
  status_is 403
  gpurota web --list --json |
    python3 -c 'import json, sys; assert len(json.load(sys.stdin)["sessions"]) == 2'
  gpurota web --end all
  call stolen Status '{}'
  status_is 401
  # A user can have only a few valid links at a time.
  gpurota web --quiet >first
  for _ in 1 2 3 4; do gpurota web --quiet >the_link; done
  python3 "$CLIENT" sign-in "$(cat first)" jar >answer
  status_is 403
  python3 "$CLIENT" sign-in "$(cat the_link)" jar >answer
  status_is 200
}

@test "a session is over when its user signs out, and with gpurota-web and gpurotad" {
  start_web
  sign_in one
  sign_in two
  gpurota web --list >listed
  grep -Eq '^W1 +[^ ]+ +127.0.0.1 ' listed
  call one EndWebSessions '{}'
  status_is 200
  call one Status '{}'
  status_is 401
  call two Status '{}'
  status_is 200
  [ "$(gpurota web --end W2)" = "ended W2" ]
  call two Status '{}'
  status_is 401
  run -1 gpurota web --end W2
  [[ $output == *"'gpurota web --list' shows yours"* ]]
  # After a restart of the daemon, neither the daemon nor gpurota-web knows any session.
  sign_in three
  kill_daemon
  start_daemon
  wait_until makes_links
  call three Status '{}'
  status_is 401
  sign_in four
  kill -TERM "$WEB_PID"
  wait_until gone "$WEB_PID"
  wait_until nobody_is_signed_in
  run -1 gpurota web
  [[ $output == *"gpurota-web is not running"* ]]
}
nobody_is_signed_in() { gpurota web --list | grep -q 'nobody is signed in'; }

@test "without a link it says the true reason, and what to do" {
  refused_with() { run -1 gpurota web && [[ $output == *"$1"* ]]; }
  refused_with 'gpurota-web is not running'
  [[ $output == *'systemctl start gpurota-web'* ]]
  # gpurota-web is not installed: neither beside gpurota nor in PATH.
  mkdir alone
  cp "$(command -v gpurota)" alone
  run -1 env PATH="$PWD/alone" alone/gpurota web
  [[ $output == *'gpurota-web, which serves the page, is not installed: install its package'* ]]
  in_background web gpurota-web --listen 127.0.0.1:0 --page none
  WEB_PID=$BACKGROUND_PID
  wait_until refused_with "gpurota-web runs with '--page none'"
  kill -TERM "$WEB_PID"
  wait_until refused_with 'gpurota-web is not running'
  # A gpurota-web that was built without the page tells the daemon so.
  python3 - "$GPUROTA_RUNTIME_DIR/control.sock" >unbuilt 2>&1 3>&- <<'END' &
import json, socket, sys
daemon = socket.socket(socket.AF_UNIX)
daemon.connect(sys.argv[1])
call = {"method": "dev.gpurota.ServeWeb", "parameters": {"url": "no-page:not-built"}, "more": True}
daemon.sendall(json.dumps(call).encode() + b"\0")
while daemon.recv(65536):
    pass
END
  local unbuilt=$!
  wait_until refused_with 'gpurota-web runs, but was built without the page'
  kill "$unbuilt"
  wait_until refused_with 'gpurota-web is not running'
  printf '[web]\nsign_in = false\n' >gpurota.toml
  gpurota reload
  refused_with 'this site lets nobody sign in at the web page'
  [[ $output == *'an administrator can allow it (web.sign_in in gpurota.toml(5))'* ]]
  kill_daemon
  refused_with 'no gpurotad is running at'
}

@test "a gpurota-web whose user may not sign people in is named" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it is about other users"; fi
  chmod 755 . run
  # gpurota-web is started without a shell around it, because the kill would end the shell instead.
  local as_games=(setpriv --reuid 5 --regid 60 --clear-groups)
  in_background web "${as_games[@]}" gpurota-web --listen 127.0.0.1:0
  wait_until says web 'listens on'
  if says web 'built without the page'; then skip "gpurota-web was built without the page"; fi
  wait_until refused_for_games
  # A gpurota-web without a page does not ask to sign people in, so nothing is refused.
  kill -TERM "$BACKGROUND_PID"
  in_background metrics "${as_games[@]}" gpurota-web --listen 127.0.0.1:0 --page none
  wait_until says metrics 'listens on'
  wait_until refused_for_nobody
  lacks 'nobody can sign in' metrics
  # A user who may not use gpurota is told who may.
  chmod 700 run
  run -1 as_games gpurota web
  [[ $output == *'no access to'* ]]
}
refused_for_games() {
  run -1 gpurota web
  [[ $output == *"runs as user 'games', who may not sign people in: only root, "*"'gpurota-web'"* ]]
}
refused_for_nobody() { run -1 gpurota web && [[ $output == *'gpurota-web is not running'* ]]; }

@test "where no browser is opened it says why, and the link is good all the same" {
  start_web
  mkdir -m 700 mine
  # said_of [VARIABLE=VALUE]…: makes a link with these variables set, and no other variables of ssh
  # or of a display.
  local nowhere=(env -u SSH_CONNECTION -u DISPLAY -u WAYLAND_DISPLAY -u XDG_RUNTIME_DIR)
  said_of() {
    "${nowhere[@]}" "$@" gpurota web >the_link 2>said
    grep -q '#sign-in=' the_link
    cat said
  }
  says_why() { grep -q "^gpurota: no browser was opened: $1.*; open the link yourself$" said; }
  said_of
  says_why 'there is no display here'
  said_of DISPLAY=:7
  says_why 'XDG_RUNTIME_DIR is not set'
  said_of DISPLAY=:7 XDG_RUNTIME_DIR="$PWD/nowhere"
  says_why '.*nowhere'
  local programs
  programs=$(dirname "$(command -v gpurota)")
  mkdir none
  said_of DISPLAY=:7 XDG_RUNTIME_DIR="$PWD/mine" PATH="$programs:$PWD/none"
  says_why 'xdg-open is not installed'
  mkdir opener
  printf '#!/bin/sh\nexit 3\n' >opener/xdg-open
  chmod 755 opener/xdg-open
  said_of DISPLAY=:7 XDG_RUNTIME_DIR="$PWD/mine" PATH="$PWD/opener:$PATH"
  says_why 'xdg-open found no browser'
  printf '#!/bin/sh\nexit 4\n' >opener/xdg-open
  said_of DISPLAY=:7 XDG_RUNTIME_DIR="$PWD/mine" PATH="$PWD/opener:$PATH"
  says_why 'xdg-open failed (exit code 4)'
  # shellcheck disable=SC2016 # the script's own
  printf '#!/bin/sh\ncp "$1" %s/opened\n' "$PWD" >opener/xdg-open
  said_of WAYLAND_DISPLAY=w XDG_RUNTIME_DIR="$PWD/mine" PATH="$PWD/opener:$PATH"
  [ ! -s said ]
  grep -qF "$(head -n 1 the_link)" opened
  # Over ssh the browser is on another machine. No message if the user asked for no browser, or for
  # quiet.
  env -u DISPLAY SSH_CONNECTION='192.0.2.1 1 192.0.2.2 22' gpurota web >the_link 2>said
  [ ! -s said ]
  grep -q '^You are here by ssh. On your own computer, first: ssh -N -L ' the_link
  "${nowhere[@]}" gpurota web --no-open 2>said
  [ ! -s said ]
  "${nowhere[@]}" gpurota web --quiet 2>said
  [ ! -s said ]
}

@test "other sites, other names and half a session get nothing" {
  start_web
  sign_in jar
  local evil
  for evil in 'Origin: http://evil.example' 'Origin: null' 'Origin:' 'Sec-Fetch-Site: cross-site' \
    'Sec-Fetch-Site: same-site' \
    "Origin: http://127.0.0.1:1"; do
    call jar EndWebSessions '{}' "$evil"
    status_is 403
  done
  for evil in text/plain application/x-www-form-urlencoded multipart/form-data ''; do
    call jar EndWebSessions '{}' "Content-Type: $evil"
    status_is 415
  done
  call jar EndWebSessions '{}' 'Host: evil.example' 'Origin: http://evil.example'
  status_is 421
  for evil in 'Cookie:' 'Gpurota-Session:' 'Gpurota-Session: 0123456789abcdef0123456789abcdef' \
    'Cookie: gpurota=1.0'; do
    call jar EndWebSessions '{}' "$evil"
    status_is 401
  done
  # None of these attempts has ended the session, and no other site may frame or read its answers.
  call jar Status '{}'
  status_is 200
  python3 - "$URL" >headers <<'END'
import http.client, sys
c = http.client.HTTPConnection(sys.argv[1].removeprefix("http://"), timeout=20)
c.request("POST", "/api/call", "{}")
print(c.getresponse().headers)
END
  grep -q "frame-ancestors 'none'" headers
  lacks 'Access-Control' headers
  # A GET changes nothing.
  python3 - "$URL" <<'END'
import http.client, sys
for path in ("/api/call", "/api/sign-in"):
    c = http.client.HTTPConnection(sys.argv[1].removeprefix("http://"), timeout=20)
    c.request("GET", path)
    assert c.getresponse().status == 404, path
END
}

@test "bodies that others read otherwise, or that have no end, are refused" {
  start_web
  cat >bodies.py <<'END'
import socket, sys
host, port = sys.argv[1].removeprefix("http://").split(":")
def ask(text):
    each = socket.create_connection((host, int(port)), timeout=20)
    each.sendall(text.encode())
    answer = b""
    while piece := each.recv(4096):
        answer += piece
    return answer.split(b" ")[1].decode()
head = f"POST /api/call HTTP/1.1\r\nHost: {host}:{port}\r\n"
assert ask(head + "\r\n") == "400", "no length"
assert ask(head + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na") == "400", "two lengths"
assert ask(head + "Content-Length: 1, 1\r\n\r\na") == "400", "a list"
assert ask(head + "Content-Length: -1\r\n\r\n") == "400", "negative"
assert ask(head + "Content-Length: 99999999999999999999999\r\n\r\n") == "400", "too large a number"
assert ask(head + "Content-Length: 16385\r\n\r\n") == "400", "too long"
assert ask(head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == "400", "in pieces"
assert ask(head + "Content-Length: 2\r\n\r\n{}") == "403", (
    "and one that is whole is only not from the page")
END
  python3 bodies.py "$URL"
}

@test "the page runs no unmarked call: gpurota-web and the daemon refuse it" {
  start_web
  sign_in jar
  local method
  local parameters='{"name": "x", "command": ["true"], "options": [], "environment": [], '
  parameters+='"lease_id": "L1", "pid": 1, "ticket": "x", "request": {}, "gpu_ids": [], '
  parameters+='"secret": "x", "url": "http://x/"}'
  for method in AddJob AddFiller Start GetEnvironment Enqueue Hold ExportJobs SetGpus Reload \
    MakeWebLink SignIn ServeWeb; do
    call jar $method "$parameters"
    status_is 403
  done
  call jar Nonsense '{}'
  status_is 400
  call jar Acquire '{"request": {"gpus": 1}}'
  says_error Denied
  # The daemon also refuses a gpurota-web that passes such a call on.
  python3 - jar "$GPUROTA_RUNTIME_DIR/control.sock" <<'END'
import json, socket, sys
jar = json.load(open(sys.argv[1]))
token = jar["cookie"].partition("=")[2] + jar["key"]
def ask(method, parameters, **more):
    daemon = socket.socket(socket.AF_UNIX)
    daemon.connect(sys.argv[2])
    daemon.sendall(json.dumps({"method": "dev.gpurota." + method, "parameters": parameters,
                               "session": token, **more}).encode() + b"\0")
    answer = b""
    while not answer.endswith(b"\0"):
        answer += daemon.recv(65536)
    return json.loads(answer[:-1])
assert "error" not in ask("Status", {})
for method, parameters in (
        ("AddJob", {"name": "x", "command": ["true"], "options": [], "environment": []}),
        ("MakeWebLink", {}), ("ExportJobs", {"secrets": True})):
    assert ask(method, parameters)["error"] == "dev.gpurota.Denied", method
assert ask("Status", {}, more=True)["error"] == "dev.gpurota.Denied"
token = token[:-1] + ("0" if token[-1] != "0" else "1")
assert ask("Status", {})["error"] == "dev.gpurota.SignedOut"
END
}

# Starts gpurota-web as the unit does, as a user other than root; only for root.
start_web_as_nobody() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it is about other users"; fi
  chmod 755 . run
  printf '[web]\nuser = "nobody"\n' >gpurota.toml
  gpurota reload
  in_background web as_nobody gpurota-web --listen 127.0.0.1:0
  WEB_PID=$BACKGROUND_PID
  wait_until says web 'listens on'
  if says web 'built without the page'; then skip "gpurota-web was built without the page"; fi
  wait_until makes_links
}
as_games() { setpriv --reuid 5 --regid 60 --clear-groups "$@"; }

@test "a session can do what its user may, and no more" {
  start_web_as_nobody
  sign_in jar as_games
  grep -q '"user":"games"' signed_in
  grep -q '"administrator":false' signed_in
  in_background holder gpurota run --gpu-ids 0 --note secret -- "$PROGRAM" hold 100
  wait_until says holder holding
  call jar Status '{}'
  status_is 200
  lacks secret answer
  # Turns, GPU hours and events are the same as those of the user's own commands.
  local method
  for method in ListTurns Report Events; do
    call jar $method '{}'
    status_is 200
    lacks 'secret|"error"|"pids":\[' answer
  done
  grep -q '"type":"lease_made"' answer
  call jar Release '{"lease_id": "L1"}'
  says_error Denied
  call jar Release '{"all_users": true}'
  says_error Denied
  call jar Drain '{"gpu_ids": ["1"]}'
  says_error Denied
  call jar ListJobs '{"user": "root"}'
  says_error NotFound
  holds 'len(leases) == 1 and leases[0]["state"] == "active"'
  # The user can neither see nor end sessions of others; an administrator can.
  sign_in roots
  call jar ListWebSessions '{}'
  lacks '"user":"root"' answer
  call jar EndWebSessions '{"session_id": "W2"}'
  says_error NotFound
  call roots EndWebSessions '{"session_id": "W1"}'
  status_is 200
  call jar Status '{}'
  status_is 401
  call roots Release '{"lease_id": "L1"}'
  status_is 200
  wait_until no_leases
}

@test "nobody but the program that serves the page can use its links and sessions, or say that it is one" {
  start_web_as_nobody
  sign_in jar as_games
  gpurota web --quiet >the_link
  cat >steal.py <<'END'
import json, socket, sys
link, jar, path = open(sys.argv[1]).read().strip(), json.load(open(sys.argv[2])), sys.argv[3]
def ask(method, parameters, **more):
    daemon = socket.socket(socket.AF_UNIX)
    daemon.connect(path)
    daemon.sendall(json.dumps({"method": "dev.gpurota." + method, "parameters": parameters,
                               **more}).encode() + b"\0")
    answer = b""
    while not answer.endswith(b"\0"):
        answer += daemon.recv(65536)
    return json.loads(answer[:-1]).get("error")
assert ask("SignIn", {"secret": link.partition("#sign-in=")[2]}) == "dev.gpurota.Denied"
assert ask("SignInByProxy", {"uid": 1000}, more=True) == "dev.gpurota.Denied"
assert ask("Status", {},
           session=jar["cookie"].partition("=")[2] + jar["key"]) == "dev.gpurota.SignedOut"
assert ask("ServeWeb", {"url": "http://127.0.0.1:1/"}, more=True) == "dev.gpurota.Denied"
END
  chmod 644 the_link jar
  as_games /usr/bin/python3 steal.py the_link jar "$GPUROTA_RUNTIME_DIR/control.sock"
  # All links and sessions still work for their owners.
  call jar Status '{}'
  status_is 200
  python3 "$CLIENT" sign-in "$(cat the_link)" roots >answer
  status_is 200
  # A second gpurota-web, whose user may not sign people in, says so, and shows the page to all
  # users as before.
  in_background other as_games gpurota-web --listen 127.0.0.1:0
  wait_until says other "nobody can sign in: only root and the user 'nobody'"
  python3 - "$(sed -n 's/.*listens on //p' other)" <<'END'
import json, sys, urllib.request
assert json.load(urllib.request.urlopen(sys.argv[1] + "/api/now"))["sign_in"] == "none"
END
}

# read_with JAR PATH: makes a GET as the page does; prints the status.
read_with() {
  python3 - "$@" <<'END'
import http.client, json, sys
jar = json.load(open(sys.argv[1])) if sys.argv[1] else {}
connection = http.client.HTTPConnection(
    (jar.get("url") or sys.argv[3]).removeprefix("http://").rstrip("/"), timeout=20)
connection.request("GET", sys.argv[2],
                   headers={"Cookie": jar["cookie"], "Gpurota-Session": jar["key"]} if jar else {})
answer = connection.getresponse()
print(answer.status)
print(answer.read().decode())
END
}

@test "with --page signed-in, everything is shown to those who have signed in, while they are" {
  start_web --page signed-in
  in_background holder gpurota run --gpu-ids 0 --note secret -- "$PROGRAM" hold 100
  wait_until says holder holding
  sign_in jar
  sign_in other
  local path
  for path in now history/15m events hours/24h turns; do
    read_with '' "/api/$path" "$URL" >answer
    status_is 401
    lacks 'GPU|L1' answer
    read_with jar "/api/$path" >answer
    status_is 200
  done
  read_with jar /api/now >answer
  grep -q '"lease_id":"L1"' answer
  lacks secret answer
  # A stream is refused, because it would outlive its session. A client with only one half of the
  # session's token sees nothing.
  read_with jar /api/live >answer
  status_is 404
  sed 's/"key": "[^"]*"/"key": "0123456789abcdef0123456789abcdef"/' jar >half
  read_with half /api/now >answer
  status_is 401
  # The next request after the end of a session sees nothing.
  gpurota web --end W1
  read_with jar /api/now >answer
  status_is 401
  read_with other /api/now >answer
  status_is 200
  # Metrics and health are served without a session.
  read_with '' /metrics "$URL" >answer
  status_is 200
  lacks 'L1' answer
}

@test "a site can forbid it" {
  start_web
  sign_in jar
  printf '[web]\nsign_in = false\n' >gpurota.toml
  gpurota reload
  call jar Status '{}'
  status_is 401
  run -1 gpurota web
  [[ $output == *"web.sign_in"* ]]
}

# proxied METHOD HEADER…: makes a call as a proxy does on behalf of its user.
proxied() {
  printf '{"url": "%s/", "cookie": "", "key": ""}' "$URL" >proxied.jar
  call proxied.jar "$1" '{}' 'Cookie:' 'Gpurota-Session:' "${@:2}"
}

@test "a server in front says who its user is: from its address, with its secret, and never for administrators" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it is about other users"; fi
  head -c 20 /dev/zero | tr '\0' s >secret
  run -2 gpurota-web --listen 127.0.0.1:0 --proxy 127.0.0.1 --proxy-user-header X-User
  [[ $output == *"every user of this machine has this address"* ]]
  printf '[web]\naccept_proxy_users = true\n' >gpurota.toml
  gpurota reload
  start_web --proxy 127.0.0.1 --proxy-user-header X-User --proxy-secret secret
  local secret
  secret="Gpurota-Proxy-Secret: $(cat secret)"
  proxied ListWebSessions 'X-User: games' "$secret"
  status_is 200
  grep -q '"user":"games".*"by_proxy":true,"current":true' answer
  proxied ListWebSessions 'X-User: games' "$secret"
  [ "$(gpurota web --list | grep -c '(proxy)')" = 1 ]
  local name
  for name in root 0 5 no-such-user; do
    proxied Status "X-User: $name" "$secret"
    status_is 403
  done
  proxied Status 'X-User: games'
  status_is 403
  proxied Status 'X-User: games' "${secret}s"
  status_is 403
  proxied Status "$secret"
  status_is 401
  proxied Status 'X-User: games' "$secret" 'Origin: http://evil.example'
  status_is 403
  # The daemon decides: proxy users are refused if its configuration says so.
  printf '[web]\naccept_proxy_users = false\n' >gpurota.toml
  gpurota reload
  proxied Status 'X-User: games' "$secret"
  status_is 403
  grep -q 'accept_proxy_users' answer
}

@test "the header of a proxy from another address is refused" {
  printf '[web]\naccept_proxy_users = true\n' >gpurota.toml
  gpurota reload
  start_web --proxy 192.0.2.7 --proxy-user-header X-User
  proxied Status 'X-User: games'
  status_is 403
  grep -q 'this address may not say who its users are' answer
}

@test "where other machines can connect it takes a certificate, or --plain" {
  run -2 gpurota-web --listen 0.0.0.0:0
  [[ $output == *"--tls-certificate"*"--plain"* ]]
  in_background plain gpurota-web --listen 0.0.0.0:0 --plain
  wait_until says plain 'listens on http://'
}
