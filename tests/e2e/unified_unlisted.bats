#!/usr/bin/env bats
# Like unified.bats, on a machine where NVML lists no processes and knows no PCI address: unknown
# values are shown as unknown.
# machine: jetson

load helpers

setup() { start_daemon; }
teardown() { end_test; }

@test "a GPU without a PCI address is there, and doctor says what is not seen" {
  holds "len(gpus) == 1 and gpus[0]['name'] == 'NVIDIA Thor' and gpus[0]['pci'] == ''"
  holds "gpus[0]['state'] == 'available' and gpus[0]['memory_bytes'] > 0"
  gpurota doctor >checks || true
  grep -q 'gpu 0 processes.*does not list who uses the GPU' checks
}

@test "a slice has its limit, and its use is as libgpurota counts it" {
  in_background greedy gpurota run --memory 2G -- "$PROGRAM" greedy 64
  wait_until says greedy 'goes on'
  wait_until holds "2**30 < leases[0]['gpus'][0]['used_bytes'] <= 2**31"
  gpurota ps --json >processes
  grep -q '"used_bytes": *[1-9]' processes
}

@test "the use of a whole GPU's program is unknown, and the lease is not unused" {
  printf '[watch]\nunused = "stop"\nunused_after = "1s"\nunused_grace = "1s"\n' >gpurota.toml
  gpurota reload
  in_background holder gpurota run -- env -u LD_PRELOAD "$PROGRAM" hold 100
  wait_until says holder holding
  holds "leases[0]['gpus'][0]['used_bytes'] is None"
  gpurota status >table
  grep -qE ' \? / [0-9]' table
  sleep 4
  holds "len(leases) == 1 and leases[0]['gpus'][0]['unused_since'] is None"
}
