"""An inference server as turns see it: weights that never change, activations that always do. All weights are checked at
the end.

usage: turns_server.py GIB SECONDS [MIB]    GIB of weights, MIB of activations (256)
Says ready, begins when told to; prints one line of JSON: requests, and parts with wrong weights.
"""
import json
import sys
import time

import torch

gib, seconds, mib = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 256
side = 8192
part = side * side * 4
weights = [torch.full((side, side), 1.0 + i, device="cuda") for i in range(int(gib * (1 << 30)) // part)]
activations = torch.zeros(mib << 18, device="cuda")
batch = torch.ones(16, side, device="cuda")
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.readline()
until = time.monotonic() + seconds
requests = 0
while time.monotonic() < until:
    activations.fill_(float(requests))
    for i in range(4):
        activations[: 16 * side] = (batch @ weights[(requests * 4 + i) % len(weights)]).flatten()
    torch.cuda.synchronize()
    requests += 1
wrong = sum(w.min().item() != 1.0 + i or w.max().item() != 1.0 + i for i, w in enumerate(weights))
print(json.dumps({"requests": requests, "wrong": wrong}), flush=True)
