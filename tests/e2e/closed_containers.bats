#!/usr/bin/env bats
# What keeps containers of root's engine from GPUs (docs/operate/strict-access.md, "Containers"): a group of control groups that opens none of their device files, as
# DevicePolicy= of a systemd slice makes it. Of docker the same is in docker.bats.

load helpers
load engine_helpers
load podman_helpers

setup() {
  have_podman
  have_closed_group
}
teardown() {
  end_containers
  remove_closed_group
  end_test
}

@test "in a closed group no container opens the device, whatever it was started with" {
  case_closed_group
}

@test "nor by a device file that it makes itself" {
  case_closed_group_and_own_file
}
