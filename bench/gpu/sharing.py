"""Programs that share a GPU with and without turns, on a real GPU: each figure beside its baseline
from the same run.

usage: sharing.py DIST [--out FOLDER] [--gpu N] [PART…]
    interactive   a request every 200 ms beside a training job, together more than the memory:
                  latencies, and the training's throughput
    pairs         two programs that both fit: the sum of their rates, each relative to its rate
                  alone, with the driver's slicing and with turns
    stalls        how long launches take while host memory is pinned in the background
    collectives   two leases of two ranks each (NCCL) on two GPUs under turns: both make progress,
                  and their sums are right
DIST is the output of tests/gpu/pack.sh. 24 GiB of the GPU's memory are managed (`gpurota set
--capacity`); `collectives` needs two GPUs. Exits with the number of parts that found wrong bytes or
did not end.
"""
import sys

from harness import Bench, Failed, Program, Watched, here, percentile, run_together, say

bench = Bench(__doc__, ["interactive", "pairs", "stalls"], [
    (["--seconds"], {"type": float, "default": 20.0, "help": "of each measurement"})])
seconds = bench.args.seconds


def work(name, kind, time_s, gib=0.0, swap=True, options=()):
    return Program(bench, name, ["python3", f"{here}/sharing_work.py", kind, str(time_s), str(gib)],
                   swap, options)


def server(name, gib, time_s, swap=True, options=()):
    return Program(bench, name, ["python3", f"{here}/turns_server.py", str(gib), str(time_s), "256",
                                 "200"], swap, options)


def together(programs, *meanwhile):
    """The output of each program. All run for the same time, so that no program is alone for
    long."""
    return run_together(programs, *meanwhile)[1]


def interactive():
    gib, other = bench.capacity / 3, bench.capacity - 5
    bench.set_gpu(capacity=f"{bench.capacity}G", quantum="auto", turns="auto")
    say(f"| a server of {gib:.0f} GiB, a request every 200 ms; a training job of {other:.0f} GiB; "
        f"{seconds:.0f} s each | requests | p50 ms | p99 ms | most ms | training, steps/s |")
    say("|---|---|---|---|---|---|")

    def row(name, said, steps=None):
        latencies = said["latencies_ms"]
        say(f"| {name} | {said['requests']} | {percentile(latencies, 0.5):.1f} | "
            f"{percentile(latencies, 0.99):.1f} | {max(latencies):.0f} | "
            f"{'' if steps is None else format(steps['rate'], '.1f')} |")

    row("alone", together([server("server_alone", gib, seconds / 2)])[0])
    alone = together([work("training_alone", "train", seconds / 2, other)])[0]
    say(f"| the training alone | | | | | {alone['rate']:.1f} |")
    row("both bare on the whole card, which has memory for both", *together([
        server("server_bare", gib, seconds / 2, swap=False),
        work("training_bare", "train", seconds / 2, other, swap=False)]))
    for name, quantum, priority in (("beside, quantum auto", "auto", ()),
                                    ("beside, quantum 1 s", "1s", ()),
                                    ("beside, --priority high, quantum auto", "auto",
                                     ("--priority", "high")),
                                    ("beside, --priority high, quantum 1 s", "1s",
                                     ("--priority", "high"))):
        bench.set_gpu(quantum=quantum)
        watched = Watched(bench)
        row(name, *together([server("server", gib, seconds, options=priority),
                             work("training", "train", seconds, other)], watched))
        say(f"  {watched}")


def pairs():
    bench.set_gpu(capacity="100G", quantum="auto", turns="auto")
    time_s = seconds / 3
    say("| two that fit | the driver's slicing, bare | no turns needed, swap leases | turns on, "
        "quantum auto | turns on, 100 ms |")
    say("|---|---|---|---|---|")
    kinds = ("train", "infer", "matmul", "memory")
    alone = {kind: together([work(f"alone_{kind}", kind, time_s / 2, swap=False)])[0]["rate"]
             for kind in kinds}
    for pair in (("train", "train"), ("train", "infer"), ("matmul", "memory")):
        row = []
        for swap, settings in ((False, {}), (True, {"turns": "auto", "quantum": "auto"}),
                               (True, {"turns": "on", "quantum": "auto"}),
                               (True, {"turns": "on", "quantum": "100ms"})):
            if settings:
                bench.set_gpu(**settings)
            said = together([work(f"pair_{kind}_{i}", kind, time_s, swap=swap)
                             for i, kind in enumerate(pair)])
            shares = [result["rate"] / alone[kind] for result, kind in zip(said, pair)]
            row.append(f"{sum(shares):.2f} ({shares[0]:.2f} + {shares[1]:.2f})")
        say(f"| {pair[0]} and {pair[1]} | " + " | ".join(row) + " |")
    bench.set_gpu(turns="auto")


def stalls():
    gib = bench.capacity / 2 + 2
    bench.set_gpu(capacity=f"{bench.capacity}G", quantum="2s", turns="auto")

    def row(name, said):
        us = said["launch_us"]
        say(f"| {name} | {said['launches']} | {us['0.5']:.1f} | {us['0.99']:.1f} | "
            f"{us['0.999']:.1f} | {us['0.9999']:.1f} |")

    say("| tiny kernels launched one by one, us each | launches | p50 | p99 | p99.9 | p99.99 |")
    say("|---|---|---|---|---|---|")
    row("bare", together([work("stalls_bare", "launch", seconds / 3, swap=False)])[0])
    row("in a swap lease, alone: nothing is pinned",
        together([work("stalls_alone", "launch", seconds / 3)])[0])
    # After its first turn each program pins host memory for its GPU memory, piece by piece, while
    # it computes.
    first, second = together([work(f"stalls_{i}", "launch", seconds / 2, gib) for i in range(2)])
    row(f"two of {gib:.0f} GiB in turns, memory pinned meanwhile: one", first)
    row("the other", second)


def collectives():
    for gpu in (0, 1):
        bench.set_gpu(gpu, capacity=f"{bench.capacity}G", quantum="500ms", turns="auto")
    gib = bench.capacity / 2 + 1
    programs = [Program(bench, f"ranks_{i}",
                        ["python3", f"{here}/sharing_ranks.py", str(seconds * 2), str(gib)],
                        gpus="0,1")
                for i in range(2)]
    said = together(programs)
    for result in said:
        if result["rounds"] < 20:
            raise Failed(f"a lease came to {result['rounds']} rounds only")
    say(f"collectives: two leases of two ranks, {gib:.0f} GiB each on each of two GPUs, "
        f"{seconds * 2:.0f} s under turns: {[result['rounds'] for result in said]} all-reduces of "
        f"64 MiB, sums and memory right")


sys.exit(bench.run(globals()))
