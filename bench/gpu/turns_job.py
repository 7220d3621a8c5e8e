"""A job with phases: GPU work on all of its memory, then a pause. Every element is checked at the
end.

usage: turns_job.py GIB PHASES PASSES PAUSE_S    a phase's work is PASSES over the memory
Prints one line of JSON: seconds from the first phase to the last, passes, parts with wrong
elements.
"""
import json
import sys
import time

import torch

gib, phases, passes, pause = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(
    sys.argv[4])
chunk = 256 << 20
parts = [torch.zeros(chunk // 4, dtype=torch.float32, device="cuda")
         for _ in range(int(gib * (1 << 30)) // chunk)]
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.readline()  # all programs begin together
begun = time.monotonic()
for phase in range(phases):
    for _ in range(passes):
        for part in parts:
            part.add_(1.0)
        torch.cuda.synchronize()
    if pause and phase + 1 < phases:
        time.sleep(pause)
seconds = time.monotonic() - begun
expected = float(phases * passes)
# min() and max() need no extra memory
wrong = sum(part.min().item() != expected or part.max().item() != expected for part in parts)
print(json.dumps({"seconds": seconds, "passes": phases * passes, "wrong": wrong}), flush=True)
