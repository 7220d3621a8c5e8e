#!/usr/bin/env python3
"""Refuses a file's private name that another file uses for something else. Runs as a test.

    tools/check_names.py [ROOT]     prints each name with its files; exits 1 if there are any

Release and the sanitizers' builds compile several files of a module together, in groups that change
with each new file. So the names in the anonymous namespaces of two files of a module must differ.
Such a name must also differ from every name that a lower module has in the namespace gpurota:
otherwise the private name hides the module's name in all files that are compiled together (a
read_all in src/cli hid the one of base).
"""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_layers import check_whole, source_files  # noqa: E402

CONSTANT = re.compile(r"^(?:\[\[maybe_unused\]\] )?(?:static |inline "
                      r")?(?:constexpr|const|constinit)\b[^=({\[]*?\b(k[A-Z]\w*)\b")
TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)\b[^;]*[{]?$")
CONCEPT = re.compile(r"^concept (\w+)\b")
FUNCTION = re.compile(
    r"^(?!return|namespace|else|if|for|while|switch|using|typedef|template)[A-Za-z][\w:<>&*\[\], "
    r"]*?[ &*]([a-z]\w*)\(([^;]*)\)(?: const| noexcept)* \{$")


# Names of one and the same type. Overloads that differ only in these would define a function twice.
SAME_TYPES = ("Strings", "Words", "std::vector<std::string>")


def plain_type(text):
    for name in SAME_TYPES:
        text = re.sub(r"(?<![\w:])%s(?!\w)" % re.escape(name), SAME_TYPES[-1], text)
    return text


def names_of(text):
    """The names in a file's anonymous namespaces: constants, types, and functions with the types of
    their parameters."""
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


# A function as a header declares or defines it, whatever its parameters.
DECLARED = re.compile(r"^(?!return|namespace|using|typedef|template|friend)"
                      r"[A-Za-z\[][\w:<>&*\[\], ]*?[ &*]([a-z]\w*)\(")
NAMESPACE = re.compile(r"^namespace ([\w:]*) ?\{$")
INCLUDED = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def shared_names(text):
    """The names that a header has directly in the namespace gpurota; functions without their
    parameters."""
    names = set()
    inside = []
    for line in text.splitlines():
        if begins := NAMESPACE.match(line):
            inside.append(begins.group(1))
        elif line.startswith("}  // namespace"):
            inside = inside[:-1]
        elif inside == ["gpurota"]:
            for pattern in (CONSTANT, TYPE, DECLARED):
                if found := pattern.match(line):
                    names.add(found.group(1))
                    break
    return names


class Headers:
    """The headers of src by the names that #include uses, each read once."""

    def __init__(self, root):
        self.texts = {}
        for path in source_files(root, (".h",)):
            path = path.replace(os.sep, "/")
            if path.startswith("src/") and not path.endswith("_test.h"):
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    self.texts[path[len("src/"):]] = file.read()
        self.names = {name: shared_names(text) for name, text in self.texts.items()}

    def reached(self, text):
        """All headers that a file includes, directly or through other headers."""
        seen, left = set(), INCLUDED.findall(text)
        while left:
            name = left.pop()
            if name in self.texts and name not in seen:
                seen.add(name)
                left += INCLUDED.findall(self.texts[name])
        return seen


def check_hidden(module, texts, headers):
    """`texts` has the text of each of the module's files, by path."""
    reached = set().union(*(headers.reached(text) for text in texts.values()))
    lower = {}
    for header in sorted(reached):
        if header.split("/")[0] != module.split("/")[1]:
            for name in headers.names[header]:
                lower.setdefault(name, header)
    for path, text in texts.items():
        for name in sorted(names_of(text)):
            word = name.split("(")[0]
            if word in lower:
                yield "%s: %s hides that of src/%s: give it another name" % (
                    path, word, lower[word])


def module_of(path):
    """"src/cli" for "src/cli/run/run.cpp"; None for a file that is never compiled together with
    others."""
    parts = path.replace(os.sep, "/").split("/")
    if parts[0] not in ("src", "sim") or not path.endswith(".cpp") or path.endswith("_test.cpp"):
        return None
    return "/".join(parts[:2])


def check_tree(root):
    modules = {}
    for path in sorted(source_files(root)):
        module = module_of(path)
        if module is not None:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                modules.setdefault(module, {})[path] = file.read()
    headers = Headers(root)
    problems = []
    for module, texts in sorted(modules.items()):
        files = {}
        for path, text in texts.items():
            for name in names_of(text):
                files.setdefault(name, []).append(path)
        for name, paths in sorted(files.items()):
            if len(paths) > 1:
                problems.append("%s: %s is also in %s: give one of them another name" % (
                    paths[0], name, ", ".join(paths[1:])))
        problems += check_hidden(module, texts, headers)
    return problems


def main(arguments):
    return check_whole(arguments, check_tree,
                       "names: %d that a file has for itself and that mean something else as well")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
