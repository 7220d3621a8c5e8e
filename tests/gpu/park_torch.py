#!/usr/bin/env python3
"""A PyTorch training as a CUDA graph, with a thread that asks without pause whether work has ended:
the program that park_lease.sh parks.

    park_torch.py OUT STEPS GIB

Holds GIB GiB beside the model's memory, fills them once and checks them at the end. Writes its
losses to OUT as hexadecimal floats, one a line, then "kept" if the memory is unchanged, then the
number of questions and the longest time that one of them took.
"""
import ctypes
import importlib.util
import pathlib
import sys
import threading
import time


def load_training():
    place = pathlib.Path(__file__).resolve().parent / "swap_torch.py"
    spec = importlib.util.spec_from_file_location("swap_torch", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.train


def main():
    out, steps, gib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    import torch
    torch.cuda.init()
    asked = {"times": 0, "longest": 0.0}
    ends = threading.Event()

    def ask():
        # As in PyTorch's watchdog for NCCL: no query of this thread ends the capture.
        relaxed = ctypes.c_int(2)
        ctypes.CDLL("libcuda.so.1").cuThreadExchangeStreamCaptureMode(ctypes.byref(relaxed))
        stream = torch.cuda.Stream()
        event = torch.cuda.Event()
        event.record(stream)
        while not ends.is_set():
            begun = time.monotonic()
            event.query()
            stream.query()
            asked["longest"] = max(asked["longest"], time.monotonic() - begun)
            asked["times"] += 1
            time.sleep(0.0001)

    watchdog = threading.Thread(target=ask)
    watchdog.start()
    try:
        load_training()(out, steps, gib, True)
    finally:
        ends.set()
        watchdog.join()
    with open(out + ".asked", "w", encoding="utf-8") as file:
        file.write(f"{asked['times']} questions, the longest {asked['longest']:.2f} s\n")


if __name__ == "__main__":
    main()
