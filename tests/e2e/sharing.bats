#!/usr/bin/env bats
# Other processes open memory of a swap lease by its handle (cuIpcGetMemHandle): the memory stays on
# the GPU in all turns, and all processes see the same bytes. tests/interposer/ipc_probe.cpp lists
# the commands of each process.

load helpers
load ipc_helpers

setup() {
  start_daemon
  learn_context_cost
  gpurota set --gpu-ids 0 --capacity 1400M --quantum 200ms
}
teardown() { end_test; }

swapping() { start "$1" gpurota run --gpu-ids 0 --swap --memory 700M -- "$E2E_IPC_PROBE"; }
moves() { grep -cs ': evicted' "$E2E_DIR/$1.debug" || true; }

@test "two leases share memory while a third takes turns with them" {
  local i
  swapping owner
  swapping other
  handle_of owner
  told owner 'keep 200' CUDA_SUCCESS # other memory, which moves
  told other 'keep 200' CUDA_SUCCESS
  in_background torture gpurota run --gpu-ids 0 \
    --swap --memory 700M -- "$E2E_SWAP_PROBE" torture 300 1
  told other "open $HANDLE" CUDA_SUCCESS
  for ((i = 7; i < 27 || $(moves owner) + $(moves other) == 0; i += 2)); do
    [ "$i" -lt 1000 ]
    told other "check $i" same
    told other "set $((i + 1))" CUDA_SUCCESS
    told owner "check $((i + 1))" same
    told owner "set $((i + 2))" CUDA_SUCCESS
    sleep 0.1
  done
  told other close CUDA_SUCCESS
  told owner free CUDA_SUCCESS
}

@test "a slice opens memory that a swap lease shares" {
  swapping owner
  start slice gpurota run --gpu-ids 0 --memory 300M -- "$E2E_IPC_PROBE"
  handle_of owner
  told slice "open $HANDLE" CUDA_SUCCESS
  told slice 'check 7' same
  told slice 'set 8' CUDA_SUCCESS
  told owner 'check 8' same
  told slice close CUDA_SUCCESS
  told owner free CUDA_SUCCESS
  told slice "open $HANDLE" CUDA_ERROR_NOT_PERMITTED
}

@test "a handle that was given before the daemon was killed is opened after it" {
  swapping owner
  swapping other
  handle_of owner
  kill_daemon
  start_daemon
  told other "open $HANDLE" CUDA_SUCCESS
  told other 'check 7' same
}

@test "an owner that is stopped keeps nobody waiting for ever" {
  local owner
  swapping owner
  swapping other
  handle_of owner
  owner=$(pgrep -P "${BACKGROUND[0]}" -f ipc_probe)
  stop_process "$owner"
  PATIENCE=60 told other "open $HANDLE" CUDA_ERROR_MAP_FAILED
  kill -CONT "$owner"
  told other "open $HANDLE" CUDA_SUCCESS
}
