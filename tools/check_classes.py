#!/usr/bin/env python3
"""Keeps classes of src/ small and in one place. Runs as a test.

    tools/check_classes.py [ROOT]    prints each class with too many methods, and each method
                                     outside its class's file; exits 1 if there are any
    tools/check_classes.py --list    prints the largest classes

A class that a header declares has its methods in that header and in the .cpp file of the same name.
clang-format guarantees the form that the patterns below rely on: a class begins on a line that ends
with "{", a method's definition in the first column.
"""

import collections
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_layers import source_files  # noqa: E402

MAX_METHODS = 35
# Classes whose methods are in more files than allowed. Entries may only be removed.
ELSEWHERE = {
    "InContext": ["driver_calls"],
    "Jobs": ["jobs_change", "jobs_restore"],
    "Mover": ["changes", "copies"],
    "Views": ["turns_methods"],
}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TEXT = re.compile(r'R"\((.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
CLASS = re.compile(r"\b(?:class|struct)\s+([\w:]+)(?:\s+final)?(?:\s*:[^;{}()]*)?\s*\{")
METHOD = re.compile(r"(?:\b[\w~]+|operator\s*\S+?)\s*\(")
NO_METHOD = re.compile(r"^\s*(?:using|friend|static_assert|typedef|enum|GPUROTA_)\b")
LABEL = re.compile(r"^\s*(?:public|private|protected)\s*:\s*", re.M)
DEFINITION = re.compile(r"^(?!\s|#|//|\}|using|namespace|return)[^\n;={]*?\b(\w+)::(~?\w+)\(", re.M)


def closing(text, opening):
    depth = 0
    for at in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def without_templates(text):
    while True:
        shorter = re.sub(r"<[^<>]*>", "", text)
        if shorter == text:
            return text
        text = shorter


def methods_in(body):
    """How many functions a class body declares, without those of nested classes. Constructors and
    defaulted functions are counted."""
    count, at, statement = 0, 0, ""

    def is_method(statement):
        said = without_templates(LABEL.sub("", statement)).strip()
        found = METHOD.search(said)
        return (bool(found) and not NO_METHOD.match(said)
                and "=" not in said[:found.start()].replace("operator=", ""))

    while at < len(body):
        if body[at] == "{":
            count += is_method(statement)
            at, statement = closing(body, at), ""
        elif body[at] == ";":
            count += is_method(statement)
            statement = ""
        else:
            statement += body[at]
        at += 1
    return count


def classes_of(text):
    """Name and number of methods of each class, nested ones too."""
    plain = TEXT.sub('""', COMMENT.sub("", text))
    for match in CLASS.finditer(plain):
        opening = match.end() - 1
        yield match.group(1).split("::")[-1], methods_in(plain[opening + 1:closing(plain, opening)])


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as text:
        return text.read()


def check_tree(root):
    paths = [p for p in source_files(root) if p.startswith("src" + os.sep)
             and not re.search(r"_test\.\w+$", p)]
    sizes, homes, problems = [], collections.defaultdict(set), []
    for path in paths:
        for name, count in classes_of(read(root, path)):
            sizes.append((count, name, path))
            if path.endswith(".h"):
                homes[os.path.dirname(path).split(os.sep)[1], name].add(os.path.splitext(path)[0])
    for count, name, path in sizes:
        if count > MAX_METHODS:
            problems.append("%s: %s has %d methods, at most %d: divide it"
                            % (path, name, count, MAX_METHODS))
    for path in paths:
        if not path.endswith(".cpp"):
            continue
        names = {match.group(1) for match in DEFINITION.finditer(COMMENT.sub("", read(root, path)))}
        for name in sorted(names):
            home = homes.get((path.split(os.sep)[1], name))
            stem = os.path.splitext(path)[0]
            if home and stem not in home and os.path.basename(stem) not in ELSEWHERE.get(name, ()):
                problems.append("%s: methods of %s, which belong to %s.cpp"
                                % (path, name, sorted(home)[0]))
    return sizes, problems


def main(arguments):
    listed = "--list" in arguments
    roots = [a for a in arguments if not a.startswith("-")]
    sizes, problems = check_tree(roots[0] if roots
                                 else os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if listed:
        for count, name, path in sorted(sizes, reverse=True)[:40]:
            print("%4d  %s  %s" % (count, name, path))
        return 0
    for problem in problems:
        print(problem)
    print("classes: %d, %d problems" % (len(sizes), len(problems)))
    return 1 if problems or not sizes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
