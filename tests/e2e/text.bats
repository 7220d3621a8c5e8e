#!/usr/bin/env bats
# Foreign text (notes, commands, names) must be harmless where it is shown and exact where it is
# used.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# Escape codes, a title, a bell, a newline, a direction override, invalid UTF-8 and a wide
# character.
EVIL=$'x\e[31mred\e]0;title\a\nL99 forged \xe2\x80\xae\xff\xfe\xe4\xb8\x96'
# Similar text without invalid bytes, with characters that a UTF-8 terminal interprets: CSI as one
# character, an isolate.
EVIL_UTF8=$'x\e[31m\xc2\x9b2J \xe2\x80\xae\xe2\x81\xa6evil\xe2\x80\x8b\x7f'

# No C0 or C1 control, no U+200B to U+200F, no direction override or isolate.
harmless() {
  LC_ALL=C lacks '[\x00-\x08\x0b-\x1f\x7f]' "$1" &&
    LC_ALL=C lacks '\xc2[\x80-\x9f]' "$1" &&
    LC_ALL=C lacks '\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]' "$1" &&
    iconv -f UTF-8 -t UTF-8 "$1" >/dev/null
}

start_evil() {
  in_background holder gpurota run --memory 1G --note "$EVIL" -- "$PROGRAM" hold 1
  wait_until says holder 'holding'
}

@test "a hostile note cannot drive a terminal, forge a line or break JSON" {
  start_evil
  gpurota status >table
  gpurota ps >processes
  harmless table
  harmless processes
  lacks '^L99' table
  status_json | python3 -c 'import json, sys; json.load(sys.stdin)'
  harmless gpurotad.log
  lacks '^L99' gpurotad.log
}

@test "JSON on a terminal is as harmless as a table, and says the same as before" {
  in_background holder gpurota run --memory 1G --note "$EVIL_UTF8" -- "$PROGRAM" hold 1
  wait_until says holder 'holding'
  gpurota status --json >status.json
  gpurota ps --json >ps.json
  gpurota events --json >events.json
  gpurota turns --json >turns.json
  gpurota queue --json >queue.json
  for each in status ps events turns queue; do harmless "$each.json"; done
  NOTE=$EVIL_UTF8 python3 -c '
import json, os
assert json.load(open("status.json"))["leases"][0]["note"] == os.environ["NOTE"]'
}

@test "exported jobs are harmless to print, and are the same when they are applied" {
  gpurota job add evil -- printf '%s' "$EVIL_UTF8"
  wait_until eval 'gpurota job list | grep evil | grep -q finished'
  gpurota job list --json >jobs.json
  harmless jobs.json
  gpurota job export >jobs.toml
  harmless jobs.toml
  gpurota job remove evil
  gpurota job apply jobs.toml
  gpurota job start evil
  wait_until eval 'gpurota job list | grep evil | grep -q finished'
  [ "$(gpurota job logs evil | od -An -c)" = "$(printf '%s' "$EVIL_UTF8" | od -An -c)" ]
}

@test "a note with wide characters keeps the table's columns in line" {
  in_background first gpurota run --memory 1G --note '世界' -- "$PROGRAM" hold 1
  in_background second gpurota run --memory 1G --note 'abcd' -- "$PROGRAM" hold 1
  wait_until says first 'holding'
  wait_until says second 'holding'
  gpurota status >table
  grep -q '世界' table
}

@test "a note survives a restart of the daemon unchanged" {
  start_evil
  local before
  before=$(value 'leases[0]["note"]')
  kill_daemon
  start_daemon
  [ "$(value 'leases[0]["note"]')" = "$before" ]
}

@test "arguments reach the command byte for byte" {
  gpurota run --memory 1G -- printf '%s' "$EVIL" >out
  [ "$(od -An -c out)" = "$(printf '%s' "$EVIL" | od -An -c)" ]
}

@test "a command with hostile arguments is shown harmless" {
  in_background holder gpurota run --memory 1G -- sh -c 'exec "$0" hold 1' "$PROGRAM" "$EVIL"
  wait_until says holder 'holding'
  gpurota status >table
  gpurota ps >processes
  harmless table
  harmless processes
  harmless gpurotad.log
}

@test "an error about hostile text is harmless" {
  run gpurota run --gpu-ids "$EVIL" --memory 1G -- true
  printf '%s\n' "$output" >said
  harmless said
  run gpurota run --memory "$EVIL" -- true
  printf '%s\n' "$output" >said
  harmless said
  run gpurota run --memory 1G -- "$EVIL"
  printf '%s\n' "$output" >said
  harmless said
}

@test "a very long note is bounded, not a denial of service" {
  local long
  long=$(head -c 100000 /dev/zero | tr '\0' x)
  run -0 gpurota run --memory 1G --note "$long" -- true
  grep -q 'is cut off' <<<"$output"
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 1
  wait_until says holder holding
  run -0 gpurota update "$(value 'leases[0]["lease_id"]')" --note "$long"
  grep -q 'is cut off' <<<"$output"
  holds 'len(leases[0]["note"]) == 1024'
}
