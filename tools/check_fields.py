#!/usr/bin/env python3
"""Refuses long lists of values without names. Runs as a test.

    tools/check_fields.py [ROOT]     prints each as file:line: text; exits 1 if there are any

`Parts{a, b, c, ...}` with a dozen members still compiles when two members of one type are swapped,
or when a member is added in the middle. A list of more than MOST values must name each of them:
`Parts{.a = a, .b = b, ...}`. Lists of literals and constants are tables, which have no names to
give. Tests may build what they test as they like.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_layers import check_each  # noqa: E402

MOST = 11  # a longer list must name its values
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
# A literal (of a string only the quotes are left), a table's row, a constant or an enumerator.
CONSTANT = re.compile(
    r'""|\'\'|[-~]?\d.*|\{.*|nullptr|true|false|([a-z_]+::)*(\w+::)?k[A-Z]\w*|'
    r'[A-Z][A-Z0-9_]+(_[a-z]\w*)?', re.DOTALL)
NAMED = re.compile(r"\.\w+\s*=")


def blanked(text):
    """The text without comments and the content of quotes; every newline stays where it was."""
    def keep(match):
        found = match.group(0)
        lines = "\n" * found.count("\n")
        return lines if found.startswith("/") else found[-1] * 2 + lines
    return NOT_CODE.sub(keep, text)


def values_of(text, begin):
    """The values between the commas of the braces that open before `begin`; None if the braces hold
    no list."""
    depth, start, values = 0, begin, []
    for at in range(begin, len(text)):
        each = text[at]
        if each in "{([":
            depth += 1
        elif each == "}" and depth == 0:
            values.append(text[start:at].strip())
            return [value for value in values if value]
        elif each in "})]":
            depth -= 1
        elif each == ";" and depth == 0:
            return None
        elif each == "," and depth == 0:
            values.append(text[start:at].strip())
            start = at + 1
    return None


def check_text(text):
    """(line, number of values) of each list that should have names."""
    text = blanked(text)
    found = []
    for brace in re.finditer(r"\{", text):
        if re.search(r"\b(enum|namespace)\b[^;{}]*$", text[:brace.start()][-200:]):
            continue
        values = values_of(text, brace.end())
        if not values or len(values) <= MOST or any(NAMED.match(value) for value in values):
            continue
        nameless = [value for value in values if not CONSTANT.fullmatch(value)]
        if len(nameless) * 2 > len(values):
            found.append((text.count("\n", 0, brace.start()) + 1, len(values)))
    return found


def check_file(root, path):
    if (path.startswith(("tests" + os.sep, "bench" + os.sep))
        or re.search(r"_test\.(cpp|c|h)$", path)):
        return []
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return ["%s:%d: %d values without names: write {.name = value, ...}" % (path, line, count)
                for line, count in check_text(file.read())]


def main(arguments):
    return check_each(arguments, check_file, "fields: %d files, %d lists without names")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
