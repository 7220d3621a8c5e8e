"""The memory of an inference server: weights that never change, and activations that always do. All
weights are checked at the end.

usage: turns_server.py GIB SECONDS [MIB [PERIOD_MS]]    GIB of weights, MIB of activations (256)
With PERIOD_MS a request comes that often, even if the one before is not answered yet; otherwise
requests come one after the other. Prints "ready", begins on request, and prints one line of JSON:
requests, parts with wrong weights, and the latency of each request in ms, from its arrival.
"""
import json
import sys
import time

import torch

gib, seconds = float(sys.argv[1]), float(sys.argv[2])
mib = int(sys.argv[3]) if len(sys.argv) > 3 else 256
period = float(sys.argv[4]) / 1000 if len(sys.argv) > 4 else 0
side = 8192
part = side * side * 4
weights = [torch.full((side, side), 1.0 + i, device="cuda")
           for i in range(int(gib * (1 << 30)) // part)]
activations = torch.zeros(mib << 18, device="cuda")
batch = torch.ones(16, side, device="cuda")


def answer(request):
    activations.fill_(float(request))
    for i in range(4):
        activations[: 16 * side] = (batch @ weights[(request * 4 + i) % len(weights)]).flatten()
    torch.cuda.synchronize()


answer(0)
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic()
latencies = []
while time.monotonic() < begun + seconds:
    came = begun + len(latencies) * period if period else time.monotonic()
    time.sleep(max(0, came - time.monotonic()))
    answer(len(latencies))
    latencies.append(round((time.monotonic() - came) * 1000, 2))
wrong = sum(w.min().item() != 1.0 + i or w.max().item() != 1.0 + i for i, w in enumerate(weights))
print(json.dumps({"requests": len(latencies), "wrong": wrong, "latencies_ms": latencies}),
      flush=True)
