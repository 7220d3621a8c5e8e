#!/usr/bin/env bats
# Swap leases: making, showing and setting them, and programs that take turns.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# turns EXPRESSION: prints the value of a Python expression of `gpurota turns --json`.
turns() {
  gpurota turns --json |
    python3 -c "import json, sys; globals().update(json.load(sys.stdin)); print($1)"
}

@test "several swap leases have nearly all of a GPU, and say that they take turns" {
  in_background one gpurota run --gpu-ids 0 --swap -- sleep 60
  wait_until eval '[ "$(value "len(leases)")" = 1 ]'
  in_background two gpurota run --gpu-ids 0 --swap --memory 50% --priority low -- sleep 60
  wait_until eval '[ "$(value "len(leases)")" = 2 ]'
  [ "$(value 'set(l["share"] for l in leases)')" = "{'swap'}" ]
  [ "$(value 'leases[0]["gpus"][0]["limit_bytes"] > 0.9 * gpus[0]["memory_bytes"]')" = True ]
  [ "$(turns 'len(gpus[0]["leases"])')" = 2 ]
  [ "$(turns 'gpus[0]["leases"][1]["priority"]')" = -10 ]
  gpurota status | grep -q ' swap'
  gpurota turns | grep -q 'everything fits'
  gpurota set --gpu-ids 0 --quantum 7s
  [ "$(turns 'gpus[0]["leases"][0]["quantum_ms"]')" = 7000 ]
  run -75 gpurota run --gpu-ids 0 --nonblock -- true
  run -75 gpurota run --gpu-ids 0 --nonblock --memory 60% -- true
}

@test "an administrator sets the capacity of a GPU, and a restart keeps it" {
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
  run -1 gpurota set --gpu-ids 0 --quantum 5x
  grep -q 'quantum: write' <<<"$output"
  gpurota set --gpu-ids 0 --reset
  [ "$(turns 'gpus[0]["mode"], gpus[0]["quantum_ms"]')" = "auto None" ]
  gpurota events | grep -q 'GPU 0 is set'
}

@test "the configuration says what turns are, and which priorities a user may have" {
  printf '%s\n' '[turns]' 'quantum = "250ms"' '[turns.gpu.0]' 'mode = "off"' '[limits]' \
    'priority = 10' \
    >"$E2E_DIR/gpurota.toml"
  gpurota reload
  [ "$(turns 'gpus[0]["mode"], gpus[0]["quantum_ms"]')" = "off 250" ]
  gpurota run --swap --priority high -- true
  run -125 gpurota run --swap --priority 11 -- true
  grep -q 'priorities up to 10' <<<"$output"
}

@test "a lease has a priority and a quantum of its own, changed while it runs and kept over a restart" {
  in_background one gpurota run --gpu-ids 0 --swap --quantum 5s -- sleep 60
  wait_until eval '[ "$(value "len(leases)")" = 1 ]'
  [ "$(turns 'gpus[0]["leases"][0]["own_quantum_ms"]')" = 5000 ]
  gpurota turns | grep -q '5.0 s\*'
  gpurota update L1 --priority low --quantum auto
  [ "$(value 'leases[0]["priority"]')" = -10 ]
  [ "$(value 'leases[0]["quantum_ms"]')" = 0 ]
  gpurota events | grep -q 'priority -10, quantum auto'
  kill_daemon
  start_daemon
  [ "$(turns 'gpus[0]["leases"][0]["priority"], gpus[0]["leases"][0]["own_quantum_ms"]')" = \
    "-10 0" ]
  run -1 gpurota update L1 --quantum 1x
  grep -q '10ms' <<<"$output"
  run -2 gpurota run --memory 1G --quantum 5s -- true
  grep -q -e '--swap' <<<"$output"
}

@test "explain shows where the memory of a swap lease is, and refuses unknown names with the known ones" {
  in_background one gpurota run --gpu-ids 0 --swap -- sleep 60
  wait_until eval '[ "$(value "len(leases)")" = 1 ]'
  gpurota explain L1 | grep -q 'GPU 0: everything fits'
  gpurota explain L1 | grep -q 'in host memory'
  run -1 gpurota explain nonsense
  grep -q "request (R7, .* lease (L12" <<<"$output"
}

@test "where a soft limit moves memory out, a slice can have none and a swap lease can" {
  printf '%s\n' '[soft_limit]' 'policy = "evict"' >"$E2E_DIR/gpurota.toml"
  gpurota reload
  run -125 gpurota run --memory 1G --soft-limit 500M -- true
  grep -q 'which a slice does not allow' <<<"$output"
  in_background one gpurota run --gpu-ids 0 --swap --soft-limit 50% -- sleep 60
  wait_until eval '[ "$(value "len(leases)")" = 1 ]'
  [ "$(turns 'gpus[0]["leases"][0]["above_soft_limit"]')" = False ]
}

@test "a program is granted the memory that it is told is free, beside unmovable memory" {
  learn_context_cost
  python3 -B "$BATS_TEST_DIRNAME/../gpu/swap_free.py" gpurota --capacity-mib 2048 --limit-mib 1700 \
    --wired-mib 600
}
