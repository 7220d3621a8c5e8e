#!/bin/bash
# Hours of tests/e2e/turns_stress.bats, many at once, also on a machine that has no Debian packages: bash, python3,
# coreutils, procps and a C library no older than ours are enough, and what was packed works wherever it lies.
#
#   hours.sh pack BUILD OUT                                into the folder OUT what a build tree has of it
#   OUT/hours.sh run OUT INSTANCES SECONDS RESULTS_FILE    as root; exits with 0 if all passed
#
# In RESULTS_FILE: the sums in one line, the whole output of each that failed, the counts of each. E2E_SEED is the
# seed of the first, the next have the numbers after it. An instance takes 1 to 2 GiB of memory, and half a processor at least.
set -euo pipefail

usage() {
  echo "usage: hours.sh pack BUILD OUT | hours.sh run OUT INSTANCES SECONDS RESULTS_FILE" >&2
  exit 2
}

# stripped FROM TO: nothing if that was not built.
stripped() {
  if [ ! -f "$1" ]; then return 0; fi
  mkdir -p "$(dirname "$2")"
  strip -o "$2" "$1"
}

# OUT is laid out as a build tree, for tests/e2e/run_file.sh.
pack() {
  local build source bats out=$2 file
  build=$(realpath "$1") source=$(realpath "$(dirname "$0")/../..") bats=$(realpath "$(command -v bats)")
  rm -rf "$out"
  "$source/tests/gpu/pack.sh" "$build" "$out/stage"
  rm -rf "$out/stage/tests"
  for file in demo/gpu_program tests/bin/hammer tests/bin/families tests/interposer/swap_probe tests/interposer/swap_oversize; do
    stripped "$build/$file" "$out/$file"
  done
  for file in gpurota-sim lib/libcuda.so.1 lib/libnvidia-ml.so.1; do stripped "$build/sim/$file" "$out/stage/bin/$file"; done
  cp -r "$source/sim/machines" "$out/stage/bin/machines"
  # What the programs without a wrapper need. All that runs may look there, so there is nothing in it for C programs.
  mkdir "$out/lib"
  cp "$out"/stage/lib/bundled/lib{fmt,stdc++,gcc_s}.so.* "$out/lib/"
  # bats looks for the rest of itself beside it.
  mkdir -p "$out"/bats/{bin,lib,libexec}
  cp "$bats" "$out/bats/bin/bats"
  for file in lib libexec; do cp -r "${bats%/*/*}/$file/bats-core" "$out/bats/$file/"; done
  cp -r "$source/tests/e2e" "$source/tests/stress/hours.sh" "$out/"
}

# one FOLDER SEED: in a build tree of its own, so that nothing of it is another's.
one() {
  local code=0
  mkdir "$1"
  ln -s "$out/stage" "$out/demo" "$out/tests" "$1/"
  TMPDIR=$1 E2E_SEED=$2 E2E_REPORT=$1/counts "$out/e2e/run_file.sh" "$out/e2e/turns_stress.bats" "$1" \
    >"$1/output" 2>&1 </dev/null || code=$?
  echo "$code" >"$1/code"
}

passed() { grep -qsx 0 "$work/$1/code"; }
of_instances() { for ((i = 0; i < instances; ++i)); do "$@" "$i"; done; }
is_passed() { if passed "$1"; then echo "$1"; fi; }
show_failed() { if ! passed "$1"; then echo "--- instance $1:" && cat "$work/$1/output"; fi; }
show_counts() { echo "instance $1, seed $((seed + $1)): $(sed 's/^# //' "$work/$1/counts" 2>/dev/null || echo "no counts")"; }

# All that is below the instances, and only that.
end_all() {
  local process
  for process in /proc/[0-9]*; do
    if grep -qsz "^TMPDIR=$work/" "$process/environ"; then kill -KILL "${process#/proc/}" 2>/dev/null || true; fi
  done
}

tell() {
  local good
  good=$(of_instances is_passed | wc -l)
  {
    echo "$good passed, $((instances - good)) failed:" \
      "$(cat "$work"/*/counts 2>/dev/null | awk '{e += $2; k += $5; m += $8} END {printf "%d programs ended, %d were killed, %d evictions", e, k, m}')," \
      "$(cat "$work"/*/output | grep -cE '^#? *(line|no context)') complaints of wrong bytes"
    of_instances show_failed
    of_instances show_counts
  } >"$results"
  head -n 1 "$results"
  if [ "$good" = "$instances" ]; then rm -rf "$work"; else echo "kept: $work" && return 1; fi
}

run() {
  out=$(realpath "$1") instances=$2 results=$(realpath -m "$4") seed=${E2E_SEED:-$RANDOM}
  work=$(mktemp -d "${TMPDIR:-/tmp}/gpurota-hours.XXXXXX")
  export PATH=$out/bats/bin:$PATH LD_LIBRARY_PATH=$out/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export E2E_STRESS_SECONDS=$3 E2E_PATIENCE=${E2E_PATIENCE:-300}
  mkdir -p "$(dirname "$results")"
  for ((i = 0; i < instances; ++i)); do one "$work/$i" $((seed + i)) & done
  trap 'end_all; wait; tell; exit 1' INT TERM # what there is by then
  wait
  tell
}

case "${1:-}/$#" in
  pack/3) pack "$2" "$3" ;;
  run/5) run "$2" "$3" "$4" "$5" ;;
  *) usage ;;
esac
