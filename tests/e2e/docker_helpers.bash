# Daemons of docker and containerd for end-to-end tests, separate from those of the machine: `load
# docker_helpers` after `load helpers` and `load engine_helpers`. Each file of tests has daemons of
# its own, which setup_file starts; all their state is in $BATS_FILE_TMPDIR.
#
# shellcheck shell=bash disable=SC2034 # ENGINE and INSIDE are read by the tests

# The file with the reason why all cases of the test file are skipped. If the cases run, the file is
# empty or missing.
WHY_NOT=$BATS_FILE_TMPDIR/why-not
no_engine_because() { echo "$1" >"$WHY_NOT"; }
skip_without_engine() { if [ -s "$WHY_NOT" ]; then skip "$(cat "$WHY_NOT")"; fi; }

# start_containerd: starts containerd, and returns when it answers.
start_containerd() {
  local folder=$BATS_FILE_TMPDIR/containerd plugin disabled=()
  mkdir -p "$folder"
  for plugin in grpc.v1.cri snapshotter.v1.{aufs,btrfs,devmapper,zfs}; do
    disabled+=("\"io.containerd.$plugin\"")
  done
  printf 'version = 2\ndisabled_plugins = [%s]\n' "$(IFS=,; echo "${disabled[*]}")" \
    >"$folder/config.toml"
  in_file_background "$folder" containerd --config "$folder/config.toml" --root "$folder/root" \
    --state "$folder/state" --address "$folder/sock"
  wait_until ctr --address "$folder/sock" version >/dev/null 2>&1
}

start_docker() {
  local folder=$BATS_FILE_TMPDIR/docker
  mkdir -p "$folder"
  echo '{}' >"$folder/daemon.json"
  in_file_background "$folder" dockerd --config-file "$folder/daemon.json" \
    --host "unix://$folder/sock" --data-root "$folder/data" \
    --exec-root "$folder/exec" --pidfile "$folder/docker.pid" \
    --containerd "$BATS_FILE_TMPDIR/containerd/sock" \
    --containerd-namespace gpurota-e2e --containerd-plugins-namespace gpurota-e2e-plugins \
    --storage-driver vfs --bridge none --iptables=false --ip6tables=false --ip-forward=false \
    --ip-masq=false
  wait_until docker --host "unix://$folder/sock" version >/dev/null 2>&1
}

# in_file_background FOLDER COMMAND…: starts a daemon for all cases of the file. The daemon gets
# none of our descriptors, because bats would wait until they are closed.
in_file_background() {
  local folder=$1
  shift
  setsid env -u LD_LIBRARY_PATH "$@" >>"$folder/log" 2>&1 </dev/null 3>&- 4>&- &
  echo "$!" >"$folder/pid"
}
# kill_file_background SIGNAL FOLDER
kill_file_background() {
  local pid
  pid=$(cat "$2/pid" 2>/dev/null) || return 0
  kill "-$1" "$pid" 2>/dev/null || true
  wait_until gone "$pid" || kill -KILL "$pid"
}

stop_engines() {
  local mounted
  kill_file_background TERM "$BATS_FILE_TMPDIR/docker"
  kill_file_background TERM "$BATS_FILE_TMPDIR/containerd"
  for mounted in \
    $(awk -v folder="$BATS_FILE_TMPDIR/" 'index($2, folder) == 1 {print $2}' /proc/mounts | tac); do
    umount --lazy "$mounted"
  done
}

# For setup_file. The image has folders for the machine's programs, which are mounted into it.
make_docker() {
  local folder=$BATS_FILE_TMPDIR/docker
  [ "$(id -u)" = 0 ] || { no_engine_because "needs root: it starts dockerd" && return 0; }
  installed dockerd containerd docker || { no_engine_because "dockerd is not installed" &&
    return 0; }
  if ! start_containerd || ! start_docker; then
    no_engine_because "dockerd does not start here: $(tail -n 1 "$folder/log")"
    return 0
  fi
  (cd "$BATS_FILE_TMPDIR" && make_image && tar -C image -c . |
    docker --host "unix://$folder/sock" import - gpurota-e2e) >/dev/null
  if ! docker --host "unix://$folder/sock" run --rm --network none \
    --volume /usr:/usr:ro gpurota-e2e true >"$folder/tried" 2>&1; then
    no_engine_because "docker cannot run a container here: $(tail -n 1 "$folder/tried")"
  fi
}

# For setup.
have_docker() {
  skip_without_engine
  make_folders
  mkdir -m 777 shared
  make_options
  ENGINE=(docker --host "unix://$BATS_FILE_TMPDIR/docker/sock")
  INSIDE=("${SHOWN[@]}" gpurota-e2e)
  chmod 755 . run
}

end_containers() {
  [ -n "${ENGINE:-}" ] || return 0
  gpurota release --all >/dev/null 2>&1 || true
  "${ENGINE[@]}" ps --all --quiet | xargs -r "${ENGINE[@]}" rm --force >/dev/null 2>&1 || true
  remove_elsewhere
}

# For setup_file and setup in test files that use containerd by ctr, without docker.
make_containerd() {
  [ "$(id -u)" = 0 ] || { no_engine_because "needs root: it starts containerd" && return 0; }
  installed containerd ctr runc || { no_engine_because "containerd is not installed" && return 0; }
  start_containerd || { no_engine_because \
    "containerd does not start here: $(tail -n 1 "$BATS_FILE_TMPDIR/containerd/log")" && return 0; }
  (cd "$BATS_FILE_TMPDIR" && make_image)
  ctr --address "$BATS_FILE_TMPDIR/containerd/sock" run \
    --rm --rootfs --mount "type=bind,src=/usr,dst=/usr,options=rbind:ro" \
    "$BATS_FILE_TMPDIR/image" try /bin/true >"$BATS_FILE_TMPDIR/tried" 2>&1 ||
    no_engine_because \
      "containerd cannot run a container here: $(tail -n 1 "$BATS_FILE_TMPDIR/tried")"
}
have_containerd() {
  local build=${E2E_PREFIX%/stage} path
  skip_without_engine
  make_folders
  make_image
  ENGINE=(ctr --address "$BATS_FILE_TMPDIR/containerd/sock" --namespace "$ELSEWHERE")
  INSIDE=(--rm --env "GPUROTA_SIM_DIR=$GPUROTA_SIM_DIR" --env "LD_LIBRARY_PATH=$LD_LIBRARY_PATH")
  for path in /usr:ro "$build:ro" "$GPUROTA_SIM_DIR:rw" "$E2E_DIR/shared:rw"; do
    INSIDE+=(--mount "type=bind,src=${path%:*},dst=${path%:*},options=rbind:${path#*:}")
  done
  INSIDE+=(--rootfs "$E2E_DIR/image")
  chmod 755 . run
}
end_ctr() {
  local id
  [ -n "${ENGINE:-}" ] || return 0
  gpurota release --all >/dev/null 2>&1 || true
  for id in $("${ENGINE[@]}" containers ls --quiet); do
    "${ENGINE[@]}" task kill --signal KILL "$id" >/dev/null 2>&1 || true
    wait_until "${ENGINE[@]}" containers rm "$id" >/dev/null 2>&1 || true
  done
  remove_elsewhere
}
