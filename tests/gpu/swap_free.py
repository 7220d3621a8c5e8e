#!/usr/bin/env python3
"""Checks that a swap lease is granted exactly the memory that cuMemGetInfo reports as free.

Meanwhile another lease holds memory that cannot move.

    swap_free.py GPUROTA [--capacity-mib 8192] [--limit-mib 7168] [--wired-mib 2048]

Runs itself under two leases on GPU 0. One holds memory of cuMemAllocManaged, which never moves; the
other allocates pieces of 64 MiB until it is refused. Both leases are made before that memory,
because a request for the whole limit beside it would wait. Prints what was reported as free and
what was granted. Works on NVIDIA's driver and on the simulated one. A daemon must be running.
"""
import argparse
import ctypes
import subprocess
import sys

MIB = 1 << 20
PIECE = 64 * MIB
OUT_OF_MEMORY = 2
GLOBAL = 1  # CU_MEM_ATTACH_GLOBAL


def driver():
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    for code in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
                 cuda.cuCtxSetCurrent(context)):
        if code != 0:
            sys.exit(f"the driver says {code}")
    return cuda


def free_bytes(cuda):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) != 0:
        sys.exit("cuMemGetInfo failed")
    return free.value


def hold(mib):
    cuda = driver()
    address = ctypes.c_uint64()
    code = cuda.cuMemAllocManaged(ctypes.byref(address), ctypes.c_size_t(mib * MIB), GLOBAL)
    print("holding" if code == 0 else f"refused: {code}", flush=True)
    sys.stdin.read()


def fill():
    print("ready", flush=True)
    sys.stdin.readline()
    cuda = driver()
    said, granted = free_bytes(cuda), 0
    address = ctypes.c_uint64()
    for size in (PIECE, 2 * MIB):
        while (code := cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))) == 0:
            granted += size
        if code != OUT_OF_MEMORY:
            sys.exit(f"cuMemAlloc says {code}")
    left = free_bytes(cuda)
    print(f"{said / MIB:.0f} MiB were said to be free, {granted / MIB:.0f} MiB were granted, and "
          f"{left / MIB:.0f} MiB are said to be left")
    sys.exit(abs(said - granted) > 4 * MIB or left >= 2 * MIB)


def expect(program, line):
    said = program.stdout.readline().strip()
    if said != line:
        sys.exit(f"expected '{line}' of the other program, which says '{said}'")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpurota")
    parser.add_argument("--capacity-mib", type=int, default=8192)
    parser.add_argument("--limit-mib", type=int, default=7168)
    parser.add_argument("--wired-mib", type=int, default=2048)
    arguments = parser.parse_args()
    run = [arguments.gpurota, "run", "--gpu-ids", "0", "--swap", "--memory",
           f"{arguments.limit_mib}M", "--", sys.executable, __file__]
    subprocess.run([arguments.gpurota, "set", "--gpu-ids", "0", "--capacity",
                    f"{arguments.capacity_mib}M"], check=True)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    filler = subprocess.Popen(run + ["fill"], **pipes)
    holder = None
    try:
        expect(filler, "ready")
        holder = subprocess.Popen(run + ["hold", str(arguments.wired_mib)], **pipes)
        expect(holder, "holding")
        print(filler.communicate("\n")[0], end="")
        return filler.returncode
    finally:
        for program in filter(None, (filler, holder)):
            program.communicate()
        subprocess.run([arguments.gpurota, "set", "--gpu-ids", "0", "--reset"], check=True)


if sys.argv[1:2] == ["hold"]:
    hold(int(sys.argv[2]))
elif sys.argv[1:2] == ["fill"]:
    fill()
else:
    sys.exit(main())
