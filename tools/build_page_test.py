#!/usr/bin/env python3
"""Tests of build_page.py that need neither npm nor a network."""

import contextlib
import io
import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build_page  # noqa: E402

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src", "web",
                       "page")


class WithoutNpm(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.output = os.path.join(self.folder.name, "page_assets.cpp")
        self.path = os.environ["PATH"]
        os.environ["PATH"] = self.folder.name

    def tearDown(self):
        os.environ["PATH"] = self.path
        self.folder.cleanup()

    def build(self, *options, sources=SOURCES):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            build_page.main([sources, os.path.join(self.folder.name, "page"), self.output,
                             *options])
        return said.getvalue()

    def use_npm(self, text):
        with open(os.path.join(self.folder.name, "npm"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(os.path.join(self.folder.name, "npm"), 0o755)

    def written(self):
        with open(self.output, encoding="utf-8") as file:
            return file.read()

    def test_builds_without_a_page_and_says_so(self):
        self.assertIn("built without its page: npm is not installed", self.build())
        self.assertIn("assets = {};", self.written())

    def test_says_what_npm_said_where_the_registry_is_not_reachable(self):
        self.use_npm("echo 'no such host: registry'; exit 1\n")
        self.assertIn("no such host: registry", self.build())
        self.assertIn("assets = {};", self.written())

    def test_required_is_an_error(self):
        with self.assertRaises(SystemExit) as error:
            self.build("--required")
        self.assertIn("npm is not installed", str(error.exception))
        self.assertFalse(os.path.exists(self.output))

    def test_takes_a_bundle_of_the_same_sources(self):
        sources = os.path.join(self.folder.name, "sources")
        bundle = os.path.join(sources, "bundle")
        shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("bundle"))
        self.use_npm("case $1 in ci) /bin/mkdir -p node_modules/preact node_modules/uplot\n"
                     "for name in preact uplot; do echo $name may > node_modules/$name/LICENSE\n"
                     "done;; *) /bin/mkdir -p out\necho made > out/page.js\n"
                     "echo made > out/page.css;; esac\n")
        with contextlib.redirect_stdout(io.StringIO()):
            build_page.main([sources, os.path.join(self.folder.name, "first"), "--bundle"])
        self.assertEqual(sorted(os.listdir(bundle)),
                         ["licences.txt", "page.css", "page.js", "sources.sha256"])
        os.remove(os.path.join(self.folder.name, "npm"))
        self.build("--required", sources=sources)
        self.assertNotIn("assets = {};", self.written())
        with open(os.path.join(sources, "page.css"), "a", encoding="utf-8") as file:
            file.write("/* later */\n")
        with self.assertRaises(SystemExit) as error:
            self.build("--required", sources=sources)
        self.assertIn("npm is not installed", str(error.exception))

    def test_a_mistake_in_the_sources_is_always_an_error(self):
        self.use_npm("case $1 in ci) /bin/mkdir -p node_modules;; *) echo 'page.tsx(1,1): error "
                     "TS1'; exit 1;; esac\n")
        with self.assertRaises(SystemExit) as error:
            self.build()
        self.assertIn("page.tsx(1,1): error TS1", str(error.exception))


if __name__ == "__main__":
    unittest.main()
