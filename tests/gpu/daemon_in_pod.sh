#!/bin/bash
# daemon_in_pod.sh DIST: tests gpurotad as in a pod, with a real driver. The daemon runs in a root
# of its own, with the files of its image and the mounts of the chart. DIST is what pack.sh made.
# Needs root, unshare and python3 with PyTorch. Exits with the number of steps that failed, or 77
# where it cannot run. Takes up to 4 GiB of GPU memory.
# shellcheck disable=SC2317  # functions are called by name
set -uo pipefail
dist=$(readlink -f "${1:?usage: daemon_in_pod.sh DIST}") here=$(dirname "$(readlink -f "$0")")
if [ "$(id -u)" != 0 ]; then echo "skipped: needs root" && exit 77; fi
if ! unshare --mount true 2>/dev/null; then echo "skipped: no mount namespaces" && exit 77; fi
# shellcheck source-path=SCRIPTDIR
. "$here/steps.bash"
work=$(mktemp -d) daemon=''
export GPUROTA_RUNTIME_DIR=$work/run PATH=$dist/bin:$PATH
cleanup() {
  if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null; fi
  if ((failed)); then tail -n 30 "$work/gpurotad.log"; fi
  cd / && rm -rf --one-file-system "$work" 2>/dev/null
}
trap cleanup EXIT

mkdir -p "$work"/{run,library,state,image,root}
tar -xf "$dist/image.tar" -C "$work/image"
for layer in "$work"/image/blobs/sha256/*; do
  if gzip -t "$layer" 2>/dev/null; then tar -xzf "$layer" -C "$work/root"; fi
done
for folder in host dev proc var/lib/gpurota "$work/run" "$work/library"; do
  mkdir -p "$work/root/$folder"
done
start_daemon() {
  # shellcheck disable=SC2016  # expanded by the shell in the namespace
  unshare --mount sh -c 'set -e; work=$1; shift; mount --make-rprivate /
    for each in /dev /proc "$work/run" "$work/library"; do
      mount --rbind "$each" "$work/root$each"; done
    mount --bind "$work/state" "$work/root/var/lib/gpurota"; mount --rbind / "$work/root/host"
    exec chroot "$work/root" "$@"' sh "$work" /usr/sbin/gpurotad --runtime-dir="$work/run" \
    --publish-library="$work/library" \
    --driver-root=/host >>"$work/gpurotad.log" 2>&1 &
  daemon=$!
  within 20 gpurota status
}
json() { gpurota status --json | python3 -c "import json,sys; d=json.load(sys.stdin); $1"; }

sees_the_gpus() { [ "$(json 'print(len(d["gpus"]))')" = "$(nvidia-smi -L | wc -l)" ]; }
# nvidia-smi shows "NV4" and the like for two GPUs with NVLink.
sees_nvlink() {
  if nvidia-smi topo -m | grep -qE '^GPU0.*NV[0-9]'; then
    json 'sys.exit(len({g["nvlink_group"] for g in d["gpus"]}) >= len(d["gpus"])
      or not d["gpus"][0]["nvlink_group"])'
  else
    json 'sys.exit(any(g["nvlink_group"] for g in d["gpus"]))'
  fi
}
is_limited() { LIMIT_MIB=4096 gpurota run --memory 4G -- python3 "$here/torch_limit.py"; }
gives_its_library() {
  gpurota run --memory 1G -- sh -c 'echo "$LD_PRELOAD"' | grep -qx "$work/library/libgpurota.so"
}
is_replaced() { # kill -9 replaces the daemon's pod while a program computes
  gpurota run --memory 4G -- python3 -c "
import torch, time
a = torch.ones(1 << 28, device='cuda'); torch.cuda.synchronize(); print('holding', flush=True)
time.sleep(4)
b = torch.ones(1 << 28, device='cuda')
print('sum', int((a + b).sum().item()) >> 29, flush=True)" >"$work/program.out" 2>&1 &
  local program=$!
  within 30 grep -q holding "$work/program.out" || return 1
  kill -9 "$daemon"
  wait "$daemon" 2>/dev/null
  start_daemon || return 2
  wait "$program" && grep -qx "sum 1" "$work/program.out"
}

step "the daemon of the image starts" start_daemon
step "it sees the GPUs" sees_the_gpus
step "it says which of them NVLink joins" sees_nvlink
step "programs get the library that is outside" gives_its_library
step "PyTorch is held to its limit" is_limited
step "the next pod goes on" is_replaced
echo "driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)," \
  "$(nvidia-smi -L | wc -l) GPUs, $failed of 6 steps failed"
exit "$failed"
