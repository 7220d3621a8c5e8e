#!/usr/bin/env bats
# Containers of docker's daemon (Debian's 20.10, which has no CDI): `gpurota run -- docker run …`.

load helpers
load engine_helpers
load docker_helpers

setup_file() { make_docker; }
teardown_file() { stop_engines; }

setup() {
  have_docker
  start_daemon
}

teardown() {
  end_containers
  remove_closed_group
  end_test
}

@test "docker: a container is held to the limit of its lease, and its exit code is the command's" {
  case_limit_and_exit_code
}

@test "docker: the limit is that of all processes of the container together" {
  case_limit_of_all_processes
}

@test "docker: its processes are the lease's, by our numbers" {
  case_our_numbers docker '[0-9a-f]{12}' # docker's folder is not in its usual place
}

@test "docker: a program without a token is in the lease of its container, even after a restart" {
  case_in_by_its_container
}

@test "docker: the end of the lease ends the container, that of the container the lease" {
  case_ends_together
}

@test "docker: two containers and a bare program share a GPU by memory" {
  case_share_by_memory
}

@test "docker: two containers and a bare program share a GPU in turns" {
  case_share_in_turns
}

@test "docker: another user in the container is in the lease by its token, which is on no command line" {
  case_another_user_inside
}

@test "docker: a script gives a container its lease by what container-args prints" {
  case_container_args docker
}

@test "docker: under a reservation a container may stay in the background; else the command is refused" {
  case_in_the_background
}

@test "docker: a container with our process numbers (--pid=host) is in its lease like others" {
  with_options --pid host
  case_our_numbers docker '[0-9a-f]{12}' # docker's folder is not in its usual place
  case_ends_together
}

@test "docker: a process started in the container later (exec) is in the lease" {
  case_exec
}

@test "docker: a container whose control group is elsewhere (--cgroup-parent) is in its lease" {
  case_control_group_of_its_own
}

@test "docker: an automatic lease is the whole container's, and of the account that the site names" {
  case_automatic docker
}

@test "docker: in a closed group no container opens the device, whatever it was started with" {
  have_closed_group
  case_closed_group
  case_closed_group_and_own_file
}

@test "docker: two services of a compose file share a GPU by memory" {
  command -v docker-compose >/dev/null || skip "docker-compose is not installed"
  learn_context_cost
  local service limit=2G
  for service in api batch; do
    gpurota reserve --gpu-ids 0 --memory "$limit" --for 1h --name "$service"
    gpurota container-args "$service" --env-file "$service.env" --format compose \
      --service "$service" >"$service-gpu.yaml"
    limit=1G
  done
  services >compose.yaml
  export DOCKER_HOST=unix://$BATS_FILE_TMPDIR/docker/sock
  docker-compose --project-name gpurota-e2e -f compose.yaml -f api-gpu.yaml -f batch-gpu.yaml up \
    --detach
  wait_until has_processes 1
  wait_until says shared/api 'goes on with'
  wait_until says shared/batch 'goes on with'
  grep 'refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY' shared/api
  grep 'refused at [0-9]\{3\} MiB: CUDA_ERROR_OUT_OF_MEMORY' shared/batch
  [ "$(gpurota ps | grep -cE 'docker [0-9a-f]{12}.*gpu_program')" = 2 ]
  gpurota release --all
  wait_until all_have_ended
  docker-compose --project-name gpurota-e2e -f compose.yaml down
}
# services: prints a compose file with two programs that allocate as much as they can, and write
# into ./shared how much that is.
services() {
  local service path
  echo "services:"
  for service in api batch; do
    printf '  %s:\n    image: gpurota-e2e\n    network_mode: none\n' "$service"
    echo "    environment: [GPUROTA_SIM_DIR, LD_LIBRARY_PATH]"
    printf '    command: ["sh", "-c", "%s greedy 64 >/shared/%s"]\n    volumes:\n' "$PROGRAM" \
      "$service"
    for path in /usr:/usr:ro "${E2E_PREFIX%/stage}:${E2E_PREFIX%/stage}:ro" \
      "$GPUROTA_SIM_DIR:$GPUROTA_SIM_DIR" "$E2E_DIR/shared:/shared"; do
      echo "      - $path"
    done
  done
}
