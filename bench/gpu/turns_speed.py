"""How fast memory moves in turns, with the default settings, and with all memory pinned.

usage: turns_speed.py DIST [--pinned default,all,none] [--out FOLDER] [--gpu N] [PART...]
    two        two programs of 22.5 GiB on 25 GiB, dirty
    clean      the same, and one of them only reads its memory
    three      three programs of 12 GiB on 25 GiB
    alone      two programs of 12 GiB on 16 GiB
    beside     the same on 22 GiB, beside twelve of 300 MiB that sleep (6 GiB with their contexts)
    pinning    steps a second of a program of 16 GiB before, while and after host memory is pinned
               ahead for it, because another lease takes 8 of 30 GiB
Programs begin 10 s after the last of them has its memory. For each part: the first switch that
moves most of a program's memory, the second, and the median of the next ten, in seconds and as a
ratio to pinned copies, both ways at once, in the same run; and what is pinned before the programs
begin, of the memory that may have to move.
DIST is the output of tests/gpu/pack.sh. Exits with the number of parts that failed.
"""
import statistics
import sys
import time

from bus import bus_seconds
from harness import Bench, Failed, Program, Watched, here, say

PARTS = ["two", "clean", "three", "alone", "beside", "pinning"]
SETTINGS = {"default": "", "all": 'pinned = "100%"\nhost_budget = "80%"\n',
            "none": 'pinned = "1%"\n'}
SECONDS = 30
GIB = 1 << 30

bench = Bench(__doc__, PARTS,
              [(["--pinned"], {"default": "default,all", "help": "which settings"})])


def load(name, gib, kind="dirty"):
    return Program(bench, name, ["python3", f"{here}/turns_load.py", str(gib), str(SECONDS), kind],
                   options=["--nonblock", "--memory", f"{int((gib + 1) * 1024)}M"])


def measure(name, capacity, programs):
    bench.set_gpu(capacity=f"{capacity}G", quantum="1s", turns="auto")
    started = [load(f"{name}_{i}", gib, kind) for i, (gib, kind) in enumerate(programs)]
    for program in started:
        program.wait_ready()
    time.sleep(10)
    leases = bench.turns()["leases"]
    pinned, may_move = (sum(lease[key] for lease in leases) / GIB
                        for key in ("pinned_bytes", "may_move_bytes"))
    least = min(gib for gib, _ in programs) * 0.4 * GIB
    with Watched(bench) as watched:
        for program in started:
            program.begin()
        results = [program.end() for program in started]
    if sum(result["wrong"] for result in results):
        raise Failed(f"wrong bytes: {results}")
    seen = sorted((s for s in watched.switches() if max(s["in_bytes"], s["out_bytes"]) > least),
                  key=lambda s: s["time"])
    if len(seen) < 4:
        raise Failed(f"only {len(seen)} switches of most of the memory")
    piece = bus_seconds(bench.gpu, 1.0)

    def cell(switches):
        seconds = [s["microseconds"] / 1e6 for s in switches]
        ratios = [s["microseconds"] / 1e6 / (max(s["in_bytes"], s["out_bytes"]) / GIB * piece)
                  for s in switches]
        return f"{statistics.median(seconds):.2f} s, {statistics.median(ratios):.2f}"

    moved = (statistics.median(s[key] for s in seen[2:12]) / GIB
             for key in ("out_bytes", "in_bytes"))
    say(f"| {bench.setting} | {name} | {cell(seen[:1])} | {cell(seen[1:2])} "
        f"| {cell(seen[2:12])} of {len(seen[2:12])}, {next(moved):.1f} GiB out and "
        f"{next(moved):.1f} in | {pinned:.1f} of {may_move:.1f} GiB |")


def two():
    measure("two", 25, [(22.5, "dirty")] * 2)


def clean():
    measure("clean", 25, [(22.5, "dirty"), (22.5, "clean")])


def three():
    measure("three", 25, [(12, "dirty")] * 3)


def alone():
    measure("alone", 16, [(12, "dirty")] * 2)


def beside():
    bench.set_gpu(capacity="40G", quantum="1s", turns="auto")
    small = [load(f"small_{i}", 0.3) for i in range(12)]
    for program in small:
        program.wait_ready()
    measure("beside", 22, [(12, "dirty")] * 2)


def pinning():
    bench.set_gpu(capacity="30G", turns="auto")
    steps = Program(bench, "steps", ["python3", f"{here}/turns_steps.py", "16", str(SECONDS)],
                    options=["--nonblock", "--memory", "17G"])
    steps.wait_ready()
    first = bench.turns()["leases"][0]["lease_id"]
    seen = []  # (time, bytes pinned for the lease)

    def watch(seconds):
        end = time.time() + seconds
        while time.time() < end:
            lease = next(each for each in bench.turns()["leases"] if each["lease_id"] == first)
            seen.append((time.time(), lease["pinned_bytes"]))
            time.sleep(0.05)

    steps.begin()
    watch(10)
    load("other", 8).wait_ready()
    watch(SECONDS - 14)
    times = steps.end()["times"]
    begun = next(when for when, pinned in seen if pinned > 0)
    done = next(when for when, pinned in seen if pinned == seen[-1][1])

    def rate(begin, end):
        within = [when for when in times if begin <= when <= end]
        return 20 * (len(within) - 1) / (within[-1] - within[0])

    say(f"| {bench.setting} | pinning | {seen[-1][1] / GIB:.1f} GiB pinned in {done - begun:.1f} s "
        f"| steps a second: {rate(times[0] + 2, begun - 2):.0f} before "
        f"| {rate(begun, done):.0f} meanwhile, {rate(done + 1, times[-1]):.0f} after |")


failures = 0
say("| pinned | programs | first | second | median | pinned before |")
say("|---|---|---|---|---|---|")
for bench.setting in bench.args.pinned.split(","):
    bench.turns_settings = SETTINGS[bench.setting]
    failures += bench.run(globals())
sys.exit(failures)
