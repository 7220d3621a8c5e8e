"""Reads and sets the driver's memory limits of a control group, by NVML.

usage: driver_limits.py get GROUP            on GPU 0: prints the hard limit in MiB, or "none"
       driver_limits.py list FOLDER          of all groups below the folder, on GPU 0: prints each
                                             hard limit in MiB, and the group without FOLDER
       driver_limits.py set GROUP MIB|none   exits with NVML's error
"""
import ctypes
import os
import sys

NO_LIMIT = (1 << 64) - 1


class Limits(ctypes.Structure):
    _fields_ = [("group", ctypes.c_char_p), ("soft", ctypes.c_ulonglong),
                ("hard", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Driver:
    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if self.nvml.nvmlInit_v2():
            raise OSError("NVML does not start")

    def _call(self, name, gpu, limits):
        device = ctypes.c_void_p()
        return (self.nvml.nvmlDeviceGetHandleByIndex_v2(gpu, ctypes.byref(device))
                or getattr(self.nvml, name)(device, ctypes.byref(limits)))

    def get(self, group, gpu=0):
        """NVML's error, and the hard limit in MiB (None: there is none)."""
        limits = Limits(group.encode(), 0, NO_LIMIT, 0)
        error = self._call("nvmlDeviceGetMemoryLimits_v1", gpu, limits)
        return error, None if limits.hard == NO_LIMIT else limits.hard >> 20

    def set(self, group, mib, gpu=0):
        """NVML's error. `mib`: None removes the limit."""
        limits = Limits(group.encode(), 0, NO_LIMIT if mib is None else mib << 20, 0)
        return self._call("nvmlDeviceSetMemoryLimits_v1", gpu, limits)


def main():
    driver = Driver()
    if sys.argv[1] == "get":
        error, hard = driver.get(sys.argv[2])
        print("none" if hard is None else hard)
        return error
    if sys.argv[1] == "list":
        top = sys.argv[2]
        for group in sorted(folder for folder, _, _ in os.walk(top)):
            error, hard = driver.get(group)
            if not error and hard is not None:
                print(hard, group[len(top):])
        return 0
    return driver.set(sys.argv[2], None if sys.argv[3] == "none" else int(sys.argv[3]))


if __name__ == "__main__":
    sys.exit(main())
