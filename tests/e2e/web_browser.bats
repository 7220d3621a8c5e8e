#!/usr/bin/env bats
# The web page as a reader sees it, in Chromium: all views, wide and as a phone, light and dark,
# checked by axe's rules for screen readers, and while the daemon is away. Screenshots are left in
# BUILD/test-results/web_browser.
# machine: h100x2

load helpers

setup_file() {
  local source
  source=$(dirname "$BATS_TEST_FILENAME")/../web
  BROWSER=$E2E_RESULTS/browser
  export BROWSER
  if ! command -v chromium >/dev/null || ! command -v npm >/dev/null; then return 0; fi
  mkdir -p "$BROWSER"
  cp "$source"/package.json "$source"/package-lock.json "$source"/*.mjs "$BROWSER"
  if [ ! -d "$BROWSER/node_modules/playwright-core" ]; then
    (cd "$BROWSER" && npm ci --ignore-scripts --no-audit --no-fund --cache "$BROWSER/npm-cache") \
      >"$BROWSER/npm.log" 2>&1 || true
  fi
}

setup() {
  command -v chromium >/dev/null || skip "chromium is not installed"
  [ -d "$BROWSER/node_modules/playwright-core" ] || skip "npm or its packages are not to be had"
  start_daemon
}
teardown() { if [ -n "${E2E_DIR:-}" ]; then end_test; fi; }

start_web() {
  in_background web gpurota-web --listen 127.0.0.1:0 "$@"
  wait_until says web 'listens on'
  if says web 'built without the page'; then skip "gpurota-web was built without the page"; fi
  URL=$(sed -n 's/.*listens on //p' web)
}

# Makes a program that computes, two that take turns, a reserved whole GPU, and two that wait.
make_busy() {
  local i
  in_background slice gpurota run --gpu-ids 0 --memory 20G --as '<img src=x onerror=alert(1)>' \
    --note 'secret <script>' -- "$PROGRAM" hold 100
  wait_until says slice holding
  gpurota set --gpu-ids 0 --capacity 24G
  for i in 1 2; do
    in_background "swap$i" gpurota run --gpu-ids 0 --memory 3G \
      --swap --quantum 1s -- "$PROGRAM" compute 2000 300
  done
  wait_until turn_is_passed
  gpurota reserve --gpu-ids 1 >/dev/null
  for i in 1 2; do in_background "waits$i" gpurota run --gpus 2 -- "$PROGRAM" info; done
  wait_until holds 's["waiting"] == 2'
}

turn_is_passed() { gpurota turns --json | grep -Eq '"handovers": *[1-9]'; }

# Chromium needs a home folder.
browse() { HOME=$E2E_DIR node "$BROWSER/browser.mjs" "$URL" "$E2E_RESULTS" "$@"; }

@test "each view has no violation, wide and as a phone, light and dark" {
  make_busy
  start_web --page names
  browse views
}

@test "16 GPUs fit on one screen, and the pictures of README can be drawn" {
  start_web
  HOME=$E2E_DIR node "$BROWSER/pictures.mjs" "$URL" "$E2E_RESULTS"
}

@test "with totals only, each view has no violation" {
  make_busy
  start_web
  E2E_RESULTS=$E2E_RESULTS/totals browse views
}

# Makes a lease, a request, a booking and a job of the calling user, and another user's lease.
make_mine() {
  gpurota reserve --gpu-ids 1 --memory 8G --for 3h --note 'for the demo' >/dev/null
  in_background mine gpurota run --gpu-ids 0 --memory 20G --name mine -- "$PROGRAM" hold 1000
  wait_until says mine holding
  gpurota job add talker --memory 1G --restart always -- bash \
    -c 'for i in {1..100}; do echo "said $i"; sleep 0.2; done; sleep 1000'
  gpurota job add never --memory 1G -- false
  wait_until job_talks
  in_background waits gpurota run --gpus 2 -- "$PROGRAM" info
  wait_until holds 's["waiting"] == 1'
}
job_talks() { gpurota job logs talker | grep -q 'said 3'; }

# browse_signed_in FUNCTION: runs this function of browser.mjs with a link of the calling user.
browse_signed_in() {
  wait_until makes_links
  browse "$1" "$(cat the_link)"
}
makes_links() { gpurota web --quiet --no-open >the_link 2>/dev/null; }

@test "each view of somebody who is signed in has no violation, wide and as a phone, light and dark" {
  make_mine
  start_web
  browse_signed_in signed_in
}

@test "a signed-in user reserves, extends, releases, stops jobs and signs out, by mouse and keyboard" {
  gpurota job add talker --memory 1G -- bash -c 'echo "said 3"; sleep 1000'
  wait_until job_talks
  start_web
  browse_signed_in actions >did
  local step
  for step in reserved extended released refused: stopped 'signed out' 'used up'; do
    grep -q "^$step" did
  done
  grep '"operation":"Acquire"' state/audit/"$(id -u)".jsonl | grep -q '"by":"web"'
}

@test "a signed-in user unfolds an array, reads an item's output, stops one and restarts one" {
  gpurota job add sweep --array 1-4%2 --memory 1G -- sh -c 'echo "item $GPUROTA_ARRAY_INDEX"
[ "$GPUROTA_ARRAY_INDEX" = 1 ] && [ ! -e failed ] && touch failed && exit 3
exec sleep 1000'
  wait_until sweep_runs
  start_web
  browse_signed_in items >did
  local step
  for step in unfolded output stopped next restarted folded; do grep -qx "$step" did; done
}
# The first item has failed, two run.
sweep_runs() {
  gpurota job show sweep --json | python3 -c '
import json, sys
items = json.load(sys.stdin)["jobs"][0]["items"]
sys.exit(not (items["failed"] == 1 and items["running"] == 2))'
}

@test "the machines of a fleet have a view without a violation, whatever the peers say" {
  gpurota reserve --gpu-ids 0 >/dev/null
  head -c 20 /dev/zero | tr '\0' t >token
  in_background bad python3 "$BATS_TEST_DIRNAME/bad_peers.py" ports
  wait_until test -e ports
  local kind port peers=()
  while read -r kind port; do
    case $kind in fair | many | script | mute | liar) peers+=(--peer \
      "$kind=http://127.0.0.1:$port/") ;; esac
  done <ports
  start_web --page names --fleet-token token "${peers[@]}"
  browse fleet >rows
  [ "$(wc -l <rows)" = 6 ]
  # Machines with free GPUs come first, those that do not answer last.
  head -n 1 rows | grep -q '^many .*40 of 64 free'
  sed -n 2p rows | grep -q '^fair .*5 of 8 free'
  sed -n 3p rows | grep -q '^script .*<img src=x onerror=alert(1)>.*4 of 4 free'
  sed -n 4p rows | grep -q 'this one'
  tail -n 2 rows | grep -q 'no answer within 3 s'
  tail -n 2 rows | grep -q 'do not add up'
}

@test "where only those who have signed in see the page, others see how to, and nothing else" {
  start_web --page signed-in
  browse_signed_in wall >did
  local step
  for step in 'seen' 'seen again' 'gone'; do grep -qx "$step" did; done
}

@test "the link of another user names the account, and acts when its reader says so" {
  [ "$(id -u)" = 0 ] || skip "needs root: it switches users"
  chmod 755 . run
  start_web
  wait_until makes_links
  as_nobody gpurota web --quiet --no-open >the_other
  browse offered "$(cat the_link)" "$(cat the_other)" >did
  [ "$(cat did)" = "$(printf '%s\n' declined accepted)" ]
  gpurota web --list --json |
    python3 \
      -c 'import json, sys; assert [s["uid"] for s in json.load(sys.stdin)["sessions"]] == [65534]'
}

@test "somebody ends another of their sessions on the page" {
  start_web
  wait_until makes_links
  python3 "$BATS_TEST_DIRNAME/web_client.py" sign-in "$(cat the_link)" jar >signed_in
  browse_signed_in sessions >did
  grep -q '^ended' did
  gpurota web --list --json |
    python3 -c 'import json, sys; assert len(json.load(sys.stdin)["sessions"]) == 1'
  python3 "$BATS_TEST_DIRNAME/web_client.py" call jar Status '{}' >answer
  [ "$(head -n 1 answer)" = 401 ]
}

@test "text of users is shown as text" {
  make_busy
  start_web --page names
  browse text
}

@test "all of it can be used with the keyboard" {
  start_web
  browse keys
}

@test "the page says that the daemon is gone, and continues by itself" {
  start_web
  in_background watching_page browse restart
  wait_until says watching_page '^live'
  local before=$SECONDS
  kill_daemon
  wait_until says watching_page '^gone: gpurotad does not answer'
  ((SECONDS - before <= 10))
  start_daemon
  wait_until says watching_page '^back'
  ends_with 0 "$BACKGROUND_PID"
}
