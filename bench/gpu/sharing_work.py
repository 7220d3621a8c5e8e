"""Work of one kind for a while, and its rate, which shows how much two programs on one GPU slow
each other down.

usage: sharing_work.py KIND SECONDS [GIB]    GIB of memory that is also held, checked at the end
    train      a small transformer, steps; many short kernels
    infer      the same model, forward only, with a pause of the CPU after each step
    matmul     large matrix products; fills the multiprocessors
    memory     passes over 2 GiB; fills the memory bus
    launch     tiny kernels one by one: also how long each launch took
Prints "ready", begins on request, and prints one line of JSON: done, seconds, rate, wrong, and for
`launch` the launch times in us.
"""
import json
import sys
import time

import torch

kind, seconds, gib = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0
torch.manual_seed(0)
held = [torch.full((64 << 20,), float(i), device="cuda") for i in range(int(gib * 4))]
launches = []


def make_model():
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()


if kind in ("train", "infer"):
    model, data = make_model(), torch.randn(32, 128, 512, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
if kind == "matmul":
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.empty_like(a)
if kind == "memory":
    big = torch.zeros(512 << 20, device="cuda")
if kind == "launch":
    tiny = torch.zeros(32, device="cuda")


def step():
    if kind == "train":
        optimizer.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        optimizer.step()
    elif kind == "infer":
        with torch.no_grad():
            model(data)
        torch.cuda.synchronize()
        time.sleep(0.01)
    elif kind == "matmul":
        torch.matmul(a, a, out=b)
    elif kind == "memory":
        big.add_(1.0)
    else:
        for _ in range(100):
            begun = time.perf_counter_ns()
            tiny.add_(1.0)
            launches.append(time.perf_counter_ns() - begun)
        torch.cuda.synchronize()


for _ in range(10):
    step()
torch.cuda.synchronize()
launches.clear()
print("ready", flush=True)
sys.stdin.readline()
begun = time.monotonic()
done = 0
while time.monotonic() < begun + seconds:
    for _ in range(1 if kind in ("infer", "launch") else 4):
        step()
        done += 1
    torch.cuda.synchronize()
took = time.monotonic() - begun
wrong = sum(part.min().item() != float(i)
            or part.max().item() != float(i) for i, part in enumerate(held))
said = {"done": done, "seconds": took, "rate": done / took, "wrong": wrong}
if launches:
    launches.sort()
    said["launch_us"] = {str(p): launches[min(int(len(launches) * p), len(launches) - 1)] / 1000
                         for p in (0.5, 0.99, 0.999, 0.9999)}
    said["launches"] = len(launches)
print(json.dumps(said), flush=True)
