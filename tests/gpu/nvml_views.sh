#!/bin/bash
# nvml_views.sh GPUROTA: checks what NVML and nvidia-smi report in the second of two leases on one
# GPU. A daemon must be running (GPUROTA_RUNTIME_DIR).
set -euo pipefail
gpurota=${1:?usage: nvml_views.sh GPUROTA}
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
mkfifo "$work/end"
"$gpurota" run --memory 2G -- python3 -c '
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(256 << 20)) == 0
print(os.getpid(), flush=True)
sys.stdin.readline()' < "$work/end" > "$work/pid" &
holder=$!
exec 3> "$work/end"
trap 'exec 3>&-; wait $holder || true; rm -rf "$work"' EXIT
until [ -s "$work/pid" ]; do
  kill -0 "$holder"
  sleep 0.05
done
OTHER_PID=$(cat "$work/pid") LIMIT_MIB=4096 "$gpurota" run \
  --memory 4G -- python3 "$here/nvml_views.py"
