#!/usr/bin/env python3
"""Makes the tables of the build from src/abi/captures.tsv, which says what each driver call does to
a capture under way.

    capture_rules.py interposer CAPTURES FUNCTIONS OUTPUT.h    which calls libgpurota may make when
    capture_rules.py simulator CAPTURES FUNCTIONS OUTPUT.h     what the simulated driver forbids

CMake runs this script. The columns are explained at the top of the table itself; FUNCTIONS is
src/abi/driver_functions.tsv.
"""
import collections
import pathlib
import re
import sys

import driver_functions

OUTCOMES = ("allowed", "refused", "invalidates")
# Targets of a call (the column `aim`) that belong to the capture. The legacy stream belongs to a
# capture only if a blocking stream captures.
OF_CAPTURE = re.compile(r"\b(capturing stream|joined stream|legacy stream|of the capture|stream "
                        r"joined by|stream that joined)\b")
UNSUPPORTED = 900  # CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
# CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: the call used the legacy stream, even if the column `aim` does
# not name the legacy stream.
IMPLICIT = 906

Cell = collections.namedtuple("Cell",
                              "function aim mode thread thread_mode stream result end outcome")


def parse_cell(line):
    fields = line.split("\t")
    if len(fields) != len(Cell._fields):
        raise ValueError(f"{len(Cell._fields)} columns are needed: {line!r}")
    cell = Cell(*fields)
    if cell.outcome not in OUTCOMES:
        raise ValueError(f"no rule follows from what came of it: {line!r}")
    return cell._replace(result=int(cell.result), end=int(cell.end))


def read_cells(path):
    """The lines of each function, by its name. Raises ValueError, which names the line, if a line
    is wrong."""
    cells = collections.defaultdict(list)
    for line in pathlib.Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            cell = parse_cell(line)
            cells[cell.function].append(cell)
    return cells


def is_of_capture(cell):
    return cell.result == IMPLICIT or OF_CAPTURE.search(cell.aim) is not None


def rule_of(cells):
    """The first rule that fits all lines of a function. Raises ValueError if none does."""
    kills = {cell for cell in cells if cell.outcome == "invalidates"}
    relaxed = {cell for cell in cells if cell.thread_mode in ("relaxed", "any")}
    apart = {cell for cell in cells if not is_of_capture(cell)}
    if not kills:
        return "kAnytime"
    if not kills & relaxed:
        return "kRelaxed"
    if apart and not kills & relaxed & apart:
        return "kOutside" if kills & apart else "kOutsideAnytime"
    if apart and relaxed <= kills:
        return "kNever"
    raise ValueError(f"{cells[0].function}: what it does to captures fits no rule")


def measured_names(row):
    """The symbol of the row, and that of its legacy variant, which differs only in what a null
    stream means."""
    return {row.symbol, row.symbol if row.stream == "legacy"
            else re.sub(r"_pt[ds][sz]$", "", row.symbol)}


def interposer_rules(cells, rows):
    """An X-macro file: a line for each measured function that libgpurota hooks or calls."""
    text = ["// Made from src/abi/captures.tsv by tools/capture_rules.py.\n"]
    for row in rows:
        own = [cell for name in sorted(measured_names(row)) for cell in cells.get(name, [])]
        if own and row.use in ("hook", "call"):
            text.append(f"GPUROTA_CAPTURE_RULE({row.symbol}, {rule_of(own)})\n")
    return "".join(text)


def simulator_kind(cells):
    """Whether a call is unsafe as such, whether it ends the capture of a stream that it is aimed
    at, and whether it needs the legacy stream. A call that was never measured on the legacy stream
    is assumed to need it."""
    on_capturing = [cell for cell in cells if cell.aim.startswith("capturing stream")]
    on_legacy = [cell for cell in cells if cell.aim.startswith("legacy stream")
                 or cell.result == IMPLICIT]
    return (rule_of(cells) in ("kRelaxed", "kOutside"),
            any(cell.result == UNSUPPORTED for cell in on_capturing),
            not on_legacy or any(cell.outcome == "invalidates" for cell in on_legacy))


def simulator_kinds(cells, rows):
    """A header with the kind of each measured function. Other versions of a measured function have
    the same kind. Per-thread variants have the kind of their legacy variant, because the two
    are one function in the simulator."""
    family = collections.defaultdict(list)
    for row in rows:
        family[row.base] += cells.get(row.symbol, []) if row.stream == "legacy" else []
    lines = []
    for row in rows:
        own = cells.get(row.symbol) or family[row.base]
        if own and row.stream == "legacy":
            flags = ", ".join(str(flag).lower() for flag in simulator_kind(own))
            lines.append(f'    {{"{row.symbol}", {{{flags}}}}},\n')
    return ("// Made from src/abi/captures.tsv by tools/capture_rules.py. Sorted by name.\n"
            "constexpr struct {\n  std::string_view function;\n  CaptureKind kind;\n"
            "} kCaptureKinds[] = {\n" + "".join(lines) + "};\n")


def main():
    what, captures, functions, output = sys.argv[1:]
    try:
        cells = read_cells(captures)
        rows = driver_functions.read_rows(functions)
        unknown = set(cells) - {row.symbol for row in rows}
        if unknown:
            raise ValueError(f"{sorted(unknown)} are not in {functions}")
        text = {"interposer": interposer_rules, "simulator": simulator_kinds}[what](cells, rows)
    except ValueError as error:
        sys.exit(f"{captures}: {error}")
    path = pathlib.Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    main()
