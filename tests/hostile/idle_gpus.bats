#!/usr/bin/env bats
# One user tries to keep idle GPUs from all others: by bookings, by requests that can never start,
# and by many requests.

load ../e2e/helpers

setup() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  make_folders
  chmod 755 . run
}
teardown() {
  if [ -n "${DAEMON_PID:-}" ]; then kill_daemon; fi
  end_test
}

as_mallory() { setpriv --reuid 54001 --regid 54001 --clear-groups "$@"; }
as_alice() { setpriv --reuid 54002 --regid 54002 --clear-groups "$@"; }
# waiting N: N requests wait.
waiting() {
  [ "$(gpurota queue --json |
    python3 -c 'import json, sys; print(len(json.load(sys.stdin)["requests"]))')" = "$1" ]
}

@test "a booking of all GPUs far ahead keeps nobody without a time limit from an idle machine" {
  start_daemon
  as_mallory gpurota reserve --gpus "$(value 'len(gpus)')" --at +9d --for 1m
  local options
  for options in '' '--memory 1G' '--swap' '--timeout 1h'; do
    # shellcheck disable=SC2086 # the words of the options
    as_alice gpurota run --nonblock $options -- true
  done
}

@test "nobody can book so much that others find no time left" {
  start_daemon
  local all
  all=$(value 'len(gpus)')
  run -1 as_mallory gpurota reserve --gpus "$all" --at +1d --for 73h
  run -1 as_mallory gpurota reserve --gpus "$all" --at +1d --for 60h
  [[ "$output" == *"GPU hours"* ]]
  as_mallory gpurota reserve --gpus "$all" --at +1d --for 40h
  run -1 as_mallory gpurota reserve --gpus "$all" --at +4d --for 10h
  as_alice gpurota reserve --gpus "$all" --at +4d --for 10h
}

@test "requests that can never start keep an idle GPU for keep_free_gpus together, not each for itself" {
  echo 'keep_free_gpus = "2s"' >gpurota.toml
  start_daemon
  local all i
  all=$(value 'len(gpus)')
  in_background own as_mallory gpurota run --gpu-ids 0 --memory 1M -- sleep 300
  wait_until holds "len(leases) == 1"
  for i in 1 2 3; do in_background "never$i" as_mallory gpurota run --gpus "$all" -- true; done
  wait_until waiting 3
  # In earlier versions three such requests kept the GPU one after the other, and this request
  # waited forever.
  as_alice timeout 60 gpurota run --gpu-ids 1 --memory 1G -- echo served | grep -x served
  # The time of keep_free_gpus is counted for the GPU, not for each request, so a later request does
  # not wait again.
  as_alice gpurota run --nonblock --gpu-ids 1 -- true
}

@test "many requests for one GPU keep nobody from another one that is idle" {
  start_daemon
  in_background own as_mallory gpurota run --gpu-ids 0 -- sleep 300
  wait_until holds "len(leases) == 1"
  in_background requests python3 -B "$BATS_TEST_DIRNAME/many_requests.py" 54001 54003 54004
  wait_until waiting 189
  as_alice gpurota run --nonblock --gpu-ids 1 -- true
  in_background waits as_alice gpurota run --gpu-ids 0,1 -- true
  wait_until waiting 190
  as_alice gpurota queue --json | python3 -c '
import json, sys
request = [r for r in json.load(sys.stdin)["requests"] if r["uid"] == 54002][0]
# The request is planned, though 189 came before it.
assert "requests are ahead of it" not in json.dumps(request), request'
}
