#!/usr/bin/env python3
"""Two PyTorch training jobs share one GPU in turns: checks that nothing is lost, measures the cost.

    swap_torch.py GPUROTA [--capacity 16G] [--memory-gib 10] [--steps 300] [--quantum 100ms]
                          [--expandable]
                          [--results DIR]

Trains twice without gpurota (the losses must agree, or the comparison is void). Then runs two
training jobs at the same time, each in a swap lease, with a capacity that only one of them fits:
their losses must be those of the first run, bit for bit. Both hold memory beyond the model's, fill
it once and check it at the end. With --expandable, PyTorch maps its memory itself
(expandable_segments:True). Prints one line of JSON: losses that differ, evictions, bytes and
seconds. A daemon must be running; the caller must be allowed to set a GPU (an administrator).
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def train(out, steps, gib, graph):
    """Runs one training. Writes its losses as hexadecimal floats, one a line, and "kept" if the
    other memory that it held is unchanged."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    import torch
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True)
    held = [torch.full(((256 << 20) // 4,), i, dtype=torch.int32, device="cuda")
            for i in range(4 * gib)]
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 6).cuda()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=graph)
    data = torch.randn(64, 128, 512, device="cuda")
    loss = None

    def step():
        nonlocal loss
        optimiser.zero_grad(set_to_none=False)
        loss = (model(data) - data.roll(1, dims=1)).square().mean()
        loss.backward()
        optimiser.step()

    run = step
    if graph:  # captured once, launched again and again while its memory comes and goes
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            step()
        run = captured.replay
    with open(out, "w", encoding="utf-8") as file:
        for _ in range(steps):
            run()
            file.write(float(loss.item()).hex() + "\n")
        kept = all(int(t.min()) == i and int(t.max()) == i for i, t in enumerate(held))
        file.write("kept\n" if kept else "a wrong byte\n")


def command(out, options, graph):
    words = [sys.executable, __file__, "train", str(out), str(options.steps),
             str(options.memory_gib)]
    return words + (["graph"] if graph else [])


def timed(processes):
    begun = time.monotonic()
    for process in processes:
        if process.wait() != 0:
            sys.exit(f"{process.args} ended with {process.returncode}")
    return round(time.monotonic() - begun, 2)


def differences(a, b):
    a, b = a.read_text().splitlines(), b.read_text().splitlines()
    return sum(x != y for x, y in zip(a, b)) + abs(len(a) - len(b))


def compare(options, results, graph):
    name = ("graph" if graph else "eager") + ("_expandable" if options.expandable else "")
    bare = [results / f"{name}_bare{i}.txt" for i in range(2)]
    alone = [timed([subprocess.Popen(command(out, options, graph))]) for out in bare]
    found = {"mode": name, "bare_differences": differences(*bare), "alone_s": alone}
    if "kept" not in bare[0].read_text():
        sys.exit("a training job without gpurota has lost what it held")
    shared = [results / f"{name}_swap{i}.txt" for i in range(2)]
    logs = [results / f"{name}_swap{i}.log" for i in range(2)]
    running = [subprocess.Popen([options.gpurota, "run", "--gpu-ids", "0", "--swap", "--",
                                 *command(out, options, graph)],
                                env=dict(os.environ, GPUROTA_DEBUG=str(log)))
               for out, log in zip(shared, logs)]
    found["together_s"] = timed(running)
    found["differences"] = [differences(bare[0], out) for out in shared]
    moved = [re.findall(r"evicted (\d+) of \d+ bytes, .* in (\d+) ms", log.read_text())
             for log in logs]
    found["evictions"] = [len(m) for m in moved]
    found["evicted_gib"] = [round(sum(int(b) for b, _ in m) / 2**30, 1) for m in moved]
    found["evicting_s"] = [sum(int(ms) for _, ms in m) / 1000 for m in moved]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpurota")
    parser.add_argument("--capacity", default="16G")
    parser.add_argument("--memory-gib", type=int, default=10)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--quantum", default="100ms")
    parser.add_argument("--expandable", action="store_true")
    parser.add_argument("--results")
    options = parser.parse_args()
    results = pathlib.Path(options.results or tempfile.mkdtemp())
    if options.expandable:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    subprocess.run([options.gpurota, "set", "--gpu-ids", "0", "--capacity", options.capacity,
                    "--quantum", options.quantum], check=True)
    bad = 0
    for graph in (False, True):
        found = compare(options, results, graph)
        print(json.dumps(found), flush=True)
        bad += found["bare_differences"] + sum(found["differences"]) + (min(found["evictions"]) < 5)
    subprocess.run([options.gpurota, "set", "--gpu-ids", "0", "--reset"], check=False)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), "graph" in sys.argv[5:])
    else:
        main()
