"""Training throughput: a small transformer, iterations per second, median of several rounds."""
import json
import sys
import time

import torch

torch.manual_seed(0)
model = torch.nn.TransformerEncoder(
    torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0), 6).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
data = torch.randn(32, 128, 512, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    return loss


for _ in range(20):
    step()
rates = []
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 7):
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(40):
        loss = step()
    torch.cuda.synchronize()
    rates.append(40 / (time.perf_counter() - begun))
print(json.dumps({"iterations_per_s": sorted(rates)[len(rates) // 2], "loss": loss.item()}))
