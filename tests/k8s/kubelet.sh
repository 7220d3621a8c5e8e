#!/bin/bash
# Tests gpurota-device-plugin with a real kubelet (1.20, of Debian 12's source package), containerd
# and runc: kubelet.sh BUILD [ROUNDS [SEED]]
#
# Needs root. Runs only when it is called by name; CI does not run it. The script builds kubelet
# first if GPUROTA_KUBELET (/var/tmp/gpurota-kubelet) does not have one. All of it runs in
# namespaces of its own: a network with only a loopback, mounts and processes. The namespaces and
# their control groups are removed at the end. real_kubelet.py lists the tests, and prints its seed.
set -euo pipefail
here=$(dirname "$(realpath "$0")") build=$(realpath "$1")
rounds=${2:-50} seed=${3:-$RANDOM}
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
# shellcheck source=tests/k8s/own_machine.bash
. "$here/own_machine.bash"
require containerd:containerd runc:runc ctr:containerd unshare:util-linux ip:iproute2 \
  busybox:busybox-static
kubelet=${GPUROTA_KUBELET:-/var/tmp/gpurota-kubelet}
"$here/build_kubelet.sh" "$kubelet"

# The places that kubelet and containerd require.
make_machine /var/lib/kubelet /run/containerd /var/log/pods /var/log/containers
run_inside 10.254.0.1 KUBELET="$kubelet/bin/kubelet" BUILD="$build" E2E_PREFIX="$build/stage" \
  E2E_PROGRAM="$build/demo/gpu_program" -- \
  "$build/stage/bin/gpurota-sim" demo -- /usr/bin/python3 \
  -B "$here/real_kubelet.py" "$folder" "$rounds" "$seed" && failed=0
exit "$failed"
