#!/usr/bin/env bats
# Leases as devices of container engines (CDI), with podman: `podman run --device
# gpurota.dev/lease=L1`. The specs are in a folder of the case, which podman sees as /run/cdi.

load helpers
load engine_helpers
load podman_helpers

setup() {
  have_podman
  SPECS=$(mktemp -d /dev/shm/gpurota-cdi.XXXXXX)
  chmod 755 "$SPECS"
  # podman has a /run of its own here, because podman 4.3 looks for specs only in /run/cdi.
  # shellcheck disable=SC2016
  ENGINE=(unshare --mount sh
    -c 'mount -t tmpfs tmpfs /run && mkdir /run/cdi && mount --bind "$1" /run/cdi && shift &&
    exec "$@"' sh "$SPECS" "${ENGINE[@]}")
  "${ENGINE[@]}" run "${INSIDE[@]}" true >tried 2>&1 ||
    skip "podman cannot run a container in a mount namespace here: $(tail -n 1 tried)"
}
teardown() {
  end_containers
  end_test
  rm -rf "${SPECS:-/nonexistent}"
}

# with_cdi [LINE…]: starts a daemon that writes specs, with these lines added to gpurota.toml.
with_cdi() {
  printf '%s\n' '[containers]' 'cdi = true' "cdi_folder = \"$SPECS\"" "$@" >gpurota.toml
  start_daemon
}
automatic() { with_cdi '[automatic]' 'enabled = true' 'memory = "1G"' "$@"; }
specs() { (cd "$SPECS" && echo *); }
specs_are() { [ "$(specs)" = "$1" ]; }
# inside DEVICE ARGUMENT…: runs a container with this device of gpurota's.
inside() { "${ENGINE[@]}" run --device "gpurota.dev/$1" "${@:2}"; }

@test "a reservation is a device: by its id and by its user's name for it, until it ends" {
  with_cdi
  learn_context_cost
  specs_are '*'
  gpurota reserve --gpu-ids 0 --memory 2G --for 1h --name web
  specs_are gpurota.dev-lease_L2.json
  in_background greedy inside lease=L2 "${INSIDE[@]}" "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  grep 'refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY' greedy
  wait_until has_processes 1
  gpurota ps L2 | grep -E 'podman [0-9a-f]{12}.*gpu_program'
  in_background named inside lease=root.web "${INSIDE[@]}" sh \
    -c "echo \$GPUROTA_LEASE; cat /etc/ld.so.preload"
  wait_until says named libgpurota
  grep -qx L2 named
  gpurota release web
  wait_until no_leases
  wait_until memory_is_back
  specs_are '*'
  run ! inside lease=L2 "${INSIDE[@]}" true
  [[ $output = *unresolvable* ]]
}

@test "container-args prints the device, and reports where there is none" {
  with_cdi
  gpurota reserve --memory 1G --for 1h --name web
  [ "$(gpurota container-args web --format cdi)" = "--device gpurota.dev/lease=L1" ]
  run -2 gpurota container-args web --format cdi --env-file e
  in_background held gpurota run --memory 1G -- "$PROGRAM" hold 100
  wait_until says held holding
  run -1 gpurota container-args L2 --format cdi
  [[ $output = *"containers.cdi"* ]]
  : >gpurota.toml
  gpurota reload
  specs_are '*'
  run -1 gpurota container-args web --format cdi
}

@test "only its owner and root read a reservation's spec" {
  with_cdi
  as_nobody gpurota reserve --memory 1G --for 1h
  local spec=$SPECS/gpurota.dev-lease_L1.json
  [ "$(stat -c %U "$spec")" = root ]
  as_nobody grep -q GPUROTA_TOKEN "$spec"
  run ! setpriv --reuid 65533 --regid 65533 --clear-groups cat "$spec"
  run ! setpriv --reuid 65533 --regid 65533 --clear-groups sh -c "echo >'$spec'"
  run ! as_nobody sh -c "echo >'$spec'"
  run ! as_nobody touch "$SPECS/mine.json"
}

@test "after a crash devices of live leases are untouched, and those of ended leases gone" {
  with_cdi
  gpurota reserve --memory 1G --for 1h
  gpurota reserve --memory 1G --for 1h
  local before
  before=$(stat -c '%i %Y' "$SPECS/gpurota.dev-lease_L1.json")
  cp "$SPECS/gpurota.dev-lease_L1.json" "$SPECS/gpurota.dev-lease_L9.json"
  echo half >"$SPECS/gpurota.dev-lease_L2.json.new"
  kill_daemon
  start_daemon
  wait_until specs_are 'gpurota.dev-lease_L1.json gpurota.dev-lease_L2.json'
  [ "$(find "$SPECS" -type f | wc -l)" = 2 ]
  [ "$(stat -c '%i %Y' "$SPECS/gpurota.dev-lease_L1.json")" = "$before" ]
  inside lease=L1 "${INSIDE[@]}" "$PROGRAM" info | grep -q 'size=1073741824'
  kill_daemon
  printf '%s\n' '[containers]' "cdi_folder = \"$SPECS\"" >gpurota.toml
  start_daemon
  wait_until specs_are '*'
}

@test "any: a container has one lease for all its programs, as large as it asks, until the last has ended" {
  automatic 'max_memory = "2G"'
  specs_are gpurota.dev-gpu.json
  [ "$(stat -c %a "$SPECS/gpurota.dev-gpu.json")" = 644 ]
  in_background both inside gpu=any --env GPUROTA_MEMORY=2G "${INSIDE[@]}" sh \
    -c "\"$PROGRAM\" hold 100 & \"$PROGRAM\" hold 200 & wait"
  wait_until has_processes 2
  holds 'len(leases) == 1 and leases[0]["gpus"][0]["limit_bytes"] == 2 * 2**30'
  gpurota ps L1 | grep -E 'podman [0-9a-f]{12}.*gpu_program'
  kill_daemon
  start_daemon
  wait_until has_processes 2
  holds 'len(leases) == 1'
  # The container is not stopped by podman, because each podman command has a /run of its own here.
  # shellcheck disable=SC2046
  kill $(gpurota ps L1 | awk '/gpu_program/ {print $2}')
  wait_until no_leases
  wait_until memory_is_back
}

@test "any: without a lease there is no GPU, and the program says why" {
  automatic
  run inside gpu=any --env GPUROTA_MEMORY=2G "${INSIDE[@]}" "$PROGRAM" info
  [ "$status" != 0 ]
  [[ $output = *"GPUROTA_MEMORY=2G is more than the 1 GiB"* ]]
  run inside gpu=any --env GPUROTA_GPUS=many "${INSIDE[@]}" "$PROGRAM" info
  [[ $output = *"GPUROTA_GPUS=many: write how many GPUs"* ]]
  printf '%s\n' '[containers]' 'cdi = true' "cdi_folder = \"$SPECS\"" '[automatic]' \
    'enabled = true' 'memory = "1G"' 'users = ["nobody"]' >gpurota.toml
  gpurota reload
  run inside gpu=any "${INSIDE[@]}" "$PROGRAM" info
  [ "$status" != 0 ]
  [[ $output = *"automatic.users"* ]]
  stop_daemon
  run inside gpu=any --env GPUROTA_WAIT_MS=100 "${INSIDE[@]}" "$PROGRAM" info
  [ "$status" != 0 ]
  [[ $output = *"no daemon answers"* ]]
}

@test "any: a lease through root's engine is its account's, in a user namespace that of its maker" {
  printf '%s\n' '[containers]' 'cdi = true' "cdi_folder = \"$SPECS\"" 'owner = "nobody"' \
    '[automatic]' 'enabled = true' 'memory = "1G"' >gpurota.toml
  start_daemon
  in_background holder inside gpu=any "${INSIDE[@]}" "$PROGRAM" hold 100
  wait_until says holder holding
  holds 'leases[0]["uid"] == 65534'
  run ! setpriv --reuid 65533 --regid 65533 --clear-groups gpurota release L1
  as_nobody gpurota release L1
  wait_until no_leases
}
