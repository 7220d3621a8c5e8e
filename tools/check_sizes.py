#!/usr/bin/env python3
"""Keeps functions small, and says which files are long. Runs as a test.

    tools/check_sizes.py [ROOT]      prints what is too long; exits 1 if a function is too long

A file may be as long as its one idea needs, so a long file is only reported, not refused.

Function ends are found by indentation, which clang-format guarantees: a body opens on a line that
ends with "{" and closes with "}" at the same depth as the function's first line.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_layers import SUFFIXES, check_each  # noqa: E402

MAX_LINES = {".cpp": 500, ".c": 500, ".h": 250, ".ts": 300, ".tsx": 300}
MAX_FUNCTION = 60
# A test case reads top to bottom; splitting it for its length alone would hide what it does.
MAX_TEST_FUNCTION = 100

NOT_A_FUNCTION = re.compile(
    r"^\s*(if|else|for|while|switch|do|try|catch|namespace|class|struct|union|"
    r"enum|extern|typedef|#|\}|//|/?\*)")
OPENS = re.compile(r"^(\s*)\S.*\)[^;={]*\{$")
CONTINUES = re.compile(r"^\s*.*[,(]$")


def functions(lines):
    """(first line, length) of each function body; the lambdas inside are counted with it."""
    found = []
    until = -1
    for i, line in enumerate(lines):
        if i <= until or NOT_A_FUNCTION.match(line):
            continue
        match = OPENS.match(line)
        if not match:
            continue
        closing = None
        for j in range(i + 1, len(lines)):
            if re.match(r"^(\s*)\}", lines[j]):
                depth = len(lines[j]) - len(lines[j].lstrip())
                if depth <= len(match.group(1)):
                    closing = j
                    break
        if closing is None:
            continue
        found.append((i + 1, closing - i + 1))
        until = closing
    return found


def check_file(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as text:
        lines = text.read().split("\n")[:-1]
    problems = []
    suffix = os.path.splitext(path)[1]
    limit = MAX_LINES.get(suffix)
    if limit and len(lines) > limit:
        print("%s: %d lines: is it more than one idea?" % (path, len(lines)))
    if not limit:  # generated tables
        return problems
    is_test = path.startswith("tests") or path.endswith(("_test.cpp", "_test.c"))
    longest = MAX_TEST_FUNCTION if is_test else MAX_FUNCTION
    for first, length in functions(lines):
        if length > longest:
            problems.append("%s:%d: a function of %d lines, at most %d"
                            % (path, first, length, longest))
    return problems


def main(arguments):
    return check_each(arguments, check_file, "sizes: %d files, %d too long",
                      SUFFIXES + (".ts", ".tsx"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
