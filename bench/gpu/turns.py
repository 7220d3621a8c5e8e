"""The costs and gains of turns on a real GPU: each figure beside its bound or baseline from
the same run.

usage: turns.py DIST [--out FOLDER] [--gpu N] [PART…]
    handover   two programs that hand a whole GPU's memory to each other, against the bus's speed
    gate       turns without moving memory: both programs fit
    table      nvshare's own table: jobs with phases, together 1.8 times the memory, against one
               after the other
    losses     a training job with at least 100 evictions, against itself alone (twice)
    overhead   a program alone in a swap lease, against the bare driver
    oversize   a program of 1.5 times the memory, with the rest in host memory: its checksums, and
               its slowdown
    clean      an inference server with 20 GiB of weights that is evicted repeatedly: the time, and
               the bytes copied
DIST is the output of tests/gpu/pack.sh. 24 GiB of the GPU's memory are managed (`gpurota set
--capacity`). Exits with the number of parts that found wrong bytes or did not end.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import time

from bus import bus_seconds
from harness import Bench, Failed, Program, Watched, here, key_of, percentile, run_together, say

PARTS = ["handover", "gate", "losses", "overhead", "clean", "oversize", "table"]
bench = Bench(__doc__, PARTS, [
    (["--quanta"], {"default": "30s,10s,5s,1s,auto", "help": "of the table"}),
    (["--jobs"], {"default": "50,90", "help": "of the table: shares of work, of 50 and 90 %"}),
    (["--phases"], {"default": "3,2", "help": "of the table's jobs, as many as --jobs"})])


def job(name, gib, phases, passes, pause, swap=True, options=()):
    return Program(bench, name, ["python3", f"{here}/turns_job.py", str(gib), str(phases),
                                 str(passes), str(pause)], swap, options)


def handover():
    gib = bench.capacity - 2.5  # the limit of a swap lease, without the context
    bench.set_gpu(capacity=f"{bench.capacity}G", quantum="2s", turns="auto")
    programs = [job(f"handover_{i}", gib, 1, 2500, 0) for i in range(2)]
    for program in programs:
        program.wait_ready()
    for program in programs:
        program.begin()
    seen = [s for s in bench.switches(40) if s["in_bytes"] > (gib - 2) * (1 << 30)]
    for program in programs:
        program.end()
    if len(seen) < 4:
        raise Failed(f"only {len(seen)} switches of all memory")
    bus = bus_seconds(bench.gpu, gib)
    for name, part in (("first two (cold host memory)", seen[:2]), ("later (warm)", seen[2:])):
        seconds = [s["microseconds"] / 1e6 for s in part]
        say(f"handover of {gib:.1f} GiB for {gib:.1f} GiB, {name}: median "
            f"{statistics.median(seconds):.3f} s, least {min(seconds):.3f}, most "
            f"{max(seconds):.3f} of {len(seconds)}; the bus both ways at once {bus:.3f} s; ratio "
            f"{statistics.median(seconds) / bus:.2f}")


def gate():
    bench.set_gpu(capacity=f"{bench.capacity}G", quantum="200ms", turns="on")
    programs = [job(f"gate_{i}", 4, 1, 4000, 0) for i in range(2)]
    for program in programs:
        program.wait_ready()
    for program in programs:
        program.begin()
    seen = [s["microseconds"] / 1000 for s in bench.switches(8) if s["in_bytes"] == 0]
    for program in programs:
        program.end()
    if len(seen) < 5:
        raise Failed(f"only {len(seen)} switches")
    say(f"gate, both fit, turns on: drained to open p50 {percentile(seen, 0.5):.2f} ms, p99 "
        f"{percentile(seen, 0.99):.2f} ms of {len(seen)}")


def table():
    gib = bench.capacity * 0.9 - 0.6
    bench.set_gpu(capacity=f"{bench.capacity}G", quantum="auto", turns="auto")
    seconds, result = run_together([job("calibrate", gib, 1, 100, 0)])
    per_pass = result[0]["seconds"] / 100
    quanta = bench.args.quanta.split(",")
    say(f"| jobs of {gib:.1f} GiB | one after the other | " + " | ".join(quanta) + " |")
    say("|---|---|" + "---|" * len(quanta))
    kinds = {"50": (4.5, 4.5), "90": (9.0, 1.0)}
    for share, phases in zip(bench.args.jobs.split(","), map(int, bench.args.phases.split(","))):
        busy, pause = kinds[share]
        passes = int(busy / per_pass)
        serial = 2 * run_together([job("alone", gib, phases, passes, pause)])[0]
        say(f"{share} % work, {phases} phases of {busy} s and {pause} s: {serial:.1f} s one after "
            f"the other")
        row = []
        for quantum in quanta:
            bench.set_gpu(quantum=quantum)
            watched = Watched(bench)
            seconds, _ = run_together([job(f"table_{i}", gib, phases, passes, pause)
                                       for i in range(2)], watched)
            row.append(f"{seconds:.1f} s, {serial / seconds:.2f}")
            say(f"{share} %, quantum {quantum}: {row[-1]} of {serial:.1f} s; {watched}")
        say(f"| {share} % work, {phases} phases of {busy} s and {pause} s | {serial:.1f} s | "
            + " | ".join(row) + " |")


def losses():
    steps = 1200
    bench.set_gpu(capacity="8G", quantum="auto", turns="auto")

    def train(name):
        return Program(bench, name, ["python3", f"{here}/turns_train.py", str(steps), "4096"])

    alone = [train(f"alone_{i}").end() for i in range(2)]
    if alone[0] != alone[1]:
        raise Failed(f"two training jobs alone differ: {alone}")
    bench.set_gpu(quantum="100ms")
    other = job("beside", 5, 1, 100000, 0)
    other.wait_ready()
    other.begin()
    program = train("interrupted")
    moved = [s for s in bench.switches(30) if s["out_bytes"] > 0]
    while program.process.poll() is None:
        moved += [s for s in bench.switches(2) if s["out_bytes"] > 0]
    result = program.end()
    other.process.terminate()
    other.process.wait()
    count = len({key_of(s) for s in moved})
    say(f"losses: {steps} steps interrupted by {count} switches with evictions: "
        f"{'identical' if result == alone[0] else f'DIFFER {result} {alone[0]}'}")
    if result != alone[0] or count < 100:
        raise Failed(f"{count} switches; {result}")


def overhead():
    bench.set_gpu(capacity="100G", quantum="auto", turns="auto")
    columns = {}
    here_too = ["--gpu-ids", str(bench.gpu), "--"]
    bare = {**os.environ, "CUDA_VISIBLE_DEVICES": str(bench.gpu)}
    for kind, under in (("bare", []), ("swap", [bench.gpurota, "run", "--swap", *here_too]),
                        ("slice", [bench.gpurota, "run", "--memory", "16G", *here_too])):
        runs = [subprocess.run([*under, f"{bench.dist}/tests/overhead", "7"], capture_output=True,
                               text=True, check=True, env=os.environ if under else bare).stdout
                for _ in range(3)]
        for run in runs:
            for name, ns in json.loads(run)["ns"].items():
                row = columns.setdefault(name, {})
                row[kind] = min(row.get(kind, float("inf")), ns)
    say("| ns | bare | slice | swap, alone |")
    say("|---|---|---|---|")
    for name, row in columns.items():
        say(f"| {name} | {row.get('bare', 0):.1f} | {row.get('slice', 0):.1f} | "
            f"{row.get('swap', 0):.1f} |")


def clean():
    gib, seconds, log = min(20.0, bench.capacity - 4), 60, f"{bench.out}/server.debug"
    bench.set_gpu(capacity=f"{bench.capacity}G", quantum="500ms", turns="auto")
    if os.path.exists(log):
        os.unlink(log)
    server = Program(bench, "server", ["python3", f"{here}/turns_server.py", str(gib),
                                       str(seconds)], GPUROTA_DEBUG=log)
    server.wait_ready()
    server.begin()
    other = job("beside_server", bench.capacity - 2.5, 1, 1000000, 0)
    other.wait_ready()
    other.begin()
    result = server.end()
    other.process.terminate()
    other.process.wait()
    with open(log) as lines:
        text = lines.read()
    moves = [tuple(map(int, found))
             for found in re.findall(r"evicted (\d+) of \d+ bytes, (\d+) of them not copied, in "
                                     r"(\d+) ms", text)]
    whole = [move for move in moves if move[0] > (gib - 4) * (1 << 30)]
    said = "; ".join(sorted(set(re.findall(r"(the hashing kernel is .*|the GPU's hash .*|memory is "
                                           r"not hashed.*)", text))))
    if len(whole) < 6 or result["wrong"]:
        raise Failed(f"{len(whole)} evictions, {result}; {said}")
    for name, some in (("first (nothing to compare with)", whole[:1]), ("later", whole[3:])):
        times = [ms for _, _, ms in some]
        copied = [(moved - unchanged) / (1 << 20) for moved, unchanged, _ in some]
        say(f"eviction of an inference server, {some[0][0] / (1 << 30):.1f} GiB, {name}: p50 "
            f"{percentile(times, 0.5)} ms, p99 {percentile(times, 0.99)} ms of {len(times)}; "
            f"copied p50 {percentile(copied, 0.5):.0f} MiB, most {max(copied):.0f} MiB")
    say(f"{result['requests']} requests, no weight wrong; {said}")


def oversize():
    fits, all_of_it, passes = bench.capacity - 2.5, bench.capacity * 1.5, 20
    large, wish = all_of_it - 1.5, ["--oversize", "--memory", f"{int(all_of_it * 1024)}M"]
    bench.set_gpu(capacity=f"{bench.capacity}G", quantum="2s", turns="auto")
    rates = []
    for name, gib, options in (("fits", fits, []), ("oversize", large, wish)):
        seconds, _ = run_together([job(name, gib, 1, passes, 0, options=options)])
        rates.append(gib * passes / seconds)
        say(f"{passes} passes over {gib:.1f} GiB, {name}: {seconds:.2f} s, {rates[-1]:.0f} GiB/s, "
            f"checksums right")
    hosted = large - (bench.capacity - 1.5)
    say(f"oversize: {rates[0] / rates[1]:.1f} times as long for each GiB, with about {hosted:.0f} "
        f"of {large:.0f} GiB in host memory")
    run_together([job("oversize_in_turns", large, 1, passes, 0, options=wish),
                  job("beside_oversize", fits / 2, 1, 4000, 0)])
    moved = sum(s["out_bytes"] for s in bench.turns()["switches"])
    say(f"in turns with another of {fits / 2:.1f} GiB: checksums right, {moved / (1 << 30):.1f} "
        f"GiB moved in the last switches")


sys.exit(bench.run(globals()))
