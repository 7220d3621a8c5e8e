#!/usr/bin/env bats
# Kills the daemon, dockerd, containerd, its shim, docker's command, the container and gpurota run
# with kill -9, at random: nothing may be left. A few rounds; tests/system/container_kills.sh runs
# 200 of them.

load helpers
load engine_helpers
load docker_helpers
load kill_helpers

setup_file() { make_docker; }
teardown_file() { stop_engines; }

setup() {
  have_docker
  enter_own_groups
  start_daemon
}

kill_dockerd() { kill_file_background KILL "$BATS_FILE_TMPDIR/docker" && start_docker; }
kill_containerd() { kill_file_background KILL "$BATS_FILE_TMPDIR/containerd" && start_containerd; }
kill_shim() { pgrep -f -- "containerd-shim.*$BATS_FILE_TMPDIR" | killed; }
kill_docker() { pgrep -f -- "docker .*$BATS_FILE_TMPDIR.* run" | killed; }
remove_containers() {
  engine ps --all --quiet | xargs -r "${ENGINE[@]}" rm --force >/dev/null 2>&1 || true
}

@test "docker: killed at random, no lease, no memory and no process is left" {
  rounds kill_gpurotad kill_dockerd kill_containerd kill_shim kill_docker kill_container kill_run
}
