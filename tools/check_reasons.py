#!/usr/bin/env python3
"""Refuses code that writes its own reason for a wait: only the files in MAKERS may. Runs as a test.

    tools/check_reasons.py [ROOT]     prints each as file:line: text; exits 1 if there are any

The daemon makes the whole sentence (core/reason.h); clients only fill in its time, by one function
in each language. If a second place made sentences, the two would differ sooner or later. If a
client joined parts of sentences, it would miss the parts that are added later.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_layers import check_whole, source_files  # noqa: E402

SUFFIXES = (".cpp", ".h", ".ts", ".tsx", ".py")
MAKERS = ("src/core/reason.h", "src/core/reason.cpp", "src/lease/reason.cpp",
          "src/filler/place_reason.cpp")
# The files with the function that fills in the time, one for each language.
FILLERS = ("src/client/reason_text.cpp", "src/web/page/reasons.ts", "python/gpurota/reasons.py")
# Files that find the obstacles on each GPU, as input for refusal_reason() of lease/reason.h.
OBSTACLES = ("src/lease/admission.cpp", "src/lease/placement.cpp", "src/lease/planner.cpp")
# Files that convert a reason to another format (the protocol's, JSON) and change nothing in it.
CARRIERS = ("src/daemon/control/wire_reason.cpp", "src/web/page_json.cpp")
CLIENTS = ("src/cli/", "src/web/", "src/client/", "src/kube/", "python/gpurota/")

CODE = re.compile(r"\bReasonCode::")
PLACE = re.compile(r"\{time\}|\bkTimePlace\b")
SENTENCE = re.compile(r"has no time limit|\bGPUs? free\b|free for it|is kept for (?!it\b)|is "
                      r"expected at|is leaving GPU|gets it first")
PART = re.compile(r"\bwait_reason(->|\?*\.)(text|time|remedy)\b|\breason->(text|time|remedy)\b")
OLD = re.compile(
    r"\bnext_at\b|\b\w*(request|booking|waits|place)\w*(->|\.)(reason|next|trouble|why)\b")
COMMENT = {".py": re.compile(r'"""(?:.|\n)*?"""|(?m:(?:^|\s)#.*$)')}
C_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*(?:.|\n)*?\*/")

RULES = (
    (CODE, MAKERS, "", "reasons are made in lease/reason.cpp and filler/place_reason.cpp alone"),
    (PLACE, MAKERS + FILLERS, "", "the time is filled in by reason_text() alone"),
    (SENTENCE, MAKERS + OBSTACLES, "", "a reason is made in lease/reason.cpp, as a whole sentence"),
    (PART, MAKERS + FILLERS + CARRIERS, CLIENTS,
     "clients show what reason_text() makes of a wait_reason, not its parts"),
    (OLD, FILLERS + CARRIERS, CLIENTS,
     "wait_reason has the whole sentence, which reason_text() shows"),
)


def without_comments(text, suffix):
    """The text without its comments; every newline stays where it was."""
    return COMMENT.get(suffix, C_COMMENT).sub(lambda match: "\n" * match.group(0).count("\n"), text)


def is_free(path):
    """Whether a file is exempt: a test, a file made from the protocol, or a module without
    reasons."""
    return (not path.startswith(("src/", "python/gpurota/"))
            or re.search(r"_test\.(cpp|h)$", path) is not None
            or path == "python/gpurota/types.py"
            or path.startswith(("src/interposer/", "src/burn/", "src/testing/")))


def check_text(path, text):
    text = without_comments(text, os.path.splitext(path)[1])
    found = []
    for pattern, may, where, remark in RULES:
        if path in may or (where and not path.startswith(where)):
            continue
        found += [(text.count("\n", 0, match.start()) + 1, "'%s': %s" % (match.group(0), remark))
                  for match in pattern.finditer(text)]
    return sorted(found)


def check_file(root, path):
    name = path.replace(os.sep, "/")
    if is_free(name):
        return []
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return ["%s:%d: %s" % (path, line, remark)
                for line, remark in check_text(name, file.read())]


def check_tree(root):
    paths = sorted(source_files(root, SUFFIXES))
    module = os.path.join("python", "gpurota")
    paths += [os.path.join(module, name) for name in sorted(os.listdir(os.path.join(root, module)))
              if name.endswith(".py")]
    missing = [name for name in MAKERS + FILLERS + OBSTACLES + CARRIERS
               if not os.path.exists(os.path.join(root, name))]
    return (["tools/check_reasons.py: there is no %s" % name for name in missing]
            + [problem for path in paths for problem in check_file(root, path)])


def main(arguments):
    return check_whole(arguments, check_tree,
                       "reasons: %d places that make or take apart why somebody waits")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
