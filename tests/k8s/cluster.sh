#!/bin/bash
# Tests gpurota in a real Kubernetes cluster of one node, with a simulated GPU: cluster.sh BIN_DIR
# BUILD
#
# Needs root. Runs only when it is called by name; CI does not run it. BIN_DIR has kube-apiserver,
# kube-scheduler, kube-controller-manager and kubelet of one version, 1.20 or newer. BIN_DIR may
# also have etcd, containerd, runc, ctr and kubectl; if not, those on the PATH are used.
# build_cluster.sh builds 1.20 from Debian 12's source package. Claims (dynamic resources) are only
# tested with 1.34 or newer, and containerd 1.7 or newer. The test runs in namespaces of its own, as
# kubelet.sh does. real_cluster.py lists the tests.
set -euo pipefail
[ $# = 2 ] || { echo "usage: cluster.sh BIN_DIR BUILD"; exit 77; }
here=$(dirname "$(realpath "$0")") programs=$(realpath -m "$1") build=$(realpath "$2")
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
for program in kube-apiserver kube-scheduler kube-controller-manager kubelet; do
  [ -x "$programs/$program" ] ||
    { echo "$program is not in $programs: tests/k8s/build_cluster.sh FOLDER builds it in FOLDER/bin"
    exit 77; }
done
PATH=$programs:$PATH
# shellcheck source=tests/k8s/own_machine.bash
. "$here/own_machine.bash"
require etcd:etcd-server containerd:containerd runc:runc ctr:containerd kubectl:kubernetes-client \
  unshare:util-linux ip:iproute2 \
  busybox:busybox-static openssl:openssl strip:binutils
/usr/bin/python3 -c 'import yaml' 2>/dev/null || { echo "python3-yaml is not installed"; exit 77; }
cni=/usr/lib/cni
[ -x $cni/ptp ] || { echo "$cni/ptp is not installed: apt-get install containernetworking-plugins"
exit 77; }

# The places that kubelet, containerd and our manifests require.
make_machine /var/lib/kubelet /run /var/log/pods /var/log/containers /var/lib/cni \
  /var/lib/gpurota /var/lib/gpurota-library /var/lib/gpurota-kubernetes /var/lib/gpurota-dra
# The driver is where NVIDIA's GPU operator puts it, because gpurotad in a pod looks for a simulated
# driver only there.
driver=$folder/mounts/run/nvidia/driver/usr/lib/$(uname -m)-linux-gnu
mkdir -p "$driver" "$folder/machine"
cp "$build"/stage/lib*/gpurota/sim/libnvidia-ml.so.1 "$driver"
sed 's/^count = 2$/count = 1/' "$build/stage/share/gpurota/machines/demo.toml" \
  >"$folder/machine.toml"

# Pods call the API server by its service's address, 10.0.0.1. Without kube-proxy, the node itself
# has this address.
PROGRAMS=$programs run_inside "10.254.0.1 10.0.0.1" BUILD="$build" E2E_PREFIX="$build/stage" \
  E2E_PROGRAM="$build/demo/gpu_program" -- \
  "$build/stage/bin/gpurota-sim" --dir "$folder/machine" "$folder/machine.toml" -- \
  /usr/bin/python3 -B "$here/real_cluster.py" "$folder" && failed=0
exit "$failed"
