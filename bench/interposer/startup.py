"""Measures what libgpurota.so adds to the start of a program, and to its memory: each kind of
program with and without the library, alternately.

    gpurota run --memory 4G -- python3 startup.py START_PROBE [ROUNDS]

Run this under a lease, so that the daemon's part counts. Aims: 2 ms for a program that uses CUDA,
300 µs for one that does not, 256 KiB of memory.
"""
import os
import statistics
import subprocess
import sys
import time

probe = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 200
library = next((p for p in os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
                if "libgpurota" in p), None)
if library is None or "GPUROTA_LEASE" not in os.environ:
    sys.exit("startup.py: to be run inside gpurota run --memory")
bare = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}


def run(arguments, environment):
    begun = time.perf_counter()
    out = subprocess.run([probe, *arguments], env=environment, capture_output=True, text=True,
                         check=True).stdout
    wall = (time.perf_counter() - begun) * 1e6
    kib, inside = out.split()
    return wall, float(inside), int(kib)


def row(name, arguments, count):
    seen = {"bare": [], "gpurota": []}
    for i in range(count):
        kinds = [("bare", bare), ("gpurota", dict(os.environ))]
        for kind, environment in kinds if i % 2 else reversed(kinds):
            seen[kind].append(run(arguments, environment))
    columns = {kind: list(zip(*values)) for kind, values in seen.items()}
    for column, what, unit in ((0, "process, start to end", "µs"), (1, "in main", "µs"),
                               (2, "own memory", "KiB")):
        if column == 1 and not arguments:
            continue
        a, b = (columns[kind][column] for kind in ("bare", "gpurota"))
        middle = statistics.median(b) - statistics.median(a)
        print(f"| {name}: {what}, {unit} | {statistics.median(a):.0f} | {statistics.median(b):.0f} "
              f"| {middle:+.0f} | {min(b) - min(a):+.0f} |")


print("| | without, median | with libgpurota.so | difference | of the best |")
print("|---|---|---|---|---|")
row("a program that never uses CUDA", [], rounds)
row("a CUDA program up to its first allocation", ["cuda"], max(rounds // 5, 5))
