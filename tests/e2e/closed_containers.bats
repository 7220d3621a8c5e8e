#!/usr/bin/env bats
# If a control group may not open device files of GPUs, containers of root's engine in that group
# cannot open them either. DevicePolicy= of a systemd slice makes such a group
# (docs/operate/strict-access.md, "Containers"). docker.bats has the same tests for docker.

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

@test "in a closed group no container opens the device by a device file that it makes itself" {
  case_closed_group_and_own_file
}
