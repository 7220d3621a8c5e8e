#!/bin/bash
# Runs one .bats file inside a simulated machine: run_file.sh FILE.bats BUILD
#
# By hand: tests/e2e/run_file.sh tests/e2e/main_job.bats build/dev [-f NAME…]
#
# A line "# machine: NAME" in the file names the machine; without such a line it is `demo`.
# GPUROTA_E2E_MACHINE chooses another ("real": no simulation, but the GPUs of this machine).
set -euo pipefail
file=$(realpath "$1") build=$(realpath "$2")
shift 2

command -v bats >/dev/null || { echo "bats is not installed"; exit 77; }
export E2E_PREFIX=$build/stage E2E_PROGRAM=$build/demo/gpu_program \
  E2E_HAMMER=$build/tests/bin/hammer
export E2E_FAMILIES=$build/tests/bin/families E2E_SWAP_PROBE=$build/tests/interposer/swap_probe
export E2E_SWAP_OVERSIZE=$build/tests/interposer/swap_oversize \
  E2E_IPC_PROBE=$build/tests/interposer/ipc_probe
export E2E_PAST_LIBRARY=$build/tests/e2e/past_library \
  E2E_LOCKED_PROGRAM=$build/tests/e2e/locked_program
export E2E_BOUND_PROGRAM=$build/tests/e2e/bound_program \
  E2E_BOUND_PLUGIN=$build/tests/e2e/libbound_plugin.so \
  E2E_DIRECT_PROGRAM=$build/tests/e2e/direct_program
# Every daemon of the tests runs with this library (see helpers.bash).
export E2E_LOOP_GUARD=$build/tests/e2e/libloop_guard.so
export E2E_CGROUP_TREE=$build/tests/e2e/libcgroup_tree.so
export E2E_STUCK_LIBRARY=$build/tests/e2e/libstuck_disk.so
export E2E_FAILING_LIBRARY=$build/tests/hostile/libfailing_calls.so
export E2E_MANY_CALLS=$build/tests/e2e/many_calls
export E2E_PAGE_WRITER=$build/tests/e2e/page_writer
export E2E_LATENCY_PROGRAM=$build/tests/e2e/latency_program
export E2E_PARK_PROGRAM=$build/tests/e2e/park_program
results=$build/test-results/$(basename "$file" .bats)
mkdir -p "$results"
export E2E_RESULTS=$results

machine=${GPUROTA_E2E_MACHINE:-$(sed -n 's/^# machine: //p' "$file")}
machine=${machine:-demo}
inside=("$E2E_PREFIX/bin/gpurota-sim" "$machine" --)
if [ "$machine" = real ]; then inside=(); fi
rm -f "$results/report.xml"
code=0
"${inside[@]}" bats --report-formatter junit --output "$results" \
  --print-output-on-failure "$@" "$file" || code=$?
# bats does not wait for its own report to be written.
for _ in {1..100}; do
  if grep -q '</testsuites>' "$results/report.xml" 2>/dev/null; then break; fi
  sleep 0.05
done
exit "$code"
