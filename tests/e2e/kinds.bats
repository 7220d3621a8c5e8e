#!/usr/bin/env bats
# Which kind of GPU a lease gets, on a machine of several kinds.
# machine: mixed

load helpers

setup() { start_daemon; }
teardown() { end_test; }

model_of() { value "[g['name'] for g in gpus if '$1' in g['leases']][0]"; }

@test "a kind that is asked for is the only one taken; what the machine has not is refused at once" {
  local name
  name=$(value "gpus[-1]['name']")
  gpurota reserve --gpu-type "$name"
  [ "$(model_of L1)" = "$name" ]
  gpurota release L1
  gpurota reserve --min-memory "$(value "max(g['memory_bytes'] for g in gpus) >> 20")M"
  [ "$(value "[g['memory_bytes'] == max(o['memory_bytes'] for o in gpus) for g in gpus if 'L2' in g['leases']][0]")" = True ]
  run -125 gpurota run --gpu-type h9000 -- true
  [[ $output == *"of the kind asked for (h9000), this machine has 0: its GPUs are "* ]]
  run -125 gpurota run --min-cc 99.0 -- true
  [[ $output == *"(a GPU with compute capability 99.0)"* ]]
  run -2 gpurota run --gpu-ids 0 --gpu-type h100 -- true
}

@test "who waits for a kind waits for that, also over a restart of the daemon, and others do not" {
  local name
  name=$(value "gpus[0]['name']")
  while gpurota reserve --nonblock --gpu-type "$name" --for 1h; do :; done
  in_background waits gpurota run --gpu-type "$name" -- true
  wait_until says waits 'waiting as R1'
  gpurota run --nonblock -- true
  kill_daemon
  start_daemon
  wait_until eval '[ "$(gpurota queue --json | python3 -c "import json, sys; print(json.load(sys.stdin)[\"requests\"][0][\"gpu_type\"])")" = "$name" ]'
  gpurota release --all --yes
  wait "$BACKGROUND_PID"
}
