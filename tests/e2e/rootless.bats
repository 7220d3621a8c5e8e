#!/usr/bin/env bats
# Containers of podman without root, run as nobody, who has subordinate ids in a mount namespace of
# the case.

load helpers
load engine_helpers
load podman_helpers

setup() {
  have_rootless_podman
  start_daemon
  open_driver_to_all
}

teardown() {
  end_containers
  end_test
}

@test "rootless: a container is held to the limit of its user's lease, and its exit code is the command's" {
  case_limit_and_exit_code
}

@test "rootless: the limit is that of all processes of the container together" {
  case_limit_of_all_processes
}

@test "rootless: the end of the lease ends the container, that of the container the lease" {
  case_ends_together
}

@test "rootless: two containers and a bare program share a GPU in turns" {
  case_share_in_turns
}

@test "rootless: another user in the container is in the lease of the container's user" {
  with_options --user 4711
  in_background holder contained --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder holding
  holds 'leases[0]["uid"] == 65534'
  [ "$(stat -c %u "/proc/$(value 'leases[0]["pid"]')")" = 65534 ]
  pgrep -u 304710 -f 'hold 100'
  wait_until has_processes 1
}

@test "rootless: an automatic lease is that of the container's user" {
  automatic
  automatic_options
  in_background both started --user 4711 --env GPUROTA_MEMORY=2G "${INSIDE[@]}" "$PROGRAM" hold 100
  wait_until says both holding
  holds '(len(leases) == 1 and leases[0]["uid"] == 65534 and
    leases[0]["gpus"][0]["limit_bytes"] == 2 * 2**30)'
  run ! setpriv --reuid 65533 --regid 65533 --clear-groups gpurota release L1
  as_nobody gpurota release L1
  wait_until all_have_ended
}
