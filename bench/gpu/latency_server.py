"""A server: answers requests at random times, and measures how long each takes.

usage: latency_server.py SECONDS RATE mlp|decode    RATE: requests a second
    mlp      24 small layers in one go
    decode   32 tokens of a small language model, one after the other
Prints "ready", begins on a line of input, and prints a JSON list of milliseconds: from the time at
which a request was due until its answer.
"""
import json
import random
import sys
import time

import torch

seconds, rate, kind = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
if kind == "mlp":
    layers = [torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()) for _ in range(24)]
    net, tokens = torch.nn.Sequential(*layers), 1
    data = torch.randn(32, 512, device="cuda")
else:
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    net, tokens = torch.nn.TransformerEncoder(layer, 4), 32
    data = torch.randn(1, 64, 512, device="cuda")
net = net.cuda().eval()


def answer():
    for _ in range(tokens):
        net(data).flatten()[0].item()  # the next token depends on the last one


with torch.no_grad():
    for _ in range(20):
        answer()
    print("ready", flush=True)
    sys.stdin.readline()
    times, arrivals = [], random.Random(1)
    due = time.perf_counter()
    end = due + seconds
    while due < end:
        due += arrivals.expovariate(rate)
        time.sleep(max(0.0, due - time.perf_counter()))
        answer()
        times.append((time.perf_counter() - due) * 1000)
print(json.dumps(times), flush=True)
