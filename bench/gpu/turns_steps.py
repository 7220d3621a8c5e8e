"""A training-like program that counts its steps, to show how much pinning ahead slows it down.

usage: turns_steps.py GIB SECONDS    holds GIB of memory, and multiplies matrices
Prints one line of JSON: the time (of the epoch) after each 20 steps.
"""
import json
import sys
import time

import torch

gib, seconds = float(sys.argv[1]), float(sys.argv[2])
chunk = 256 << 20
held = [torch.ones(chunk // 4, dtype=torch.float32, device="cuda")
        for _ in range(int(gib * (1 << 30)) // chunk)]
a = torch.randn(2048, 2048, device="cuda")
b = torch.randn(2048, 2048, device="cuda") / 2048
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.readline()
times, end = [], time.time() + seconds
while time.time() < end:
    for _ in range(20):
        a = a @ b + a
        a = a / a.norm()
    torch.cuda.synchronize()
    times.append(time.time())
wrong = sum(part.min().item() != 1.0 or part.max().item() != 1.0 for part in held)
print(json.dumps({"times": times, "wrong": wrong}), flush=True)
