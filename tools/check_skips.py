#!/usr/bin/env python3
"""Refuses a test that is skipped for root, or for all other users, and that
tests/expected_skips.txt does not name.

    tools/check_skips.py [ROOT]     prints each such test with its file; exits 1 if there are any

The author ran the test either as root or as another user, so one of the two cases went unseen.
"""

import fnmatch
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_layers import check_whole, source_files  # noqa: E402
from list_skips import read_expected  # noqa: E402

EXPECTED = "tests/expected_skips.txt"
GTEST_CASE = re.compile(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)")
FIXTURE = re.compile(r"^(?:class|struct) (\w+)\b.*:.*\bTest\b")
BATS_CASE = re.compile(r"^@test \"(.*)\" \{")
FUNCTION = re.compile(r"^(\w+)\(\) \{")
BY_USER = re.compile(r"\b(?:root|id -u)\b|\bgete?uid\(")


def skips_of_program(text):
    """The cases of a program of GoogleTest that are skipped for root or for others, as
    `Suite.Name`."""
    case = None
    for line in text.splitlines():
        if found := FIXTURE.match(line):
            case = found.group(1) + ".*"
        elif found := GTEST_CASE.match(line):
            case = "%s.%s" % found.groups()
        elif "GTEST_SKIP" in line and BY_USER.search(line) and case:
            yield case


def skips_by_user(line):
    return re.search(r"\bskip \"", line) and BY_USER.search(line)


def skips_of_bats(name, text):
    """The cases of a bats file that are skipped for root or for others, as `FILE.bats.NAME`: by the
    case itself, by setup, or by a function that the case calls."""
    skipping, here, cases = set(), None, []
    for line in text.splitlines():
        if found := BATS_CASE.match(line):
            here = None
            cases.append(("%s.%s" % (name, found.group(1)), []))
            continue
        if found := FUNCTION.match(line):
            here = found.group(1)
        if here is None and cases:
            cases[-1][1].append(line)
        elif here and skips_by_user(line):
            skipping.add(here)
        if line == "}" or (found and line.endswith("}")):
            here = None
    for full, lines in cases:
        own = any(skips_by_user(line) for line in lines)
        called = any(line.strip() in skipping for line in lines)
        if own or called or "setup" in skipping:
            yield full


def skips_of_file(path, text):
    if path.endswith(".bats"):
        return skips_of_bats(os.path.basename(path), text)
    return skips_of_program(text)


def check_tree(root):
    patterns = read_expected(os.path.join(root, EXPECTED))
    problems = []
    for path in source_files(root, (".cpp", ".bats")):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            skips = sorted(set(skips_of_file(path, file.read())))
        problems += ["%s: %s is skipped by who runs it: let it run for both, or name it in %s"
                     % (path, skip, EXPECTED)
                     for skip in skips if not any(fnmatch.fnmatchcase(skip, pattern)
                                                  for pattern in patterns)]
    return problems


if __name__ == "__main__":
    sys.exit(check_whole(sys.argv[1:], check_tree,
                         "skips that depend on the user and are not expected: %d"))
