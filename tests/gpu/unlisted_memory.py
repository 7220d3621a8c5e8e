#!/usr/bin/env python3
"""unlisted_memory.py: measures the memory that a real GPU reports beyond that of its processes.

Prints `used - sum of listed` of the first GPU in MiB: idle, beside programs that hold memory,
beside programs that allocate all the time, and after a kill -9 of a large one, until its memory is
back. The calculation of hidden memory (docs/design/watch.md) assumes 10 MiB for each process, and
ten seconds until freed memory is back. This program checks these two numbers for a driver, and
exits with 1 if one is too small. Nothing else may run on the GPU.
"""
import ctypes
import os
import signal
import subprocess
import sys
import time

MIB = 1 << 20


class Memory(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [(n, ctypes.c_ulonglong)
                                               for n in ("total", "reserved", "free", "used")]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu", ctypes.c_uint),
                ("compute", ctypes.c_uint)]


def hold(mib, churns):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, memory = ctypes.c_void_p(), ctypes.c_ulonglong()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    cuda.cuCtxSetCurrent(context)
    while True:
        assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(mib * MIB)) == 0
        print("holding", flush=True)
        if not churns:
            time.sleep(600)
        cuda.cuMemFree_v2(memory)


class Gpu:
    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.handle = ctypes.c_void_p()
        assert self.nvml.nvmlInit_v2() == 0 and self.nvml.nvmlDeviceGetHandleByIndex_v2(
            0, ctypes.byref(self.handle)) == 0

    def read(self):
        """(used, sum of listed, how many), read one after the other as gpurotad does."""
        memory, count, found = Memory(version=ctypes.sizeof(Memory)
                                      | 2 << 24), ctypes.c_uint(64), (Process * 64)()
        assert self.nvml.nvmlDeviceGetMemoryInfo_v2(self.handle, ctypes.byref(memory)) == 0
        assert self.nvml.nvmlDeviceGetComputeRunningProcesses_v3(
            self.handle, ctypes.byref(count), found) == 0
        return memory.used / MIB, sum(p.used for p in found[:count.value]) / MIB, count.value


def start(*arguments):
    program = subprocess.Popen([sys.executable, __file__, *map(str, arguments)],
                               stdout=subprocess.PIPE)
    program.stdout.readline()
    return program


def main():
    gpu, worst = Gpu(), 0.0
    idle = gpu.read()
    print(f"idle: {idle[0] - idle[1]:.0f} MiB, {idle[2]} processes")

    def beside(name, programs, seconds=2):
        nonlocal worst
        unlisted, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            used, listed, _ = gpu.read()
            unlisted.append(used - listed - (idle[0] - idle[1]))
            time.sleep(0.005)
        print(f"{name}: {min(unlisted):.0f} to {max(unlisted):.0f} MiB beyond idle, in "
              f"{len(unlisted)} readings")
        # A single reading says nothing about a program that allocates meanwhile.
        if name != "allocating":
            worst = max(worst, max(unlisted) / len(programs))
        for program in programs:
            program.kill()
            program.wait()
        time.sleep(3)

    beside("one of 1 GiB", [start("hold", 1024)])
    beside("eight of 1 GiB", [start("hold", 1024) for _ in range(8)])
    beside("allocating", [start("churn", 4096)], 4)
    large = start("hold", 60000)
    os.kill(large.pid, signal.SIGKILL)
    killed, unlisted_at, back_at, most = time.monotonic(), None, None, 0.0
    while back_at is None and time.monotonic() < killed + 30:
        used, listed, count = gpu.read()
        now = time.monotonic() - killed
        if count == 0:
            unlisted_at = now if unlisted_at is None else unlisted_at
            most = max(most, used - idle[0])
            back_at = now if used - idle[0] <= 256 else None
    print(f"60000 MiB killed: unlisted after {unlisted_at} s, back after {back_at} s, {most:.0f} "
          f"MiB unlisted meanwhile")
    return 0 if worst <= 10 and back_at is not None and back_at < 10 else 1


if __name__ == "__main__":
    if len(sys.argv) == 3:
        hold(int(sys.argv[2]), sys.argv[1] == "churn")
    sys.exit(main())
