"""Medians over the rounds that run.sh left in a directory, as a Markdown table."""
import glob
import json
import statistics
import sys


def load(program, kind):
    paths = sorted(glob.glob(f"{sys.argv[1]}/{program}.{kind}.*"))
    rounds = [json.load(open(path)) for path in paths]
    rounds = [r.get("ns", r) for r in rounds]
    keys = [key for key, value in rounds[0].items() if isinstance(value, (int, float))]
    return {key: statistics.median(r[key] for r in rounds) for key in keys}


print("| | bare driver | `--memory 16G` | difference | ratio | exclusive | ratio |")
print("|---|---|---|---|---|---|---|")
for program in ("overhead", "train"):
    bare, limited, exclusive = (load(program, kind) for kind in ("bare", "gpurota", "exclusive"))
    for key in bare:
        ratio = limited[key] / bare[key] if bare[key] else float("nan")
        whole = exclusive[key] / bare[key] if bare[key] else float("nan")
        print(f"| {key} | {bare[key]:.1f} | {limited[key]:.1f} | {limited[key] - bare[key]:+.1f} | "
              f"{ratio:.4f} | {exclusive[key]:.1f} | {whole:.4f} |")
