# podman for end-to-end tests, with runc: `load podman_helpers` behind `load helpers`. The image is a folder whose /usr is the host's; the driver inside
# is the simulated one.
#
# shellcheck shell=bash disable=SC2034 # ENGINE and INSIDE are read by the tests

# Folders of the case and an image, or a skip.
have_podman() {
  [ "$(id -u)" = 0 ] || skip "needs root: podman without root needs subordinate ids"
  command -v podman >/dev/null || skip "podman is not installed"
  make_folders
  make_image
  "${ENGINE[@]}" run "${INSIDE[@]}" true >tried 2>&1 || skip "podman cannot run a container here: $(tail -n 1 tried)"
  chmod 755 . run
}

# podman's monitors tidy up when their containers have ended, and mount something for that.
end_containers() {
  local mounted
  [ -d "${E2E_DIR:-/nonexistent}/podman" ] || return 0
  gpurota release --all >/dev/null 2>&1 || true
  wait_until no_leases >/dev/null 2>&1 || true
  "${ENGINE[@]}" rm --all --force --time 0 >/dev/null 2>&1 || true
  wait_until no_engine || true
  for mounted in $(awk -v folder="$E2E_DIR/" 'index($2, folder) == 1 {print $2}' /proc/mounts | tac); do umount --lazy "$mounted"; done
}
no_engine() { ! pgrep -f -- "$E2E_DIR/podman/root" >/dev/null; }

# ENGINE: podman with all its state in this case's folder. INSIDE: options and image that give a program what it has outside, but
# for its lease.
make_image() {
  local folder
  mkdir -p image/{usr,proc,sys,dev,tmp,run,etc} podman/{root,run,tmp}
  for folder in bin lib lib64 sbin; do ln -s "usr/$folder" "image/$folder"; done
  cat >containers.conf <<'END'
[containers]
default_ulimits = ["nofile=1024:20000", "nproc=4096:8192"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
END
  export CONTAINERS_CONF=$E2E_DIR/containers.conf
  local runtime=crun
  if command -v runc >/dev/null; then runtime=runc; fi
  ENGINE=(podman --runtime "$runtime" --root "$E2E_DIR/podman/root" --runroot "$E2E_DIR/podman/run"
    --tmpdir "$E2E_DIR/podman/tmp")
  local build=${E2E_PREFIX%/stage}
  INSIDE=(--rm --network none --volume /usr:/usr:ro --volume "$build:$build:ro" --volume "$GPUROTA_SIM_DIR:$GPUROTA_SIM_DIR"
    --env GPUROTA_SIM_DIR --env LD_LIBRARY_PATH --rootfs "$E2E_DIR/image")
}

has_processes() { [ "$(counted_processes)" -ge "$1" ]; }

no_containers() { [ -z "$("${ENGINE[@]}" ps --quiet)" ]; }
