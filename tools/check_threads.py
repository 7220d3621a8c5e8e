#!/usr/bin/env python3
"""Refuses threads that are started anywhere but in base/threads.cpp. Runs as a test.

    tools/check_threads.py [ROOT]     prints each as file:line: text; exits 1 if there are any

std::thread throws if no thread can be created, and an exception ends the process; start_thread()
returns an error instead. The check leaves out the interposer, which has its own function
(threads.cpp there), the simulated driver, which stands for somebody else's library, and tests,
benchmarks and the demo.
"""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_fields import blanked  # noqa: E402
from check_layers import check_each  # noqa: E402

# The wrapper, and a fake that only tests link.
MAY = ("src/base/threads.cpp", "src/client/fake_daemon.cpp")
FREE = ("src/interposer/", "src/testing/", "sim/", "tests/", "bench/", "demo/")
# The start of a thread: a temporary or named std::thread with a function, or another way to start
# one.
BEGINS = re.compile(
    r"\bstd::thread\s*(\w+\s*)?[({]\s*[^\s)}]|\bstd::(jthread|async)\b|"
    r"\bpthread_create\s*\(|make_(unique|shared)<std::thread>")
MEMBER = re.compile(r"\bstd::thread\s+(\w+)\s*;")
LIST = re.compile(r"<std::thread>\s+(\w+)\s*;")


def lines_of(text, pattern):
    return [text.count("\n", 0, match.start()) + 1 for match in re.finditer(pattern, text)]


def check_text(text):
    """The lines on which a thread is started."""
    text = blanked(text)
    found = lines_of(text, BEGINS)
    for name in MEMBER.findall(text):
        found += lines_of(text, r"\b%s\s*[({]\s*[^\s)}]" % name)
    for name in LIST.findall(text):
        found += lines_of(text, r"\b%s\s*\.\s*emplace" % name)
    return sorted(set(found))


def check_file(root, path):
    name = path.replace(os.sep, "/")
    if name in MAY or name.startswith(FREE) or re.search(r"_test\.(cpp|c|h)$", name):
        return []
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return ["%s:%d: a thread: start_thread() of base/threads.h returns an error where there is "
                "none" % (path, line)
                for line in check_text(file.read())]


def main(arguments):
    return check_each(arguments, check_file,
                      "threads: %d files, %d that begin outside base/threads.cpp")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
