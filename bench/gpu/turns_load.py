"""A program that works on all of its memory for a given time, and then checks every element.

usage: turns_load.py GIB SECONDS dirty|clean    clean: memory is read only
Prints one line of JSON: passes over the memory, parts with wrong elements.
"""
import json
import sys
import time

import torch

gib, seconds, dirty = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "dirty"
chunk = 256 << 20
parts = [torch.zeros(chunk // 4, dtype=torch.float32, device="cuda")
         for _ in range(int(gib * (1 << 30)) // chunk)]
total = torch.zeros(1, dtype=torch.float32, device="cuda")
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.readline()  # all programs begin together
passes, end = 0, time.monotonic() + seconds
while time.monotonic() < end:
    for part in parts:
        if dirty:
            part.add_(1.0)
        else:
            total.add_(part.max())
    torch.cuda.synchronize()
    passes += 1
expected = float(passes) if dirty else 0.0
wrong = sum(part.min().item() != expected or part.max().item() != expected for part in parts)
print(json.dumps({"passes": passes, "wrong": wrong}), flush=True)
