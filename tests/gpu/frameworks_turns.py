#!/usr/bin/env python3
"""Tests frameworks that take turns with a program that checks all its memory, against the same
frameworks alone without gpurota.

frameworks_turns.py GPUROTA SWAP_PROBE [--only CASE,CASE] [--seconds 90]

The cases of frameworks_case.py run bare once. Then they run one after the other in swap leases of 8
GiB, repeatedly, as long as swap_probe runs beside them in a swap lease of 5 GiB. The GPU's capacity
is 10 GiB, the quantum 100 ms. A case passes if it computes the same as bare every time. The test
passes if all cases do, swap_probe found nothing wrong, and memory moved under each case. Needs a
running gpurotad and a GPU that nobody else uses.
"""
import argparse
import json
import os
import subprocess
import sys
import time

from frameworks import CASES, HERE, difference

# PyTorch: torch_habits.py
NAMES = ["cupy", "jax", "numba", "triton", "cublas_cudnn", "captured_allocations"]


class Tally:
    """The results of one case so far."""

    def __init__(self, name):
        self.name = name
        self.rounds = self.evictions = 0
        self.problems = []
        self.bare = run_case(name, [])

    def in_turns(self, gpurota):
        before = evictions(gpurota)
        said = run_case(self.name, [gpurota, "run", "--nonblock", "--gpu-ids", "0", "--swap",
                                    "--memory", "8G", "--"])
        self.rounds += 1
        self.evictions += evictions(gpurota) - before
        if "error" in said:
            self.problems.append(said["error"])
        elif difference(self.bare["result"], said["result"]) > 1e-3:
            self.problems.append("it computes something else in turns")

    def line(self):
        what = f"{CASES[self.name][0]}: {self.rounds} rounds, {self.evictions} evictions"
        if not self.problems and self.evictions > 0:
            return f"ok     {what}"
        return f"FAIL   {what}; {'; '.join(self.problems[:3]) or 'nothing moved'}"


def run_case(name, under):
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("PYTORCH_")}
    if CASES[name][1]:
        environment["PYTORCH_CUDA_ALLOC_CONF"] = environment["PYTORCH_ALLOC_CONF"] = CASES[name][1]
    try:
        ran = subprocess.run([*under, sys.executable, os.path.join(HERE, "frameworks_case.py"),
                              name], env=environment,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180,
                             check=False)
        return json.loads(ran.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": "it did not end within 180 s"}
    except (IndexError, ValueError):
        return {"error": f"exit code {ran.returncode}: "
                         f"{' / '.join((ran.stdout + ran.stderr).strip().splitlines()[-4:])}"}


def evictions(gpurota):
    said = subprocess.run([gpurota, "turns", "--gpu-ids", "0", "--json"], capture_output=True,
                          text=True, check=True)
    return json.loads(said.stdout)["gpus"][0]["evictions"]


def known(tally):
    if "skip" in tally.bare:
        print(f"skip   {CASES[tally.name][0]}: {tally.bare['skip']}", flush=True)
    elif "error" in tally.bare:
        print(f"FAIL   {CASES[tally.name][0]}, bare: {tally.bare['error']}", flush=True)
    return "result" in tally.bare


def beside(probe, tallies, gpurota, seconds):
    """Returns whether swap_probe found all its memory unchanged. Each case runs at least once."""
    command = [gpurota, "run", "--gpu-ids", "0", "--swap", "--memory", "5G", "--", probe, "torture",
               str(seconds), "1"]
    with subprocess.Popen(command, env=dict(os.environ, PROBE_BUFFERS="230"),
                          stdout=subprocess.PIPE, text=True) as rival:
        time.sleep(3)
        while rival.poll() is None:
            for tally in tallies:
                if tally.rounds == 0 or rival.poll() is None:
                    tally.in_turns(gpurota)
        said = rival.stdout.read().strip().splitlines()
    print(f"{'ok  ' if rival.returncode == 0 else 'FAIL'}   swap_probe beside them: "
          f"{said[-1] if said else 'silent'}")
    return rival.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpurota")
    parser.add_argument("probe")
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--seconds", type=int, default=90)
    options = parser.parse_args()
    every = [Tally(name) for name in options.only.split(",")]
    tallies = [tally for tally in every if known(tally)]
    wrong_bare = sum("error" in tally.bare for tally in every)
    subprocess.run([options.gpurota, "set", "--gpu-ids", "0", "--capacity", "10G", "--quantum",
                    "100ms"], check=True)
    calm = beside(options.probe, tallies, options.gpurota, options.seconds)
    subprocess.run([options.gpurota, "set", "--gpu-ids", "0", "--reset"], check=False)
    lines = [tally.line() for tally in tallies]
    print("\n".join(lines))
    failed = wrong_bare + sum(line.startswith("FAIL") for line in lines) + (not calm)
    print(f"{failed} of {len(every)} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
