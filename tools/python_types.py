#!/usr/bin/env python3
"""Makes python/gpurota/types.py, the answers of the control protocol as dataclasses, from the
protocol's Varlink file.

    tools/python_types.py            writes it
    tools/python_types.py --check    says whether the file is up to date; runs as a test

The file is kept in the repository, because pip, editors and mypy read the source tree, where
nothing is built. The file has only the types that the Python module uses (METHODS), and the version
of CMakeLists.txt.
"""

import json
import keyword
import os
import re
import sys
import textwrap

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import control_protocol  # noqa: E402
import version  # noqa: E402

SOURCE = "src/proto/dev.gpurota.varlink"
OUTPUT = "python/gpurota/types.py"
METHODS = ("Acquire", "AddJob", "CheckRequest", "ControlJob", "Enqueue", "Events",
           "GetEnvironment", "Hold", "ListJobItems", "ListJobs", "ListProcesses", "ListRequests",
           "ListTurns", "ReadJobLog", "Release", "Start", "Status", "Update")
SCALARS = {"int": "int", "string": "str", "bool": "bool"}
TIME = "datetime.datetime"
WIDTH = 100

HEAD = '''\
"""What the daemon answers, as dataclasses: a field that an older daemon does not send is None.

Amounts of memory are bytes, times are datetimes in UTC. Words (of a state, a kind, ...) are text,
as newer daemons know more of them.
Made by tools/python_types.py from dev.gpurota.varlink and CMakeLists.txt: edit those.
"""

import datetime
from dataclasses import dataclass
from typing import List, Optional

VERSION = "%s"
'''


def type_of(field):
    name = TIME if field.kind == "time" else SCALARS.get(field.varlink, field.varlink)
    name = "List[%s]" % name if field.list else name
    return "Optional[%s] = None" % name if field.optional else name


def comment_of(field):
    """The comment without its annotation in brackets, which is for C++. The words of an enum are
    kept."""
    text = re.sub(r"^\[([^\]]*)\]\s*",
                  lambda said: "one of " + said.group(1).split(": ", 1)[1] + "; "
                  if ": " in said.group(1) else "", " ".join(field.comment))
    return re.sub(r"\bnull\b", "None", text).strip().rstrip(".;")


def lines_of(field):
    """The lines of a field. A comment that does not fit after the field goes on the lines before
    it."""
    name = field.name + "_" if keyword.iskeyword(field.name) else field.name
    line = "    %s: %s" % (name, type_of(field))
    comment = comment_of(field)
    if not comment:
        return [line]
    if len(line) + len(comment) + 4 <= WIDTH:
        return [line + "  # " + comment]
    return ["    # " + each for each in textwrap.wrap(comment, WIDTH - 6)] + [line]


def class_of(name, fields, doc):
    lines = ["", "", "@dataclass(frozen=True)", "class %s:" % name]
    if doc:
        lines += textwrap.wrap('"""%s"""' % " ".join(doc), WIDTH, initial_indent="    ",
                               subsequent_indent="    ", break_on_hyphens=False) + [""]
    # dataclasses want fields without a default first
    for each in sorted(fields, key=lambda field: field.optional):
        lines += lines_of(each)
    return lines + ([] if fields else ["    pass"])


def made(root):
    protocol = control_protocol.read([os.path.join(root, SOURCE)])
    used = [method for method in protocol.methods if method.name in METHODS]
    wanted = set()

    def want(fields):
        for each in fields:
            if each.varlink in protocol.types and each.varlink not in wanted:
                wanted.add(each.varlink)
                want(protocol.types[each.varlink].fields)

    for method in used:
        want(method.reply)
    lines = [HEAD.rstrip("\n") % version.version_of(root)]
    lines += ["# Calls of these do nothing twice.", "READ_ONLY = frozenset(("]
    lines += ["    %s," % json.dumps(method.name) for method in used if method.read_only] + ["))"]
    types = protocol.types
    ordered = [types[name] for name in sorted(wanted & control_protocol.BUILT_IN)]
    ordered += [struct for struct in control_protocol.in_order(types) if struct.name in wanted]
    for struct in ordered:
        lines += class_of(struct.name, struct.fields, struct.doc)
    for method in used:
        lines += class_of(method.name + "Reply", method.reply, ["What %s answers." % method.name])
    return "\n".join(lines) + "\n"


def main(arguments):
    path = os.path.join(ROOT, OUTPUT)
    text = made(ROOT)
    if arguments == ["--check"]:
        with open(path, encoding="utf-8") as file:
            same = file.read() == text
        print("%s: %s" % (OUTPUT, "as %s" % SOURCE if same
                          else "not as %s or CMakeLists.txt say: run tools/python_types.py"
                          % SOURCE))
        return 0 if same else 1
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    control_protocol.write(path, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
