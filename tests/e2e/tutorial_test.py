#!/usr/bin/env python3
"""Tests of tutorial.py: which outputs are equal, and how a block is read."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tutorial  # noqa: E402


class Comparing(unittest.TestCase):
    def equal(self, one, other):
        self.assertEqual(tutorial.comparable(one), tutorial.comparable(other))

    def differ(self, one, other):
        self.assertNotEqual(tutorial.comparable(one), tutorial.comparable(other))

    def test_times_are_equal_also_of_another_day(self):
        self.equal("until 09:11", "until Nov 24 01:11")
        self.equal("run 2026-11-23 09:11:40 to 2026-11-23 09:11:43",
                   "run 2026-11-30 23:59:59 to 2026-12-01 00:00:02")

    def test_spans_are_equal_in_whatever_unit(self):
        self.equal("got GPU 1 as L6 after 0 s", "got GPU 1 as L6 after 1 min 5 s")
        self.equal("3.5 / 4    59s    0%", "3.5 / 4  1h02m  100%")
        self.equal("700 ms", "1.2 s")

    def test_pids_are_equal(self):
        self.equal("pid 12 (train hold 3000)", "pid 34567 (train hold 3000)")
        self.equal("  0  3754  alice  compute  2.6 GiB", "  0  99  alice  compute  2.6 GiB")

    def test_how_often_a_program_prints_its_round_does_not_matter(self):
        self.equal("round 1, 0 wrong\ndone: 2 rounds, 0 wrong",
                   "round 1, 0 wrong\nround 7, 0 wrong\ndone: 9 rounds, 0 wrong")
        self.differ("round 1, 0 wrong", "round 1, 1 wrong")

    def test_memory_leases_and_words_are_not(self):
        self.differ("2.6 / 3", "2.5 / 3")
        self.differ("released L2", "released L3")
        self.differ("waiting as R1", "waits as R1")
        self.differ("one\ntwo", "two\none")


class Reading(unittest.TestCase):
    def test_a_block_has_commands_with_their_continuations_and_outputs(self):
        steps = tutorial.split_block(["alice$ cat <<END", "> here", "> END", "here", "admin# true",
                                      "bob$"])
        self.assertEqual([step[1:] for step in steps],
                         [["alice", "cat <<END\nhere\nEND", ["here"]], ["admin", "true", []],
                          ["bob", "", []]])

    def test_only_root_has_the_prompt_of_root(self):
        steps = tutorial.split_block(["alice$ true", "alice# true"])
        self.assertEqual(steps[0][3], ["alice# true"])

    def test_what_prints_at_a_time_of_its_own_is_not_run_without_until(self):
        with self.assertRaisesRegex(tutorial.Failure, "until"):
            tutorial.run_block(None, ["alice$ sleep 9 &", "alice$ true"], "text")


if __name__ == "__main__":
    unittest.main()
