#!/usr/bin/env bats
# The watch: use without a lease is found with owner and pid, stopped if the site says so, and
# reported afterwards.

load helpers
load watch_helpers

teardown() { end_test; }

# Runs a program on the GPU without telling the daemon.
stranger() { # stranger FILE MIB
  in_background "$1" env -u GPUROTA_RUNTIME_DIR "$PROGRAM" hold "$2"
  STRANGER=$BACKGROUND_PID
  wait_until says "$1" holding
}

@test "use without a lease is found with its owner and its pid" {
  make_folders
  start_daemon
  stranger stolen 1500
  wait_until finding \
    "f['kind'] == 'unreserved_use' and f['uid'] == $UID and f['processes'][0]['pid'] == $STRANGER"
  finding "f['processes'][0]['command'][1] == 'hold' and f['used_bytes'] >= 1500 * 2**20"
  holds 'gpus[0]["state"] == "unreserved_use" and gpus[0]["unreserved_bytes"] >= 1500 * 2**20'
  holds 'gpus[0]["detail"].startswith("1.6 GiB in use without a lease by 1 process of")'
  gpurota status | grep 'NO LEASE'
  event_is "finding_begun.*pid $STRANGER"
  kill -KILL "$STRANGER"
  wait_until no_findings
  wait_until event_is finding_ended
  [ "$(gpurota events | grep -c finding_begun)" = 1 ]
}

@test "below the threshold nothing is found, unless any process counts" {
  make_folders
  configure 'unreserved_threshold = "0"'
  start_daemon
  stranger small 10
  wait_until finding "f['processes'][0]['pid'] == $STRANGER"
}

@test "a process on somebody's whole GPU that is on the list is not foreign" {
  make_folders
  configure 'unreserved_threshold = "0"' '[[watch.ignore]]' \
    "executable = \"$(readlink -f "$PROGRAM")\""
  start_daemon
  stranger listed 1500
  wait_until sh -c "gpurota ps --json | grep -q '\"pid\": $STRANGER'"
  no_findings
  lacks finding_begun <(gpurota events)
}

@test "by default nothing is stopped" {
  make_folders
  start_daemon
  stranger spared 1500
  wait_until event_is finding_begun
  kill -0 "$STRANGER"
  lacks process_stopped <(gpurota events)
}

@test "the policy stop ends the process without a lease and nothing else" {
  make_folders
  configure '[watch]' 'unreserved_use = "stop"' 'over_limit = "stop"' 'stop_grace = "1s"'
  start_daemon
  in_background innocent gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" compute 256 8
  wait_until says innocent round
  local innocent=$BACKGROUND_PID
  stranger stolen 1500
  wait_until gone "$STRANGER"
  wait_until event_is "process_stopped.*SIGTERM was sent to 1 process"
  wait "$innocent"
  says innocent ' 0 wrong'
  grep -h '"operation":"terminated"' "state/audit/$UID.jsonl" | grep "\"pid\":$STRANGER"
}

@test "a process that ignores SIGTERM is killed after the grace" {
  make_folders
  configure '[watch]' 'unreserved_use = "stop"' 'stop_grace = "200ms"'
  start_daemon
  in_background deaf env -u GPUROTA_RUNTIME_DIR sh -c "trap '' TERM; exec '$PROGRAM' hold 1500"
  STRANGER=$BACKGROUND_PID
  wait_until gone "$STRANGER"
  wait_until event_is "process_stopped.*SIGKILL"
}

@test "a program that escapes the library is over the limit of its lease, and the policy stops it" {
  make_folders
  configure '[watch]' 'over_limit = "stop"' 'stop_grace = "1s"'
  start_daemon
  in_background lease gpurota run --gpu-ids 0 --memory 1G -- sh -c \
    "'$PROGRAM' hold 100 & until grep -q holding lease; do sleep 0.02; done; \
    env -u LD_PRELOAD '$PROGRAM' hold 1500 & wait"
  wait_until event_is "finding_begun.*over_limit\|finding_begun.*its limit is 1 GiB"
  wait_until event_is process_stopped
  # The program that keeps to its limit continues.
  wait_until holds \
    'leases[0]["gpus"][0]["used_bytes"] <= 2**30 and leases[0]["gpus"][0]["processes"] == 1'
}

@test "the holder of a lease is notified of a finding on its terminal" {
  make_folders
  configure '[watch]' 'over_limit = "notify"'
  start_daemon
  in_background lease gpurota run --gpu-ids 0 --memory 1G -- sh \
    -c "env -u LD_PRELOAD '$PROGRAM' hold 1500"
  wait_until says lease 'gpurota: .*its limit is 1 GiB'
}

@test "a lease that uses nothing is found, and by policy released after the warning" {
  make_folders
  configure '[watch]' 'unused = "stop"' 'unused_after = "500ms"' 'unused_grace = "500ms"'
  start_daemon
  in_background idle gpurota run --gpu-ids 0 -- sleep 1000
  ends_with 123 "$BACKGROUND_PID"
  says idle 'will be released'
  says idle 'reserved and not used'
  event_is unused
}

@test "events tell a lease's whole life, survive a kill -9, and can be followed" {
  make_folders
  start_daemon
  in_background follower gpurota events --follow --since 1h --json
  gpurota run --memory 1G --note 'for later' -- "$PROGRAM" info
  for type in lease_made lease_started lease_ending lease_gone; do
    wait_until says follower "\"type\":\"$type\""
  done
  python3 -c 'import json,sys; [json.loads(line) for line in open("follower")]'
  event_is 'lease_made.*for later'
  # The events are in the store half a second later.
  wait_until sh -c 'strings state/gpurota.db* | grep -q lease_gone'
  kill_daemon
  start_daemon
  event_is lease_gone
  event_is daemon_started
  [ "$(gpurota events --lease L1 | wc -l)" -ge 4 ]
  [ "$(gpurota events --since 1970-01-01T00:00:00Z --json | wc -l)" -ge 6 ]
}

@test "refusals are audited, and repeated refusals are one record" {
  make_folders
  start_daemon
  for _ in 1 2 3; do run -75 gpurota run --memory 8G --gpu-ids 0,1 -- true; done || true
  run -1 gpurota release L999
  [ "$(stat -c %a "state/audit/$UID.jsonl")" = 600 ]
  grep -h '"operation":"Release".*"result":"denied","error_code":"NotFound"' \
    "state/audit/$UID.jsonl"
  python3 -c 'import json,sys; [json.loads(line)["time"] for line in open(sys.argv[1])]' \
    "state/audit/$UID.jsonl"
}

@test "every lease is in the audit log, with its size and by whom it was ended" {
  make_folders
  start_daemon
  gpurota reserve --memory 1G --for 5m >/dev/null
  gpurota reserve --memory 2G --for 5m >/dev/null
  gpurota release --all
  wait_until no_leases
  local log=state/audit/$UID.jsonl
  grep '"lease":"L1","operation":"lease_made","bytes":1073741824,"result":"ok"' "$log"
  grep '"lease":"L2","operation":"lease_made","bytes":2147483648,"result":"ok"' "$log"
  grep '"lease":"L1","operation":"Release"' "$log"
  grep '"lease":"L2","operation":"Release"' "$log"
  grep '"lease":"L2","operation":"lease_ending"' "$log"
}

@test "a program that is refused memory over and over is one line, not thousands" {
  make_folders
  start_daemon
  in_background greedy gpurota run --memory 1G -- "$PROGRAM" greedy 32
  wait_until says greedy 'goes on with'
  wait_until event_is grant_denied
  [ "$(grep -c '"operation":"grant"' "state/audit/$UID.jsonl")" -le 2 ]
}

@test "a torn last line of the audit log is cut, whole lines stay" {
  make_folders
  mkdir -m 700 state/audit
  printf '{"time":"2026-01-01T00:00:00.000Z","operation":"x"}\n{"time":"2026-' \
    >"state/audit/$UID.jsonl"
  start_daemon
  gpurota run --memory 1G -- true
  wait_until grep -q Enqueue "state/audit/$UID.jsonl"
  python3 -c '
import json,sys
lines=[json.loads(line) for line in open(sys.argv[1])]
assert lines[0]["operation"] == "x"' "state/audit/$UID.jsonl"
}

@test "the report has the use of each user, even after a kill -9 in the middle" {
  make_folders
  start_daemon
  in_background holder gpurota run --gpu-ids 0 --note thesis -- "$PROGRAM" hold 1000
  wait_until says holder holding
  hours() {
    gpurota report --json | python3 -c 'import json,sys; sys.exit(0 if any(
      r["gpu_seconds"] >= '"$1"' for r in json.load(sys.stdin)["rows"]) else 1)'
  }
  wait_until hours 1
  kill_daemon
  start_daemon
  wait_until hours 2
  gpurota report | grep "$(id -un)"
  gpurota report --by note | grep thesis
  gpurota report --by gpu --days 1 | grep "^0 .*$(value 'gpus[0]["name"]')"
  gpurota report --by kind --csv | grep '"run",1,'
  run -2 gpurota report --by colour
  run -2 gpurota report --since never
}

@test "events --follow continues after a kill -9 of the daemon and shows each event once" {
  start_daemon
  in_background follower gpurota events --follow --since 1h --json
  gpurota run --memory 1G -- true
  wait_until says follower '"type":"lease_gone"'
  kill_daemon
  wait_until says follower 'waiting for it to come back'
  start_daemon
  gpurota run --memory 1G -- true
  wait_until both_leases_are_gone
  python3 - <<'END'
import json
lines = [json.loads(line) for line in open("follower") if line.startswith("{")]
ids = [line["event_id"] for line in lines]
assert ids == list(range(ids[0], ids[0] + len(ids))), ids
assert [line["type"] for line in lines].count("lease_made") == 2, lines
END
}
both_leases_are_gone() { [ "$(grep -c '"type":"lease_gone"' follower)" = 2 ]; }
