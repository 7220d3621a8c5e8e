#!/usr/bin/env python3
"""Writes the stubs of functions.txt: weak definitions that count and answer NOT_SUPPORTED.

usage: gen_stubs.py functions.txt OUTPUT.c
"""
import pathlib
import sys


def main():
    out = ["int gpurota_sim_nvml_unsupported(const char* name);"]
    for name in pathlib.Path(sys.argv[1]).read_text().splitlines():
        if name and not name.startswith("#"):
            out.append(
                f'__attribute__((weak, visibility("default"))) int {name}(void); '
                f'int {name}(void) {{ return gpurota_sim_nvml_unsupported("{name}"); }}')
    pathlib.Path(sys.argv[2]).write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
