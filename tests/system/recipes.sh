#!/bin/bash
# Tests the recipes of the manual as they are written: recipes.sh FOLDER BUILD
#
# FOLDER has the Debian packages, BUILD is a build folder with the test programs. Runs the commands
# of docs/operate/recipes.md in a booted
# machine (machine.sh, which says what that takes), with tmux, cron, ssh, JupyterHub and the like
# from the mirror that apt uses here.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
packages="tmux screen cron at sudo openssh-server environment-modules python3-venv jupyterhub"
GPUROTA_MACHINE_TESTS=recipes_tests.bash GPUROTA_MACHINE_PACKAGES="$packages patchelf" \
  exec "$here/machine.sh" "$1" "$2/demo/gpu_program"
