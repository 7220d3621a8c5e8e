#!/usr/bin/env bats
# A lease of several GPUs gets GPUs that are close together.
# machine: a100x8-pcie

load helpers

setup() {
  start_daemon
  [ "$(value 'len(gpus)')" = 8 ] || skip "for a machine of four pairs of GPUs"
}
teardown() { end_test; }

@test "two GPUs are a pair joined by NVLink, though others are the next in line" {
  gpurota reserve --gpu-ids 0
  [ "$(gpurota reserve --gpus 2 --short)" = 2,3 ]
  [ "$(gpurota reserve --gpus 2 --short)" = 4,5 ]
}

@test "with no pair left, those at the same CPU" {
  gpurota reserve --gpu-ids 1,2,5,7
  [ "$(gpurota reserve --gpus 2 --short)" = 0,3 ]
  [ "$(gpurota reserve --gpus 2 --short)" = 4,6 ]
}

@test "four are the two pairs of one CPU" {
  gpurota reserve --gpu-ids 1
  [ "$(gpurota reserve --gpus 4 --short)" = 4,5,6,7 ]
}
