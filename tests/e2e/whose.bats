#!/usr/bin/env bats
# --me and --user: lists show only what belongs to oneself, or to one user.

load helpers

setup() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  make_folders
  chmod 755 . run
  start_daemon
}
teardown() { end_test; }

# json_is EXPRESSION COMMAND…: whether a Python expression is true of j, the JSON that the command
# prints.
json_is() {
  "${@:2}" | python3 -c '
import json, sys
sys.exit(0 if eval(sys.argv[1], {"j": json.load(sys.stdin)}) else 1)' "$1"
}

@test "status shows one's own leases and their GPUs, and so does --user of somebody's" {
  as_nobody gpurota reserve --gpu-ids 0 --memory 1G --short
  gpurota reserve --gpu-ids 0 --memory 1G --short
  gpurota reserve --gpu-ids 1 --memory 1G --short
  as_nobody gpurota status --me >shown
  grep -q ' L1 ' shown
  lacks ' L[23] ' shown
  json_is '[l["lease_id"] for l in j["leases"]] == ["L2", "L3"] and len(j["gpus"]) == 2' gpurota \
    status --me --json
  json_is '([l["lease_id"] for l in j["leases"]] == ["L1"] and
    [g["index"] for g in j["gpus"]] == [0])' \
    gpurota status --user nobody --json
  [ "$(gpurota status --user nobody --format lease --no-titles | head -n 1)" = L1 ]
  [ "$(gpurota status --user daemon)" = 'daemon has no GPU' ]
  run -1 gpurota status --user no-such-user
  [[ $output == *'there is no user "no-such-user"'* ]]
  run -2 gpurota status --me --user root
  [[ $output == *"give one of them"* ]]
}

@test "queue keeps the places, and events and the report are those of one user" {
  in_background holder gpurota run --gpus 2 -- sleep 100
  wait_until holds 'len(leases) == 1'
  in_background first gpurota run -- true
  wait_until says first 'waiting as R1'
  in_background second as_nobody gpurota run -- true
  wait_until says second 'waiting as R2'
  json_is '[(r["request_id"], r["position"]) for r in j["requests"]] == [("R2", 2)]' as_nobody \
    gpurota queue --me --json
  json_is '[r["request_id"] for r in j["requests"]] == ["R1"]' gpurota queue --user root --json
  [ "$(gpurota queue --user daemon)" = 'daemon has no request' ]
  gpurota cancel R1 R2
  gpurota release --all
  wait_until no_leases
  as_nobody gpurota run --memory 1G -- true
  wait_until no_leases
  gpurota events --user nobody >of_nobody
  grep -q 'L2 made' of_nobody
  grep -q 'R2 waits' of_nobody
  lacks ' (L1|R1) ' of_nobody
  [ "$(gpurota events --user nobody -n 1 | wc -l)" = 1 ]
  as_nobody gpurota events --me -n 1 | grep -q 'L2 is gone'
  json_is '[(r["key"], r["leases"]) for r in j["rows"]] == [("nobody", 1)]' gpurota report \
    --user nobody --json
  json_is 'sum(r["leases"] for r in j["rows"]) == 1' as_nobody gpurota report --me --by kind --json
}
