"""Checks what NVML reports inside a lease: LIMIT_MIB as the memory, no process of others
(OTHER_PID), and the same figures as CUDA's, even through nvidia-smi. Needs no package; uses the
real libraries as any program does.

usage, inside `gpurota run --memory`: LIMIT_MIB=8192 OTHER_PID=1234 python3 nvml_views.py
"""
import ctypes
import os
import shutil
import subprocess

limit = int(os.environ["LIMIT_MIB"]) << 20
other = int(os.environ.get("OTHER_PID", "0"))
index = int(os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0])
nvml = ctypes.CDLL("libnvidia-ml.so.1")


class MemoryV1(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [
        (name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")]


class Process(ctypes.Structure):  # of _v2 and _v3
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong),
                ("gpu_instance", ctypes.c_uint),
                ("compute_instance", ctypes.c_uint)]


def check(result, what):
    assert result == 0, f"{what}: NVML error {result}"


def memory(device):
    v1, v2 = MemoryV1(), MemoryV2(version=ctypes.sizeof(MemoryV2) | 2 << 24)
    check(nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(v1)), "memory")
    check(nvml.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(v2)), "memory v2")
    assert v1.total == v2.total == limit, f"total {v1.total}, {v2.total}, not {limit}"
    assert v1.free + v1.used == limit and v2.free + v2.used + v2.reserved == limit
    return v2


def processes(device):
    found = set()
    for function in (nvml.nvmlDeviceGetComputeRunningProcesses_v2,
                     nvml.nvmlDeviceGetComputeRunningProcesses_v3):
        listed = (Process * 64)()
        count = ctypes.c_uint(64)
        check(function(device, ctypes.byref(count), listed), "processes")
        found |= {listed[i].pid for i in range(count.value)}
    return found


def smi(*query):
    shown = subprocess.run(["nvidia-smi", *query], capture_output=True, text=True,
                           check=True).stdout
    return [[int(field) for field in line.split(",")] for line in shown.splitlines()
            if line.strip()]


check(nvml.nvmlInit_v2(), "init")
gpu = ctypes.c_void_p()
check(nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(gpu)), "handle")
before = memory(gpu)
assert processes(gpu) == set(), f"before any use of CUDA: {processes(gpu)}"

cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(512 << 20)) == 0
assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
after = memory(gpu)
assert total.value == limit, f"cuMemGetInfo: {total.value}"
assert abs(after.free - free.value) <= 32 << 20, f"free: NVML {after.free}, CUDA {free.value}"
assert before.free - after.free >= 512 << 20
listed = processes(gpu)
assert os.getpid() in listed and other not in listed, f"processes {listed}"

text = ""
if shutil.which("nvidia-smi"):
    gpus = smi("--query-gpu=index,memory.total,memory.used,memory.free",
               "--format=csv,noheader,nounits")
    mine = next(row for row in gpus if row[0] == index)
    assert mine[1] == limit >> 20, f"nvidia-smi shows a total of {mine[1]} MiB"
    assert abs(mine[3] - (free.value >> 20)) <= 33, (
        f"nvidia-smi shows {mine[3]} MiB free, CUDA {free.value >> 20}")
    # The list of processes is only printed, because nvidia-smi takes it from a private table of
    # NVML's (nvmlInternalGetExportTable), which libgpurota does not change.
    apps = [row[0] for row in smi("--query-compute-apps=pid", "--format=csv,noheader,nounits")]
    table = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=True).stdout
    assert f"/ {limit >> 20:6d}MiB" in table or f"/  {limit >> 20}MiB" in table, table
    text = f"; nvidia-smi: {mine[2]} of {mine[1]} MiB, processes {apps}"
print(f"total {limit >> 20} MiB, free {after.free >> 20} MiB (CUDA {free.value >> 20}), processes "
      f"{sorted(listed)}{text}")
