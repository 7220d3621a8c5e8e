"""Tests for notebooks: the kernel that is installed, and the magic."""

import contextlib
import io
import json
import os
import sys
import types as modules
import unittest
from typing import Any, Callable, Dict
from unittest import mock

from fake_daemon import LEASE, STATUS, TestCase

import gpurota
from gpurota import jupyter

GIB = 1 << 30
GPU = {"index": 0, "uuid": "GPU-1", "name": "H200", "pci": "0:1", "state": "in_use",
       "memory_bytes": 16 * GIB, "used_bytes": 3 * GIB,
       "reserved_bytes": 0, "unreserved_bytes": 0, "leases": ["L1"], "label": "0"}
SLICE = {**LEASE, "gpus": [{"index": 0, "uuid": "GPU-1", "used_bytes": GIB, "granted_bytes": GIB,
                            "processes": 1, "limit_bytes": 8 * GIB}]}


class Kernel(TestCase):
    def setUp(self) -> None:
        super().setUp()
        with open(os.path.join(self.folder, "gpurota"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(file.name, 0o755)
        self.set_variable("PATH", self.folder)
        self.set_variable("JUPYTER_DATA_DIR", os.path.join(self.folder, "data"))

    def test_it_starts_under_a_lease(self) -> None:
        folder = jupyter.install_kernel(memory="8G", note="notebook")
        self.assertEqual(folder, os.path.join(self.folder, "data", "kernels", "gpurota-8g-gpu"))
        self.assertEqual(os.listdir(folder), ["kernel.json"])
        with open(os.path.join(folder, "kernel.json"), encoding="utf-8") as file:
            kernel = json.load(file)
        self.assertEqual(kernel["argv"], [os.path.join(self.folder, "gpurota"), "run",
                                          "--memory=8G", "--note=notebook", "--wait=45s", "--",
                                          sys.executable, "-m", "ipykernel_launcher", "-f",
                                          "{connection_file}"])
        self.assertEqual((kernel["display_name"], kernel["language"]),
                         ("Python 3 (8G GPU)", "python"))

    def test_it_goes_to_jupyters_folder(self) -> None:
        self.set_variable("JUPYTER_DATA_DIR", None)
        self.set_variable("XDG_DATA_HOME", os.path.join(self.folder, "home"))
        self.assertTrue(jupyter.install_kernel(gpus=2).startswith(
            self.folder + "/home/jupyter/kernels/gpurota-2-gpus"))
        self.assertEqual(jupyter.install_kernel(kernel_name="mine", prefix=self.folder),
                         self.folder + "/share/jupyter/kernels/mine")

    def test_a_name_that_is_a_path_is_refused(self) -> None:
        self.assertRaises(ValueError, jupyter.install_kernel, kernel_name="../mine")
        self.assertRaises(ValueError, jupyter.install_kernel, memory="8X")

    def test_without_gpurota_it_says_so(self) -> None:
        os.unlink(os.path.join(self.folder, "gpurota"))
        self.assertRaisesRegex(gpurota.CannotAdopt, "not on the PATH", jupyter.install_kernel,
                               memory="8G")


class FakeShell:
    def __init__(self) -> None:
        self.magics: Dict[str, Callable[[str], None]] = {}

    def register_magic_function(self, function: Callable[[str], None], magic_kind: str,
                                magic_name: str) -> None:
        self.magics[magic_name] = function


class Magic(TestCase):
    """Tests with a fake of the parts of IPython that the magic needs; the last test uses the real
    IPython where it is installed."""

    def setUp(self) -> None:
        super().setUp()
        self.shell: Any = FakeShell()

    def run_line(self, line: str, lease: bool = True) -> str:
        if lease:
            self.set_variable("GPUROTA_LEASE", "L1")
        self.answer(Status=[{**STATUS, "gpus": [GPU], "leases": [SLICE] if lease else []}],
                    Update=[{"lease": SLICE}])
        errors = modules.ModuleType("IPython.core.error")
        errors.UsageError = type("UsageError", (Exception,), {})  # type: ignore[attr-defined]
        with mock.patch.dict(sys.modules,
                             {"IPython.core.error": errors}), contextlib.redirect_stdout(
                                 io.StringIO()) as out:
            gpurota.load_ipython_extension(self.shell)
            try:
                self.shell.magics["gpurota"](line)
            except errors.UsageError as error:  # type: ignore[attr-defined]
                return "error: %s" % error
        return out.getvalue()

    def test_status_has_the_gpus_and_what_the_kernel_has_of_them(self) -> None:
        for line in ("", "status"):
            text = self.run_line(line)
            self.assertRegex(text, r"GPU 0 +in use +3.0 of 16.0 GiB used +H200")
            self.assertIn("this kernel has L1: 1.0 GiB used of GPU 0, limit 8.0 GiB", text)
        self.set_variable("GPUROTA_LEASE", None)
        self.assertIn("this kernel is under no lease", self.run_line("status", lease=False))

    def test_memory_changes_the_limit(self) -> None:
        self.assertIn("limit 8.0 GiB", self.run_line("memory 12G"))
        update = next(each for each in self.daemon.calls if each["method"] == "Update")
        self.assertEqual(update["parameters"], {"lease_id": "L1", "memory": {"bytes": 12 * GIB}})

    def test_release_says_what_is_lost_before_it_does_it(self) -> None:
        self.assertIn("its variables are lost", self.run_line("release"))
        self.assertNotIn("Release", self.daemon.methods())
        self.run_line("release --yes")
        self.assertIn("Release", self.daemon.methods())

    def test_a_kernel_without_a_lease_is_told_what_to_do(self) -> None:
        for line in ("memory 8G", "release", "release --yes"):
            self.assertIn("install_kernel", self.run_line(line, lease=False))

    def test_mistakes_are_one_line(self) -> None:
        self.assertRegex(self.run_line("memory 8X"), "^error: '8X' is not a size")
        for line in ("memry 8G", "memory", "status now", "release --force", "memory '8"):
            self.assertRegex(self.run_line(line), "^error: ")

    def test_the_real_ipython_takes_it(self) -> None:
        try:
            from IPython.core.interactiveshell import InteractiveShell  # type: ignore[import]
        except ImportError:
            self.skipTest("IPython is not installed (package python3-ipython)")
        self.set_variable("HOME", self.folder)
        self.set_variable("IPYTHONDIR", self.folder)
        self.answer(Status=[{**STATUS, "gpus": [GPU]}])
        shell = InteractiveShell()
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            shell.run_line_magic("load_ext", "gpurota")
            shell.run_cell("%gpurota status")
            shell.run_cell("%gpurota memory 8G")
        self.assertIn("this kernel is under no lease", out.getvalue())
        self.assertIn("UsageError: this kernel is under no lease", out.getvalue())
        shell.history_manager.end_session()


if __name__ == "__main__":
    sys.exit(unittest.main())
