#!/bin/bash
# Runs one file of the tests of Kubernetes' plugins inside a simulated machine: run.sh FILE.py BUILD
# [CASE…]
#
# The tests need Debian's python3-grpcio, python3-protobuf and python3-yaml, and so Debian's Python.
set -euo pipefail
file=$(realpath "$1") build=$(realpath "$2")
shift 2
/usr/bin/python3 -c 'import grpc, google.protobuf, yaml' 2>/dev/null ||
  { echo "python3-grpcio or python3-yaml is not installed"; exit 77; }
export E2E_PREFIX=$build/stage E2E_PROGRAM=$build/demo/gpu_program
export E2E_CGROUP_TREE=$build/tests/e2e/libcgroup_tree.so
export PYTHONPATH=$build/tests/k8s
# A line "# On the machine NAME." in the file names the machine.
machine=$(sed -n 's/^# On the machine \(.*\)\.$/\1/p' "$file")
exec "$E2E_PREFIX/bin/gpurota-sim" "${machine:-demo}" -- /usr/bin/python3 -B "$file" "$@"
