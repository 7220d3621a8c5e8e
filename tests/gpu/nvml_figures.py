#!/usr/bin/env python3
"""Prints the figures of a real GPU that gpurota takes from NVML (src/nvml/nvml_figures.cpp), and
what each query costs.

    tests/gpu/nvml_figures.py [GPU]

Prints for each function its answer, and the median and the longest time of 200 calls. Also prints
the processor time of all functions once a second, as a share of a core.
"""

import ctypes
import statistics
import sys
import time

ROUNDS = 200
nvml = ctypes.CDLL("libnvidia-ml.so.1")


class Event(ctypes.Structure):
    _fields_ = [("device", ctypes.c_void_p), ("type", ctypes.c_ulonglong),
                ("data", ctypes.c_ulonglong), ("gi", ctypes.c_uint),
                ("ci", ctypes.c_uint)]


class Sample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("time", ctypes.c_ulonglong), ("sm", ctypes.c_uint),
                ("memory", ctypes.c_uint),
                ("encoder", ctypes.c_uint), ("decoder", ctypes.c_uint)]


def must(result, what):
    if result != 0:
        sys.exit("%s: NVML says %d" % (what, result))


def calls(device):
    number, wide = ctypes.c_uint(), ctypes.c_ulonglong()
    samples, count = (Sample * 256)(), ctypes.c_uint()
    events, event = ctypes.c_void_p(), Event()
    created = nvml.nvmlEventSetCreate(ctypes.byref(events))
    registered = nvml.nvmlDeviceRegisterEvents(device, ctypes.c_ulonglong(8), events)
    print("event set: created %d, registered for Xid errors %d" % (created, registered))

    def processes():
        count.value = 256
        return nvml.nvmlDeviceGetProcessUtilization(device, samples, ctypes.byref(count),
                                                    ctypes.c_ulonglong(0))

    to = ctypes.byref(number)
    return [("power (mW)", lambda: nvml.nvmlDeviceGetPowerUsage(device, to), number),
            ("power limit (mW)", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(device, to), number),
            ("temperature", lambda: nvml.nvmlDeviceGetTemperature(device, 0, to), number),
            ("slowdown temperature", lambda: nvml.nvmlDeviceGetTemperatureThreshold(device, 1, to),
             number),
            ("SM clock (MHz)", lambda: nvml.nvmlDeviceGetClockInfo(device, 1, to), number),
            ("clock reasons", lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(
                device, ctypes.byref(wide)), wide),
            ("ECC uncorrected",
             lambda: nvml.nvmlDeviceGetTotalEccErrors(device, 1, 0, ctypes.byref(wide)), wide),
            ("processes", processes, count),
            ("events waiting", lambda: nvml.nvmlEventSetWait_v2(events, ctypes.byref(event), 0),
             None)]


def main():
    must(nvml.nvmlInit_v2(), "nvmlInit_v2")
    device = ctypes.c_void_p()
    index = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    must(nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)), "the GPU")
    assert ctypes.sizeof(Event) == 32 and ctypes.sizeof(Sample) == 32
    all_calls = calls(device)
    for name, call, value in all_calls:
        times = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            result = call()
            times.append((time.perf_counter() - begun) * 1e6)
        said = value.value if value is not None and result == 0 else "-"
        print("%-22s returned %3d, %10s, median %8.1f us, longest %8.1f us"
              % (name, result, said, statistics.median(times), max(times)))
    begun, wall = time.process_time(), time.perf_counter()
    for _ in range(ROUNDS):
        for _, call, _ in all_calls:
            call()
    print("a round of all: %.1f us of processor time, %.1f us; once a second: %.3f %% of a core" %
          ((time.process_time() - begun) / ROUNDS * 1e6,
           (time.perf_counter() - wall) / ROUNDS * 1e6,
           (time.process_time() - begun) / ROUNDS * 100))


if __name__ == "__main__":
    main()
