#!/bin/sh
# Runs the conformance programs against the driver that the loader finds: NVIDIA's, or (inside
# gpurota-sim) the simulated one. Prints one line per check; fails if any check does.
# usage: tests/driver/run.sh BUILD_DIR
set -u
programs=${1:?usage: run.sh BUILD_DIR}/tests/driver
failures=0
for program in memory copy vmm pool stream graph process ipc park rare external simulator; do
    echo "# $program"
    "$programs/driver_${program}_check" || failures=$((failures + 1))
done
[ "$failures" -eq 0 ] || echo "# $failures of the programs failed"
exit "$((failures > 0))"
