#!/usr/bin/env bats
# The kind of GPU that a lease gets, on a machine with several kinds.
# machine: mixed

load helpers

setup() { start_daemon; }
teardown() { end_test; }

model_of() { value "[g['name'] for g in gpus if '$1' in g['leases']][0]"; }

@test "only the requested kind is leased; a kind that the machine lacks is refused at once" {
  local name
  name=$(value "gpus[-1]['name']")
  gpurota reserve --gpu-type "$name"
  [ "$(model_of L1)" = "$name" ]
  gpurota release L1
  gpurota reserve --min-memory "$(value "max(g['memory_bytes'] for g in gpus) >> 20")M"
  [ "$(value "[g['memory_bytes'] == max(o['memory_bytes'] for o in gpus)
    for g in gpus if 'L2' in g['leases']][0]")" = True ]
  run -125 gpurota run --gpu-type h9000 -- true
  [[ $output == *"of the kind asked for (h9000), this machine has 0: its GPUs are "* ]]
  run -125 gpurota run --min-cc 99.0 -- true
  [[ $output == *"(a GPU with compute capability 99.0)"* ]]
  run -2 gpurota run --gpu-ids 0 --gpu-type h100 -- true
}

@test "a request for a kind waits for that kind, even over a restart, and others do not" {
  local name
  name=$(value "gpus[0]['name']")
  while gpurota reserve --nonblock --gpu-type "$name" --for 1h; do :; done
  in_background waits gpurota run --gpu-type "$name" -- true
  wait_until says waits 'waiting as R1'
  gpurota run --nonblock -- true
  kill_daemon
  start_daemon
  wait_until eval '[ "$(gpurota queue --json | python3 -c "import json, sys; print(
    json.load(sys.stdin)[\"requests\"][0][\"gpu_type\"])")" = "$name" ]'
  gpurota release --all --yes
  wait "$BACKGROUND_PID"
}

@test "a class of the site is a name for GPUs; an unknown one lists the classes" {
  local name all
  name=$(value "gpus[-1]['name']")
  all=$(value "len([g for g in gpus if g['name'] == gpus[-1]['name']])")
  printf '%s\n' '[gpu.class.last]' "type = \"$name\"" '[gpu.class.first]' 'gpus = [0]' \
    '[gpu.class.none]' 'min_memory = "4T"' >gpurota.toml
  gpurota reload
  gpurota reserve --gpu-class last
  [ "$(model_of L1)" = "$name" ]
  gpurota release L1
  gpurota reserve --gpu-class first
  [ "$(value "[g['index'] for g in gpus if 'L2' in g['leases']]")" = '[0]' ]
  [ "$(value "gpus[0]['classes'][0]")" = first ]
  [ "$(gpurota __complete classes)" = $'first\nlast' ]
  run -125 gpurota run --gpu-class lats -- true
  [[ $output == \
    *"there is no class 'lats' of GPUs: the site has first, last, none; did you mean last?"* ]]
  run -125 gpurota run --gpu-class none -- true
  [[ $output == *"this machine has no GPU of class 'none'"* ]]
  run -125 gpurota run --gpu-class last --gpus "$((all + 1))" -- true
  [[ $output == *"of the kind asked for (class last), this machine has $all"* ]]
  run -2 gpurota run --gpu-ids 0 --gpu-class last -- true
}

@test "a request for a class waits for its GPUs, even over a restart of the daemon" {
  printf '[gpu.class.first]\ngpus = [0]\n' >gpurota.toml
  gpurota reload
  gpurota reserve --gpu-ids 0 --for 1h
  in_background waits gpurota run --gpu-class first -- sh -c 'echo runs on $CUDA_VISIBLE_DEVICES'
  wait_until says waits 'waiting as R1'
  gpurota queue | grep -q '1 of class first '
  kill_daemon
  start_daemon
  wait_until eval 'gpurota queue | grep -q "1 of class first "'
  gpurota release --all --yes
  wait "$BACKGROUND_PID"
  says waits '^runs on 0'
}
