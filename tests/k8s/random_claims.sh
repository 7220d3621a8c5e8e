#!/bin/bash
# Tests random claims of all classes, placed by Kubernetes' own scheduler, on a simulated node of 8
# GPUs: random_claims.sh BIN_DIR BUILD [COUNT [SEED]]
#
# Needs root. Runs only when it is called by name; CI does not run it. BIN_DIR has kube-apiserver,
# kube-scheduler, kube-controller-manager and kubectl of one version, 1.34 or newer. BIN_DIR may
# also have etcd; if not, the etcd on the PATH is used. The test runs in namespaces of its own, as
# cluster.sh does. There is no kubelet: the test tells gpurota-dra and the API server what kubelet
# would tell them, so that 500 pods need no containers. real_claims.py lists the checks.
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: random_claims.sh BIN_DIR BUILD [COUNT [SEED]]"
  exit 77
fi
here=$(dirname "$(realpath "$0")") programs=$(realpath -m "$1") build=$(realpath "$2")
count=${3:-500} seed=${4:-1}
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
for program in kube-apiserver kube-scheduler kube-controller-manager; do
  [ -x "$programs/$program" ] || { echo "$program is not in $programs"; exit 77; }
done
PATH=$programs:$PATH
# shellcheck source=tests/k8s/own_machine.bash
. "$here/own_machine.bash"
require etcd:etcd-server kubectl:kubernetes-client unshare:util-linux ip:iproute2 openssl:openssl
if ! /usr/bin/python3 -c 'import grpc, google.protobuf, yaml' 2>/dev/null; then
  echo "python3-grpcio or python3-yaml is not installed"
  exit 77
fi

make_machine /run
PROGRAMS=$programs run_inside "10.254.0.1 10.0.0.1" BUILD="$build" E2E_PREFIX="$build/stage" \
  E2E_PROGRAM="$build/demo/gpu_program" PYTHONPATH="$build/tests/k8s" \
  E2E_SEED="$seed" E2E_CLAIMS="$count" -- \
  "$build/stage/bin/gpurota-sim" h100x8 -- /usr/bin/python3 -B "$here/real_claims.py" && failed=0
exit "$failed"
