#!/usr/bin/env python3
"""Checks that each file of a release is present and has the version of the release.

    check_release.py FOLDER VERSION

FOLDER is what make_release.sh has made, or a copy of it. Called by make_release.sh. Needs dpkg-deb,
and runs the programs of the packages with --version.
"""

import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

# Parts of the bundle of the web page. Its licences must name the authors of the packages from npm.
PAGE = ("src/web/page/bundle/page.js", "src/web/page/bundle/licences.txt")
NOTICE = b"Jason Miller"
# Programs that only other programs of gpurota start, and that have no --version.
SILENT = {"gpurota-burn", "gpurota-keeper", "gpurota-park"}


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def read_member(path, name):
    with tarfile.open(path) as tar:
        return tar.extractfile(name).read()


def line(text, key):
    found = re.search(r"^%s:? ?=? ?\"?([^\"\n]*)" % re.escape(key), text, re.MULTILINE)
    return found.group(1) if found else "none"


def check_source(path, version):
    with tarfile.open(path) as tar:
        names = set(tar.getnames())
    top = "gpurota-%s/" % version
    for name in PAGE:
        if top + name not in names:
            yield "has no %s" % name
    text = read_member(path, top + "CMakeLists.txt").decode()
    if "project(gpurota VERSION %s " % version not in text:
        yield "has sources of another version"


def check_programs(root, version):
    """Checks what the packages' programs print for --version, and that gpurota-web has its page."""
    for folder in ("usr/bin", "usr/sbin"):
        for name in sorted(os.listdir(os.path.join(root, folder))):
            program = os.path.join(root, folder, name)
            if name not in SILENT and output_of(program, "--version") != "%s %s" % (name, version):
                yield "%s --version says %s" % (name, output_of(program, "--version"))
    with open(os.path.join(root, "usr/bin/gpurota-web"), "rb") as file:
        if NOTICE not in file.read():
            yield "gpurota-web has no page"


def check_debian(paths, version):
    with tempfile.TemporaryDirectory() as root:
        for path in paths:
            said = output_of("dpkg-deb", "--field", path, "Version")
            if said != version:
                yield "%s is of version %s" % (os.path.basename(path), said)
            subprocess.run(["dpkg-deb", "--extract", path, root], check=True)
        yield from check_programs(root, version)


def check_wheel(path, version):
    with zipfile.ZipFile(path) as wheel:
        said = line(wheel.read("gpurota-%s.dist-info/METADATA" % version).decode(), "Version")
        types = line(wheel.read("gpurota/types.py").decode(), "VERSION")
    if {said, types} != {version}:
        yield "is of %s, its module of %s" % (said, types)


def check_sdist(path, version):
    said = line(read_member(path, "gpurota-%s/PKG-INFO" % version).decode(), "Version")
    if said != version:
        yield "is of version %s" % said


def check_chart(path, version):
    text = read_member(path, "gpurota/Chart.yaml").decode()
    if {line(text, "version"), line(text, "appVersion")} != {version}:
        yield "is of version %s" % line(text, "version")


def check_image(path, version):
    index = json.loads(read_member(path, "index.json"))
    name = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
    if not name.endswith("/gpurota-kubernetes:" + version):
        yield "is called %s" % name


def check_sums(folder):
    with open(os.path.join(folder, "SHA256SUMS"), encoding="utf-8") as file:
        sums = {name: digest for digest, name in (each.rstrip("\n").split("  ") for each in file)}
    for name in sorted(set(os.listdir(folder)) - {"SHA256SUMS"} | set(sums)):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            yield "SHA256SUMS: %s is not there" % name
            continue
        with open(path, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != sums.get(name):
                yield "SHA256SUMS: %s has another sum" % name


def packages_of(root):
    with open(os.path.join(root, "debian", "control"), encoding="utf-8") as file:
        return re.findall(r"^Package: (\S+)$", file.read(), re.MULTILINE)


def problems_of(folder, version):
    checks = {"gpurota-%s.tar.xz": check_source, "gpurota-%s-py3-none-any.whl": check_wheel,
              "gpurota-%s.tar.gz": check_sdist, "gpurota-chart-%s.tgz": check_chart,
              "gpurota-kubernetes-%s.tar": check_image}
    for name, check in checks.items():
        path = os.path.join(folder, name % version)
        if not os.path.exists(path):
            yield "%s is not there" % os.path.basename(path)
            continue
        for problem in check(path, version):
            yield "%s: %s" % (os.path.basename(path), problem)
    made = []
    for name in packages_of(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))):
        found = glob.glob(os.path.join(folder, "%s_%s_*.deb" % (name, version)))
        if not found:
            yield "the package %s is not there" % name
        made += found
    yield from check_debian(made, version)
    yield from check_sums(folder)


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    problems = list(problems_of(*arguments))
    for problem in problems:
        print(problem)
    print("release %s: %d problems" % (arguments[1], len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
