#!/usr/bin/env bats
# Every family of device memory at random under a limit, with a model beside it
# (tests/stress/families).

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# The figure KEY of the report.
figure() { python3 -c "import json,sys; print(json.load(open('out'))['$1'])"; }

# FAMILIES_SECONDS and FAMILIES_SEED for longer and other runs.
stress() {
  gpurota run --gpu-ids 0 --memory "$3M" -- "$E2E_FAMILIES" "$1" "$2" "${FAMILIES_SECONDS:-3}" \
    "$3" \
    "${FAMILIES_SEED:-$RANDOM}" >out || { cat out; false; }
  cat out
}

@test "all families in one process: limit kept, nothing refused that fits, nothing left" {
  stress 1 4 2048
  [ "$(figure refused)" -gt 0 ]
}

@test "all families in three processes that share a limit" {
  stress 3 3 4096
  [ "$(figure refused)" -gt 0 ]
}

# The driver takes this memory later, in calls whose arguments do not show its size.
@test "stack, heap and printf buffer of a context are charged by what NVML shows, and given back" {
  # shellcheck disable=SC2016 # the program is Python's
  run -0 gpurota run --gpu-ids 0 --memory 2048M -- python3 -c '
import ctypes, time
cu = ctypes.CDLL("libcuda.so.1")
MiB = 1 << 20
def ok(code): assert code == 0, code
def free():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ok(cu.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    return free.value // MiB
def wait_for(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, free()
        time.sleep(0.05)
context, p = ctypes.c_void_p(), ctypes.c_uint64()
ok(cu.cuInit(0))
ok(cu.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
before = free()
assert cu.cuCtxSetLimit(2, ctypes.c_size_t((before + 64) * MiB)) == 2
ok(cu.cuCtxSetLimit(2, ctypes.c_size_t(520 * MiB)))  # the heap of kernels
wait_for(lambda: free() <= before - 512)
assert cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t((before - 256) * MiB)) == 2
heap = free()
ok(cu.cuCtxSetLimit(1, ctypes.c_size_t(65 * MiB)))   # the buffer of printf
wait_for(lambda: free() <= heap - 64)
ok(cu.cuCtxSetLimit(0, ctypes.c_size_t(2048)))       # the stack of each thread
wait_for(lambda: free() < heap - 64)
ok(cu.cuCtxSetLimit(0, ctypes.c_size_t(1024)))
ok(cu.cuCtxSetLimit(1, ctypes.c_size_t(1 * MiB)))
ok(cu.cuCtxSetLimit(2, ctypes.c_size_t(8 * MiB)))
wait_for(lambda: free() >= before)
ok(cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t((before - 2) * MiB)))
'
}
