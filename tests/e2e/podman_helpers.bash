# podman for end-to-end tests, with runc: `load podman_helpers` after `load helpers` and `load
# engine_helpers`.
#
# shellcheck shell=bash disable=SC2034 # ENGINE and INSIDE are read by the tests

# Makes the folders of the case and an image, or skips the case.
have_podman() {
  [ "$(id -u)" = 0 ] || skip "needs root: podman without root needs subordinate ids"
  command -v podman >/dev/null || skip "podman is not installed"
  make_folders
  make_podman
  "${ENGINE[@]}" run "${INSIDE[@]}" true >tried 2>&1 ||
    skip "podman cannot run a container here: $(tail -n 1 tried)"
  chmod 755 . run
}

# Waits for podman's monitors before it unmounts what is left, because a monitor mounts something
# while it cleans up after its container.
end_containers() {
  local mounted
  [ -d "${E2E_DIR:-/nonexistent}/podman" ] || return 0
  if [ -n "${DAEMON_PID:-}" ]; then
    gpurota release --all-users --yes >/dev/null 2>&1 || true
    wait_until no_leases >/dev/null 2>&1 || true
  fi
  engine rm --all --force --time 0 >/dev/null 2>&1 || true
  # Without root, podman leaves a process running that keeps its user namespace.
  if [ -s podman/tmp/pause.pid ]; then kill "$(cat podman/tmp/pause.pid)" 2>/dev/null || true; fi
  wait_until no_engine || true
  for mounted in $(awk -v folder="$E2E_DIR/" 'index($2, folder) == 1 {print $2}' /proc/mounts |
    tac); do
    umount --lazy "$mounted"
  done
}
no_engine() { ! pgrep -f -- "$E2E_DIR/podman/root" >/dev/null; }

# Sets ENGINE to a podman that keeps all its state in this case's folder.
make_podman() {
  make_image
  make_options
  mkdir -p podman/{root,run,tmp}
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
  INSIDE=("${SHOWN[@]}" --rootfs "$E2E_DIR/image")
}

# Like have_podman, for podman without root. AS_USER, put before a command, runs the command as the
# user nobody.
have_rootless_podman() {
  [ "$(id -u)" = 0 ] || skip "needs root: it gives another user subordinate ids"
  installed podman newuidmap || skip "podman, or newuidmap (uidmap), is not installed"
  make_folders
  make_podman
  chmod 755 . run
  mkdir -p home xdg
  echo nobody:300000:65536 | tee subuid >subgid
  chown -R nobody: image podman home xdg shared
  chmod 700 xdg
  # shellcheck disable=SC2016
  local alone='cd "$0" && mount --bind subuid /etc/subuid && mount --bind subgid /etc/subgid &&
    exec "$@"'
  AS_USER=(unshare --mount sh -c "$alone" "$E2E_DIR" setpriv --reuid 65534 --regid 65534 \
    --clear-groups
    env "HOME=$E2E_DIR/home" "XDG_RUNTIME_DIR=$E2E_DIR/xdg")
  engine run "${INSIDE[@]}" true >tried 2>&1 ||
    skip "podman cannot run a container without root here: $(tail -n 1 tried)"
}
