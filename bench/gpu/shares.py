"""How the compute time of a GPU is divided between two slices.

usage: shares.py DIST [--out FOLDER] [--gpu N] [--rounds N] [--seconds N] [PART...]
A part is FIRST-SECOND-PERCENT, for example matmul-matmul-30: two kinds of sharing_work.py, and the
first one's share. Modes, in turn in each round: both bare, both under MPS with the first limited to
PERCENT of the multiprocessors and the second to the rest, both in slices without a share, and the
first with `--compute PERCENT`, the second without a share. Speeds are work done over the program's
own rate alone, which is measured once for each kind; for each mode the medians of the rounds, their
sum, and the first one's part of the sum. Exits with the number of parts that failed.
"""
import statistics
import sys

from harness import Bench, Mps, Program, here, say

PARTS = ["matmul-matmul-10", "matmul-matmul-30", "matmul-matmul-50", "train-matmul-30",
         "matmul-train-30", "infer-matmul-30"]
MODES = ["bare", "MPS", "slices", "shares"]

bench = Bench(__doc__, PARTS, [(["--rounds"], {"type": int, "default": 1}),
                               (["--seconds"], {"type": float, "default": 8.0})])
alone = {}


def run(kinds, options, environments=({}, {})):
    """The rates of the programs, each with its options; None: bare."""
    programs = [Program(bench, f"program-{number}",
                        [sys.executable, f"{here}/sharing_work.py", kind, str(bench.args.seconds)],
                        swap=False, options=own or [], **environment)
                for number, (kind, own, environment) in enumerate(zip(kinds, options,
                                                                      environments))]
    for program in programs:
        program.wait_ready()
    for program in programs:
        program.begin()
    return [program.end()["rate"] for program in programs]


def run_under_mps(kinds, percent):
    """As run(); None: MPS does not run."""
    with Mps(bench) as mps:
        if mps.trouble:
            say(f"MPS does not run: {mps.trouble}")
            return None
        return run(kinds, (None, None),
                   [{**mps.environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(part)}
                    for part in (int(percent), 100 - int(percent))])


def measure(part):
    first, second, percent = part.split("-")
    for kind in (first, second):
        if kind not in alone:
            alone[kind] = run([kind], [None])[0]
            say(f"{kind} alone: {alone[kind]:.1f} a second")
    slices = ["--memory", "16G"]
    options = {"bare": (None, None), "slices": (slices, slices),
               "shares": ([*slices, "--compute", percent], slices)}
    speeds = {mode: [] for mode in MODES}
    for _ in range(bench.args.rounds):
        for mode in MODES:
            rates = (run_under_mps([first, second], percent) if mode == "MPS"
                     else run([first, second], options[mode]))
            if rates is None:
                continue
            speeds[mode].append([rate / alone[kind] for rate, kind in zip(rates, (first, second))])
    for mode in filter(lambda mode: speeds[mode], MODES):
        own, other = (statistics.median(values) for values in zip(*speeds[mode]))
        say(f"| {part} | {mode} | {own:.2f} | {other:.2f} | {own + other:.2f} | "
            f"{own / (own + other):.3f} |")


say("| part | mode | first | second | sum | the first one's part |")
say("|---|---|---|---|---|---|")
sys.exit(bench.run({part: lambda part=part: measure(part)
                    for part in (bench.args.parts or PARTS)}))
