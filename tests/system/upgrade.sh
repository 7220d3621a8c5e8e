#!/bin/bash
# Tests an upgrade of packages under load, and the way back: upgrade.sh OLDER NEWER BUILD
#
# OLDER and NEWER are folders with the Debian packages of two versions (`./dev package FOLDER`),
# BUILD is a build folder with the test programs. OLDER is installed in a booted machine (see
# machine.sh for what that needs). Slices allocate without a break, swap leases take turns and check
# what they hold, and other users wait, have bookings, jobs and fillers, and ask for the status all
# the time. Then NEWER is installed, and OLDER again. No program may end, be refused, or find a
# wrong byte. Prints the counts.
set -euo pipefail
older=$(realpath "$1") newer=$(realpath "$2") build=$(realpath "$3")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A third GPU, for the filler.
sed 's/^count = .*/count = 3/; s/^name = "demo"/name = "upgrade"/' \
  "$here/../../sim/machines/demo.toml" >"$work/upgrade.toml"
programs="$build/tests/interposer/swap_probe $build/tests/bin/hammer $here/ask_always.py"
GPUROTA_MACHINE_TESTS=upgrade_tests.bash GPUROTA_MACHINE_NEWER=$newer \
  GPUROTA_MACHINE_FILE=$work/upgrade.toml \
  GPUROTA_MACHINE_PROGRAMS=$programs "$here/machine.sh" "$older" "$build/demo/gpu_program"
