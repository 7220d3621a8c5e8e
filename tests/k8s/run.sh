#!/bin/bash
# Runs one file of the tests of Kubernetes' plugins inside a simulated machine: run.sh FILE.py BUILD [CASE…]
# They need Debian's python3-grpcio and python3-protobuf, and so Debian's Python.
set -euo pipefail
file=$(realpath "$1") build=$(realpath "$2")
shift 2
/usr/bin/python3 -c 'import grpc, google.protobuf' 2>/dev/null || { echo "python3-grpcio is not installed"; exit 77; }
export E2E_PREFIX=$build/stage E2E_PROGRAM=$build/demo/gpu_program
export PYTHONPATH=$build/tests/k8s
exec "$E2E_PREFIX/bin/gpurota-sim" demo -- /usr/bin/python3 -B "$file" "$@"
