#!/usr/bin/env bats
# Kills the daemon, podman, its monitor (conmon), the container and gpurota run with kill -9, at
# random: nothing may be left. A few rounds; tests/system/container_kills.sh runs 200 of them.

load helpers
load engine_helpers
load podman_helpers
load kill_helpers

setup() {
  have_podman
  enter_own_groups
  start_daemon
}

of_case() { pgrep -f -- "$1.*$E2E_DIR/podman" || true; }
kill_conmon() { of_case conmon | killed; }
kill_podman() { of_case 'podman .* run' | killed; }
remove_containers() { engine rm --all --force --time 0 >/dev/null 2>&1 || true; }

@test "killed at random, no lease, no memory and no process is left" {
  rounds kill_gpurotad kill_conmon kill_podman kill_container kill_run
}
