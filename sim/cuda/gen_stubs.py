#!/usr/bin/env python3
"""Writes, from src/abi/driver_functions.tsv, what libcuda.so.1 needs to export every function.

stubs.c    a weak definition of each that counts and answers NOT_SUPPORTED; what the simulator
           implements overrides it when it is linked
table.c    the table behind cuGetProcAddress
exports    the linker's version script: these names and no others

usage: gen_driver_stubs.py TSV OUTPUT_DIR
"""
import pathlib
import sys


def read_rows(path):
    for line in pathlib.Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            symbol, base, version, stream = line.split("\t")
            yield symbol, base, int(version), stream


def main():
    rows = list(read_rows(sys.argv[1]))
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    stubs = ["int gpurota_sim_unsupported(const char* name);"]
    for symbol, _, _, _ in rows:
        stubs.append(
            f'__attribute__((weak, visibility("default"))) int {symbol}(void); '
            f'int {symbol}(void) {{ return gpurota_sim_unsupported("{symbol}"); }}')
    (out / "stubs.c").write_text("\n".join(stubs) + "\n")

    table = ['#include "sim/cuda/proc_table.h"']
    table += [f"int {symbol}(void);" for symbol, _, _, _ in rows]
    table.append("const struct gpurota_sim_function gpurota_sim_functions[] = {")
    for symbol, base, version, stream in sorted(rows, key=lambda row: (row[1], row[2])):
        table.append(f'  {{"{base}", {version}, {int(stream != "legacy")}, (void*){symbol}}},')
    table += ["};", f"const unsigned gpurota_sim_function_count = {len(rows)};"]
    (out / "table.c").write_text("\n".join(table) + "\n")

    names = "".join(f"    {symbol};\n" for symbol, _, _, _ in rows)
    (out / "libcuda.exports").write_text("{\n  global:\n" + names + "  local: *;\n};\n")


if __name__ == "__main__":
    main()
