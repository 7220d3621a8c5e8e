#!/bin/bash
# An upgrade of packages under load, and back: upgrade.sh OLDER NEWER BUILD
#
# OLDER and NEWER are folders with the Debian packages of two versions (`./dev package FOLDER`),
# BUILD is a build folder with the test programs. In a booted machine (machine.sh, which says what
# that takes) OLDER is installed; slices allocate without a break, swap leases take turns and check
# what they hold, others wait, have booked, have jobs and fillers, and ask all the time. Then comes
# NEWER, and OLDER again. Nobody may end, be refused, or find a wrong byte. Prints how many of each
# there were.
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
