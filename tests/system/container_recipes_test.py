"""The files of docs/operate/container-recipes.md are valid for the programs that read them, and
agree with gpurota: container_recipes_test.py SOURCES"""

import json
import os
import re
import sys
import tomllib
import unittest

import yaml

SOURCES = os.path.realpath(sys.argv.pop())
FILE = re.compile(r"<!-- file: (\S+) -->\n\n```(\w+)\n(.*?)```", re.DOTALL)


def read(path):
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        return file.read()


def files():
    """The parsed files, by name."""
    parsers = {"yaml": yaml.safe_load, "json": json.loads, "toml": tomllib.loads}
    return {name: parsers[language](text)
            for name, language, text in FILE.findall(read("docs/operate/container-recipes.md"))}


def words(path, pattern):
    return set(re.findall(pattern, read(path)))


class Recipes(unittest.TestCase):
    def setUp(self):
        self.files = files()
        self.variables = words("src/abi/env.h", r'"(GPUROTA_\w+)"')
        self.kinds = words("src/containers/cdi_spec.h", r'"(gpurota\.dev/\w+)"')

    def check_device(self, device):
        kind, _, name = device.partition("=")
        self.assertIn(kind, self.kinds)
        self.assertTrue(name == "any" if kind.endswith("/gpu")
                        else re.fullmatch(r"[a-z]+\.[a-z]+", name), device)

    def check_variables(self, names):
        self.assertTrue(names)
        self.assertLessEqual(set(names), self.variables)

    def test_every_file_is_there(self):
        self.assertEqual(len(self.files), 5)

    def test_compose(self):
        for name in ("compose.yaml", "compose.reserved.yaml"):
            services = self.files[name]["services"]
            self.assertEqual(set(services), {"api", "batch"})
            for service in services.values():
                self.assertTrue(service["devices"])
                for device in service["devices"]:
                    self.check_device(device)
        for service in self.files["compose.yaml"]["services"].values():
            self.check_variables(service["environment"])

    def test_dev_container(self):
        container = self.files[".devcontainer/devcontainer.json"]
        option, device = container["runArgs"]
        self.assertEqual(option, "--device")
        self.check_device(device)
        self.check_variables(container["containerEnv"])

    def test_gitlab(self):
        runner, = self.files["/etc/gitlab-runner/config.toml"]["runners"]
        said = dict(line.split("=", 1) for line in runner["environment"])
        self.check_variables(said)
        folder = said["GPUROTA_RUNTIME_DIR"]
        parts = {name: words("src/abi/env.h", rf'define {name} "([^"]+)"').pop()
                 for name in ("GPUROTA_SYSTEM_RUNTIME_DIR", "GPUROTA_CONTAINER_FOLDER",
                              "GPUROTA_PRELOAD_NAME")}
        self.assertEqual(folder, parts["GPUROTA_SYSTEM_RUNTIME_DIR"] + "/"
                         + parts["GPUROTA_CONTAINER_FOLDER"])
        mounts = [volume.split(":") for volume in runner["docker"]["volumes"]]
        self.assertTrue(all(mode == "ro" for _, _, mode in mounts))
        self.assertIn([folder, folder], [mount[:2] for mount in mounts])
        self.assertIn([folder + "/" + parts["GPUROTA_PRELOAD_NAME"], "/etc/ld.so.preload"],
                      [mount[:2] for mount in mounts])
        self.assertEqual(len(mounts), 3)

    def test_github(self):
        jobs = self.files[".github/workflows/gpu.yaml"]["jobs"]
        container = jobs["in-a-container"]["container"]
        option, device = container["options"].split()
        self.assertEqual(option, "--device")
        self.check_device(device)
        self.check_variables(container["env"])
        self.assertTrue(jobs["on-the-machine"]["steps"][-1]["run"].startswith("gpurota run "))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
