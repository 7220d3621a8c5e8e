#!/usr/bin/env python3
"""Tests of the image of Kubernetes' plugins that make_image.py makes of the programs of a build:
image_test.py BUILD"""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging",
                    "kubernetes", "make_image.py")
BUILD = sys.argv.pop(1) if len(sys.argv) > 1 else ""
NAME = "localhost/gpurota-kubernetes:1.2.3"
PROGRAMS = ["gpurota-device-plugin", "gpurota-dra"]
STRIPPED = tempfile.TemporaryDirectory()  # stripped, as for `./dev image`


def setUpModule():
    for name in PROGRAMS:
        subprocess.run(["strip", "-o", os.path.join(STRIPPED.name, name),
                        os.path.join(BUILD, "bin", name)], check=True)


def tearDownModule():
    STRIPPED.cleanup()


def make(path, name=NAME, programs=None, **environment):
    programs = programs or [os.path.join(STRIPPED.name, each) for each in PROGRAMS]
    return subprocess.run([sys.executable, "-B", TOOL, path, name, *programs],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=dict(os.environ, **{"SOURCE_DATE_EPOCH": "0", **environment}))


def sum_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Image:
    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.files = {each.name: tar.extractfile(each).read() for each in tar if each.isfile()}
        self.index = json.loads(self.files["index.json"])
        self.manifest = json.loads(self.blob(self.index["manifests"][0]))
        self.config = json.loads(self.blob(self.manifest["config"]))
        self.layers = [self.blob(each) for each in self.manifest["layers"]]

    def blob(self, descriptor):
        data = self.files["blobs/" + descriptor["digest"].replace(":", "/")]
        assert (sum_of(data), len(data)) == (descriptor["digest"], descriptor["size"]), descriptor
        return data

    def tars(self):
        return [tarfile.open(fileobj=io.BytesIO(each), mode="r:gz") for each in self.layers]

    def unpack(self, folder):
        for tar in self.tars():
            tar.extractall(folder)


class TheImage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "image.tar")
        done = make(cls.path)
        assert done.returncode == 0, done.stdout
        cls.image = Image(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_is_a_layout_whose_sums_hold(self):
        self.assertEqual(self.image.index["manifests"][0]["annotations"][
            "org.opencontainers.image.ref.name"], NAME)
        self.assertEqual(json.loads(self.image.files["oci-layout"]),
                         {"imageLayoutVersion": "1.0.0"})
        plain = [sum_of(tar.fileobj.read()) for tar in self.image.tars() if not tar.fileobj.seek(0)]
        self.assertEqual(plain, self.image.config["rootfs"]["diff_ids"])

    def test_has_no_shell_and_belongs_to_root(self):
        for tar in self.image.tars():
            for member in tar:
                self.assertEqual((member.uid, member.gid, member.mtime), (0, 0, 0), member.name)
                self.assertFalse(member.mode & 0o6000, member.name)
                self.assertNotIn(os.path.basename(member.name), ("sh", "bash", "dash"))

    def test_its_programs_run_with_nothing_but_what_it_has(self):
        with tempfile.TemporaryDirectory() as root:
            self.image.unpack(root)
            inside = ["chroot", root] if os.getuid() == 0 else ["unshare", "-r", "chroot", root]
            if subprocess.run([*inside, "/usr/sbin/" + PROGRAMS[0], "--version"], check=False,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 1 and os.getuid() != 0:
                self.skipTest("needs root, or user namespaces")
            for program in PROGRAMS:
                said = subprocess.run([*inside, "/usr/sbin/" + program, "--version"], check=True,
                                      stdout=subprocess.PIPE, text=True).stdout
                self.assertRegex(said, "^" + program + " [0-9]")

    def test_tells_scanners_what_it_is_made_of(self):
        with tempfile.TemporaryDirectory() as root:
            self.image.unpack(root)
            with open(os.path.join(root, "var/lib/dpkg/status.d/libc6"), encoding="utf-8") as file:
                self.assertIn("Version: ", file.read())
            self.assertTrue(os.path.exists(os.path.join(root, "usr/share/doc/libc6/copyright")))
            self.assertTrue(os.path.exists(os.path.join(root, "etc/os-release")))

    def test_has_the_folders_that_pods_mount(self):
        with tempfile.TemporaryDirectory() as root:
            self.image.unpack(root)
            for name in ("host", "run/gpurota", "var/lib/gpurota-dra", "var/lib/gpurota-kubernetes",
                         "var/run/cdi"):
                self.assertTrue(os.path.isdir(os.path.join(root, name)), name)

    def test_the_same_files_give_the_same_bytes(self):
        again = os.path.join(self.folder.name, "again.tar")
        self.assertEqual(make(again).returncode, 0)
        with open(again, "rb") as one, open(self.path, "rb") as other:
            self.assertEqual(sum_of(one.read()), sum_of(other.read()))

    def test_a_new_program_leaves_the_libraries_layer_as_it_was(self):
        changed = os.path.join(self.folder.name, PROGRAMS[0])
        with open(os.path.join(STRIPPED.name, PROGRAMS[0]), "rb") as file, open(changed,
                                                                                "wb") as copy:
            copy.write(file.read() + b"\0")
        os.chmod(changed, 0o755)
        path = os.path.join(self.folder.name, "changed.tar")
        programs = [changed] + [os.path.join(STRIPPED.name, each) for each in PROGRAMS[1:]]
        self.assertEqual(make(path, programs=programs).returncode, 0)
        layers = Image(path).manifest["layers"]
        self.assertEqual(layers[0], self.image.manifest["layers"][0])
        self.assertNotEqual(layers[1], self.image.manifest["layers"][1])


class Mistakes(unittest.TestCase):
    def refused(self, words, **arguments):
        with tempfile.TemporaryDirectory() as folder:
            done = make(os.path.join(folder, "image.tar"), **arguments)
            self.assertEqual((done.returncode, os.listdir(folder)), (1, []), done.stdout)
            self.assertIn(words, done.stdout)
            self.assertNotIn("Traceback", done.stdout)

    def test_are_refused_with_a_line_and_leave_nothing(self):
        self.refused("no name of an image", name="Upper Case")
        self.refused("no name of an image", name="localhost/no-tag")
        self.refused("/nowhere/program", programs=["/nowhere/program"])
        self.refused("not a dynamic executable", programs=[TOOL])
        mine = os.path.join(STRIPPED.name, PROGRAMS[0])
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "for-another-processor")
            with open(mine, "rb") as file, open(other, "wb") as copy:
                data = file.read()
                copy.write(data[:18] + (183 if os.uname().machine == "x86_64"
                                        else 62).to_bytes(2, "little") + data[20:])
            self.refused("images for aarch64 and x86_64 are not known", programs=[mine, other])
            # A program for another processor needs libraries that this machine does not have.
            self.refused("lib", programs=[other])
            with open(other, "wb") as copy:
                copy.write(data[:18] + (22).to_bytes(2, "little") + data[20:])
            self.refused("images for", programs=[other])
        self.refused("invalid literal", SOURCE_DATE_EPOCH="yesterday")


if __name__ == "__main__":
    unittest.main()
