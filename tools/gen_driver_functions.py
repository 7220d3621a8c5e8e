#!/usr/bin/env python3
"""Writes src/abi/driver_functions.tsv: which functions the CUDA driver exports, and for each the
name, version and stream variant under which cuGetProcAddress knows it.

Run by hand when NVIDIA adds functions; the build reads only the TSV. Facts (names and numbers) are
taken from cudaTypedefs.h and cudaProfilerTypedefs.h of a toolkit, and from the list of names that
`nm -D libcuda.so.1` prints.

usage: gen_driver_functions.py CUDA_INCLUDE_DIR EXPORTS.txt > src/abi/driver_functions.tsv
"""
import collections
import pathlib
import re
import sys

HEADER = """\
# Every function the CUDA driver exports (CUDA 13.0). Tab separated:
#   symbol   the exported name
#   base     the name cuGetProcAddress takes
#   version  the CUDA version from which cuGetProcAddress answers `base` with this symbol
#   stream   legacy, or the variant for the per-thread default stream: ptds, ptsz
# Made by tools/gen_driver_functions.py; the build reads this file only.
"""


def split_symbol(symbol):
    """cuMemcpyHtoD_v2_ptds -> (cuMemcpyHtoD, 2, ptds)"""
    match = re.fullmatch(r"(\w+?)(?:_v(\d+))?(?:_(ptds|ptsz))?", symbol)
    return match.group(1), int(match.group(2) or 1), match.group(3) or "legacy"


def read_versions(include_dir):
    versions = collections.defaultdict(list)
    for name in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"):
        text = (pathlib.Path(include_dir) / name).read_text()
        for base, version, stream in re.findall(
                r"PFN_(cu\w+?)_v(\d+)(?:_(ptds|ptsz))?\)", text):
            versions[base, stream or "legacy"].append(int(version))
    return {key: sorted(set(values)) for key, values in versions.items()}


def main():
    include_dir, exports_path = sys.argv[1:]
    versions = read_versions(include_dir)
    variants = collections.defaultdict(list)
    for symbol in pathlib.Path(exports_path).read_text().split():
        base, number, stream = split_symbol(symbol)
        variants[base, stream].append((number, symbol))
    rows = []
    for (base, stream), symbols in variants.items():
        known = versions.get((base, stream), [])
        if len(known) != len(symbols):
            sys.exit(f"{base} ({stream}): exports {sorted(symbols)}, versions {known}")
        for (_, symbol), version in zip(sorted(symbols), known):
            rows.append((symbol, base, str(version), stream))
    sys.stdout.write(HEADER)
    for row in sorted(rows):
        sys.stdout.write("\t".join(row) + "\n")


if __name__ == "__main__":
    main()
