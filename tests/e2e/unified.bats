#!/usr/bin/env bats
# A GPU that uses the machine's memory, about which NVML reports nothing: slices work, and unknown
# values are not shown as zero.
# machine: gb10

load helpers

setup() { start_daemon; }
teardown() { end_test; }

machine_mib() { awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo; }

@test "the size of a unified GPU is the machine's memory, and its use the machine's" {
  holds "gpus[0]['unified'] and gpus[0]['memory_bytes'] >> 20 == $(machine_mib)"
  holds "0 < gpus[0]['used_bytes'] < gpus[0]['memory_bytes']"
  holds "gpus[0]['swap_available_bytes'] is None and gpus[0].get('hidden_bytes') is None"
  gpurota status >table
  lacks ' 0 / 0' table
  gpurota doctor >checks || true
  grep -q '^ok .*gpu 0 .*NVIDIA GB10, unified memory (experimental): the machine' checks
}

@test "a slice has its limit there, also by cuMemGetInfo, and counts what its program uses" {
  run -0 gpurota run --memory 2G -- "$PROGRAM" info
  [[ $output == *" total=2147483648 "* ]]
  in_background greedy gpurota run --memory 1G -- "$PROGRAM" greedy 64
  wait_until says greedy 'goes on'
  wait_until holds "2**29 < leases[0]['gpus'][0]['used_bytes'] <= 2**30"
  holds "leases[0]['gpus'][0]['limit_bytes'] == 2**30"
}

@test "turns are refused with the reason" {
  run -125 gpurota run --swap --nonblock -- "$PROGRAM" info
  [[ $output == *"leases cannot take turns on GPU 0: its memory is the machine's"* ]]
  run -125 gpurota run --swap --memory 1G -- "$PROGRAM" info
  [[ $output == *"there is nowhere to move theirs to"* ]]
}

@test "the reserve of the site is left, and slices have no more than the machine has" {
  local whole reserve
  whole=$(machine_mib)
  reserve=$((whole / 2))
  echo "unified_reserve = \"${reserve}M\"" >gpurota.toml
  gpurota reload
  run -125 gpurota run --memory "$((whole - reserve + 64))M" --nonblock -- true
  [[ $output == *"is more than GPU 0 has: "* && $output == *" can be leased"* ]]
  holds "gpus[0]['available_bytes'] >> 20 <= $((whole - reserve))"
  # The reserve is nearly all of the machine's memory, and therefore more than is ever free.
  echo "unified_reserve = \"$((whole - 256))M\"" >gpurota.toml
  gpurota reload
  run -75 gpurota run --memory 250M --nonblock -- true
  [[ $output == *"of the machine's memory are used by other programs"* ]]
  in_background waits gpurota run --memory 250M -- true
  wait_until waits_for_machine
  # A whole GPU can still be leased.
  gpurota run --nonblock -- "$PROGRAM" info
}
waits_for_machine() { gpurota queue --json | grep -q "other programs use of the machine's memory"; }

@test "use without a lease is seen, and metrics have no zeros of what is unknown" {
  in_background stray "$PROGRAM" hold 1200
  wait_until says stray holding
  wait_until holds "gpus[0]['state'] == 'unreserved_use' and gpus[0]['unreserved_bytes'] > 2**30"
  run -75 gpurota run --nonblock -- true
  [[ $output == *"in use without a lease"* ]]
  command -v gpurota-web >/dev/null || return 0 # a build without the web page
  in_background web gpurota-web --listen 127.0.0.1:0
  wait_until says web 'listens on'
  local port
  port=$(grep -o '127.0.0.1:[0-9]*' web | head -n 1 | cut -d: -f2)
  python3 -c '
import sys, urllib.request as r
print(r.urlopen("http://127.0.0.1:%s/metrics" % sys.argv[1]).read().decode())' "$port" >metrics
  lacks '^gpurota_gpu_memory_bytes\{gpu="0"\} 0$' metrics
  lacks '^gpurota_gpu_memory_used_bytes\{gpu="0"\} 0$' metrics
  lacks '^gpurota_gpu_memory_swap_available_bytes\{' metrics
}
