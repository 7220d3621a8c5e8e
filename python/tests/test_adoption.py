"""Tests of adopt(): what is executed, and when that is refused. Each test runs a program of its
own, because adopt() replaces the program."""

import json
import os
import subprocess
import sys
import unittest
from typing import Any, Dict

from fake_daemon import LEASE, STATUS, TestCase

import gpurota

HERE = os.path.dirname(os.path.abspath(__file__))


class Adoption(TestCase):
    def setUp(self) -> None:
        super().setUp()
        # A program in place of `gpurota`, which prints its arguments.
        self.write("gpurota", "#!%s -IS\nimport json, signal, sys\n"
                   "print(json.dumps([sys.argv[1:], signal.getsignal(signal.SIGINT) is "
                   "signal.default_int_handler]))" % sys.executable)
        os.chmod(self.path("gpurota"), 0o755)
        self.answer(Status=[{**STATUS, "leases": [LEASE]}])

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write(self, name: str, text: str) -> str:
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run_python(self, *words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        environment: Dict[str, str] = {**os.environ,
                                       "PATH": "%s:%s" % (self.folder, os.environ["PATH"]),
                                       "PYTHONPATH": os.path.dirname(HERE), **more.pop("env", {})}
        return subprocess.run([sys.executable, *words], env=environment, capture_output=True,
                              encoding="utf-8", check=False, **more)

    def test_the_program_is_executed_anew_with_its_own_words(self) -> None:
        program = self.write("train me.py",
                             "import gpurota; print('twice'); gpurota.adopt('8G', wait=0, "
                             "note='-n'); print('never')")
        done = self.run_python("-u", "-X", "dev", program, "--steps", "", "größe 1")
        self.assertEqual(done.stderr, "")
        twice, words = done.stdout.splitlines()
        self.assertEqual(json.loads(words)[0],
                         ["run", "--memory=8G", "--note=-n", "--nonblock", "--", sys.executable,
                          "-u", "-X", "dev",
                                                program, "--steps", "", "größe 1"])
        self.assertEqual(self.daemon.methods(), ["CheckRequest"])

    def test_so_are_a_command_and_a_module(self) -> None:
        code = "import gpurota; gpurota.adopt()"
        self.assertEqual(json.loads(self.run_python("-c", code, "x").stdout)[0],
                         ["run", "--", sys.executable, "-c", code, "x"])
        self.write("program.py", code)
        found = self.run_python("-m", "program", "x", cwd=self.folder)
        self.assertEqual(json.loads(found.stdout)[0],
                         ["run", "--", sys.executable, "-m", "program", "x"])

    def refused(self, done: "subprocess.CompletedProcess[str]", text: str) -> None:
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr.splitlines()[-1], "gpurota.errors.CannotAdopt: .*" + text)

    def test_what_cannot_be_executed_anew_is_refused(self) -> None:
        code = "import gpurota; gpurota.adopt()\n"
        self.refused(self.run_python("-", input=code), "on standard input")
        self.refused(self.run_python(input=code), "on standard input")
        self.refused(self.run_python("-i", "-c",
                                     "try:\n  import gpurota; gpurota.adopt()\nfinally: import os, "
                                     "traceback; traceback.print_exc(); os._exit(1)"),
                     "interactive")
        self.refused(self.run_python("-c",
                                     "import builtins, sys; builtins.__IPYTHON__ = True; "
                                     "sys.modules['ipykernel'] = sys\n" + code),
                     "install_kernel")
        program = self.write("children.py",
                             "import gpurota, multiprocessing as m\nif __name__ == '__main__':\n"
                             "  p = m.get_context('spawn').Process(target=gpurota.adopt); "
                             "p.start(); p.join(); exit(p.exitcode)")
        self.refused(self.run_python(program), "child of multiprocessing")

    def test_without_the_program_the_error_says_what_to_add(self) -> None:
        os.unlink(self.path("gpurota"))
        self.refused(self.run_python("-c", "import gpurota; gpurota.adopt()",
                                     env={"PATH": "/nonexistent"}), "not on the PATH")

    def test_under_a_lease_that_one_counts(self) -> None:
        code = "import gpurota; print(gpurota.adopt('900G').lease_id, gpurota.current().share)"
        self.assertEqual(self.run_python("-c", code, env={"GPUROTA_LEASE": "L1"}).stdout,
                         "L1 slice\n")
        self.assertNotIn("CheckRequest", self.daemon.methods())

    def test_a_lease_that_is_over_or_not_enforced_is_refused(self) -> None:
        code = "import gpurota; gpurota.adopt()"
        self.refused(self.run_python("-c", code, env={"GPUROTA_LEASE": "L2"}),
                     "L2, which has ended, or is another user's: unset GPUROTA_LEASE")
        self.refused(self.run_python("-c", code,
                                     env={"GPUROTA_LEASE": "L1", "GPUROTA_SOCKET": "/x"}),
                     "libgpurota is not loaded")

    def test_outside_of_a_lease_there_is_no_current_one(self) -> None:
        self.assertIsNone(gpurota.current())
        self.assertEqual(self.daemon.calls, [])


if __name__ == "__main__":
    sys.exit(unittest.main())
