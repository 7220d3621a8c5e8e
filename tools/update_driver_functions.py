#!/usr/bin/env python3
"""Adds to src/abi/driver_functions.tsv what a new CUDA toolkit brings. Run by hand; the build reads
only the list.

    update_driver_functions.py CUDA_INCLUDE_DIR LIBCUDA    rewrites the list, prints what it added

Names come from the library (nm -D), versions from the cuda*Typedefs.h of the toolkit. A new row
gets the class and use of its family, or `passes` and `-` if no family is known: check each new row
by hand.
"""
import collections
import pathlib
import re
import sys

import check_driver_functions
import driver_functions


def split_symbol(symbol):
    """cuMemcpyHtoD_v2_ptds -> (cuMemcpyHtoD, 2, ptds)"""
    match = re.fullmatch(r"(\w+?)(?:_v(\d+))?(?:_(ptds|ptsz))?", symbol)
    return match.group(1), int(match.group(2) or 1), match.group(3) or "legacy"


def read_versions(include_dir):
    versions = collections.defaultdict(set)
    for header in pathlib.Path(include_dir).glob("cuda*Typedefs.h"):
        for base, version, stream in re.findall(r"PFN_(cu\w+?)_v(\d+)(?:_(ptds|ptsz))?\)",
                                                header.read_text()):
            versions[base, stream or "legacy"].add(int(version))
    return {key: sorted(values) for key, values in versions.items()}


def new_rows(rows, names, versions):
    variants = collections.defaultdict(list)
    for symbol in names:
        base, number, stream = split_symbol(symbol)
        variants[base, stream].append((number, symbol))
    known = {row.symbol for row in rows}
    families = {row.base: row for row in rows}
    for (base, stream), symbols in sorted(variants.items()):
        # Symbols and versions are paired from the newest back, because the oldest versions may have
        # no ptds and ptsz variants.
        paired = zip(reversed(sorted(symbols)), reversed(versions.get((base, stream), [])))
        for (_, symbol), version in paired:
            if symbol in known:
                continue
            like = families.get(base)
            classes, use = (like.classes, like.use) if like else (("passes",), "-")
            # A hook is written by hand. Until the new function has a hook, NVML counts the memory
            # that the function allocates.
            yield driver_functions.Row(symbol, base, version, stream, classes,
                                       "nvml" if use == "hook" else use)


def main():
    include_dir, library = sys.argv[1:]
    path = check_driver_functions.DEFAULT_LIST
    header = [line for line in path.read_text().splitlines() if line.startswith("#")]
    rows = driver_functions.read_rows(path)
    added = list(new_rows(rows, check_driver_functions.names_in_library(library),
                          read_versions(include_dir)))
    lines = ["\t".join((r.symbol, r.base, str(r.version), r.stream, ",".join(r.classes), r.use))
             for r in sorted(rows + added)]
    path.write_text("\n".join(header + lines) + "\n")
    for row in added:
        print(*row)


if __name__ == "__main__":
    main()
