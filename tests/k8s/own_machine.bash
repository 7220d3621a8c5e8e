# For kubelet.sh, cluster.sh and random_claims.sh: gives the test a node of its own on this machine,
# in namespaces (network, mounts, processes) that are removed at the end. The files of places that
# kubelet and others require are in $folder/mounts. To be sourced; needs root.

# require TOOL:PACKAGE…: exits if a tool is missing, and names the package that has the tool.
require() {
  local each
  for each in "$@"; do
    command -v "${each%%:*}" >/dev/null ||
      { echo "${each%%:*} is not installed: apt-get install ${each##*:}"; exit 77; }
  done
}

# make_machine PATH…: makes $folder, with these places in it. All are removed at the end, together
# with the control groups of pods.
make_machine() {
  local path setting
  folder=$(mktemp -d /var/tmp/gpurota-k8s.XXXXXX)
  places=("$@") made=() failed=1
  trap remove_machine EXIT
  for path in "$@"; do
    [ -d "$path" ] || { mkdir -p "$path" && made+=("$path"); }
    mkdir -p "$folder/mounts$path"
  done
  # Kubelet changes settings of the whole machine through files. The test replaces these files by
  # its own.
  mkdir -p "$folder/sysctl"
  for setting in vm.overcommit_memory=1 vm.panic_on_oom=0 kernel.panic=10 kernel.panic_on_oops=1; do
    echo "${setting#*=}" >"$folder/sysctl/${setting%=*}"
  done
}

# shellcheck disable=SC2317 # the trap calls it
remove_machine() {
  local path
  # Mounts of containers are gone with the namespace. Control groups must be empty before they are
  # removed.
  for _ in {1..50}; do
    find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || true
    rmdir /sys/fs/cgroup/gpurota-node2 /sys/fs/cgroup/*/gpurota-node2 2>/dev/null || true
    [ -n "$(find /sys/fs/cgroup -maxdepth 2 -name kubepods -o -name gpurota-node2)" ] || break
    sleep 0.1
  done
  for path in "${made[@]}"; do rmdir "$path" 2>/dev/null || true; done
  if [ "$failed" = 0 ]; then rm -rf "$folder"; else echo "kept: $folder"; fi
}

# run_inside ADDRESSES VARIABLE=VALUE… -- COMMAND…: runs the command as the first program of the
# namespaces, with these addresses.
run_inside() {
  local addresses=$1 variables=()
  shift
  while [ "$1" != -- ]; do variables+=("$1") && shift; done
  shift
  env -i PATH="${PROGRAMS:+$PROGRAMS:}/usr/sbin:/usr/bin:/sbin:/bin" HOME="$folder" \
    FOLDER="$folder" ADDRESSES="$addresses" \
    PLACES="${places[*]}" AWS_EC2_METADATA_DISABLED=true AWS_SHARED_CREDENTIALS_FILE=/dev/null \
    "${variables[@]}" \
    unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private \
    "${here:?}/inside_machine.sh" "$@"
}
