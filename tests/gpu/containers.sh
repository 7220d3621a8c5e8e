#!/bin/bash
# containers.sh DIST: tests `gpurota run -- podman run …` with a real driver. DIST is what pack.sh
# made. Needs root, python3 with PyTorch, and podman. $ENGINE names another engine that takes
# podman's options; without one, container_like.sh stands in, which needs unshare. Exits with the
# number of steps that failed, or 77 where it cannot run. Takes up to 12 GiB of GPU memory, and the
# memory of two swap leases.
# shellcheck disable=SC2317  # functions are called by name
set -uo pipefail
dist=$(readlink -f "${1:?usage: containers.sh DIST}") here=$(dirname "$(readlink -f "$0")")
if [ "$(id -u)" != 0 ]; then echo "skipped: needs root" && exit 77; fi
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$(readlink -f "$0")")/steps.bash"
work=$(mktemp -d) daemon='' specs=''
export GPUROTA_RUNTIME_DIR=$work/run PATH=$dist/bin:$PATH
cleanup() {
  gpurota release --all >/dev/null 2>&1
  if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null; fi
  if ((failed)); then tail -n 30 "$work/gpurotad.log"; fi
  if [ -n "$specs" ]; then umount "$specs" && rmdir "$specs"; fi
  cd / && rm -rf --one-file-system "$work" 2>/dev/null
}
trap cleanup EXIT

# The container's root is a folder with this machine's programs; an upper layer is needed for files
# that are mounted among them.
root=$work/root folders=()
mkdir -p "$root"/{proc,sys,dev,tmp,run,etc}
cp /etc/passwd /etc/group "$root/etc/"
for folder in /*; do
  case $folder in
    /proc | /sys | /dev | /tmp | /run | /etc | /boot | /lost+found | /mnt | /media) continue ;;
  esac
  if [ -L "$folder" ]; then cp -P "$folder" "$root/" && continue; fi
  if [ -d "$folder" ]; then mkdir "$root$folder" && folders+=(--volume "$folder:$folder:O"); fi
done
engine=${ENGINE:-podman}
inside=(--rm --network host "${folders[@]}" --volume "$work:$work" --rootfs "$root")
if ! command -v "$engine" >/dev/null || ! "$engine" run "${inside[@]}" true >"$work/why" 2>&1; then
  echo "no engine: $(tail -n 1 "$work/why" 2>/dev/null)"
  mkdir "$work/bin" && ln -s "$here/container_like.sh" "$work/bin/podman"
  engine=$work/bin/podman inside=(--volume "$work:$work" --rootfs /)
  "$engine" run "${inside[@]}" true >"$work/why" 2>&1 ||
    { echo "skipped: $(tail -n 1 "$work/why")" && exit 77; }
fi
contained() { # runs the container under a lease
  local options=()
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  gpurota run "${options[@]}" -- "$engine" run "${inside[@]}" "$@"
}

# Engines look for descriptions of devices in /run/cdi, which has to be in memory.
if [ "$engine" = podman ] && [ ! -e /run/cdi ] && [ "$(stat -f -c %T /run)" != tmpfs ]; then
  mkdir /run/cdi && mount -t tmpfs -o mode=755 tmpfs /run/cdi && specs=/run/cdi
fi
cat >"$work/gpurota.toml" <<'END'
[automatic]
enabled = true
memory = "4G"
max_memory = "8G"
[containers]
cdi = true
END
gpurotad --runtime-dir "$work/run" --state-dir "$work/state" --config "$work/gpurota.toml" \
  >"$work/gpurotad.log" 2>&1 &
daemon=$!
within 20 gpurota status || { cat "$work/gpurotad.log" && exit 99; }
python=$(command -v python3)

cat >"$work/limit.py" <<'END'
import glob, os, sys, torch
pieces = []
try:
    while len(pieces) < 400:
        pieces.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
except torch.cuda.OutOfMemoryError:
    pass
print(f"{len(pieces) * 64} MiB, process {os.getpid()}, files {sorted(glob.glob('/dev/nvidia*'))}", flush=True)
sys.exit(0 if len(pieces) * 64 < 8192 else 1)
END
cat >"$work/hold.py" <<'END'
import time, torch
memory = torch.ones(1 << 30, dtype=torch.uint8, device="cuda")
print("holding", flush=True)
time.sleep(600)
END
cat >"$work/train.py" <<'END'
import sys, torch
torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
ballast = torch.full((int(sys.argv[1]) << 27,), 1.5, dtype=torch.float64, device="cuda")
model = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(512, 1024, device="cuda")
target = torch.randint(0, 10, (512,), device="cuda")
for step in range(400):
    loss = torch.nn.functional.cross_entropy(model(data), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(loss.item().hex(), ballast[:: 1 << 20].sum().item(), flush=True)
END
export CUBLAS_WORKSPACE_CONFIG=:4096:8
in_container=(env "CUBLAS_WORKSPACE_CONFIG=:4096:8" "HOME=/tmp" "PATH=$PATH" "$python")

echo "engine: $("$engine" --version 2>/dev/null || echo container_like.sh)"
step "PyTorch in a container is held to 8 GiB" contained \
  --memory 8G -- "${in_container[@]}" "$work/limit.py"

by_description() {
  "$engine" run "$@" "${inside[@]}" "${in_container[@]}" "$work/limit.py" | tee "$work/described" &&
    grep -q "files .*/dev/nvidia0" "$work/described"
}
reserved_by_description() {
  gpurota reserve --memory 8G --for 10m --name web &&
    by_description --device gpurota.dev/lease=root.web && gpurota release web
}
nobodys_device() {
  ! "$engine" run --device gpurota.dev/lease=root.web "${inside[@]}" true 2>"$work/unknown" &&
    grep -i unresolvable "$work/unknown"
}
if [ "$engine" != podman ]; then
  echo "not tried: devices of engines (CDI) need podman"
else
  step "PyTorch in a container that names a reservation as a device is held to 8 GiB" \
    reserved_by_description
  step "a device is gone with its reservation" nobodys_device
  step "PyTorch in a container that asks for any GPU, and for 6 GiB" by_description \
    --device gpurota.dev/gpu=any --env GPUROTA_MEMORY=6G
  grep -q '^5[0-9]* MiB' "$work/described" || { echo "it had $(cat "$work/described")" &&
    failed=$((failed + 1)); }
fi

holds() { grep -q holding "$work/said"; }
in_lease() { gpurota ps "$1" | grep -q hold.py; }
no_findings() {
  gpurota status --json |
    python3 -c 'import json, sys; s = json.load(sys.stdin); sys.exit(len(s.get("findings", [])))'
}
no_leases() {
  gpurota status --json |
    python3 -c 'import json, sys; sys.exit(len(json.load(sys.stdin)["leases"]))'
}
held() { # a container that holds memory until its lease ends
  contained "$@" -- "${in_container[@]}" "$work/hold.py" >"$work/said" 2>&1 &
  within 60 holds || { cat "$work/said" && return 1; }
  lease=$(gpurota status --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["leases"][0]["lease_id"])')
  within 10 in_lease "$lease" || { gpurota ps && gpurota status && return 1; }
  sleep 6 # the watch reports a finding after five seconds
  no_findings || { gpurota status && return 1; }
  gpurota release "$lease"
  within 20 no_leases
}
step "with a limit: its process is the lease's, nothing is found, and it ends with the lease" held \
  --memory 4G
step "on a whole GPU: the same" held

train() { contained --swap -- "${in_container[@]}" "$work/train.py" "$1" >"$2" 2>"$2.err"; }
bare() { "$python" "$work/train.py" 1 >"$work/bare"; }
step "a training job without gpurota" bare
free=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits | head -n 1)
size=$((free * 6 / 10 / 1024))
two() {
  train "$size" "$work/one" &
  train "$size" "$work/two"
  wait $!
  cut -d' ' -f1 "$work/bare" >"$work/losses"
  local each
  for each in one two; do
    cut -d' ' -f1 "$work/$each" | cmp - "$work/losses" || { tail -n 5 "$work/$each.err" &&
      return 1; }
  done
}
step "two training jobs in containers with $size GiB each, in turns: losses bit for bit" two
exit "$failed"
