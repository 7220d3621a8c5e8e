#!/usr/bin/env python3
"""Refuses a name that two files of one module have for themselves. Runs as a test.

    tools/check_names.py [ROOT]     prints each name with its files; exits 1 if there are any

Release and the sanitizers' builds compile several files of a module as one, and which ones changes with each new file: what two files
have in their anonymous namespaces must differ, or such a build fails one day.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_layers import check_whole, source_files  # noqa: E402

CONSTANT = re.compile(r"^(?:\[\[maybe_unused\]\] )?(?:static |inline )?(?:constexpr|const|constinit)\b[^=({\[]*?\b(k[A-Z]\w*)\b")
TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)\b[^;]*[{]?$")
CONCEPT = re.compile(r"^concept (\w+)\b")
FUNCTION = re.compile(r"^(?!return|namespace|else|if|for|while|switch|using|typedef|template)[A-Za-z][\w:<>&*\[\], ]*?[ &*]([a-z]\w*)\(([^;]*)\)(?: const| noexcept)* \{$")


# Names of one type: overloads for two of them are the same function twice.
SAME_TYPES = ("Strings", "Words", "std::vector<std::string>")


def plain_type(text):
    for name in SAME_TYPES:
        text = re.sub(r"(?<![\w:])%s(?!\w)" % re.escape(name), SAME_TYPES[-1], text)
    return text


def names_of(text):
    """What a file has in its anonymous namespaces: constants, types, and functions with what they take."""
    names = set()
    inside = False
    for line in text.splitlines():
        if line == "namespace {":
            inside = True
        elif line.startswith("}  // namespace"):
            inside = False
        elif inside:
            found = CONSTANT.match(line) or TYPE.match(line) or CONCEPT.match(line)
            if found:
                names.add(found.group(1))
            elif found := FUNCTION.match(line):
                takes = (plain_type(re.sub(r"\s+\w+$", "", each.strip()))
                         for each in found.group(2).split(","))
                names.add("%s(%s)" % (found.group(1), ", ".join(takes)))
    return names


def module_of(path):
    """"src/cli" of "src/cli/run/run.cpp"; None: its files are never compiled together."""
    parts = path.replace(os.sep, "/").split("/")
    if parts[0] not in ("src", "sim") or not path.endswith(".cpp") or path.endswith("_test.cpp"):
        return None
    return "/".join(parts[:2])


def check_tree(root):
    files = {}
    for path in sorted(source_files(root)):
        module = module_of(path)
        if module is None:
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for name in names_of(file.read()):
                files.setdefault((module, name), []).append(path)
    return ["%s: %s is also in %s: give one of them another name" % (paths[0], name, ", ".join(paths[1:]))
            for (_, name), paths in sorted(files.items()) if len(paths) > 1]


def main(arguments):
    return check_whole(arguments, check_tree, "names: %d that two files of a module have for themselves")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
