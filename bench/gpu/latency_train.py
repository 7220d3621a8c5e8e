"""A training job, of small or of large kernels.

usage: latency_train.py SECONDS small|large
Prints "ready", begins on a line of input, and prints steps a second as JSON.
"""
import json
import sys
import time

import torch

seconds, batch = float(sys.argv[1]), {"small": 8, "large": 64}[sys.argv[2]]
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
net = torch.nn.TransformerEncoder(layer, 12).cuda().bfloat16()
data = torch.randn(batch, 512, 1024, device="cuda", dtype=torch.bfloat16)
optimiser = torch.optim.SGD(net.parameters(), lr=1e-3)


def step():
    net(data).float().pow(2).mean().backward()
    optimiser.step()
    optimiser.zero_grad()


for _ in range(5):
    step()
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.readline()
steps, begun = 0, time.perf_counter()
while time.perf_counter() - begun < seconds:
    step()
    steps += 1
    if steps % 4 == 0:
        torch.cuda.synchronize()
torch.cuda.synchronize()
print(json.dumps(steps / (time.perf_counter() - begun)), flush=True)
