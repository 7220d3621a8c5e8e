#!/bin/bash
# Runs hours of tests, many at once, even on a machine without Debian packages: bash, python3,
# coreutils, procps and a C library no older than ours are enough. The packed folder works in any
# place.
#
#   hours.sh pack BUILD OUT     packs what the tests need of a build tree into the folder OUT
#   OUT/hours.sh run OUT INSTANCES SECONDS RESULTS_FILE     as root: tests/e2e/turns_stress.bats
#   OUT/hours.sh day OUT INSTANCES SECONDS RESULTS_FILE     as root: tests/hostile/day.bats
#   OUT/hours.sh races OUT INSTANCES SECONDS RESULTS_FILE   tests/e2e/driver_limits_races.bats
#   OUT/hours.sh sweep OUT INSTANCES KIND RESULTS_FILE [PIECE…]
#       as root: tests/hostile/failing_calls.bats, in which every call of a kind (memory, threads,
#       descriptors, disk, or all of these) fails once; the piece "begin", which can only be given
#       alone, is the start of a daemon
#
# run, day, races and sweep exit with 0 if all instances passed. RESULTS_FILE gets the sums in one
# line, the whole output of each instance that failed, and the counts of each. E2E_SEED is the seed
# of the first instance; the next ones have the numbers after it. An instance takes 1 to 2 GiB of
# memory, and at least half a processor.
set -euo pipefail

usage() {
  echo "usage: hours.sh pack BUILD OUT |" \
    "hours.sh run|day|races OUT INSTANCES SECONDS RESULTS_FILE |" \
    "hours.sh sweep OUT INSTANCES KIND RESULTS_FILE [PIECE…]" >&2
  exit 2
}

# stripped FROM TO: copies a program without its symbols; does nothing if it was not built.
stripped() {
  if [ ! -f "$1" ]; then return 0; fi
  mkdir -p "$(dirname "$2")"
  strip -o "$2" "$1"
}

# OUT is laid out as a build tree, for tests/e2e/run_file.sh.
pack() {
  local build source bats out=$2 file
  build=$(realpath "$1") source=$(realpath "$(dirname "$0")/../..") \
    bats=$(realpath "$(command -v bats)")
  rm -rf "$out"
  "$source/tests/gpu/pack.sh" "$build" "$out/stage"
  rm -rf "$out/stage/tests"
  for file in demo/gpu_program tests/bin/hammer tests/bin/families tests/interposer/swap_probe \
    tests/interposer/swap_oversize \
    tests/hostile/libfailing_calls.so tests/e2e/libloop_guard.so tests/e2e/libcgroup_tree.so \
    tests/e2e/page_writer; do
    stripped "$build/$file" "$out/$file"
  done
  for file in gpurota-sim lib/libcuda.so.1 lib/libnvidia-ml.so.1; do
    stripped "$build/sim/$file" "$out/stage/bin/$file"
  done
  cp -r "$source/sim/machines" "$out/stage/bin/machines"
  # Libraries for the programs that have no wrapper. LD_LIBRARY_PATH has this folder for all
  # programs, so the folder must have no library that C programs use.
  mkdir "$out/lib"
  cp "$out"/stage/lib/bundled/lib{fmt,stdc++,gcc_s}.so.* "$out/lib/"
  # bats looks for its other files beside itself.
  mkdir -p "$out"/bats/{bin,lib,libexec}
  cp "$bats" "$out/bats/bin/bats"
  for file in lib libexec; do cp -r "${bats%/*/*}/$file/bats-core" "$out/bats/$file/"; done
  cp -r "$source/tests/e2e" "$source/tests/hostile" "$source/tests/stress/hours.sh" "$out/"
}

# one NUMBER FILE [ARGUMENT…]: runs an instance in a build tree of its own, so that it shares no
# files with others.
one() {
  local code=0 folder=$work/$1
  mkdir -m 755 "$folder"
  ln -s "$out/stage" "$out/demo" "$out/tests" "$folder/"
  TMPDIR=$folder E2E_SEED=$((seed + $1)) E2E_FAILING_FIRST=$((1 + $1)) E2E_REPORT=$folder/counts \
    "$out/e2e/run_file.sh" "$out/$2" "$folder" "${@:3}" \
    >"$folder/output" 2>&1 </dev/null || code=$?
  echo "$code" >"$folder/code"
}

passed() { grep -qsx 0 "$work/$1/code"; }
of_instances() { for ((i = 0; i < instances; ++i)); do "$@" "$i"; done; }
is_passed() { if passed "$1"; then echo "$1"; fi; }
show_failed() { if ! passed "$1"; then echo "--- instance $1:" && cat "$work/$1/output"; fi; }
show_counts() {
  echo "instance $1, seed $((seed + $1)):" \
    "$(sed 's/^# //' "$work/$1/counts" 2>/dev/null || echo "no counts")"
}

# Ends all processes of the instances, and no others.
end_all() {
  local process
  for process in /proc/[0-9]*; do
    if grep -qsz "^TMPDIR=$work/" "$process/environ"; then
      kill -KILL "${process#/proc/}" 2>/dev/null || true
    fi
  done
}

sum_of_run() {
  echo "$(cat "$work"/*/counts 2>/dev/null | awk '{e += $2; k += $5; m += $8}
    END {printf "%d programs ended, %d were killed, %d evictions", e, k, m}')," \
    "$(cat "$work"/*/output | grep -cE '^#? *(line|no context)') complaints of wrong bytes"
}
sum_of_day() {
  cat "$work"/*/counts 2>/dev/null | awk '/ days; / {n += $2} END {printf "%d days", n}'
}
sum_of_races() {
  cat "$work"/*/counts 2>/dev/null |
    awk '{for (i = 2; i < NF; i += 2) n += $i} END {printf "%d steps", n}'
}
sum_of_sweep() {
  cat "$work"/*/counts 2>/dev/null |
    awk '/calls failed/ {n += $3} END {printf "%d calls failed", n}'
}

tell() {
  local good
  good=$(of_instances is_passed | wc -l)
  {
    echo "$good passed, $((instances - good)) failed: $("sum_of_$mode")"
    of_instances show_failed
    of_instances show_counts
  } >"$results"
  head -n 1 "$results"
  if [ "$good" = "$instances" ]; then rm -rf "$work"; else echo "kept: $work" && return 1; fi
}

# all OUT INSTANCES RESULTS_FILE FILE [ARGUMENT…]
all() {
  out=$(realpath "$1") instances=$2 results=$(realpath -m "$3") seed=${E2E_SEED:-$RANDOM}
  work=$(mktemp -d "${TMPDIR:-/tmp}/gpurota-hours.XXXXXX")
  chmod 755 "$work" # other users must be able to enter
  export PATH=$out/bats/bin:$PATH LD_LIBRARY_PATH=$out/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
    E2E_PATIENCE=${E2E_PATIENCE:-300}
  mkdir -p "$(dirname "$results")"
  for ((i = 0; i < instances; ++i)); do one "$i" "${@:4}" & done
  trap 'end_all; wait; tell; exit 1' INT TERM # reports what has finished by then
  wait
  tell
}

mode=${1:-}
case "$mode/$#" in
  pack/3) pack "$2" "$3" ;;
  run/5)
    export E2E_STRESS_SECONDS=$4
    all "$2" "$3" "$5" e2e/turns_stress.bats
    ;;
  day/5)
    export E2E_DAY_SECONDS=$4
    all "$2" "$3" "$5" hostile/day.bats
    ;;
  races/5)
    export E2E_RACES_SECONDS=$4
    all "$2" "$3" "$5" e2e/driver_limits_races.bats
    ;;
  sweep/[5-9] | sweep/1[0-9])
    case $4 in
      all) name='(memory|thread|descriptor|room on the disk)' ;;
      memory) name=memory ;;
      threads) name=thread ;;
      descriptors) name=descriptor ;;
      disk) name='room on the disk' ;;
      *) usage ;;
    esac
    case ${*:6} in
      '') cases="^(no $name ends nothing|a daemon that begins without $name)" ;;
      begin) cases="^a daemon that begins without $name" ;;
      *) cases="^no $name ends nothing" ;;
    esac
    # Each instance has its part of the calls.
    export E2E_FAILING_STRIDE=$3 E2E_FAILING_PIECES="${*:6}"
    all "$2" "$3" "$5" hostile/failing_calls.bats -f "$cases"
    ;;
  *) usage ;;
esac
