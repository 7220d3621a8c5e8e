#!/usr/bin/env bats
# A GPU falls off the bus under a daemon that is then restarted: other GPUs are served, and the
# leases on the lost GPU are shown.

load helpers

setup() { start_daemon; }
teardown() {
  gpurota-sim set gpu1.lost=0
  end_test
}

lose_gpu_1() { gpurota-sim set gpu1.lost=1; }
find_gpu_1() { gpurota-sim set gpu1.lost=0; }

# Starts on each of the GPUs 0 and 1 a swap lease and a slice that hold memory.
start_leases() {
  in_background swap1 gpurota run --gpu-ids 1 --swap --memory 4G -- "$PROGRAM" hold 100
  wait_until says swap1 holding
  in_background slice1 gpurota run --gpu-ids 1 --memory 1G -- "$PROGRAM" hold 100
  wait_until says slice1 holding
  in_background swap0 gpurota run --gpu-ids 0 --swap --memory 4G -- "$PROGRAM" compute 64 300
  wait_until says swap0 round
  in_background slice0 gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 100
  wait_until says slice0 holding
}

rounds() { grep -c round "$E2E_DIR/swap0"; }
has_rounds() { [ "$(rounds)" -ge "$1" ]; }

restart_daemon() {
  kill_daemon
  start_daemon
}

@test "a daemon that starts without one of its GPUs serves the others, and shows whose lease is on the lost one" {
  start_leases
  lose_gpu_1
  restart_daemon
  holds 'len(gpus) == 1 and len(leases) == 4'
  wait_until holds \
    'sorted(l["lease_id"] for l in leases if l["gpus"][0]["index"] == -1) == ["L1", "L2"]'
  gpurota status | grep L1 | grep -q LOST
  gpurota status | grep L2 | grep -q LOST
  gpurota ps >/dev/null
  gpurota turns >/dev/null
  gpurota explain L1 | grep -q "lost GPU"
  wait_until has_rounds "$(($(rounds) + 3))"
  gpurota run --gpu-ids 0 --swap --memory 2G -- "$PROGRAM" info >/dev/null
  run -125 gpurota run --gpu-ids 1 --nonblock -- true
  gpurota release L2
  wait_until holds 'len(leases) == 3'
}

@test "a GPU that is back is known with the memory on it" {
  start_leases
  lose_gpu_1
  restart_daemon
  find_gpu_1
  restart_daemon
  holds 'len(gpus) == 2 and len(leases) == 4'
  holds 'all(l["gpus"][0]["index"] == 1 for l in leases if l["lease_id"] in ("L1", "L2"))'
  wait_until holds 'all(l["processes"] == 1 for l in leases)'
  wait_until eval 'gpurota run --gpu-ids 1 --swap --memory 2G -- "$PROGRAM" info'
}

@test "a GPU lost under a daemon, and a restart meanwhile, end no lease" {
  start_leases
  lose_gpu_1
  wait_until holds 'any(g["state"] == "error" for g in gpus)'
  gpurota ps >/dev/null
  for _ in 1 2 3; do restart_daemon; done
  find_gpu_1
  holds 'len(leases) == 4'
  stop_daemon
  start_daemon
  holds 'len(gpus) == 2 and len(leases) == 4'
}
