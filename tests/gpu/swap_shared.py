#!/usr/bin/env python3
"""Two pairs of processes that share tensors through torch.multiprocessing take turns on one GPU.
The shared memory is cudaMalloc's, so it is shared by CUDA's IPC handles. gpurota replaces these
handles in a swap lease.

    swap_shared.py GPUROTA [--capacity 16G] [--memory-gib 8] [--shared-mib 1536] [--steps 150]

In each pair a process makes a tensor, its partner opens it, and both change it in turn and check
all of it; the partner also shares a tensor of its own in the other direction. Both hold other
memory, which moves. Prints one line of JSON: wrong words, evictions, and the bytes that stay on the
GPU because they were shared. A daemon must be running; the caller must be allowed to set a GPU.
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

WORDS_MIB = (1 << 20) // 4


def follow(value, step):
    """The value of a 32-bit word after one round."""
    return ((value + step) * 3 - 1) % 2**32


def same_as(tensor, value):
    signed = value - 2**32 if value >= 2**31 else value
    return int(tensor.min()) == signed and int(tensor.max()) == signed


def partner(questions, answers):
    import torch
    opened = questions.get()
    own = torch.zeros(16 * WORDS_MIB, dtype=torch.int32, device="cuda")
    answers.put(own)
    while (step := questions.get()) is not None:
        opened.mul_(3).sub_(1)
        own.fill_(step)
        torch.cuda.synchronize()
        answers.put(step)
    del opened
    torch.cuda.synchronize()
    answers.put("closed")
    questions.get()  # keeps its tensor until the partner has closed it


def begin_together(out):
    """Waits for the other pair. Frameworks take different times to load: without this, one pair
    could finish before the other begins."""
    out.with_suffix(".ready").touch()
    while len(list(out.parent.glob("shared[01].ready"))) < 2:
        time.sleep(0.01)


def pair(out, steps, gib, mib):
    import torch
    import torch.multiprocessing as mp
    context = mp.get_context("spawn")
    questions, answers = context.Queue(), context.Queue()
    other = context.Process(target=partner, args=(questions, answers))
    other.start()
    held = [torch.full((256 * WORDS_MIB,), i, dtype=torch.int32, device="cuda")
            for i in range(4 * gib)]
    shared = torch.zeros(mib * WORDS_MIB, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    questions.put(shared)
    theirs = answers.get()
    begin_together(pathlib.Path(out))
    wrong, expected = 0, 0
    for step in range(1, steps + 1):
        shared.add_(step)
        torch.cuda.synchronize()
        questions.put(step)
        answers.get()
        expected = follow(expected, step)
        wrong += not same_as(shared, expected)
        wrong += not same_as(theirs, step)
        held[step % len(held)].add_(0)
    wrong += sum(not same_as(t, i) for i, t in enumerate(held))
    questions.put(None)
    answers.get()
    del theirs
    torch.cuda.synchronize()
    questions.put(None)
    other.join()
    pathlib.Path(out).write_text(json.dumps({"wrong": wrong, "code": other.exitcode}),
                                 encoding="utf-8")


def command(out, options):
    return [sys.executable, __file__, "pair", str(out), str(options.steps), str(options.memory_gib),
            str(options.shared_mib)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpurota")
    parser.add_argument("--capacity", default="16G")
    parser.add_argument("--memory-gib", type=int, default=8)
    parser.add_argument("--shared-mib", type=int, default=1536)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--quantum", default="100ms")
    parser.add_argument("--results")
    options = parser.parse_args()
    results = pathlib.Path(options.results or tempfile.mkdtemp())
    subprocess.run([options.gpurota, "set", "--gpu-ids", "0", "--capacity", options.capacity,
                    "--quantum", options.quantum], check=True)
    outs = [results / f"shared{i}.json" for i in range(2)]
    logs = [results / f"shared{i}.log" for i in range(2)]
    for out in outs:
        out.with_suffix(".ready").unlink(missing_ok=True)
    begun = time.monotonic()
    running = [subprocess.Popen([options.gpurota, "run", "--gpu-ids", "0", "--swap", "--",
                                 *command(out, options)],
                                env=dict(os.environ, GPUROTA_DEBUG=str(log)))
               for out, log in zip(outs, logs)]
    codes = [process.wait() for process in running]
    found = {"seconds": round(time.monotonic() - begun, 1), "codes": codes}
    subprocess.run([options.gpurota, "set", "--gpu-ids", "0", "--reset"], check=False)
    texts = [log.read_text(encoding="utf-8") for log in logs]
    found["evictions"] = [len(re.findall(r"evicted \d+ of", text)) for text in texts]
    stays = [re.findall(r"(\d+) bytes that the program has given away", text) for text in texts]
    found["shared_mib"] = [sum(map(int, bytes_)) >> 20 for bytes_ in stays]
    said = [json.loads(out.read_text(encoding="utf-8")) if out.exists() else None for out in outs]
    found["pairs"] = said
    print(json.dumps(found))
    good = codes == [0, 0] and all(s and s["wrong"] == 0 and s["code"] == 0 for s in said)
    sys.exit(0 if good and min(found["evictions"]) >= 5
             and min(found["shared_mib"]) >= options.shared_mib else 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["pair"]:
        pair(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
