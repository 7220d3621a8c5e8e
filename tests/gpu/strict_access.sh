#!/bin/bash
# strict_access.sh DIST: tests strict access on a real driver. DIST is what pack.sh made. Two users
# try to open each GPU's device file, and to use CUDA, in each state; prints the table. Needs root,
# python3 and setpriv; exits with the number of steps that failed, or 77 where it cannot run.
#
# The machine's own files in /dev are not changed: everything runs in a mount namespace whose /dev
# has nodes of its own, with the driver's numbers. Takes 64 MiB of GPU memory at a time, for a
# moment; changes no setting of the GPU.
# shellcheck disable=SC2317  # functions are called by name
set -uo pipefail
dist=$(readlink -f "${1:?usage: strict_access.sh DIST}")
if [ "$(id -u)" != 0 ]; then echo "skipped: needs root" && exit 77; fi
if [ -z "${STRICT_ACCESS_INSIDE:-}" ]; then
  unshare -m true 2>/dev/null || { echo "skipped: no mount namespace can be made here" && exit 77; }
  STRICT_ACCESS_INSIDE=1 exec unshare -m --propagation private "$0" "$@"
fi

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$(readlink -f "$0")")/steps.bash"
work=$(mktemp -d) daemon=''
readonly first=60001 second=60002 # uids without an account
chmod 755 "$work"
mkdir "$work/dev"
# A copy that all users can read, wherever DIST was unpacked.
cp -r "$dist" "$work/dist" && chmod -R a+rX "$work/dist" && dist=$work/dist
export GPUROTA_RUNTIME_DIR=$work/run
cleanup() {
  if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null && wait "$daemon" 2>/dev/null; fi
  if ((failed)); then tail -n 30 "$work/gpurotad.log"; fi
  cd / && rm -rf --one-file-system "$work" 2>/dev/null
}
trap cleanup EXIT

# Makes a /dev of our own. If a part of it cannot be made, the test ends before anything is changed.
make_devices() {
  mount -t tmpfs -o mode=755,dev tmpfs "$work/dev" || return 1
  local node numbers
  for node in /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/nvidiactl \
    /dev/nvidia-uvm /dev/nvidia-uvm-tools \
    /dev/nvidia[0-9]*; do
    [ -c "$node" ] || continue
    read -r -a numbers <<<"$(stat -c '%t %T' "$node")"
    mknod -m 666 "$work$node" c "$((16#${numbers[0]}))" "$((16#${numbers[1]}))" || return 1
  done
  mkdir -m 1777 "$work/dev/shm"
  ln -s /proc/self/fd "$work/dev/fd"
  # Opens a new node, because a device cgroup may forbid opening nodes that mknod can make.
  : <"$work/dev/nvidiactl" && mount --move "$work/dev" /dev
}
make_devices 2>"$work/why" ||
  { echo "skipped: no device files can be made here: $(tail -n 1 "$work/why")" && exit 77; }
gpus=(/dev/nvidia[0-9]*)
[ -c "${gpus[0]}" ] || { echo "skipped: no /dev/nvidia0" && exit 77; }
cd "$work" || exit 99

as() { setpriv --reuid "$1" --regid "$1" --clear-groups env HOME=/tmp "${@:2}"; }
cat >"$work/cuda.py" <<'EOF'
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
count, device, context, memory = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        sys.exit(f"{name}: error {code}")
call("cuInit", 0)
call("cuDeviceGetCount", ctypes.byref(count))
if not count.value:
    sys.exit("no GPU")
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(64 << 20))
print(f"{count.value} GPU(s)")
EOF
# Attaches a device program like that of src/sys/device_program.h, without our code: programs in a
# control group cannot open the GPUs' files.
cat >"$work/fence.py" <<'EOF'
import ctypes, os, struct, sys
def insn(code, to=0, source=0, offset=0, value=0):
    return struct.pack("<BBhi", code, to | source << 4, offset, value)
program = b"".join((
    insn(0x61, 2, 1, 4),              # r2 = major
    insn(0x56, 2, 0, 4, 195),         # other majors: allow
    insn(0x61, 2, 1, 8),              # r2 = minor
    insn(0x26, 2, 0, 2, 247),         # nvidiactl, nvidia-modeset: allow
    insn(0xb7, 0, 0, 0, 0), insn(0x95),
    insn(0xb7, 0, 0, 0, 1), insn(0x95)))
def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"))
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long({"x86_64": 321, "aarch64": 280}[os.uname().machine]), command, buffer, 128)
    if result < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    return result
code, license = ctypes.create_string_buffer(program), ctypes.create_string_buffer(b"Apache-2.0")
loaded = bpf(5, struct.pack("<IIQQ", 15, len(program) // 8, ctypes.addressof(code), ctypes.addressof(license)))
bpf(8, struct.pack("<IIII", os.open(sys.argv[1], os.O_RDONLY), loaded, 6, 1))
EOF
groups=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
fenced() { # runs the command in a group that can open no GPU's file
  mkdir -p "$groups/fenced" && python3 "$work/fence.py" "$groups/fenced" || return
  sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' sh "$groups/fenced" "$@"
}
opens() { as "$1" bash -c ': 3<>"$1"' bash "$2" 2>/dev/null; }
refused() { [[ $(as "$1" bash -c ': 3<>"$1"' bash "$2" 2>&1) == *"Permission denied"* ]]; }
cuda() { as "$1" python3 "$work/cuda.py" 2>&1; }
shows_no_gpu() { ! cuda "$1" >"$work/cuda"; }
uses_cuda() { cuda "$1" >"$work/cuda"; }
row() { # a row of the table
  local user cells=''
  for user in $first $second; do
    cells+=" | $(for file in "${gpus[@]}"; do
      if opens "$user" "$file"; then printf '%s ' "${file#/dev/}"; fi
    done)/ CUDA: $(cuda "$user" | tail -n 1)"
  done
  printf '%s%s |\n' "| $1" "$cells" >>"$work/table"
}
rights() { stat -c '%n %a %u:%g' "${gpus[@]}" /dev/nvidiactl; }
start() { # start CONFIG_LINE…
  printf '%s\n' "$@" >"$work/gpurota.toml"
  "$dist/bin/gpurotad" --runtime-dir "$work/run" --state-dir "$work/state" \
    --config "$work/gpurota.toml" \
    --preload "$dist/lib/libgpurota.so" >>"$work/gpurotad.log" 2>&1 &
  daemon=$!
  within 60 "$dist/bin/gpurota" status ||
    { say FAILED "the daemon does not start: $(tail -n 2 "$work/gpurotad.log")" && exit 99; }
}
crash() {
  kill -9 "$daemon"
  wait "$daemon" 2>/dev/null
}
gpurota() { "$dist/bin/gpurota" "$@"; }
event() { gpurota events | grep -q "$1"; }

printf '%s\n' '| State | user 1 opens / uses | user 2 opens / uses |' '|---|---|---|' >"$work/table"
rights >"$work/before"
step "before, anybody can use the GPUs" uses_cuda $first
row "off"

start '[access]' 'strict = true'
row "strict, no lease"
for file in "${gpus[@]}"; do
  step "without a lease $file is refused (EACCES)" refused $first "$file"
done
step "and CUDA finds no GPU" shows_no_gpu $first
step "root's daemon sees all of them" test \
  "$(gpurota status --json | python3 -c 'import json, sys; print(len([
    g for g in json.load(sys.stdin)["gpus"] if ":" not in g["label"]]))')" = "${#gpus[@]}"
step "nothing holds a device file open that strict access cannot take back, or doctor says so" \
  event 'access_set'

as $first "$dist/bin/gpurota" reserve --gpu-ids 0 --for 1h >"$work/reserve" 2>&1 ||
  say FAILED "no reservation: $(tail -n 1 "$work/reserve")"
opened=$(getfacl -cnp "${gpus[@]}" 2>/dev/null | grep -c "user:$first:rw-")
row "user 1 has a lease of GPU 0"
step "with a lease CUDA works" uses_cuda $first
step "of another user nothing is opened" shows_no_gpu $second
if command -v getfacl >/dev/null; then step "of one GPU's file only" test "$opened" = 1; fi

crash
row "and the daemon was killed"
step "killed, the daemon leaves access as it was" uses_cuda $first
step "and no wider" shows_no_gpu $second
start '[access]' 'strict = true'
step "the next one too" uses_cuda $first
as $first "$dist/bin/gpurota" release --all >/dev/null
step "with the lease the access is gone" within 30 refused $first "${gpus[0]}"
row "the lease has ended"
step "under gpurota run CUDA works, as soon as the command starts" as $second "$dist/bin/gpurota" \
  run --gpu-ids 0 --memory 2G -- python3 "$work/cuda.py"
step "and not after it" within 30 shows_no_gpu $second

if [ -n "$groups" ] && fenced true 2>"$work/why"; then
  step "lease's programs are held to their lease's GPUs" test \
    "$(gpurota doctor | grep -c 'can open all GPUs of their user')" = 0
  step "a GPU behind a fence cannot be opened, by root either (EPERM)" \
    test "$(fenced bash -c ': <"$1"' bash "${gpus[0]}" 2>&1 | grep -c 'not permitted')" = 1
  step "and is none for CUDA: $(fenced python3 "$work/cuda.py" 2>&1 | tail -n 1)" test \
    "$(fenced python3 "$work/cuda.py" >/dev/null 2>&1; echo $?)" = 1
  echo "nvidia-smi -L behind a fence: $(fenced nvidia-smi -L 2>&1 | head -n 2 | tr '\n' ' ')"
  for _ in $(seq 50); do rmdir "$groups/fenced" 2>/dev/null && break; sleep 0.1; done
fi

as $first "$dist/bin/gpurota" run --gpu-ids 0 -- sleep 600 >/dev/null 2>&1 &
holder=$!
step "a program holds a lease" within 30 opens $first "${gpus[0]}"
crash
pkill -KILL -P "$holder" 2>/dev/null
kill -9 "$holder" 2>/dev/null
start '[access]' 'strict = true'
step "a lease that ended while no daemon ran opens nothing" within 30 refused $first "${gpus[0]}"

# The driver's helper program, as a user calls it: the driver's own parameters decide what it does.
grep -E '^(ModifyDeviceFiles|DeviceFile)' /proc/driver/nvidia/params
if command -v nvidia-modprobe >/dev/null; then
  as $first nvidia-modprobe -c 0
  row "right after nvidia-modprobe -c 0 of user 1"
  step "what the driver's helper does is set right" within 20 refused $first "${gpus[0]}"
fi
gpurota doctor | grep -A 1 'strict access'
crash

start '[access]' 'strict = true' "users = [\"$second\"]"
row "user 2 is named"
step "who is named needs no lease" uses_cuda $second
step "and nobody else is let in" shows_no_gpu $first
printf '%s\n' '[access]' 'strict = false' >"$work/gpurota.toml"
gpurota reload >/dev/null
row "off again"
step "turned off, all is as it was" diff "$work/before" <(rights)
step "and anybody can use the GPUs" uses_cuda $first
cat "$work/table"
echo "$failed steps failed"
exit "$failed"
