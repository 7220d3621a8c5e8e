"""A training job whose losses are the same to the last bit whenever it runs alone. If a move loses
a byte, the losses differ.

usage: turns_train.py STEPS [MIB]    MIB of weights without use, to be moved each time
Prints the losses' digest and the last one as JSON.
"""
import hashlib
import json
import os
import struct
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch  # noqa: E402

steps, mib = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
torch.use_deterministic_algorithms(True)
torch.manual_seed(7)
ballast = [torch.full((64 << 18,), float(i), device="cuda") for i in range(mib // 64)]
layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True)
model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                            torch.nn.Linear(512, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
data = torch.randn(64, 64, 512, device="cuda")
digest, last = hashlib.sha256(), 0.0
for step in range(steps):
    optimizer.zero_grad(set_to_none=True)
    batch = data.roll(step, 0)[:32]
    loss = torch.nn.functional.mse_loss(model(batch), batch)
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        last = loss.item()
        digest.update(struct.pack("<f", last))
wrong = sum(int((part != float(i)).sum()) for i, part in enumerate(ballast))
print(json.dumps({"digest": digest.hexdigest()[:16], "last": last, "wrong": wrong}), flush=True)
