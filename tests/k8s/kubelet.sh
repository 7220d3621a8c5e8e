#!/bin/bash
# gpurota-device-plugin with a real kubelet (1.20, of Debian 12's source package), containerd and runc: kubelet.sh BUILD [ROUNDS [SEED]]
#
# As root, by name only (not in CI). It builds kubelet first if GPUROTA_KUBELET (/var/tmp/gpurota-kubelet) does not have one. All of it
# runs in namespaces of its own: a network with a loopback only, mounts, processes, which are gone with it; and so are its control groups.
# real_kubelet.py says what is tried; it prints its seed.
set -euo pipefail
here=$(dirname "$(realpath "$0")") build=$(realpath "$1")
rounds=${2:-50} seed=${3:-$RANDOM}
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
for tool in containerd:containerd runc:runc ctr:containerd unshare:util-linux ip:iproute2 busybox:busybox-static; do
  command -v "${tool%%:*}" >/dev/null || { echo "${tool%%:*} is not installed: apt-get install ${tool##*:}"; exit 77; }
done
/usr/bin/python3 -c 'import grpc, google.protobuf' 2>/dev/null || { echo "python3-grpcio is not installed"; exit 77; }
kubelet=${GPUROTA_KUBELET:-/var/tmp/gpurota-kubelet}
"$here/build_kubelet.sh" "$kubelet"

folder=$(mktemp -d /var/tmp/gpurota-k8s.XXXXXX)
made=()
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
  local path
  # What containers' mounts there were went with the namespace; control groups have to be empty first.
  for _ in {1..50}; do
    find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || true
    [ -n "$(find /sys/fs/cgroup -maxdepth 2 -type d -name kubepods)" ] || break
    sleep 0.1
  done
  for path in "${made[@]}"; do rmdir "$path" 2>/dev/null || true; done
  if [ "${failed:-1}" = 0 ]; then rm -rf "$folder"; else echo "kept: $folder"; fi
}
trap clean_up EXIT

# Where kubelet and containerd insist on: they get folders of the test's own there.
for path in /var/lib/kubelet /run/containerd /var/log/pods /var/log/containers; do
  [ -d "$path" ] || { mkdir -p "$path" && made+=("$path"); }
  mkdir -p "$folder/mounts$path"
done
# What kubelet sets for the whole machine it sets in files of its own.
mkdir -p "$folder/sysctl"
for setting in vm.overcommit_memory=1 vm.panic_on_oom=0 kernel.panic=10 kernel.panic_on_oops=1; do
  echo "${setting#*=}" >"$folder/sysctl/${setting%=*}"
done
# shellcheck disable=SC2016 # for the shell inside
inside='
  set -euo pipefail
  ip link set lo up && ip address add 10.254.0.1/32 dev lo && ip route add default dev lo
  for path in /var/lib/kubelet /run/containerd /var/log/pods /var/log/containers; do mount --bind "$FOLDER/mounts$path" "$path"; done
  for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops; do
    mount --bind "$FOLDER/sysctl/${setting//\//.}" "/proc/sys/$setting"
  done
  exec "$E2E_PREFIX/bin/gpurota-sim" demo -- /usr/bin/python3 -B "$1" "$FOLDER" "$2" "$3"
'
failed=1
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$folder" FOLDER="$folder" KUBELET="$kubelet/bin/kubelet" BUILD="$build" \
  E2E_PREFIX="$build/stage" E2E_PROGRAM="$build/demo/gpu_program" PYTHONPATH="$build/tests/k8s" \
  AWS_EC2_METADATA_DISABLED=true AWS_SHARED_CREDENTIALS_FILE=/dev/null \
  unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private \
  bash -c "$inside" inside "$here/real_kubelet.py" "$rounds" "$seed" && failed=0
exit "$failed"
