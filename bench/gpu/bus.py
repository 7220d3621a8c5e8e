"""The time of plain copies between a GPU and pinned host memory.

usage: bus.py GPU    prints the seconds that 1 GiB takes each way, both ways at once
Runs as a separate process, because its context counts as memory in use without a lease.
"""
import statistics
import subprocess
import sys
import time


def bus_seconds(gpu, gib):
    """Seconds to copy `gib` each way, both ways at once, in pieces of 64 MiB."""
    command = [sys.executable, __file__, str(gpu)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * gib


def measure(gpu):
    import torch
    piece, count = 64 << 20, 32
    torch.cuda.set_device(gpu)
    host = [torch.empty(piece * count, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    device = [torch.empty(piece * count, dtype=torch.uint8, device="cuda") for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        begun = time.monotonic()
        for i in range(count):
            part = slice(i * piece, (i + 1) * piece)
            with torch.cuda.stream(streams[0]):
                host[0][part].copy_(device[0][part], non_blocking=True)
            with torch.cuda.stream(streams[1]):
                device[1][part].copy_(host[1][part], non_blocking=True)
        torch.cuda.synchronize()
        times.append(time.monotonic() - begun)
    return statistics.median(times) * (1 << 30) / (piece * count)


if __name__ == "__main__":
    print(measure(int(sys.argv[1])))
