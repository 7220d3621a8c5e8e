"""Reads and sets the driver's memory limits of a control group on GPU 0, by NVML.

usage: driver_limits.py get GROUP            prints the hard limit in MiB, or "none"
       driver_limits.py set GROUP MIB|none   exits with NVML's error
"""
import ctypes
import sys

NO_LIMIT = (1 << 64) - 1


class Limits(ctypes.Structure):
    _fields_ = [("group", ctypes.c_char_p), ("soft", ctypes.c_ulonglong),
                ("hard", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def main():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    gpu = ctypes.c_void_p()
    limits = Limits(sys.argv[2].encode(), 0, NO_LIMIT, 0)
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu)):
        return 1
    if sys.argv[1] == "get":
        error = nvml.nvmlDeviceGetMemoryLimits_v1(gpu, ctypes.byref(limits))
        print("none" if limits.hard == NO_LIMIT else limits.hard >> 20)
        return error
    if sys.argv[3] != "none":
        limits.hard = int(sys.argv[3]) << 20
    return nvml.nvmlDeviceSetMemoryLimits_v1(gpu, ctypes.byref(limits))


sys.exit(main())
