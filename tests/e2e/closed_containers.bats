#!/usr/bin/env bats
# What keeps containers of root's engine from GPUs (docs/operate/strict-access.md, "Containers"): a group of control groups that opens none of their device files, as
# DevicePolicy= of a systemd slice makes it. /dev/fuse stands for a GPU's: a device file that a machine without GPUs has.

load helpers
load podman_helpers

setup() {
  have_podman
  [ -c /dev/fuse ] || skip "there is no /dev/fuse"
  CGROUPS=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
  CLOSED=gpurota-e2e-closed-$BASHPID
  if ! mkdir "${CGROUPS:-/nonexistent}/$CLOSED" 2>/dev/null; then skip "no control group can be made here"; fi
  python3 -B "$BATS_TEST_DIRNAME/close_group.py" "$CGROUPS/$CLOSED" $((16#$(stat -c %t /dev/fuse))) 2>tried || skip "$(cat tried)"
}
teardown() {
  end_containers
  if [ -n "${CLOSED:-}" ]; then wait_until removed_groups; fi
  end_test
}
removed_groups() { find "$CGROUPS/$CLOSED" -depth -type d -exec rmdir {} + 2>/dev/null || [ ! -d "$CGROUPS/$CLOSED" ]; }

opens() { "${ENGINE[@]}" run "$@" "${INSIDE[@]}" sh -c 'exec 3<>/dev/fuse && echo opened'; }

@test "in a closed group no container opens the device, whatever it was started with" {
  [ "$(opens --device /dev/fuse)" = opened ]
  [ "$(opens --privileged)" = opened ]
  run opens --cgroup-parent "/$CLOSED" --device /dev/fuse
  [ "$status" != 0 ]
  [[ $output = *"not permitted"* ]]
  run opens --cgroup-parent "/$CLOSED" --privileged
  [ "$status" != 0 ]
  [[ $output = *"not permitted"* ]]
}

@test "nor by a device file that it makes itself" {
  run "${ENGINE[@]}" run --privileged --cgroup-parent "/$CLOSED" "${INSIDE[@]}" \
    sh -c "mknod /tmp/own c $((16#$(stat -c %t /dev/fuse))) $((16#$(stat -c %T /dev/fuse))) && exec 3<>/tmp/own && echo opened"
  [ "$status" != 0 ]
  [[ $output != *opened* ]]
}
