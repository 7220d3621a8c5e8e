"""How a server feels a training job on the same GPU, and what the job loses.

usage: latency.py DIST [--out FOLDER] [--gpu N] [--rounds N] [--seconds N] [PART...]
A part is SERVER-TRAINING-RATE, for example mlp-small-50 (latency_server.py, latency_train.py).
Modes, in turn in each round: the server alone, the training alone, both bare, both under MPS, both
under MPS with the training of lower priority, both in slices of class normal, both in slices with
the server interactive, both in swap leases with the server interactive. For each mode: p50 and p99
of all requests of all rounds, and the training's steps a second, the median of the rounds; both
also as a ratio to alone.
DIST is the output of tests/gpu/pack.sh. Exits with the number of parts that failed.
"""
import statistics
import sys

from harness import Bench, Mps, Program, here, say

PARTS = ["mlp-small-50", "mlp-large-50", "decode-small-10", "decode-large-10"]
MODES = ["server alone", "training alone", "bare", "MPS", "MPS, priorities", "normal",
         "interactive", "interactive, swap"]

bench = Bench(__doc__, PARTS, [(["--rounds"], {"type": int, "default": 3}),
                               (["--seconds"], {"type": float, "default": 10.0})])


def run_mode(mode, server, training):
    """The server's milliseconds and the training's steps a second; None: not run."""
    if not mode.startswith("MPS"):
        return run_programs(mode, server, training, [{}, {}])
    with Mps(bench) as mps:
        if mps.trouble:
            say(f"MPS does not run: {mps.trouble}")
            return [None, None]
        priority = {"CUDA_MPS_CLIENT_PRIORITY": "1"} if mode.endswith("priorities") else {}
        return run_programs(mode, server, training,
                            [mps.environment, {**mps.environment, **priority}])


def run_programs(mode, server, training, environments):
    classes = {"normal": ("normal", "normal"), "interactive": ("interactive", "normal"),
               "interactive, swap": ("interactive", "normal")}
    commands = [("server", server), ("training", training)]
    programs = []
    for (name, words), latency, environment in zip(commands, classes.get(mode, (None, None)),
                                                   environments):
        alone = mode.endswith("alone") and not mode.startswith(name)
        options = ["--memory", "16G", "--latency", latency] if latency else []
        if mode.endswith("swap"):
            options.append("--swap")
        programs.append(None if alone else Program(
            bench, name, [sys.executable, *words], swap=False, options=options, **environment))
    for program in filter(None, programs):
        program.wait_ready()
    for program in filter(None, programs):
        program.begin()
    return [program.end() if program else None for program in programs]


def measure(part):
    server, training, rate = part.split("-")
    seconds = str(bench.args.seconds)
    server_words = [f"{here}/latency_server.py", seconds, rate, server]
    training_words = [f"{here}/latency_train.py", seconds, training]
    times, speeds = {mode: [] for mode in MODES}, {mode: [] for mode in MODES}
    for _ in range(bench.args.rounds):
        for mode in MODES:
            took, speed = run_mode(mode, server_words, training_words)
            times[mode] += took or []
            speeds[mode] += [speed] if speed else []
    table(part, times, speeds)


def table(part, times, speeds):
    quantiles = {mode: statistics.quantiles(took, n=100) for mode, took in times.items() if took}
    alone = quantiles["server alone"]
    speed_alone = statistics.median(speeds["training alone"])
    for mode in MODES:
        cells = ["-", "-", "-"]
        if mode in quantiles:
            cells[:2] = [f"{quantiles[mode][q]:.2f} ms, {quantiles[mode][q] / alone[q]:.2f}"
                         for q in (49, 98)]
        if speeds[mode]:
            speed = statistics.median(speeds[mode])
            cells[2] = f"{speed:.2f}, {speed / speed_alone:.2f}"
        say(f"| {part} | {mode} | {' | '.join(cells)} | {len(times[mode])} |")


say("| part | mode | p50 | p99 | steps a second | requests |")
say("|---|---|---|---|---|---|")
sys.exit(bench.run({part: lambda part=part: measure(part)
                    for part in (bench.args.parts or PARTS)}))
