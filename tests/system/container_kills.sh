#!/bin/bash
# Kills the daemon, an engine and its parts, the container and gpurota run with kill -9, 200 times
# at random: container_kills.sh BUILD [TIMES [ENGINE [SEED]]]
#
# Runs tests/e2e/ENGINE_kills.bats with more rounds; ENGINE is podman (default) or docker. Needs
# root, the engine and runc, and a simulated GPU. Takes half an hour.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
build=$(realpath "$1")
export E2E_KILLS=${2:-200} E2E_PATIENCE=120
if [ $# -gt 3 ]; then export E2E_SEED=$4; fi
exec "$here/../e2e/run_file.sh" "$here/../e2e/${3:-podman}_kills.bats" "$build"
