#!/bin/bash
# driver_limits.sh [GPU]: what the driver's own memory limits do on this machine (r615 and later),
# by NVML and CUDA alone, without gpurota. Prints a table of the rules that gpurota relies on
# (docs/design/driver-limits.md): what was expected, and what this driver does. Needs root, python3
# and a control group (version 2) that can be written; takes up to 3 GiB of the GPU for a moment.
# GPU is NVML's index (default: 0). Exits with the number of rules that do not hold, 77 where it
# cannot run.
#
# Makes control groups named gpurota-limits-PID, and removes them.
# shellcheck disable=SC2317  # functions are called by name
set -uo pipefail
gpu=${1:-0}
if [ "$(id -u)" != 0 ]; then echo "skipped: needs root" && exit 77; fi
point=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
if [ -z "$point" ]; then echo "skipped: no cgroup v2 is mounted" && exit 77; fi
work=$(mktemp -d) top=$point/gpurota-limits-$$ failed=0
mkdir "$top" 2>/dev/null || { echo "skipped: $point cannot be written" && exit 77; }
cleanup() {
  local group
  for group in "$top/a/below" "$top/a" "$top/b" "$top"; do
    if [ -d "$group" ]; then rmdir "$group"; fi
  done
  rm -rf "$work"
}
trap cleanup EXIT

# nvml.py GPU get GROUP | set GROUP SOFT HARD (MiB, or max) | version | uuid | memory
cat >"$work/nvml.py" <<'EOF'
import ctypes, sys
MAX = (1 << 64) - 1
class Limits(ctypes.Structure):
    _fields_ = [("group", ctypes.c_char_p), ("soft", ctypes.c_ulonglong),
                ("hard", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]
class Memory(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(name, ctypes.c_ulonglong)
                for name in ("total", "reserved", "free", "used")]
try:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
except OSError:
    sys.exit("no NVML")
device, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(int(sys.argv[1]), ctypes.byref(device)):
    sys.exit("no such GPU")
def mib(value):
    return "max" if value == MAX else str(value >> 20)
def count(word):
    return MAX if word == "max" else int(word) << 20
what = sys.argv[2]
code = 0
if what == "version":
    code = nvml.nvmlSystemGetDriverVersion(text, 80)
    print(text.value.decode())
elif what == "uuid":
    code = nvml.nvmlDeviceGetUUID(device, text, 96)
    print(text.value.decode())
elif what == "memory":
    memory = Memory(version=40 | 2 << 24)
    code = nvml.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(memory))
    print(mib(memory.total - memory.reserved))
elif not hasattr(nvml, "nvmlDeviceSetMemoryLimits_v1"):
    print("error 13")
    code = 13
else:
    limits = Limits(sys.argv[3].encode(), 0, MAX, 0)
    if what == "set":
        limits.soft, limits.hard = count(sys.argv[4]), count(sys.argv[5])
        code = nvml.nvmlDeviceSetMemoryLimits_v1(device, ctypes.byref(limits))
    else:
        code = nvml.nvmlDeviceGetMemoryLimits_v1(device, ctypes.byref(limits))
    print(f"error {code}" if code else "ok" if what == "set" else f"{mib(limits.hard)}")
sys.exit(0 if code == 0 else 1)
EOF
# cuda.py MIB: allocates, and prints "served" and the size of the GPU that the program sees.
cat >"$work/cuda.py" <<'EOF'
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        print("refused" if code == 2 else f"{name}: error {code}")
        sys.exit(1)
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
if sys.argv[1] == "size":
    print(total.value >> 20)
else:
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(int(sys.argv[1]) << 20))
    print("served")
EOF
nvml() { python3 "$work/nvml.py" "$gpu" "$@" 2>&1; }
uuid=$(nvml uuid) || { echo "skipped: $uuid" && exit 77; }
inside() { # inside GROUP MIB|size: a program in that group
  (
    echo "$BASHPID" >"$1/cgroup.procs" || exit 1
    CUDA_VISIBLE_DEVICES=$uuid exec env -u LD_PRELOAD python3 "$work/cuda.py" "$2" 2>&1
  )
}
row() { # row RULE EXPECTED FOUND
  local mark=yes
  if [ "$2" != "$3" ]; then mark=NO && failed=$((failed + 1)); fi
  printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "$mark"
}

printf 'driver %s, Linux %s, GPU %s\n' "$(nvml version)" "$(uname -r)" "$uuid"
case $(nvml get "$top") in
"error 13" | "error 3")
  echo "skipped: this driver has no memory limits of control groups"
  exit 77
  ;;
esac
# With dmem a group takes limits only if the group above it passes the controller on.
if grep -qw dmem "$point/cgroup.controllers" 2>/dev/null; then
  echo "back end: dmem"
  if ! { echo +dmem >"$point/cgroup.subtree_control" &&
    echo +dmem >"$top/cgroup.subtree_control"; }; then
    echo "cannot pass dmem on to $top"
  fi
else
  echo "back end: misc (or limits are off)"
fi
mkdir "$top/a" "$top/b"
whole=$(nvml memory)
printf '\n| rule | expected | found | holds |\n|---|---|---|---|\n'
row "no limit is shown as max" max "$(nvml get "$top/a")"
row "root sets a hard limit of 2048 MiB" ok "$(nvml set "$top/a" 0 2048)"
row "it is shown as it was set" 2048 "$(nvml get "$top/a")"
row "within it an allocation is served (1024 MiB)" served "$(inside "$top/a" 1024)"
row "beyond it an allocation is refused (2560 MiB)" refused "$(inside "$top/a" 2560)"
row "the context counts (2040 MiB)" refused "$(inside "$top/a" 2040)"
row "a program in the group sees a GPU of that size" 2048 "$(inside "$top/a" size)"
row "a program in another group is not limited" served "$(inside "$top/b" 2560)"
row "NVML outside the group shows the whole GPU" "$whole" "$(nvml memory)"
row "the limit can be changed" ok "$(nvml set "$top/a" 0 3072)"
row "the new one counts (2560 MiB)" served "$(inside "$top/a" 2560)"
mkdir "$top/a/below"
row "a group below is under it (3072 MiB)" refused "$(inside "$top/a/below" 3072)"
rmdir "$top/a/below"
row "a limit of 1024 MiB above a limit of 2048 MiB" ok "$(nvml set "$top" 0 1024)"
nvml set "$top/a" 0 2048 >/dev/null
nested=$(inside "$top/a" 1536)
nvml set "$top" 0 max >/dev/null
printf '| with dmem the smaller counts (refused), with misc the nearest (served) | – | %s | – |\n' \
  "$nested"
row "soft 0 and hard max remove the limit" ok "$(nvml set "$top/a" 0 max)"
row "it is gone" max "$(nvml get "$top/a")"
nvml set "$top/a" 0 2048 >/dev/null
rmdir "$top/a" && mkdir "$top/a"
row "a group that is made anew has no limit" max "$(nvml get "$top/a")"
row "a group that is not there is an error" "error 6" "$(nvml set "$top/none" 0 2048)"
row "a user may not set one" "error 4" \
  "$(setpriv --reuid 65534 --regid 65534 --clear-groups python3 - "$gpu" set "$top/a" 0 2048 \
    <"$work/nvml.py" 2>&1)"
printf '\n%d rule(s) do not hold\n' "$failed"
exit "$failed"
