"""The best of the rounds that run.sh left in a directory, as a Markdown table.

The best and not the median: on a machine whose clock changes between rounds a median compares
clocks. The rows `probe_…` time driver calls that gpurota does not intercept. If these rows differ
between columns, the clock differs, too, and so do the rows above them."""
import glob
import json
import sys


def load(program, kind):
    paths = sorted(glob.glob(f"{sys.argv[1]}/{program}.{kind}.*"))
    rounds = [json.load(open(path)) for path in paths]
    rounds = [r.get("ns", r) for r in rounds]
    keys = [key for key, value in rounds[0].items() if isinstance(value, (int, float))]
    best = max if program == "train" else min
    return {key: best(r[key] for r in rounds) for key in keys}


print("| | bare driver | `--memory 16G` | difference | ratio | exclusive | ratio |")
print("|---|---|---|---|---|---|---|")
for program in ("overhead", "train"):
    bare, limited, exclusive = (load(program, kind) for kind in ("bare", "gpurota", "exclusive"))
    for key in bare:
        ratio = limited[key] / bare[key] if bare[key] else float("nan")
        whole = exclusive[key] / bare[key] if bare[key] else float("nan")
        print(f"| {key} | {bare[key]:.1f} | {limited[key]:.1f} | {limited[key] - bare[key]:+.1f} | "
              f"{ratio:.4f} | {exclusive[key]:.1f} | {whole:.4f} |")
