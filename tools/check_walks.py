#!/usr/bin/env python3
"""Checks the walks of ARCHITECTURE.md against the code. Runs as a test.

    tools/check_walks.py [ROOT]      prints each problem; exits 1 if there are any

A walk is a table of steps. Each step has its number, the earlier step that it comes from ("–": from
outside), a file, a function, and the name that the earlier step calls or sends. The function must
be defined in the file. The name must be in the files of both steps; if it is the function's name,
the file of the earlier step must call it. A walk has no way back: a step comes only from an earlier
one, and no file is in it twice. WALKS limits the number of steps.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_layers import check_whole  # noqa: E402

# The heading of each walk in ARCHITECTURE.md, and its greatest number of steps.
WALKS = {"From `gpurota run` to an allocation": 13, "A switch of turns": 12}
DOCUMENT = "ARCHITECTURE.md"
STEP = re.compile(r"^\| (\d+) \| (\d+|–) \| `([^`]+)` \| `([\w:~]+)` \| (?:`(\w+)`|–) \|")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def code_of(root, path):
    """The code without comments and includes, because a name in one of these is not a use."""
    return re.sub(r"//[^\n]*|^\s*#\s*include[^\n]*", "", read(root, path), flags=re.MULTILINE)


def defines(code, function):
    return re.search(r"^[^\n;]*(?<![\w:~])%s\([^;{}]*\)[\w\s]*\{" % re.escape(function), code,
                     re.MULTILINE)


def steps_of(text, heading):
    """The cells of each step below the heading, as text; None for a row that cannot be read."""
    section = text.partition("### %s\n" % heading)[2].partition("\n#")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [match.groups() if match else None for match in map(STEP.match, rows)]


def check_step(root, codes, number, step):
    """`codes` has the code of each earlier step, by number."""
    said, origin, path, function, name = step
    if int(said) != number:
        yield "is said to be step %s" % said
    if not os.path.isfile(os.path.join(root, path)):
        yield "%s is not there" % path
        return
    code = code_of(root, path)
    if not defines(code, function):
        yield "%s does not define %s" % (path, function)
    if origin != "–" and int(origin) not in codes:
        yield "comes from step %s, which is not before it" % origin
    elif (origin == "–") != (name is None):
        yield "says where it comes from, or by what, not both"
    elif name is not None:
        called = r"\(" if function.split("::")[-1] == name else r"(?!\w)"
        for place, text, end in (("step " + origin, codes[int(origin)], called),
                                 (path, code, r"(?!\w)")):
            if not re.search(r"(?<!\w)%s%s" % (re.escape(name), end), text):
                yield "%s has no %s" % (place, name)
    codes[number] = code


def check_walk(root, text, heading, most):
    steps = steps_of(text, heading)
    if not 2 <= len(steps) <= most:
        yield "%s: '%s' has %d steps, not 2 to %d" % (DOCUMENT, heading, len(steps), most)
    codes, paths = {}, set()
    for number, step in enumerate(steps, 1):
        if step is None:
            yield "%s: '%s', step %d: cannot be read" % (DOCUMENT, heading, number)
            continue
        if step[2] in paths:
            yield "%s: '%s', step %d: %s is there twice" % (DOCUMENT, heading, number, step[2])
        paths.add(step[2])
        for problem in check_step(root, codes, number, step):
            yield "%s: '%s', step %d: %s" % (DOCUMENT, heading, number, problem)


def check_tree(root):
    text = read(root, DOCUMENT)
    return [problem for heading, most in WALKS.items()
            for problem in check_walk(root, text, heading, most)]


def main(arguments):
    return check_whole(arguments, check_tree, "walks: %d, %%d problems" % len(WALKS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
