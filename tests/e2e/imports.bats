#!/usr/bin/env bats
# Memory that a program imports from another process counts once for the importer's lease, and once
# for the maker's.

load helpers
load ipc_helpers

setup() {
  start_daemon
  learn_context_cost
}
teardown() { end_test; }

slice() { start "$1" gpurota run --gpu-ids 0 --memory 1G -- "$E2E_IPC_PROBE"; }
in_lease() { start "$1" gpurota run --lease "$2" -- "$E2E_IPC_PROBE"; }
reserved() {
  gpurota reserve --gpu-ids 0 --memory 1G --for 10m >/dev/null && value 'leases[-1]["lease_id"]'
}
charged() { told "$1" charged "$2"; }
# path_of NAME MIB: the path of a descriptor of MIB of memory that NAME has mapped.
path_of() {
  local said
  told "$1" "map $2" CUDA_SUCCESS
  said=$(ask "$1" export)
  [[ $said == CUDA_SUCCESS\ * ]]
  FOUND=${said#* }
}
# Unmaps the memory of NAME, and closes its handle; then only descriptors keep the memory.
let_go() {
  told "$1" unmap CUDA_SUCCESS
  told "$1" letgo 0
}

@test "memory kept by descriptors only counts for its importer, mapped or not" {
  local i taken=0 said
  slice maker
  slice keeper
  for ((i = 0; i < 8; ++i)); do
    path_of maker 200
    said=$(ask keeper "take $FOUND")
    if [ "$said" = CUDA_SUCCESS ]; then
      taken=$((taken + 1))
    else
      [ "$said" = CUDA_ERROR_OUT_OF_MEMORY ]
    fi
    let_go maker
  done
  [ "$taken" = 4 ] # 1024 MiB less a context of 128
  charged keeper $((4 * 200 + 128))
  charged maker 128
  cat keeper.err
  local refused='^gpurota: L[0-9]* was refused 200 MiB of GPU memory of another process, '
  refused+='which counts for both: more than is left of its 1 GiB'
  [ "$(grep -c "$refused" keeper.err)" = 1 ]
  # NVML's figure of the lease, with the imports in it, never exceeds the limit.
  wait_until holds 'max(g["used_bytes"] for l in leases for g in l["gpus"]) <= 2**30'
}

@test "an import beyond the limit leaves its maker as it was" {
  slice maker
  slice other
  told other 'keep 600' CUDA_SUCCESS
  handle_of maker
  told other 'keep 250' CUDA_SUCCESS
  told other "open $HANDLE" CUDA_ERROR_OUT_OF_MEMORY
  told maker 'check 7' same
  charged maker $((96 + 128))
  charged other $((850 + 128))
}

@test "closing memory, or killing its process, credits what was charged" {
  local lease
  lease=$(reserved)
  slice maker
  in_lease other "$lease"
  handle_of maker
  told other "open $HANDLE" CUDA_SUCCESS
  charged other $((96 + 128))
  told other close CUDA_SUCCESS
  charged other 128
  path_of maker 300
  told other "take $FOUND" CUDA_SUCCESS
  charged other $((300 + 128))
  kill -9 "$(pgrep -P "${BACKGROUND[0]}" -f ipc_probe)" # its maker
  sleep_until_charged other $((300 + 128))
  told other release CUDA_SUCCESS
  charged other 128
  slice another
  path_of another 300
  told other "take $FOUND" CUDA_SUCCESS
  kill -9 "$(pgrep -P "${BACKGROUND[1]}" -f ipc_probe)" # its importer
  in_lease fresh "$lease"
  sleep_until_charged fresh 128
  charged another $((300 + 128))
}
# Waits until the charge is as expected, and checks that it is the same some samples later.
sleep_until_charged() {
  wait_until told "$1" charged "$2"
  sleep 1.5
  told "$1" charged "$2"
}

@test "within a lease an import is free, and stays charged when its maker releases it" {
  local lease
  lease=$(reserved)
  in_lease maker "$lease"
  in_lease other "$lease"
  path_of maker 300
  told other "take $FOUND" CUDA_SUCCESS
  charged other $((300 + 2 * 128))
  let_go maker
  charged maker $((300 + 2 * 128))
  told other release CUDA_SUCCESS
  charged maker $((2 * 128))
  handle_of maker
  told other "open $HANDLE" CUDA_SUCCESS
  charged other $((96 + 2 * 128))
  told other close CUDA_SUCCESS
  told maker free CUDA_SUCCESS
  charged maker $((2 * 128))
}

@test "a restarted daemon counts imports as the last one did" {
  local lease
  lease=$(reserved)
  in_lease maker "$lease"
  in_lease other "$lease"
  path_of maker 300
  told other "take $FOUND" CUDA_SUCCESS
  kill_daemon
  start_daemon
  sleep_until_charged other $((300 + 2 * 128))
  told other 'keep 400' CUDA_SUCCESS # nothing is counted twice
  let_go maker
  told other release CUDA_SUCCESS
  sleep_until_charged other $((400 + 2 * 128))
}

# The figures include those of pools and external memory.
@test "figures measured on a real GPU are the same on a simulated one" {
  mkdir -p dist/bin dist/lib
  ln -s "$E2E_PREFIX/bin/gpurota" "$E2E_PREFIX/sbin/gpurotad" dist/bin
  ln -s "$E2E_PREFIX/lib/gpurota/libgpurota.so" dist/lib
  run "$BATS_TEST_DIRNAME/../gpu/imports.sh" dist
  echo "$output"
  [ "$status" -eq 0 ]
}
