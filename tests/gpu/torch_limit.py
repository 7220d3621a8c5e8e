"""PyTorch under a limit: it sees the limit as the GPU's size, raises its own exception beyond the
limit, and continues afterwards.

Prints one JSON object; exits with 1 if something does not hold. LIMIT_MIB: the lease's limit.
"""
import json
import os
import sys

import torch

MIB = 1 << 20
limit = int(os.environ["LIMIT_MIB"])
problems = []


def check(holds, what):
    if not holds:
        problems.append(what)


total = torch.cuda.get_device_properties(0).total_memory // MIB
free, seen = (value // MIB for value in torch.cuda.mem_get_info())
check(total == limit and seen == limit, f"total is {total} and {seen} MiB, not {limit}")
check(free < limit, "the context is not counted")

held, refused = [], False
try:
    while True:
        held.append(torch.empty(256 * MIB, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError:
    refused = True
usable = 256 * len(held)
check(refused, "nothing was refused")
check(usable + 256 + 1200 > limit, f"only {usable} of {limit} MiB could be had")

# The program continues: allocated memory works, and freed memory can be allocated again.
held[0].fill_(7)
check(bytes(held[0][-64:].cpu().numpy()) == b"\x07" * 64, "what was written is not there")
del held
torch.cuda.empty_cache()
a = torch.randn(4096, 4096, device="cuda", dtype=torch.float32)
b = a @ a
check(bool(torch.isfinite(b).all()), "a product is wrong")
again = torch.empty(min(usable, 4096) // 2 * MIB, dtype=torch.uint8, device="cuda")
again.zero_()
torch.cuda.synchronize()
print(json.dumps({"limit_mib": limit, "total_mib": total, "free_at_start_mib": free,
                  "usable_mib": usable, "problems": problems}))
sys.exit(1 if problems else 0)
