#!/bin/bash
# run.sh DIST [RESULTS_DIR]: runs the main job on a real GPU. DIST is what pack.sh made. Needs nvcc,
# PyTorch and a driver. Prints one line for each check; exits with the number of checks that failed.
# ONLY="name name" runs only these checks (`frameworks` takes five minutes, `frameworks_turns`,
# `torch_habits` and `linked_libraries` three each, all others together three).
#
# Takes device memory with plain allocations and mapped memory, at most 16 GiB (burn.sh: 88 %,
# turns: 25 GiB); changes no setting of the GPU.
# shellcheck disable=SC2317  # the checks are called by name
set -uo pipefail
dist=$(readlink -f "${1:?usage: run.sh DIST [RESULTS_DIR]}")
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
results=${2:-$work}
mkdir -p "$results"
export GPUROTA_RUNTIME_DIR=$work/run
failed=0

say() { printf '%-6s %-44s %s\n' "$1" "$2" "${3:-}"; }
check() { # passes if the command succeeds; exit status 77: the check cannot run here
  local name=$1 begun code=0
  shift
  case " ${ONLY:-$name} " in *" $name "*) ;; *) return ;; esac
  begun=$(date +%s.%N)
  "$@" > "$results/$name.out" 2> "$results/$name.err" < /dev/null || code=$?
  if [ "$code" = 77 ]; then
    say skip "$name" "$(tail -n 1 "$results/$name.out" | cut -c1-200)"
  elif [ "$code" = 0 ]; then
    say ok "$name" "$(awk "BEGIN {printf \"%.1f s\", $(date +%s.%N) - $begun}")  $(
      tail -n 1 "$results/$name.out" | cut -c1-200)"
  else
    say FAIL "$name" "exit $code $(tail -n 2 "$results/$name.out" "$results/$name.err" |
      tr '\n' ' ' | cut -c1-400)"
    failed=$((failed + 1))
  fi
}
start_daemon() {
  "$dist/bin/gpurotad" --runtime-dir "$work/run" --state-dir "$work/state" --config /dev/null \
    --preload "$dist/lib/libgpurota.so" >> "$results/gpurotad.log" 2>&1 &
  daemon=$!
  for _ in $(seq 100); do
    [ -S "$work/run/control.sock" ] && "$dist/bin/gpurota" status > /dev/null 2>&1 &&
      return; sleep 0.05
  done
  echo "the daemon did not start: $(tail -n 3 "$results/gpurotad.log")" && exit 99
}
cleanup() {
  kill "$daemon" 2> /dev/null
  wait "$daemon" 2> /dev/null
  rm -rf "$work"
}
gpurota() { "$dist/bin/gpurota" "$@"; }
status() { gpurota status --json; }
used_mib() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1; }
holds() { python3 -c "import json,sys; d=json.load(sys.stdin); sys.exit(not ($1))"; }

# The limit holds for all of the runtime's ways to allocate, and nearly all of it can be allocated.
static_runtime() {
  gpurota run --memory 4G -- "$work/static_runtime" | tee /dev/stderr |
    holds "d['total_mib'] == 4096 and all(3300 <= d[k + '_mib'] <= d['free_mib'] \
      for k in ('malloc', 'async', 'pitch')) and len(d) == 5"
}
two_at_once() {
  LIMIT_MIB=8192 gpurota run --memory 8G -- python3 "$here/torch_limit.py" > "$results/two_a.out" \
    2>&1 &
  local other=$!
  LIMIT_MIB=8192 gpurota run --memory 8G -- python3 "$here/torch_limit.py" && wait "$other"
}
killed() { # after a kill -9 of the program, the lease is gone and the memory is free again
  gpurota run --memory 8G --note "to be killed" -- python3 -c "
import torch, time
x = torch.zeros(6 << 30, dtype=torch.uint8, device='cuda'); torch.cuda.synchronize()
print('holding', flush=True); time.sleep(600)" > "$work/killed.out" &
  local cli=$! pid code
  until grep -q holding "$work/killed.out"; do sleep 0.05; kill -0 "$cli" || return 1; done
  pid=$(status | python3 -c "import json,sys; print(json.load(sys.stdin)['leases'][0]['pid'])")
  [ "$(used_mib)" -gt 6000 ] || return 2
  kill -9 "$pid"
  local begun
  begun=$(date +%s.%N)
  wait "$cli"
  code=$?
  echo "lease gone and memory back after" \
    "$(awk "BEGIN {printf \"%.2f\", $(date +%s.%N) - $begun}") s, exit code $code," \
    "$(used_mib) MiB used"
  [ "$code" -eq 137 ] && status | holds "not d['leases']" && [ "$(used_mib)" -lt 100 ]
}
# After a kill -9 of the daemon, programs continue, and the limit is still enforced.
daemon_restart() {
  LIMIT_MIB=8192 gpurota run --memory 8G -- python3 -c "
import torch, time
held = [torch.zeros(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(5)]
torch.cuda.synchronize()
print('holding', flush=True); input_gone = time.time()
time.sleep(2.5)
held += [torch.zeros(1 << 30, dtype=torch.uint8, device='cuda')]
try:
    held += [torch.zeros(1 << 30, dtype=torch.uint8, device='cuda') for _ in range(4)]
    print('not refused')
except torch.OutOfMemoryError:
    print('goes on and is refused')" > "$work/restart.out" &
  local cli=$!
  until grep -q holding "$work/restart.out"; do sleep 0.05; kill -0 "$cli" || return 1; done
  kill -9 "$daemon"; wait "$daemon" 2> /dev/null
  start_daemon
  wait "$cli" || return 3
  grep 'goes on and is refused' "$work/restart.out"
}
# The daemon is restarted three times, as by upgrades, while the hammer allocates. No allocation may
# take long, or be refused although it fits.
orderly_restart() {
  gpurota run --memory 16G -- "$dist/tests/hammer" 4 8 20 16384 > "$work/orderly.out" &
  local cli=$!
  sleep 5
  for _ in 1 2 3; do
    kill -TERM "$daemon"; wait "$daemon" 2> /dev/null
    start_daemon
    sleep 2
  done
  local code=0
  wait "$cli" || code=$?
  cat "$work/orderly.out"
  return "$code"
}
# The daemon is restarted and killed while two programs take turns: no memory is lost, and the
# daemon doubts no report.
swap_restart() {
  gpurota set --gpu-ids 0 --capacity 6G --quantum 200ms
  local probe=(env PROBE_BUFFERS=150 "LD_LIBRARY_PATH=$dist/lib/bundled" "$dist/tests/swap_probe" \
    torture 25)
  gpurota run --gpu-ids 0 --swap --memory 5G -- "${probe[@]}" 1 > "$results/swap_restart1.out" &
  local other=$!
  gpurota run --gpu-ids 0 --swap --memory 5G -- "${probe[@]}" 2 > "$results/swap_restart2.out" &
  local cli=$! signal
  sleep 6
  for signal in TERM KILL TERM; do
    kill "-$signal" "$daemon"; wait "$daemon" 2> /dev/null
    start_daemon
    sleep 4
  done
  wait "$cli" && wait "$other"
  local code=$?
  gpurota turns
  gpurota set --gpu-ids 0 --reset
  tail -n 2 "$results"/swap_restart?.out
  [ "$code" -eq 0 ] && ! grep -E "is still there|does not show it" "$results/gpurotad.log"
}
exclusive() { gpurota run -- python3 -c "
import os, torch
assert 'libgpurota' not in open('/proc/self/maps').read()
assert torch.cuda.mem_get_info()[1] > 16 << 30; print('whole GPU, no preload')"; }
frameworks() { # prints its own lines, and a table: frameworks.out, frameworks.md
  python3 "$here/frameworks.py" "$dist/bin/gpurota" --out "$results"
}
# The frameworks take turns with a program that checks its memory; prints a line for each.
frameworks_turns() {
  LD_LIBRARY_PATH=$dist/lib/bundled python3 "$here/frameworks_turns.py" "$dist/bin/gpurota" \
    "$dist/tests/swap_probe"
}
families() { # every family of device memory, compared with a model; the seed is in the report
  gpurota run --memory 16G -- "$dist/tests/families" 4 6 20 16384 "${SEED:-$RANDOM}"
}
turns() { # two processes of 24 GiB each on 25 GiB; prints what each switch moved, and its time
  LD_LIBRARY_PATH=$dist/lib/bundled "$dist/tests/turns_machine" --memory 24G --capacity 25G \
    --quantum 2 --seconds 90
}
# Two training jobs that do not fit together take turns: the losses are bit for bit those of a run
# alone.
swap_torch() {
  python3 "$here/swap_torch.py" "$dist/bin/gpurota" --results "$results"
}
swap_expandable() { # like swap_torch, with memory that PyTorch maps itself
  python3 "$here/swap_torch.py" "$dist/bin/gpurota" --expandable --results "$results"
}
# Another lease holds memory that cannot move. A swap lease beside it is granted exactly the memory
# that cuMemGetInfo reports as free.
swap_free() {
  python3 "$here/swap_free.py" "$dist/bin/gpurota"
}
swap_booked() { # a booked slice moves a swap lease to host memory, and every byte comes back
  python3 "$here/swap_booked.py" "$dist"
}
swap_shared() { # pairs of processes that share tensors by CUDA's handles take turns
  python3 "$here/swap_shared.py" "$dist/bin/gpurota" --results "$results"
}
# Our IPC handles behave like the driver's, except for the differences in
# tests/interposer/swap_test.cpp.
swap_handles() {
  gpurota run --gpu-ids 0 --swap --memory 4G -- "$dist/tests/driver/driver_ipc_check" |
    tee /dev/stderr > "$work/handles.out"
  [ "$(grep -c '^ok ' "$work/handles.out")" -ge 10 ] &&
    ! grep '^FAIL' "$work/handles.out" |
    grep -v -e '^FAIL memory_that_is_freed_while_it_is_open' -e '^FAIL only_linear_memory_of'
}
swap_probe() { # memory moves under threads, graphs, contexts and forks, and keeps its content
  gpurota set --gpu-ids 0 --capacity 6G --quantum 200ms
  local probe=(env PROBE_BUFFERS=150 "LD_LIBRARY_PATH=$dist/lib/bundled" "$dist/tests/swap_probe" \
    torture 30)
  gpurota run --gpu-ids 0 --swap --memory 5G -- "${probe[@]}" 1 > "$results/swap_probe1.out" &
  local other=$!
  gpurota run --gpu-ids 0 --swap --memory 5G -- "${probe[@]}" 2 && wait "$other"
  local code=$?
  gpurota turns
  gpurota set --gpu-ids 0 --reset
  return "$code"
}
# How much of the limit can be allocated, by every family in pieces of several sizes, in a slice and
# in a swap lease.
usable() {
  LD_LIBRARY_PATH=$dist/lib/bundled gpurota run --gpu-ids 0 \
    --memory 4G -- "$dist/tests/usable" 4096 90 &&
    LD_LIBRARY_PATH=$dist/lib/bundled gpurota run --gpu-ids 0 \
      --swap --memory 4G -- "$dist/tests/usable" 4096 90
}
# Calls that programs make during their captures, under a limit, and in turns with another program.
capture_habits() {
  gpurota run --gpu-ids 0 --memory 4G -- "$dist/tests/driver/driver_capture_check" |
    tee "$work/habits_slice.out"
  gpurota set --gpu-ids 0 --capacity 3G --quantum 100ms
  local other habits=(gpurota run --gpu-ids 0 \
    --swap --memory 2G -- "$dist/tests/driver/driver_capture_check")
  LD_LIBRARY_PATH=$dist/lib/bundled gpurota run --gpu-ids 0 \
    --swap --memory 2G -- "$dist/tests/swap_probe" torture 15 1 > "$results/habits_other.out" &
  other=$!
  for _ in 1 2 3; do "${habits[@]}"; done | tee "$work/habits_swap.out"
  wait "$other"
  local code=$?
  gpurota turns
  gpurota set --gpu-ids 0 --reset
  [ "$code" -eq 0 ] && ! grep '^FAIL' "$work"/habits_*.out &&
    [ "$(grep -c '^ok' "$work/habits_swap.out")" -eq 18 ]
}
# C++ programs linked to cuBLAS, cuDNN, cuFFT, cuSOLVER, NCCL; linked_libraries.out has a line for
# each.
linked_libraries() {
  "$here/linked_libraries.sh" "$dist/bin/gpurota" "$results"
}
# With each of its three allocators, PyTorch computes the same results bare, in a slice and in
# turns.
torch_habits() {
  python3 "$here/torch_habits.py" "$dist/bin/gpurota" --results "$results"
}
hammer() { gpurota run --memory 16G -- "$dist/tests/hammer" 8 8 10 16384; }

trap cleanup EXIT
nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader
nvcc -O2 -arch=native -o "$work/static_runtime" "$here/static_runtime.cu" || exit 98
start_daemon
check doctor gpurota doctor
check torch env LIMIT_MIB=8192 "$dist/bin/gpurota" run --memory 8G -- python3 "$here/torch_limit.py"
check static_runtime static_runtime
check two_at_once two_at_once
check nvml_views "$here/nvml_views.sh" "$dist/bin/gpurota"
check exclusive exclusive
check killed killed
check daemon_restart daemon_restart
check orderly_restart orderly_restart
check swap_restart swap_restart
check hammer hammer
check families families
check watch "$here/watch.sh" "$dist"
check imports "$here/imports.sh" "$dist"
check strict_access "$here/strict_access.sh" "$dist"
check daemon_in_pod "$here/daemon_in_pod.sh" "$dist"
check turns turns
check swap_probe swap_probe
check swap_torch swap_torch
check swap_expandable swap_expandable
check swap_free swap_free
check swap_booked swap_booked
check swap_shared swap_shared
check swap_handles swap_handles
check usable usable
check capture_habits capture_habits
check linked_libraries linked_libraries
check torch_habits torch_habits
check frameworks frameworks
check frameworks_turns frameworks_turns
check fillers python3 "$here/../../bench/gpu/filler.py" "$dist" 3
check burn "$here/burn.sh" "$dist" "$results"
for program in "$dist"/tests/driver/*_check; do
  [ -x "$program" ] && check "driver_$(basename "$program")" "$program"
done
# Measures the effects of calls on captures. With a driver other than the stored one, the .out file
# lists the cells that differ.
check driver_captures "$dist/tests/driver/driver_captures" "$dist/tests/driver/captures.tsv"
# A PyTorch program that adopts a lease is held to the limit of that lease. A command that a program
# runs under another lease is held to the limit of that other lease.
python_module() {
  PATH=$dist/bin:$PATH PYTHONPATH=$dist/python python3 "$here/python_module.py"
}
# GPUs are chosen by the driver's model, size and compute capability. The memory that is shown as
# available can be leased, and not a MiB more.
kinds() {
  local model cc left
  model=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
  cc=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1)
  gpurota run --gpu-type "$model" --min-cc "$cc" --min-memory 1G -- true || return 1
  gpurota run --nonblock --gpu-type h9000 -- true 2> "$work/kinds.err" && return 2
  grep "of the kind asked for (h9000), this machine has 0: its GPUs are $model" "$work/kinds.err" ||
    return 3
  gpurota run --memory 8G -- sleep 20 &
  local other=$!
  until status | holds "d['leases']"; do sleep 0.05; done
  left=$(status |
    python3 -c "import json, sys; print(json.load(sys.stdin)['gpus'][0]['available_bytes'] >> 20)")
  gpurota run --nonblock --memory "$((left + 1))M" -- true 2> "$work/kinds.err" && return 4
  grep -E '; starts now .*with --memory [0-9]+G' "$work/kinds.err" || return 5
  gpurota run --nonblock --memory "${left}M" -- true || return 6
  gpurota release --all > "$work/kinds.out"
  wait "$other"
  echo "$left MiB beside a slice of 8 GiB could be had, and no MiB more"
}
check python_module python_module
check kinds kinds
believed() { # the daemon has doubted no program, and all were honest
  ! grep -c "is still there" "$results/gpurotad.log"
}
check believed believed
echo "$failed failed"
exit "$failed"
