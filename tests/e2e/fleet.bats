#!/usr/bin/env bats
# The machines of a site on one page: what a machine shows to the others, and that no machine can
# harm another.
# machine: h100x2

# shellcheck disable=SC2030,SC2031 # each case is a process of its own
load helpers

setup() {
  start_daemon
  head -c 20 /dev/zero | tr '\0' t >token
  head -c 20 /dev/zero | tr '\0' u >other_token
}
teardown() { end_test; }

BAD_PEERS=$BATS_TEST_DIRNAME/bad_peers.py

# start_web NAME [OPTION…]: starts gpurota-web; its address is in the file NAME.url.
start_web() {
  in_background "$1" gpurota-web --listen 127.0.0.1:0 "${@:2}"
  wait_until says "$1" 'listens on'
  sed -n 's/.*listens on //p' "$1" >"$1".url
}

# get URL [HEADER]: prints the status, then the body.
get() {
  python3 - "$@" <<'END'
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1])
for header in sys.argv[2:]:
    request.add_header(*header.split(": ", 1))
try:
    answer = urllib.request.urlopen(request, timeout=20)
except urllib.error.HTTPError as error:
    answer = error
print(answer.status)
sys.stdout.write(answer.read().decode())
END
}
# totals NAME [TOKEN FILE]
totals() { get "$(cat "$1".url)/api/totals" "Authorization: Bearer $(cat "${2:-token}")"; }
status_of() { "$@" | head -n 1; }

# fleet EXPRESSION: whether the expression is true of m, the machines that the page of `web` shows,
# by name. Also fails while a machine has not been asked yet.
fleet() {
  get "$(cat web.url)/api/machines" >fleet.json
  tail -n +2 fleet.json | python3 -c '
import json, sys
m = {each["name"]: each for each in json.load(sys.stdin)["machines"]}
assert all(each["state"] != "asked" for each in m.values()), m
assert eval(sys.argv[1]), m' "$1" 2>fleet.wrong
}

@test "a page shows its peers, each with what it has free" {
  start_web gpu2 --fleet-token token
  start_web gpu3 --fleet-token token --page none
  start_web web --fleet-token token --peer "gpu2=$(cat gpu2.url)" --peer "gpu3=$(cat gpu3.url)/"
  wait_until fleet 'all(each["gpus"] == 2 and each["free"] == 2 and each["daemon_up"]
    for each in m.values()) and len(m) == 3'
  gpurota reserve --gpu-ids 1 --note secret >/dev/null
  wait_until fleet \
    'all(each["free"] == 1 and each["full"] == 1 and each["leases"] == 1 for each in m.values())'
  lacks 'secret|"users"' fleet.json
  get "$(cat web.url)/api/now" >now
  grep -q '"machines":3' now
  # A lost machine is shown as a row that says so, and comes back by itself.
  kill_daemon
  wait_until fleet 'not any(each["daemon_up"] for each in m.values())'
  start_daemon
  wait_until fleet 'all(each["daemon_up"] for each in m.values())'
}

@test "users are named where the pages of both machines name them" {
  local user
  user=$(id -un)
  gpurota reserve --gpu-ids 1 >/dev/null
  start_web names --fleet-token token --page names
  start_web totals --fleet-token token
  start_web shut --fleet-token token --page signed-in
  totals names | grep -q "\"users\":\[\"$user\"\]"
  local name
  for name in totals shut; do
    totals $name >answer
    grep -q '"leases":1' answer
    lacks users answer
  done
  start_web web --fleet-token token --page names --peer "names=$(cat names.url)" \
    --peer "totals=$(cat totals.url)"
  wait_until fleet "m['names'].get('users') == ['$user'] and 'users' not in m['totals'] and \
    m['totals']['leases'] == 1"
  start_web quiet --fleet-token token --peer "names=$(cat names.url)"
  cp quiet.url web.url
  wait_until fleet "m['names']['leases'] == 1"
  lacks "\"$user\"" fleet.json
}

@test "totals need the token, and are rate-limited" {
  start_web web --fleet-token token
  [ "$(status_of totals web)" = 200 ]
  [ "$(status_of totals web other_token)" = 401 ]
  [ "$(status_of get "$(cat web.url)/api/totals")" = 401 ]
  [ "$(status_of get "$(cat web.url)/api/totals" 'Host: evil.example')" = 421 ]
  python3 - "$(cat web.url)/api/totals" "$(cat token)" <<'END'
import sys, urllib.error, urllib.request
got = set()
for _ in range(5000):
    try:
        request = urllib.request.Request(sys.argv[1],
                                         headers={"Authorization": "Bearer " + sys.argv[2]})
        got.add(urllib.request.urlopen(request, timeout=20).status)
    except urllib.error.HTTPError as error:
        got.add(error.code)
    if 429 in got:
        break
assert got == {200, 429}, got
END
  # A client without a token gets no totals, and the page of this machine is unchanged.
  start_web alone
  [ "$(status_of totals alone)" = 404 ]
  get "$(cat alone.url)/api/now" >now
  grep -q '"machines":1,' now
}

# reason NAME TEXT: the page says TEXT as the reason why that machine is not shown.
reason() { fleet "\"$2\" in m[\"$1\"][\"error\"]" || { cat fleet.wrong && return 1; }; }

@test "a peer that hangs, lies or sends without end is a row with the error, and harms nobody" {
  in_background bad python3 "$BAD_PEERS" ports
  wait_until test -e ports
  local kind port peers=()
  while read -r kind port; do peers+=(--peer "$kind=http://127.0.0.1:$port/"); done <ports
  start_web other --fleet-token other_token
  start_web alone
  peers+=(--peer nobody=http://127.0.0.1:1/ --peer unknown=https://no-such-host.invalid/ \
    --peer "refuses=$(cat other.url)" --peer "tells_nothing=$(cat alone.url)")
  start_web web --fleet-token token "${peers[@]}"
  # Some of the peers send answers that look true.
  wait_until fleet 'sorted(name for name, each in m.items()
    if each["state"] == "answers" and not each["here"]) == ["fair", "many", "script", "trap"]'
  for kind in mute drip; do reason $kind 'no answer within 3 s'; done
  for kind in flood endless head; do reason $kind 'it is too long'; done
  for kind in malformed nested zipped; do reason $kind 'it is not a JSON object'; done
  for kind in noise nobody unknown; do reason $kind 'cannot be reached'; done
  reason liar 'do not add up'
  reason away 'HTTP status 302'
  reason refuses 'refuses the token'
  reason tells_nothing 'needs --fleet-token'
  lacks '<script|<img' fleet.json
  # The page is served meanwhile, and nothing of the floods was kept.
  [ "$(status_of get "$(cat web.url)/healthz")" = 200 ]
  local kib
  kib=$(awk '/^VmHWM:/ {print $2}' "/proc/$BACKGROUND_PID/status")
  ((kib < 100000)) || { echo "$kib KiB" && return 1; }
}

@test "a redirection is not followed: the token is shown to the peer alone" {
  in_background bad python3 "$BAD_PEERS" ports
  wait_until test -e ports
  start_web web --fleet-token token --peer "away=http://127.0.0.1:$(sed -n 's/^away //p' ports)"
  wait_until fleet '"302" in m["away"]["error"]'
  [ ! -e seen.trap ]
}

@test "options that do not go together are refused with what to write" {
  run -2 gpurota-web --peer https://gpu2/
  [[ $output == *"--fleet-token FILE"* ]]
  run -2 gpurota-web --fleet-token token --peer http://192.0.2.7:9836/
  [[ $output == *"could read the token"*"--plain"* ]]
  run -2 gpurota-web --fleet-token token --peer gpu2
  [[ $output == *"write gpu2=https://"* ]]
  echo short >short
  run -2 gpurota-web --fleet-token short
  [[ $output == *"at least 16 characters"* ]]
}
