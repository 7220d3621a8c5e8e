#!/bin/bash
# park_lease.sh DIST [ROUNDS [GIB]]: parks leases on a real GPU and brings them back, while their
# programs compute. DIST is what pack.sh made. Prints the time of each park and unpark, and one line
# for each check; exits with the number of checks that failed.
#
# The programs: park_program, which checks what it computes and asks without pause whether work has
# ended; and a PyTorch training as a CUDA graph that holds GIB GiB (default: 4), whose losses must
# be those of a run without gpurota, bit for bit. Each is parked ROUNDS times (default: 5), in a
# slice and in a swap lease. Takes about 3 minutes.
# shellcheck disable=SC2317  # the steps are called by name
set -uo pipefail
dist=$(readlink -f "${1:?usage: park_lease.sh DIST [ROUNDS [GIB]]}")
rounds=${2:-5} gib=${3:-4}
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/gpu/steps.bash
. "$here/steps.bash"
work=$(mktemp -d)
export GPUROTA_RUNTIME_DIR=$work/run
steps=${STEPS:-1000}
gpurota() { "$dist/bin/gpurota" "$@"; }

daemon=
cleanup() {
  gpurota release --all > "$work/released" 2>&1
  [ -z "$daemon" ] || kill "$daemon" 2> /dev/null
  wait
  rm -rf "$work"
}
trap cleanup EXIT

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
: > "$work/gpurota.toml"
"$dist/bin/gpurotad" --runtime-dir "$work/run" --state-dir "$work/state" \
  --config "$work/gpurota.toml" --preload "$dist/lib/libgpurota.so" > "$work/daemon.log" 2>&1 &
daemon=$!
within 30 gpurota status || {
  cat "$work/daemon.log"
  exit 99
}

used_mib() { nvidia-smi -i 0 --query-gpu=memory.used --format=csv,noheader,nounits; }
lease_id() {
  gpurota status --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["leases"][0]["lease_id"])'
}
seconds() { # seconds COMMAND…: prints how long it took; fails if the command does
  local begun code=0
  begun=$(date +%s.%N)
  "$@" > "$work/said" 2>&1 || code=$?
  awk "BEGIN {printf \"%.2f s\", $(date +%s.%N) - $begun}"
  return "$code"
}
# park_rounds NAME BEFORE: parks and unparks the only lease. BEFORE: the GPU's use without it, MiB.
park_rounds() {
  local name=$1 before=$2 id out back used
  id=$(lease_id) || return 1
  for round in $(seq "$rounds"); do
    sleep 0.3
    out=$(seconds gpurota park "$id") || {
      cat "$work/said"
      return 1
    }
    sleep 0.7 # parked for a while
    used=$(used_mib)
    back=$(seconds gpurota unpark "$id") || {
      cat "$work/said"
      return 1
    }
    echo "$name, round $round: out $out, back $back, $((used - before)) MiB stayed"
    ((used - before < 64)) || return 1
  done
}
run_program() { # run_program NAME OPTION…
  local name=$1 before pid
  shift
  before=$(used_mib)
  rm -f "$work/stop"
  gpurota run --gpu-ids 0 "$@" -- "$dist/tests/park_program" compute "$work/stop" \
    > "$work/$name.out" 2> "$work/$name.err" &
  pid=$!
  within 60 grep -q ready "$work/$name.out" || return 1
  park_rounds "$name" "$before" || {
    tail -n 2 "$work/$name.out" "$work/$name.err"
    return 1
  }
  touch "$work/stop"
  wait "$pid" && grep -qx right "$work/$name.out" && grep steps "$work/$name.out" | tail -n 1
}
run_torch() { # run_torch NAME OPTION…
  local name=$1 before pid
  shift
  before=$(used_mib)
  gpurota run --gpu-ids 0 "$@" -- \
    python3 "$here/park_torch.py" "$work/$name.losses" "$steps" "$gib" \
    > "$work/$name.out" 2> "$work/$name.err" &
  pid=$!
  within 120 grep -qs 0x "$work/$name.losses" || return 1
  park_rounds "$name" "$before" || {
    tail -n 4 "$work/$name.err"
    return 1
  }
  kill -0 "$pid" 2> /dev/null || echo "it ended before the last round: give more STEPS"
  wait "$pid" || {
    tail -n 4 "$work/$name.err"
    return 1
  }
  echo "$name: $(cat "$work/$name.losses.asked")"
  cmp "$work/alone.losses" "$work/$name.losses" && tail -n 1 "$work/$name.losses" | grep -qx kept
}

# Two slices of 55 % of the GPU: the second one starts while the first is parked, and the first
# comes back when the second has ended.
hold='
import os, sys, time, torch
held = [torch.full((64 << 20,), float(i), device="cuda") for i in range(8)]
torch.cuda.synchronize()
print("ready", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
print("kept" if all((each == i).all() for i, each in enumerate(held)) else "wrong", flush=True)'
run_room() {
  local first second back id
  gpurota run --gpu-ids 0 --memory 55% -- python3 -c "$hold" "$work/stop1" > "$work/room1" 2>&1 &
  first=$!
  within 60 grep -qx ready "$work/room1" && id=$(lease_id) && gpurota park "$id" || return 1
  gpurota run --gpu-ids 0 --memory 55% --nonblock -- python3 -c "$hold" "$work/stop2" \
    > "$work/room2" 2>&1 &
  second=$!
  within 60 grep -qx ready "$work/room2" || return 1
  gpurota unpark "$id" > "$work/unpark" 2>&1 &
  back=$!
  sleep 1
  kill -0 "$back" || return 1
  touch "$work/stop2"
  wait "$second" && wait "$back" && touch "$work/stop1" && wait "$first" || return 1
  grep -qx kept "$work/room1" && grep -qx kept "$work/room2"
}

step "the driver parks by the rules that the simulator has" \
  "$dist/tests/driver/driver_park_check"
step "a program in a slice computes right" run_program slice --memory 4G
step "a program in a swap lease computes right" run_program swap --swap
if python3 -c 'import torch' 2> /dev/null; then
  step "another slice has the room of a parked one, which comes back later" run_room
  step "the training alone" python3 "$here/park_torch.py" "$work/alone.losses" "$steps" "$gib"
  step "the training in a slice: losses bit for bit" \
    run_torch torch-slice --memory "$((gib + 4))G"
  step "the training in a swap lease: losses bit for bit" run_torch torch-swap --swap
else
  say skip "the training jobs: there is no PyTorch"
fi
gpurota events | grep -E ' (lease_parked|lease_unparked|park_failed) '
exit "$failed"
