#!/usr/bin/env bats
# Memory in use that belongs to no listed process: no lease gets it, and no running lease suffers.

load helpers
load watch_helpers
load filler_helpers

setup() { calm; }
teardown() {
  remove_fillers >/dev/null 2>&1 || true
  calm
  end_test
}

calm() { gpurota-sim set gpu0.hidden=0 gpu0.hide_processes=0 release_delay_ms=0; }
# hidden EXPRESSION: whether the expression is true of h, the hidden memory on GPU 0 in MiB; h is
# None if unknown.
hidden() {
  holds "(lambda h: $1)(gpus[0]['hidden_bytes'] if gpus[0]['hidden_bytes'] is None else \
    gpus[0]['hidden_bytes'] >> 20)"
}
is_use() { finding "f['kind'] == 'unreserved_use' and f['gpu'] == 0 and f['process_count'] == 0"; }
is_freeing() { holds 'gpus[0]["freeing"] is True'; }

@test "hidden memory from before the start is being freed at first, and then use without a lease" {
  gpurota-sim set gpu0.hidden=6G
  start_daemon
  wait_until is_freeing
  # The memory counts as being freed for ten seconds. On a slow machine, the ten seconds may be over
  # before the refusal.
  run -75 gpurota run --gpu-ids 0 --nonblock -- true
  grep -qE 'memory of an ended program is being freed|in use without a lease' <<<"$output"
  # The other GPU is preferred, for slices too.
  [ "$(gpurota run --nonblock -- printenv CUDA_VISIBLE_DEVICES)" = 1 ]
  [ "$(gpurota run --memory 1G --nonblock -- printenv CUDA_VISIBLE_DEVICES)" = 1 ]
  run -75 gpurota run --gpu-ids 0 --memory 4G --nonblock -- true
  grep -qE 'is being freed|in use without a lease' <<<"$output"
  gpurota run --gpu-ids 0 --memory 1G --nonblock -- "$PROGRAM" info
  run -75 gpurota run --gpu-ids 0 --swap --memory 5G --nonblock -- true
  # No more memory is shown as available for a slice than a slice can have.
  holds 'gpus[0]["available_bytes"] < 3 << 30 and gpus[0]["swap_available_bytes"] < 3 << 30'

  wait_until is_use
  gpurota status | grep 'NO LEASE' | grep -qF 'no listed process'
  holds '(gpus[0]["state"] == "unreserved_use" and
    gpus[0]["unreserved_bytes"] == gpus[0]["hidden_bytes"])'
  event_is 'finding_begun.*by no listed process'
  run -75 gpurota run --gpu-ids 0 --nonblock -- true
  grep -qF 'in use without a lease' <<<"$output"
  [ "$(gpurota run --nonblock -- printenv CUDA_VISIBLE_DEVICES)" = 1 ]

  # A slice on the GPU does not hide the memory.
  in_background beside gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" compute 300 3
  local beside=$BACKGROUND_PID
  wait_until says beside round
  is_use
  wait "$beside"
  is_use
  hidden '5000 < h < 6200'
  lacks finding_ended <(gpurota events)

  gpurota-sim set gpu0.hidden=0
  wait_until hidden 'h == 0'
  wait_until no_findings
  gpurota run --gpu-ids 0 --nonblock -- true
}

@test "hidden memory ends no running lease, and keeps fillers from starting" {
  start_daemon
  add_filler stays --memory 1G -- "$(command -v gpurota)" burn --hold --memory 500M
  wait_until is_on stays
  in_background slice gpurota run --gpu-ids 1 --memory 2G -- "$PROGRAM" hold 300
  wait_until says slice holding
  gpurota-sim set gpu0.hidden=5G gpu1.hidden=5G
  wait_until is_use
  is_on stays
  holds 'len(leases) == 2 and all(l["state"] == "active" for l in leases)'
  gpurota filler remove stays
  wait_until is_off
  add_filler keeps_off --memory 80% -- "$(command -v gpurota)" burn --hold --memory 500M
  wait_until filler_is keeps_off 'p["why"] == "hidden memory"'
  gpurota-sim set gpu0.hidden=0 gpu1.hidden=0
  wait_until is_on keeps_off
}

@test "a desktop of 900 MiB takes its part from slices and keeps nobody from the GPU" {
  start_daemon
  wait_until hidden 'h == 0'
  gpurota-sim set gpu0.hidden=900M
  wait_until hidden 'h == 900'
  gpurota status | grep -qF '900 MiB used by no listed process'
  no_findings
  [ "$(gpurota run --nonblock -- printenv CUDA_VISIBLE_DEVICES)" = 1 ]
  gpurota run --gpu-ids 0 --nonblock -- true
  gpurota run --gpu-ids 0 --memory 7G --nonblock -- true
  run -75 gpurota run --gpu-ids 0 --memory 7500M --nonblock -- true
  grep -qF '900 MiB in use that no listed process has' <<<"$output"
}

@test "memory that the site calls normal is not hidden, from the next reading after a reload on" {
  make_folders
  gpurota-sim set gpu0.hidden=5G
  start_daemon
  wait_until hidden 'h > 4000'
  configure '[gpu.0]' 'unlisted = "5G"'
  gpurota reload
  wait_until hidden 'h == 0'
  gpurota config show | grep -q '^gpu.0.unlisted  *5G'
  gpurota run --gpu-ids 0 --nonblock -- true
}

@test "where no process is listed at all, leases are not taken for hidden memory" {
  gpurota-sim set gpu0.hide_processes=1
  start_daemon
  in_background one gpurota run --gpu-ids 0 --memory 3G -- "$PROGRAM" greedy 500 2000
  in_background two gpurota run --gpu-ids 0 --swap --memory 3G -- "$PROGRAM" greedy 500 2000
  wait_until says one 'goes on with'
  wait_until says two 'goes on with'
  gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" compute 300 3
  hidden 'h == 0'
  holds 'gpus[0]["used_bytes"] > 4000 << 20'
  lacks finding_begun <(gpurota events)
}

@test "memory that a killed program leaves is waited for" {
  gpurota-sim set gpu0.hide_processes=1 release_delay_ms=4000
  start_daemon
  in_background whole gpurota run --gpu-ids 0 -- "$PROGRAM" greedy 500 6000
  local whole=$BACKGROUND_PID
  wait_until says whole 'goes on with'
  wait_until holds 'gpus[0]["used_bytes"] > 6000 << 20'
  hidden 'h is None'
  pkill -KILL -P "$whole"
  wait_until no_leases
  run -75 gpurota run --gpu-ids 0 --nonblock -- true
  grep -qF 'memory of an ended program is being freed' <<<"$output"
  # A request that waits gets all of the memory when it is free.
  in_background next gpurota run --gpu-ids 0 -- "$PROGRAM" greedy 500 7000
  wait_until says next 'goes on with'
}

@test "the time since when a GPU is used without a lease survives a kill of the daemon" {
  start_daemon
  in_background stranger env -u GPUROTA_RUNTIME_DIR CUDA_VISIBLE_DEVICES=0 "$PROGRAM" hold 1500
  wait_until says stranger holding
  wait_until finding "f['kind'] == 'unreserved_use'"
  kill_daemon
  local killed
  killed=$(date --utc +%FT%T.%NZ)
  start_daemon
  wait_until finding "f['kind'] == 'unreserved_use'"
  finding "f['since'] < '$killed'"
}
