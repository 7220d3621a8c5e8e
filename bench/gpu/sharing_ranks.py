"""Two ranks on two GPUs in one lease, which repeatedly reduce together: each rank waits for data
that the other must send.

usage: sharing_ranks.py SECONDS GIB    GIB of memory that each rank also holds, checked at the end
Prints "ready", begins on request, and prints one line of JSON: rounds, wrong parts and sums.
"""
import json
import os
import sys
import time

import torch
import torch.distributed
import torch.multiprocessing


def rank(number, seconds, gib, port, ready, go, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(number)
    torch.distributed.init_process_group("nccl", rank=number, world_size=2)
    held = [torch.full((64 << 20,), float(i), device="cuda") for i in range(int(gib * 4))]
    part = torch.empty(16 << 20, device="cuda")
    a = torch.ones(2048, 2048, device="cuda")
    torch.distributed.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()
    ready.release()
    go.wait()
    until, rounds, wrong = time.monotonic() + seconds, 0, 0
    goes_on = torch.ones(1, device="cuda")
    while goes_on.item() > 0:
        part.fill_(float(number + rounds))
        b = a @ a
        torch.distributed.all_reduce(part)
        if rounds % 8 == 0:
            wrong += int(part.min().item() != 2.0 * rounds + 1
                         or part.max().item() != 2.0 * rounds + 1 or b[0, 0].item() != 2048.0)
        rounds += 1
        # Only rank 0 decides.
        goes_on.fill_(1.0 if number != 0 or time.monotonic() < until else -1.0)
        torch.distributed.broadcast(goes_on, 0)
    wrong += sum(p.min().item() != float(i)
                 or p.max().item() != float(i) for i, p in enumerate(held))
    results.put((rounds, wrong))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    context = torch.multiprocessing.get_context("spawn")
    ready, go, results = context.Semaphore(0), context.Event(), context.Queue()
    port = 20000 + os.getpid() % 20000
    ranks = [context.Process(target=rank,
                             args=(i, float(sys.argv[1]), float(sys.argv[2]), port, ready, go,
                                   results)) for i in range(2)]
    for process in ranks:
        process.start()
    for _ in ranks:
        if not ready.acquire(timeout=120):
            sys.exit("a rank did not begin")
    print("ready", flush=True)
    sys.stdin.readline()
    go.set()
    said = [results.get(timeout=280) for _ in ranks]
    for process in ranks:
        process.join()
    print(json.dumps({"rounds": min(r for r, _ in said), "wrong": sum(w for _, w in said)}),
          flush=True)
