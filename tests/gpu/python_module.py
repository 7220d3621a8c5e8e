"""Checks what docs/python.md promises, with PyTorch: the module is in PYTHONPATH, gpurota in
PATH."""

import json
import subprocess
import sys

import gpurota

GIB = 1 << 30
PROGRAM = """
import json, sys, torch
total = torch.cuda.get_device_properties(0).total_memory
held = []
try:
    while len(held) < 64:
        held.append(torch.zeros(256 << 20, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError:
    pass
print(json.dumps([total, len(held) * (256 << 20)]))
"""


def check_limit(what, limit, total, held):
    assert total == limit, f"{what}: a GPU of {total} bytes"
    assert limit // 2 <= held <= limit, f"{what}: held {held} bytes of {limit}"


# Runs commands under a lease, from a program that has none.
if not gpurota.current():
    with gpurota.lease(memory="4G", note="a command") as lease:
        done = lease.run([sys.executable, "-c", PROGRAM], check=True, stdout=subprocess.PIPE,
                         text=True)
        check_limit("a command", 4 * GIB, *json.loads(done.stdout))
        lease.update(memory="6G")
        done = lease.run([sys.executable, "-c", PROGRAM], check=True, stdout=subprocess.PIPE,
                         text=True)
        check_limit("after an update", 6 * GIB, *json.loads(done.stdout))

# adopt() starts this program again from the beginning, under a lease.
gpurota.adopt(memory="3G", note="the program itself")

import torch  # noqa: E402  after adopt()

check_limit("the program itself", 3 * GIB, torch.cuda.get_device_properties(0).total_memory,
            3 * GIB - 1)
torch.zeros(1 << 20, device="cuda").sum().item()
try:
    torch.zeros(4 * GIB, dtype=torch.uint8, device="cuda")
    sys.exit("not refused")
except torch.OutOfMemoryError:
    pass
print("a command, the same with more, and the program itself were held to their limits")
