#!/usr/bin/env bats
# Swap leases: made, shown, set; and programs that take turns.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# turns EXPRESSION: of `gpurota turns --json`, as Python.
turns() { gpurota turns --json | python3 -c "import json, sys; globals().update(json.load(sys.stdin)); print($1)"; }

@test "several swap leases have nearly all of a GPU, and say that they take turns" {
  in_background one gpurota run --gpu-ids 0 --swap -- sleep 60
  wait_until eval '[ "$(value "len(leases)")" = 1 ]'
  in_background two gpurota run --gpu-ids 0 --swap --memory 50% --priority low -- sleep 60
  wait_until eval '[ "$(value "len(leases)")" = 2 ]'
  [ "$(value 'set(l["share"] for l in leases)')" = "{'swap'}" ]
  [ "$(value 'leases[0]["gpus"][0]["limit_bytes"] > 0.9 * gpus[0]["memory_bytes"]')" = True ]
  [ "$(turns 'len(gpus[0]["leases"])')" = 2 ]
  [ "$(turns 'gpus[0]["leases"][1]["priority"]')" = -10 ]
  gpurota status | grep -q ' swap '
  gpurota turns | grep -q 'all fits'
  run -75 gpurota run --gpu-ids 0 --nonblock -- true
  run -75 gpurota run --gpu-ids 0 --nonblock --memory 60% -- true
}

@test "an administrator sets what leases may have of a GPU, and a restart keeps it" {
  gpurota set --gpu-ids 0 --capacity 50% --quantum 5s --turns on
  [ "$(turns 'gpus[0]["mode"], gpus[0]["quantum_ms"]')" = "on 5000" ]
  run -125 gpurota run --gpu-ids 0 --swap --memory 60% -- true
  grep -q 'is more than GPU 0 has' <<<"$output"
  kill_daemon
  start_daemon
  [ "$(turns 'gpus[0]["mode"], gpus[0]["quantum_ms"]')" = "on 5000" ]
  in_background one gpurota run --gpu-ids 0 --memory 40% -- sleep 60
  wait_until eval '[ "$(value "len(leases)")" = 1 ]'
  run -1 gpurota set --gpu-ids 0 --capacity 30%
  grep -q 'promised to slices' <<<"$output"
  gpurota set --gpu-ids 0 --reset
  [ "$(turns 'gpus[0]["mode"], gpus[0]["quantum_ms"]')" = "auto None" ]
  gpurota events | grep -q 'GPU 0 is set'
}

@test "the configuration says what turns are, and which priorities a user may have" {
  printf '%s\n' '[turns]' 'quantum = "250ms"' '[turns.gpu.0]' 'mode = "off"' '[limits]' 'priority = 10' \
    >"$E2E_DIR/gpurota.toml"
  gpurota reload
  [ "$(turns 'gpus[0]["mode"], gpus[0]["quantum_ms"]')" = "off 250" ]
  gpurota run --swap --priority high -- true
  run -125 gpurota run --swap --priority 11 -- true
  grep -q 'priorities up to 10' <<<"$output"
}
