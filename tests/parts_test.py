#!/usr/bin/env python3
"""The core without its guests, and the labels of tests: parts_test.py SOURCE BUILD

ARCHITECTURE.md has the guests; `./dev test` takes the tests of a part by their labels.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, BUILD = sys.argv[1:3]
del sys.argv[1:3]
ALONE = os.path.join(BUILD, "core_alone")
OF_GUESTS = re.compile(r"gpurota-(web|burn|dra|device-plugin)\b|"
                       r"/kubernetes/|/monitoring/|/python/gpurota/")
FOLDERS_OF_GUESTS = ("src/kube/", "src/web/", "src/burn/")


def run(*words):
    return subprocess.run(words, cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)


def labels_of_dev():
    with open(os.path.join(SOURCE, "dev"), encoding="utf-8") as file:
        text = file.read()
    return [set(re.search(r"^readonly %s=\((.*?)\)" % name, text, re.MULTILINE).group(1).split())
            for name in ("PARTS", "KINDS")]


def tests_of(build):
    said = json.loads(run("ctest", "--test-dir", build, "--show-only=json-v1").stdout)
    tests = {}
    for test in said["tests"]:
        labels = [each["value"] for each in test["properties"] if each["name"] == "LABELS"]
        tests[test["name"]] = set(labels[0] if labels else [])
    return tests


class Labels(unittest.TestCase):
    def test_each_test_has_one_part_and_one_kind(self):
        parts, kinds = labels_of_dev()
        # A hostile test is an end-to-end test as well.
        kinds -= {"hostile"}
        for name, labels in tests_of(BUILD).items():
            with self.subTest(name):
                self.assertEqual(len(labels & parts), 1, labels)
                self.assertEqual(len(labels & kinds), 1, labels)
                self.assertLessEqual(labels - parts - kinds, {"hostile", "unsanitized"})

    def test_dev_names_the_labels_if_there_is_none_of_that_name(self):
        said = run("./dev", "test", "web", "kubernetes")
        self.assertNotEqual(said.returncode, 0)
        parts, kinds = labels_of_dev()
        self.assertIn("no label 'kubernetes'", said.stdout)
        for label in parts | kinds:
            self.assertRegex(said.stdout, r"\b%s\b" % label)


class Core(unittest.TestCase):
    """The core is only configured here, because the rest of the build shows that it compiles."""

    @classmethod
    def setUpClass(cls):
        shutil.rmtree(ALONE, ignore_errors=True)
        cls.said = run("cmake", "--preset", "core", "-B", ALONE)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(ALONE, ignore_errors=True)

    def setUp(self):
        self.assertEqual(self.said.returncode, 0, self.said.stdout)

    def test_compiles_nothing_of_guests(self):
        with open(os.path.join(ALONE, "compile_commands.json"), encoding="utf-8") as file:
            sources = [os.path.relpath(each["file"], SOURCE) for each in json.load(file)]
        self.assertIn("src/daemon/main.cpp", sources)
        self.assertEqual([each for each in sources if each.startswith(FOLDERS_OF_GUESTS)], [])

    def test_installs_nothing_of_guests(self):
        names = []
        for folder, _, files in os.walk(ALONE):
            if "cmake_install.cmake" in files:
                with open(os.path.join(folder, "cmake_install.cmake"), encoding="utf-8") as file:
                    names += re.findall(r'"([^"]*/[^"]*)"', file.read())
        self.assertTrue([each for each in names if each.endswith("/gpurotad.8")])
        self.assertEqual([each for each in names if OF_GUESTS.search(each)], [])

    def test_has_all_tests_of_the_core_and_no_others(self):
        alone = tests_of(ALONE)
        self.assertEqual({name for name, labels in alone.items() if "core" not in labels}, set())
        whole = {name for name, labels in tests_of(BUILD).items() if "core" in labels}
        # The core alone lacks package_lists, which compares all installed files with all packages.
        self.assertEqual(whole - set(alone), {"package_lists"} & whole)


if __name__ == "__main__":
    unittest.main()
