"""What turns cost and win on a real GPU: each figure beside its bound or baseline from the same run.

usage: turns.py DIST [--out FOLDER] [PART…]
    handover   two programs that hand a whole GPU's memory to each other, beside what the bus can do
    gate       turns without moving: both fit
    table      nvshare's own table: jobs with phases, together 1.8 times the memory, against one after the other
    losses     a training with at least 100 evictions, against itself alone (twice)
    overhead   a program alone in a swap lease, against the bare driver
    oversize   a program of 1.5 times the memory, the rest of which lies in host memory: its checksums, and how slow it is
    clean      an inference server with 20 GiB of weights that is evicted again and again: how long, what is copied
DIST is what tests/gpu/pack.sh made. The GPU's memory is taken as 24 GiB (`gpurota set --capacity`).
Exits with the number of parts that found wrong bytes or did not end.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch

here = os.path.dirname(os.path.abspath(__file__))
options = argparse.ArgumentParser(description=__doc__)
options.add_argument("dist")
options.add_argument("--out")
options.add_argument("--capacity", type=float, default=24.0)
options.add_argument("--quanta", default="30s,10s,5s,1s,auto", help="of the table")
options.add_argument("parts", nargs="*")
args = options.parse_intermixed_args()
dist = os.path.abspath(args.dist)
gpurota = f"{dist}/bin/gpurota"
work = tempfile.mkdtemp()
out = os.path.abspath(args.out or work)
os.makedirs(out, exist_ok=True)
os.environ["GPUROTA_RUNTIME_DIR"] = f"{work}/run"


class Failed(Exception):
    pass


running = []


def say(*words):
    print(*words, flush=True)


def start_daemon():
    log = open(f"{out}/gpurotad.log", "a")
    with open(f"{work}/gpurotad.toml", "w") as config:  # room for two such programs, all of it pinned
        config.write(f'[turns]\nhost_budget = "{int(args.capacity * 2)}G"\npinned = "100%"\n')
    daemon = subprocess.Popen([f"{dist}/bin/gpurotad", "--runtime-dir", f"{work}/run", "--state-dir", f"{work}/state",
                               "--config", f"{work}/gpurotad.toml", "--preload", f"{dist}/lib/libgpurota.so"], stderr=log, stdout=log)
    for _ in range(200):
        if subprocess.run([gpurota, "status"], capture_output=True).returncode == 0:
            return daemon
        time.sleep(0.05)
    sys.exit("the daemon did not start")


def set_gpu(**settings):
    words = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
    subprocess.run([gpurota, "set", "--gpu-ids", "0", *words], check=True)


def end_all():
    for program in running:
        if program.process.poll() is None:
            program.process.terminate()
            program.process.wait()
    running.clear()


def turns():
    return json.loads(subprocess.run([gpurota, "turns", "--json"], capture_output=True, text=True, check=True).stdout)["gpus"][0]


class Program:
    """A program under a swap lease that says ready, begins when told to, and ends with a line of JSON."""

    def __init__(self, name, command, swap=True, options=(), **environment):
        running.append(self)
        self.name, self.errors = name, open(f"{out}/{name}.err", "a")
        under = [gpurota, "run", "--swap", *options, "--"] if swap else []
        self.process = subprocess.Popen([*under, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, env={**os.environ, **environment})

    def wait_ready(self):
        if self.process.stdout.readline().strip() != "ready":
            raise Failed(f"{self.name} did not begin; see {self.name}.err")
        return self

    def begin(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self, timeout=280):
        try:
            text = self.process.communicate(timeout=timeout)[0].strip().splitlines()
        except subprocess.TimeoutExpired:
            self.process.terminate()
            raise Failed(f"{self.name} did not end in {timeout} s") from None
        if self.process.returncode != 0 or not text:
            raise Failed(f"{self.name} ended with {self.process.returncode}; see {self.name}.err")
        return json.loads(text[-1])


def job(name, gib, phases, passes, pause, swap=True, options=()):
    return Program(name, ["python3", f"{here}/turns_job.py", str(gib), str(phases), str(passes), str(pause)], swap, options)


def run_together(programs):
    """Seconds until all are done, and their wrong parts."""
    for program in programs:
        program.wait_ready()
    begun = time.monotonic()
    for program in programs:
        program.begin()
    results = [program.end() for program in programs]
    seconds = time.monotonic() - begun
    wrong = sum(result["wrong"] for result in results)
    if wrong:
        raise Failed(f"{wrong} wrong parts")
    return seconds, results


def switches(seconds):
    """All switches that happen for so long, each once."""
    seen = {}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for switch in turns()["switches"]:
            seen[(switch["time"], switch["to"])] = switch
        time.sleep(0.5)
    return list(seen.values())


def bus_seconds(gib):
    """Both directions at once, from and to pinned memory, in pieces of 64 MiB: for `gib` each way."""
    piece, count = 64 << 20, 32
    host = [torch.empty(piece * count, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    device = [torch.empty(piece * count, dtype=torch.uint8, device="cuda") for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        begun = time.monotonic()
        for i in range(count):
            part = slice(i * piece, (i + 1) * piece)
            with torch.cuda.stream(streams[0]):
                host[0][part].copy_(device[0][part], non_blocking=True)
            with torch.cuda.stream(streams[1]):
                device[1][part].copy_(host[1][part], non_blocking=True)
        torch.cuda.synchronize()
        times.append(time.monotonic() - begun)
    return statistics.median(times) * gib * (1 << 30) / (piece * count)


def percentile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def handover():
    gib = args.capacity - 2.5  # the limit of a swap lease, less the context
    set_gpu(capacity=f"{args.capacity}G", quantum="2s", turns="auto")
    programs = [job(f"handover_{i}", gib, 1, 2500, 0) for i in range(2)]
    for program in programs:
        program.wait_ready()
    for program in programs:
        program.begin()
    seen = [s for s in switches(40) if s["in_bytes"] > (gib - 2) * (1 << 30)]
    for program in programs:
        program.end()
    if len(seen) < 4:
        raise Failed(f"only {len(seen)} switches of all memory")
    bus = bus_seconds(gib)
    for name, part in (("first two (cold host memory)", seen[:2]), ("later (warm)", seen[2:])):
        seconds = [s["microseconds"] / 1e6 for s in part]
        say(f"handover of {gib:.1f} GiB for {gib:.1f} GiB, {name}: median {statistics.median(seconds):.3f} s, "
            f"least {min(seconds):.3f}, most {max(seconds):.3f} of {len(seconds)}; the bus both ways at once {bus:.3f} s; "
            f"ratio {statistics.median(seconds) / bus:.2f}")


def gate():
    set_gpu(capacity=f"{args.capacity}G", quantum="200ms", turns="on")
    programs = [job(f"gate_{i}", 4, 1, 4000, 0) for i in range(2)]
    for program in programs:
        program.wait_ready()
    for program in programs:
        program.begin()
    seen = [s["microseconds"] / 1000 for s in switches(8) if s["in_bytes"] == 0]
    for program in programs:
        program.end()
    if len(seen) < 5:
        raise Failed(f"only {len(seen)} switches")
    say(f"gate, both fit, turns on: drained to open p50 {percentile(seen, 0.5):.2f} ms, p99 {percentile(seen, 0.99):.2f} ms of {len(seen)}")


def table():
    gib = args.capacity * 0.9 - 0.6
    set_gpu(capacity=f"{args.capacity}G", quantum="auto", turns="auto")
    seconds, result = run_together([job("calibrate", gib, 1, 100, 0)])
    per_pass = result[0]["seconds"] / 100
    quanta = args.quanta.split(",")
    say(f"| jobs of {gib:.1f} GiB | one after the other | " + " | ".join(quanta) + " |")
    say("|---|---|" + "---|" * len(quanta))
    for name, busy, pause, phases in (("50 % work", 4.5, 4.5, 3), ("90 % work", 9.0, 1.0, 2)):
        passes = int(busy / per_pass)
        serial = sum(run_together([job(f"serial_{i}", gib, phases, passes, pause)])[0] for i in range(2))
        row = []
        for quantum in quanta:
            set_gpu(quantum=quantum)
            seconds, _ = run_together([job(f"table_{i}", gib, phases, passes, pause) for i in range(2)])
            row.append(f"{seconds:.1f} s, {serial / seconds:.2f}")
        say(f"| {name}, {phases} phases of {busy} s and {pause} s | {serial:.1f} s | " + " | ".join(row) + " |")


def losses():
    steps = 1200
    set_gpu(capacity="8G", quantum="auto", turns="auto")

    def train(name):
        return Program(name, ["python3", f"{here}/turns_train.py", str(steps), "4096"])

    alone = [train(f"alone_{i}").end() for i in range(2)]
    if alone[0] != alone[1]:
        raise Failed(f"two trainings alone differ: {alone}")
    set_gpu(quantum="100ms")
    other = job("beside", 5, 1, 100000, 0)
    other.wait_ready()
    other.begin()
    program = train("interrupted")
    moved = [s for s in switches(30) if s["out_bytes"] > 0]
    while program.process.poll() is None:
        moved += [s for s in switches(2) if s["out_bytes"] > 0]
    result = program.end()
    other.process.terminate()
    other.process.wait()
    count = len({(s["time"], s["to"]) for s in moved})
    say(f"losses: {steps} steps interrupted by {count} switches with evictions: "
        f"{'identical' if result == alone[0] else f'DIFFER {result} {alone[0]}'}")
    if result != alone[0] or count < 100:
        raise Failed(f"{count} switches; {result}")


def overhead():
    set_gpu(capacity="100G", quantum="auto", turns="auto")
    columns = {}
    for kind, under in (("bare", []), ("swap", [gpurota, "run", "--swap", "--"]), ("slice", [gpurota, "run", "--memory", "16G", "--"])):
        runs = [subprocess.run([*under, f"{dist}/tests/overhead", "7"], capture_output=True, text=True, check=True).stdout
                for _ in range(3)]
        for run in runs:
            for name, ns in json.loads(run)["ns"].items():
                row = columns.setdefault(name, {})
                row[kind] = min(row.get(kind, float("inf")), ns)
    say("| ns | bare | slice | swap, alone |")
    say("|---|---|---|---|")
    for name, row in columns.items():
        say(f"| {name} | {row.get('bare', 0):.1f} | {row.get('slice', 0):.1f} | {row.get('swap', 0):.1f} |")


def clean():
    gib, seconds, log = min(20.0, args.capacity - 4), 60, f"{out}/server.debug"
    set_gpu(capacity=f"{args.capacity}G", quantum="500ms", turns="auto")
    if os.path.exists(log):
        os.unlink(log)
    server = Program("server", ["python3", f"{here}/turns_server.py", str(gib), str(seconds)], GPUROTA_DEBUG=log)
    server.wait_ready()
    server.begin()
    other = job("beside_server", args.capacity - 2.5, 1, 1000000, 0)
    other.wait_ready()
    other.begin()
    result = server.end()
    other.process.terminate()
    other.process.wait()
    with open(log) as lines:
        text = lines.read()
    moves = [tuple(map(int, found)) for found in re.findall(r"evicted (\d+) of \d+ bytes, (\d+) of them not copied, in (\d+) ms", text)]
    whole = [move for move in moves if move[0] > (gib - 4) * (1 << 30)]
    said = "; ".join(sorted(set(re.findall(r"(the hashing kernel is .*|the GPU's hash .*|memory is not hashed.*)", text))))
    if len(whole) < 6 or result["wrong"]:
        raise Failed(f"{len(whole)} evictions, {result}; {said}")
    for name, some in (("first (nothing to compare with)", whole[:1]), ("later", whole[3:])):
        times = [ms for _, _, ms in some]
        copied = [(moved - unchanged) / (1 << 20) for moved, unchanged, _ in some]
        say(f"eviction of an inference server, {some[0][0] / (1 << 30):.1f} GiB, {name}: p50 {percentile(times, 0.5)} ms, "
            f"p99 {percentile(times, 0.99)} ms of {len(times)}; copied p50 {percentile(copied, 0.5):.0f} MiB, most {max(copied):.0f} MiB")
    say(f"{result['requests']} requests, no weight wrong; {said}")


def oversize():
    fits, all_of_it, passes = args.capacity - 2.5, args.capacity * 1.5, 20
    large, wish = all_of_it - 1.5, ["--oversize", "--memory", f"{int(all_of_it * 1024)}M"]
    set_gpu(capacity=f"{args.capacity}G", quantum="2s", turns="auto")
    rates = []
    for name, gib, options in (("fits", fits, []), ("oversize", large, wish)):
        seconds, _ = run_together([job(name, gib, 1, passes, 0, options=options)])
        rates.append(gib * passes / seconds)
        say(f"{passes} passes over {gib:.1f} GiB, {name}: {seconds:.2f} s, {rates[-1]:.0f} GiB/s, checksums right")
    hosted = large - (args.capacity - 1.5)
    say(f"oversize: {rates[0] / rates[1]:.1f} times as long for each GiB, with about {hosted:.0f} of {large:.0f} GiB in host memory")
    run_together([job("oversize_in_turns", large, 1, passes, 0, options=wish), job("beside_oversize", fits / 2, 1, 4000, 0)])
    moved = sum(s["out_bytes"] for s in turns()["switches"])
    say(f"in turns with another of {fits / 2:.1f} GiB: checksums right, {moved / (1 << 30):.1f} GiB moved in the last switches")


daemon = start_daemon()
failures = 0
try:
    parts = args.parts or ["handover", "gate", "losses", "overhead", "clean", "oversize", "table"]
    say(subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True).stdout.strip())
    for part in parts:
        begun = time.monotonic()
        try:
            globals()[part]()
            say(f"{part}: ok, {time.monotonic() - begun:.0f} s")
        except (Failed, subprocess.CalledProcessError) as failure:
            failures += 1
            say(f"{part}: FAILED: {failure}")
        end_all()
finally:
    daemon.terminate()
    daemon.wait()
sys.exit(failures)
