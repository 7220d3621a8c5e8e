#!/bin/bash
# kill -9 of the daemon, podman, conmon, the container and gpurota run, 200 times at random: container_kills.sh BUILD [TIMES [SEED]]
#
# tests/e2e/podman_kills.bats with more rounds. Needs root, podman and runc, and a simulated GPU. Takes half an hour.
set -euo pipefail
build=$(realpath "$1")
export E2E_KILLS=${2:-200} E2E_PATIENCE=120
if [ $# -gt 2 ]; then export E2E_SEED=$3; fi
exec "$(dirname "$(realpath "$0")")/../e2e/run_file.sh" "$(dirname "$(realpath "$0")")/../e2e/podman_kills.bats" "$build"
