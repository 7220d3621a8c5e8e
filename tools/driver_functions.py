#!/usr/bin/env python3
"""Makes the tables of the build from src/abi/driver_functions.tsv, the one list of the driver's
functions.

    driver_functions.py interposer TSV OUTPUT.h    what libgpurota hooks and calls, and all names
    driver_functions.py gated TSV FOLDER           gated_functions.h and gated_hooks.inc, of the
                                                   types in src/interposer/gate/gated_functions.txt
    driver_functions.py simulator TSV FOLDER       stubs.c, table.c and libcuda.exports of
                                                   libcuda.so.1

CMake runs this script; other scripts import it. The columns are explained at the top of the list.
"""
import collections
import pathlib
import sys

CLASSES = ("allocates", "frees", "views", "submits", "residency", "answered", "passes")
USES = ("hook", "call", "nvml", "-")
STREAMS = ("legacy", "ptds", "ptsz")

Row = collections.namedtuple("Row", "symbol base version stream classes use")


def parse_row(line):
    fields = line.split("\t")
    if len(fields) != 6:
        raise ValueError(f"6 columns are needed: {line!r}")
    symbol, base, version, stream, classes, use = fields
    row = Row(symbol, base, int(version), stream, tuple(classes.split(",")), use)
    if stream not in STREAMS or use not in USES or not set(row.classes) <= set(CLASSES):
        raise ValueError(f"unknown stream, class or use: {line!r}")
    if {"allocates", "frees", "views"} & set(row.classes) and use not in ("hook", "nvml"):
        raise ValueError(f"{symbol}: what allocates, frees or views is hooked, or left to NVML")
    return row


def read_rows(path):
    """The rows, sorted as strcmp sorts their symbols. Raises ValueError, which names the row, if a
    row is wrong."""
    rows = [parse_row(line) for line in pathlib.Path(path).read_text().splitlines()
            if line and not line.startswith("#")]
    rows.sort(key=lambda row: row.symbol)
    for before, after in zip(rows, rows[1:]):
        if before.symbol == after.symbol:
            raise ValueError(f"{after.symbol} is there twice")
    symbols = {row.symbol for row in rows}
    for row in rows:
        # is_hooked_family() looks a family up under its base name.
        if row.base not in symbols:
            raise ValueError(f"{row.symbol}: its base {row.base} is not in the list")
    return rows


def macro(name, entries):
    if not entries:
        return f"#define {name}(X)\n"
    return f"#define {name}(X) \\\n" + " \\\n".join(f"  {entry}" for entry in entries) + "\n"


def interposer_table(rows):
    """A header with the two X lists, and every name with the number of its hook."""
    hooked = [row for row in rows if row.use == "hook"]
    called = [row for row in rows if row.use == "call"]
    flags = {"legacy": 0, "ptds": 2, "ptsz": 2}
    number = {row.symbol: i for i, row in enumerate(hooked)}
    families = {row.base for row in hooked}
    text = ["// Made from src/abi/driver_functions.tsv by tools/driver_functions.py.\n#pragma "
            "once\n"]
    text.append(macro("GPUROTA_HOOKED_FUNCTIONS", [
        f'X({row.symbol}, "{row.base}", {row.version}, {flags[row.stream]})' for row in hooked]))
    text.append(macro("GPUROTA_CALLED_FUNCTIONS", [f"X({row.symbol})" for row in called]))
    return "\n".join(text + name_pool(rows, number, families))


def name_pool(rows, number, families):
    """All names, sorted, as one pool and offsets into it. The pool needs no relocation, so all
    processes share its pages."""
    offset, pool, entries = 0, [], []
    for row in rows:
        pool.append(f'  "{row.symbol}\\0"')
        entries.append(
            f"  {{{offset}, {number.get(row.symbol, -1)}, {str(row.base in families).lower()}}},")
        offset += len(row.symbol) + 1
    return ["#include <stdint.h>\n", "namespace gpurota::interposer {\n",
            "struct DriverNameEntry {\n  uint16_t offset;        // in kDriverNamePool\n"
            "  int16_t hook;           // -1: none\n  bool in_hooked_family;\n};\n",
            "inline constexpr char kDriverNamePool[] =", *pool[:-1], pool[-1] + ";",
            "inline constexpr DriverNameEntry kDriverNames[] = {", *entries, "};\n",
            "}  // namespace gpurota::interposer", ""]


def write_interposer(rows, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(interposer_table(rows))


def read_gated(rows, path):
    """[(symbol, [types])]. Raises ValueError if the file does not agree with the list."""
    known = {row.symbol: row for row in rows}
    found = []
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("("):
            types = [t.strip() for t in line.strip()[1:-1].split(",")]
        elif line.startswith("  "):
            found += [(symbol, types) for symbol in line.split()]
    for symbol, _ in found:
        row = known.get(symbol)
        if row is None or row.use != "hook" or not {"submits", "residency"} & set(row.classes):
            raise ValueError(f"{symbol} is no hook that submits or needs residency")
    return sorted(found)


def gated_hook(row, types):
    """The hook of a function that passes the gate: its class, its stream, and the call of the
    driver's function."""
    names = [f"a{i}" for i in range(len(types))]
    stream = names[types.index("CUstream")] if "CUstream" in types else "nullptr"
    what = "kSubmits" if "submits" in row.classes else "kResidency"
    parameters = ", ".join(f"{t} {n}" for t, n in zip(types, names))
    arguments = ", ".join(names)
    per_thread = str(row.stream != "legacy").lower()
    # A copy to the host returns when the bytes are there. A copy from the host waits for the stream
    # before it begins (measured with driver 580 on an H200). So the work of the stream has ended.
    to_the_end = row.base in ("cuMemcpyDtoH", "cuMemcpyAtoH", "cuMemcpyHtoD", "cuMemcpyHtoA")
    macro = "GPUROTA_GATED_TO_THE_END" if to_the_end else "GPUROTA_GATED"
    target = f"{what}, {stream}"
    if types[0] == "const CUlaunchConfig*":
        macro, target = "GPUROTA_GATED_LAUNCH", names[0]
    return (f"CUresult {row.symbol}({parameters}) {{\n"
            f"  {macro}({row.symbol}, {target}, {per_thread}, ({arguments}))\n}}\n")


def write_gated(rows, out):
    out.mkdir(parents=True, exist_ok=True)
    source = pathlib.Path(__file__).parent.parent / "src/interposer/gate/gated_functions.txt"
    gated = read_gated(rows, source)
    by_name = {row.symbol: row for row in rows}
    note = "// Made from src/interposer/gate/gated_functions.txt by tools/driver_functions.py.\n"
    (out / "gated_functions.h").write_text(note + "#pragma once\n\nextern \"C\" {\n" + "".join(
        f"GPUROTA_API CUresult {symbol}({', '.join(types)});\n" for symbol, types in gated) + "}\n")
    (out / "gated_hooks.inc").write_text(
        note + "\n".join(gated_hook(by_name[symbol], types) for symbol, types in gated))


def write_simulator(rows, out):
    """Writes weak definitions that count calls and return NOT_SUPPORTED, for all functions that the
    simulator does not implement; the table behind cuGetProcAddress; and the linker's version
    script."""
    out.mkdir(parents=True, exist_ok=True)
    stubs = ["int gpurota_sim_unsupported(const char* name);"]
    stubs += [f'__attribute__((weak, visibility("default"))) int {row.symbol}(void); '
              f'int {row.symbol}(void) {{ return gpurota_sim_unsupported("{row.symbol}"); }}'
              for row in rows]
    (out / "stubs.c").write_text("\n".join(stubs) + "\n")

    table = ['#include "sim/cuda/proc_table.h"']
    table += [f"int {row.symbol}(void);" for row in rows]
    table.append("const struct gpurota_sim_function gpurota_sim_functions[] = {")
    table += [
        f'  {{"{row.base}", {row.version}, {int(row.stream != "legacy")}, (void*){row.symbol}}},'
        for row in sorted(rows, key=lambda row: (row.base, row.version))]
    table += ["};", f"const unsigned gpurota_sim_function_count = {len(rows)};"]
    (out / "table.c").write_text("\n".join(table) + "\n")

    names = "".join(f"    {row.symbol};\n" for row in rows)
    (out / "libcuda.exports").write_text("{\n  global:\n" + names + "  local: *;\n};\n")


def main():
    what, tsv, output = sys.argv[1:]
    try:
        rows = read_rows(tsv)
    except ValueError as error:
        sys.exit(f"{tsv}: {error}")
    try:
        {"interposer": write_interposer, "gated": write_gated,
         "simulator": write_simulator}[what](rows, pathlib.Path(output))
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
