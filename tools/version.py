#!/usr/bin/env python3
"""The version of gpurota. CMakeLists.txt has it; files that nothing is built of repeat it.

    tools/version.py                prints it
    tools/version.py --check        says which file has another one; runs as a test
    tools/version.py --set 1.2.3    writes it into CMakeLists.txt and the files of PLACES

Programs, RPMs, the image and the names of archives get the version when they are built.
CHANGELOG.md, debian/changelog and SECURITY.md are written by hand: --check says what they lack.
"""

import email.utils
import glob
import os
import re
import sys

SOURCE = "CMakeLists.txt", r"^project\(gpurota VERSION (\d+\.\d+\.\d+) "
# Files, and the pattern of the text around the version in each. The group of the pattern is the
# version.
PLACES = [
    ("README.md", r"^    git clone .* # version (\S+);"),
    ("packaging/kubernetes/chart/Chart.yaml", r"^(?:version|appVersion): (\S+)$"),
    ("packaging/kubernetes/*.yaml", r"image: \S*/gpurota-kubernetes:(\S+)$"),
    ("python/gpurota/types.py", r'^VERSION = "(.*)"$'),
    ("docs/operate/install.md", r"gpurota-(\d[\d.]*\d)-(?:1\.)?x86_64"),
    ("docs/operate/kubernetes.md", r"gpurota-kubernetes:(\d[\d.]*\d)"),
]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def version_of(root):
    found = re.search(SOURCE[1], read(root, SOURCE[0]), re.MULTILINE)
    if not found:
        sys.exit("CMakeLists.txt: there is no line 'project(gpurota VERSION 1.2.3 …'")
    return found.group(1)


def files_of(root, pattern):
    return sorted(os.path.relpath(path, root) for path in glob.glob(os.path.join(root, pattern)))


def check_places(root, version):
    for pattern, around in PLACES:
        found = [(path, each) for path in files_of(root, pattern)
                 for each in re.findall(around, read(root, path), re.MULTILINE)]
        if not found:
            yield "%s: has no version; has it changed its form?" % pattern
        for path, each in found:
            if each != version:
                yield ("%s: has version %s, and CMakeLists.txt %s: tools/version.py --set %s"
                       % (path, each, version, version))


def check_debian(root, version):
    """The newest entry of debian/changelog is of the version, and has a date."""
    text = read(root, "debian/changelog")
    entry = re.match(r"gpurota \(([^)]+)\) \w+; urgency=\w+\n", text)
    # Debian may append a suffix to the version, after ~, + or -.
    if not entry or re.split(r"[~+-]", entry.group(1))[0] != version:
        yield "debian/changelog: does not begin with an entry of %s, as CMakeLists.txt" % version
    date = re.search(r"^ -- .+ <\S+>  (.+)$", text, re.MULTILINE)
    if not date or not email.utils.parsedate(date.group(1)):
        yield ("debian/changelog: no date at ' -- NAME <ADDRESS>  DATE' of the newest entry: "
               "packages take all their times from it")


def check_texts(root, version):
    """CHANGELOG.md has a section of the version, SECURITY.md names its series as supported."""
    sections = re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d\d-\d\d$", read(root, "CHANGELOG.md"),
                          re.MULTILINE)
    if sections[:1] != [version]:
        yield ("CHANGELOG.md: the newest release is %s, and CMakeLists.txt has %s: "
               "add '## [%s] - YEAR-MONTH-DAY'" % ((sections or ["none"])[0], version, version))
    series = version.rsplit(".", 1)[0]
    if not re.search(r"^\| %s\.x +\| yes" % re.escape(series), read(root, "SECURITY.md"),
                     re.MULTILINE):
        yield "SECURITY.md: no line '| %s.x | yes' among the supported versions" % series


def check_tree(root):
    version = version_of(root)
    return [*check_places(root, version), *check_debian(root, version), *check_texts(root, version)]


def write_version(root, version):
    for pattern, around in [SOURCE, *PLACES]:
        for path in files_of(root, pattern):
            text = read(root, path)
            new = re.sub(around, lambda found: found.group(0).replace(found.group(1), version),
                         text, flags=re.MULTILINE)
            if new != text:
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(new)
                print("%s: written" % path)


def main(arguments):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not arguments:
        print(version_of(root))
        return 0
    if re.fullmatch(r"--set \d+\.\d+\.\d+", " ".join(arguments)):
        write_version(root, arguments[1])
    elif arguments != ["--check"]:
        sys.exit(__doc__)
    problems = check_tree(root)
    for problem in problems:
        print(problem)
    print("version %s: %d problems" % (version_of(root), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
