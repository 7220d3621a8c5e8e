#!/bin/bash
# The portable tarball and the RPMs under systemd: portable.sh FOLDER BUILD
#
# FOLDER has what `./dev portable FOLDER` made; BUILD is a build folder with its stage, for
# simulated GPUs and a program on them. In a booted machine (machine.sh, which says what that takes)
# the tarball is installed and started, upgraded under a program and a job, uninstalled and purged;
# then the RPMs, with Debian's rpm.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
command -v rpm >/dev/null || { echo "skipped: rpm is not installed" && exit 77; }
GPUROTA_MACHINE_TARBALL=$(realpath "$1"/gpurota-*.tar.xz)
export GPUROTA_MACHINE_TARBALL
GPUROTA_MACHINE_TESTS=portable_tests.bash exec "$here/machine.sh" "$2/stage" "$2/demo/gpu_program"
