#!/usr/bin/env bats
# Containers of a real engine, podman with runc: `gpurota run -- podman run …`.

load helpers
load engine_helpers
load podman_helpers

setup() {
  have_podman
  start_daemon
}

teardown() {
  end_containers
  end_test
}

@test "a container is held to the limit of its lease, and its exit code is the command's" {
  case_limit_and_exit_code
}

@test "the limit is that of all processes of the container together" {
  case_limit_of_all_processes
}

@test "its processes are the lease's, by our numbers" {
  case_our_numbers podman web
}

@test "a program without a token is in the lease of its container, even after a restart" {
  case_in_by_its_container
}

@test "a whole GPU: its processes are in the lease, and nothing is found" {
  in_background holder contained -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until has_processes 1
  gpurota ps L1 | grep -q gpu_program
  nothing_is_found
}

@test "the end of the lease ends the container, that of the container the lease" {
  case_ends_together
}

@test "two containers and a bare program share a GPU by memory" {
  case_share_by_memory
}

@test "two containers and a bare program share a GPU in turns" {
  case_share_in_turns
}

@test "another user in the container is in the lease by its token, which is on no command line" {
  case_another_user_inside
}

@test "a script gives a container its lease by what container-args prints" {
  case_container_args podman
}

@test "under a reservation a container may stay in the background; else the command is refused" {
  case_in_the_background
}

@test "a container with our process numbers (--pid=host) is in its lease like others" {
  with_options --pid host
  case_our_numbers podman web
  case_ends_together
}

@test "a process started in the container later (exec) is in the lease" {
  case_exec
}

@test "a container in a user namespace (--uidmap) is in its lease by its token" {
  open_driver_to_all
  with_options --uidmap 0:200000:5000 --gidmap 0:200000:5000
  # The root user of the container must be able to make files on which other files are mounted.
  chown -R 200000:200000 image
  case_our_numbers podman web
}
