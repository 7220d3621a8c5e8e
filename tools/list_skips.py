#!/usr/bin/env python3
"""Lists the tests that were skipped, with their reasons.

    tools/list_skips.py RESULTS [EXPECTED]

RESULTS is a folder tree of JUnit files as gtest, bats and ctest write them. With EXPECTED (lines of
`pattern  # reason`, as in tests/expected_skips.txt), exits 1 if a test is skipped that no pattern
names.
"""

import fnmatch
import os
import sys
import xml.etree.ElementTree as ElementTree


def reason_of(case, skipped):
    text = (skipped.get("message") or "") + "\n" + (skipped.text or "")
    # For a skip by exit code or by pattern, ctest's message names only the property that matched.
    # The reason is then in the output of the test.
    if "SKIP_R" in text or not text.strip():
        text = case.findtext("system-out") or text
    lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    return lines[-1] if lines else "no reason given"


def skips_of(path):
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        skipped = case.find("skipped")
        if skipped is None:
            continue
        suite = case.get("classname") or ""
        name = case.get("name") or "?"
        full = name if suite in ("", name) else "%s.%s" % (suite, name)
        yield full, reason_of(case, skipped)


def read_skips(folder):
    found = set()
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".xml"):
                found.update(skips_of(os.path.join(path, name)))
    return sorted(found)


def read_expected(path):
    with open(path, encoding="utf-8") as lines:
        patterns = [line.split("#")[0].strip() for line in lines]
    return [pattern for pattern in patterns if pattern]


def unexpected(skips, patterns):
    return [skip for skip in skips
            if not any(fnmatch.fnmatchcase(skip[0], pattern) for pattern in patterns)]


def main(arguments):
    try:
        skips = read_skips(arguments[0])
    except (OSError, ElementTree.ParseError) as error:
        print("cannot read the results of the tests in %s: %s" % (arguments[0], error))
        return 1
    for name, reason in skips:
        print("skipped: %s: %s" % (name, reason))
    if len(arguments) < 2:
        return 0
    surprises = unexpected(skips, read_expected(arguments[1]))
    for name, _ in surprises:
        print("nobody expects this skip: %s (mend it, or add it to %s with a reason)"
              % (name, arguments[1]))
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
