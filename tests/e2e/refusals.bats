#!/usr/bin/env bats
# The reason why a program was refused GPU memory is printed once on its standard error. The limit
# is only one of several reasons.

load helpers
load ipc_helpers

setup() { start_daemon; }
teardown() { end_test; }

told_once() { # told_once FILE TEXT
  cat "$1"
  [ "$(grep -c '^gpurota: ' "$1")" = 1 ]
  grep -q "^gpurota: .*$2" "$1"
}
one_try() { "$@" "$PROGRAM" info >out 2>err || true; }

@test "a refusal on a GPU that the program has chosen itself is explained" {
  one_try gpurota run --gpu-ids 1 --memory 2G -- env CUDA_VISIBLE_DEVICES=0
  local hint='leave CUDA_VISIBLE_DEVICES as gpurota sets it'
  told_once err "has no part of the GPU that this program has chosen.*$hint"
}

@test "in turns, a refusal on a GPU that the program has chosen itself is explained" {
  one_try gpurota run --gpu-ids 1 --swap -- env CUDA_VISIBLE_DEVICES=0
  told_once err 'has no part of the GPU'
}

@test "a refusal because the daemon cannot be reached is explained" {
  one_try gpurota run --memory 2G -- env GPUROTA_SOCKET=/nowhere/tenant.sock GPUROTA_WAIT_MS=0
  told_once err 'no daemon answers at /nowhere/tenant.sock'
}

@test "a refusal because the daemon is gone, though there is room, is explained" {
  start some env GPUROTA_WAIT_MS=0 gpurota run --gpu-ids 0 --memory 1G -- "$E2E_IPC_PROBE"
  kill_daemon
  told some 'alloc 300' CUDA_ERROR_OUT_OF_MEMORY
  told some 'alloc 300' CUDA_ERROR_OUT_OF_MEMORY
  told_once some.err \
    'was refused 300 MiB of GPU memory: no daemon answers at .*and only it can give more'
}

@test "a refusal because of one process too many is explained" {
  local lease
  echo 'max_tenants_per_lease = 1' >>gpurota.toml
  gpurota reload
  gpurota reserve --gpu-ids 0 --memory 1G --for 10m
  lease=$(value 'leases[0]["lease_id"]')
  start one gpurota run --lease "$lease" -- "$E2E_IPC_PROBE"
  one_try gpurota run --lease "$lease" --
  told_once err 'as many processes on GPUs as the site allows (max_tenants_per_lease'
}
