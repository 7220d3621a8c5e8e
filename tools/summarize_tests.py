#!/usr/bin/env python3
"""One closing line, in ctest's words, for several runs of ctest.

    tools/summarize_tests.py BUILD…     each with test-results/ctest.xml; a missing one counts as a
                                        failure
"""

import os
import sys
import xml.etree.ElementTree as ElementTree


def count(build):
    """(tests, failures) of one run."""
    try:
        suite = ElementTree.parse(os.path.join(build, "test-results", "ctest.xml")).getroot()
    except (OSError, ElementTree.ParseError):
        print("%s: no results, so it did not get as far as its tests" % build)
        return 1, 1
    return int(suite.get("tests", 0)), int(suite.get("failures", 0))


def main(builds):
    runs = [count(build) for build in builds]
    tests = sum(run[0] for run in runs)
    failures = sum(run[1] for run in runs)
    percent = 100 * (tests - failures) // tests if tests else 0
    print("%d%% tests passed, %d tests failed out of %d" % (percent, failures, tests))
    return 1 if failures or not tests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
