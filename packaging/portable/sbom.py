#!/usr/bin/env python3
"""Writes what is linked into the portable programs, from where and under which licence, as SPDX 2.3
(JSON).

    packaging/portable/sbom.py --name NAME --version VERSION --stage STAGE --build BUILD
                               --sysroot SYSROOT --notices FOLDER

STAGE is the tree that was installed from the build folder BUILD. The linker's maps name the
archives, ninja's records the headers, and dpkg their packages and versions (in SYSROOT; for the
compiler, on this system). FOLDER gets the notices that the licences require to be distributed.
Prints the document. Called by make_portable.sh.
"""

import argparse
import datetime
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import uuid

# By source package: the licence of the part that is linked into a program, in SPDX's words, and a
# word of the package's copyright file. A changed licence is noticed when that word is missing. A
# package that is linked in and not listed here is an error: read its licence first.
LICENCES = {
    "sqlite3": ("blessing", "public-domain"),
    "ncurses": ("X11-distribute-modifications-variant AND BSD-3-Clause", "MIT/X11"),
    "fmtlib": ("MIT", "Expat with embedded exception"),
    "tomlplusplus": ("MIT", "Expat"),
    "tl-expected": ("CC0-1.0", "CC0-1.0"),
    "nlohmann-json3": ("MIT", "Expat"),
    "gcc-12": ("GPL-3.0-or-later WITH GCC-exception-3.1", "Runtime Library Exception"),
    "glibc": ("LGPL-2.1-or-later", "Lesser General Public"),
    "systemd": ("LGPL-2.1-or-later", "LGPL-2.1"),
    "acl": ("LGPL-2.1-or-later", "Lesser"),
    "linux": ("GPL-2.0-only WITH Linux-syscall-note", "syscall"),
    "libxcrypt": ("LGPL-2.1-or-later", "Lesser"),
}
# Packages whose headers only describe functions that are called at run time.
ONLY_CALLED = {"systemd", "acl", "linux", "libxcrypt"}


def die(message):
    sys.exit("sbom: " + message)


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Packages:
    """Finds the package of a file, which is in the sysroot or installed on this system."""

    def __init__(self, sysroot):
        self.sysroot = sysroot
        self.rows = {}
        for line in read(os.path.join(sysroot, "packages.tsv")).splitlines():
            self.add(line, sysroot)
        self.owners = dict(line.split("\t")
                           for line in read(os.path.join(sysroot, "files.tsv")).splitlines())

    def add(self, line, root):
        name, version, source, source_version, architecture = line.split("\t")
        self.rows[name] = {"name": name, "version": version, "source": source,
                           "source_version": source_version,
                           "architecture": architecture, "root": root}

    def learn(self, paths):
        """Asks dpkg once about all paths that belong to this system."""
        real = {os.path.realpath(path) for path in paths}
        mine = sorted(path for path in real if path.startswith(("/usr/", "/lib"))
                      and not path.startswith(self.sysroot))
        for line in lines("dpkg", "-S", *mine):
            name, path = line.split(": ", 1)
            self.owners[path] = name.split(":")[0]
        form = (
            "${Package}\\t${Version}\\t${source:Package}\\t${source:Version}\\t${Architecture}\\n")
        for line in lines("dpkg-query", "-W", "-f", form,
                          *sorted({self.owners[path] for path in mine})):
            self.add(line, "/")

    def find(self, path):
        """The package of a file; None for a file of the project itself."""
        real = os.path.realpath(path)
        inside = os.path.relpath(real, self.sysroot)
        return self.owners.get(inside if not inside.startswith("..") else real)

    def copyright_file(self, name):
        return os.path.join(self.rows[name]["root"], "usr/share/doc", name, "copyright")


def archives(build, installed):
    """Program → archives from which something was linked in, as the linker's maps show."""
    found = {}
    for path in glob.glob(os.path.join(build, "maps", "*.map")):
        program = os.path.basename(path)[: -len(".map")]
        if program not in installed:
            continue
        for archive in re.findall(r"^(/[^ (\n]*\.a)\(", read(path), re.MULTILINE):
            if not os.path.realpath(archive).startswith(os.path.join(os.path.realpath(build), "")):
                found.setdefault(program, set()).add(os.path.normpath(archive))
    if not found:
        die("%s/maps has no map of an installed program; has cmake/GpurotaPortable.cmake changed?"
            % build)
    return found


def headers(build):
    """All headers that were read from outside the project."""
    found = {line.strip() for line in lines("ninja", "-C", build, "-t", "deps")
             if line.startswith("    ")}
    return {os.path.join(build, path) for path in found}


def elf_files(stage):
    found = {}
    for folder, _, names in os.walk(stage):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            if data[:4] == b"\x7fELF":
                found[name] = (os.path.relpath(path, stage), data)
    return found


def linked_in(packages, build, installed):
    """Package → the programs that parts of the package were linked into; an empty set where only
    headers were read."""
    by_package = {}
    read_headers, taken_archives = headers(build), archives(build, installed)
    packages.learn(read_headers.union(*taken_archives.values()))
    for header in read_headers:
        name = packages.find(header)
        if name and packages.rows[name]["source"] not in ONLY_CALLED | {"glibc", "gcc-12"}:
            by_package.setdefault(name, set())
    for program, taken in taken_archives.items():
        for archive in taken:
            name = packages.find(archive)
            if name is None:
                die("%s is in %s, but of no package" % (archive, program))
            by_package.setdefault(name, set()).add(program)
    return by_package


def identifier(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text.replace("++", "pp"))


def licence_of(packages, name):
    source = packages.rows[name]["source"]
    if source not in LICENCES:
        die("%s (source %s) is linked in, and LICENCES of packaging/portable/sbom.py does not say "
            "how it is licensed" % (name, source))
    licence, word = LICENCES[source]
    path = packages.copyright_file(name)
    if word not in read(path):
        die("%s does not say '%s' any more: has its licence changed? Correct LICENCES of "
            "packaging/portable/sbom.py" % (path, word))
    return licence


def package_entry(packages, name):
    row = packages.rows[name]
    text = read(packages.copyright_file(name))
    holders = sorted({line.strip()
                      for line in re.findall(r"^Copyright:\s*(\S.*)$", text, re.MULTILINE)})
    licence = licence_of(packages, name)
    return {
        "SPDXID": identifier("Package-" + name), "name": row["source"],
        "versionInfo": row["source_version"],
        "supplier": "Organization: Debian",
        "downloadLocation": "https://snapshot.debian.org/package/%s/%s/"
        % (row["source"], row["source_version"]),
        "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
        "copyrightText": "\n".join(holders) or "NOASSERTION",
        "comment": "Debian package %s %s" % (name, row["version"]),
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": "pkg:deb/debian/%s@%s?arch=%s"
                          % (name, row["version"].replace("+", "%2B"), row["architecture"])}],
    }


def in_page(build):
    """The packages from npm in the web page of gpurota-web, if it has one: name → version and
    licence."""
    folder = os.path.join(build, "src", "web", "page")
    made = os.path.join(build, "generated", "web", "page_assets.cpp")
    if not os.path.exists(made) or "kGzip0" not in read(made):
        return {}
    locked = json.loads(read(os.path.join(folder, "package-lock.json")))["packages"]
    bundled = locked[""]["dependencies"]
    return {name: (locked["node_modules/" + name]["version"],
                   locked["node_modules/" + name]["license"]) for name in bundled}


def page_entry(name, version, licence):
    return {
        "SPDXID": identifier("Page-" + name), "name": name, "versionInfo": version,
        "supplier": "NOASSERTION",
        "downloadLocation": "https://registry.npmjs.org/%s/-/%s-%s.tgz" % (name, name, version),
        "filesAnalyzed": False,
        "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION",
        "comment": "notices: /licences.txt of gpurota-web",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": "pkg:npm/%s@%s" % (name, version)}],
    }


def own_entry(arguments):
    return {
        "SPDXID": "SPDXRef-gpurota", "name": "gpurota", "versionInfo": arguments.version,
        "supplier": "Organization: gpurota",
        "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "The authors of gpurota", "primaryPackagePurpose": "APPLICATION",
    }


def file_entry(name, path, data):
    return {
        "SPDXID": identifier("File-" + name), "fileName": "./" + path, "fileTypes": ["BINARY"],
        "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                      {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}],
        "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"],
        "copyrightText": "NOASSERTION",
    }


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(arguments, packages, by_package, installed):
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-gpurota")]
    relations += [relation("SPDXRef-gpurota", "CONTAINS", identifier("File-" + name))
                  for name in sorted(installed)]
    for package, programs in sorted(by_package.items()):
        users = ([identifier("File-" + program) for program in sorted(programs)]
                 or ["SPDXRef-gpurota"])
        relations += [relation(user, "STATIC_LINK", identifier("Package-" + package))
                      for user in users]
    page = in_page(arguments.build)
    relations += [relation(identifier("File-gpurota-web"), "CONTAINS", identifier("Page-" + name))
                  for name in sorted(page)]
    found = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": arguments.name,
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
                                                           "%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: gpurota-sbom-" + arguments.version]},
        "packages": [own_entry(arguments)]
        + [package_entry(packages, name) for name in sorted(by_package)]
        + [page_entry(name, *page[name]) for name in sorted(page)],
        "files": [file_entry(name, *installed[name]) for name in sorted(installed)],
        "relationships": relations,
    }
    # The same content has the same name.
    content = json.dumps(found, sort_keys=True)
    found["documentNamespace"] = "https://gpurota.example/spdx/%s-%s" % (
        arguments.name, uuid.uuid5(uuid.NAMESPACE_URL, content))
    return found


def write_notices(packages, by_package, folder):
    os.makedirs(folder, exist_ok=True)
    for name in by_package:
        shutil.copyfile(packages.copyright_file(name),
                        os.path.join(folder, packages.rows[name]["source"]))


def main():
    parser = argparse.ArgumentParser()
    for option in ("name", "version", "stage", "build", "sysroot", "notices"):
        parser.add_argument("--" + option, required=True)
    arguments = parser.parse_args()
    packages = Packages(os.path.realpath(arguments.sysroot))
    installed = elf_files(arguments.stage)
    by_package = linked_in(packages, arguments.build, installed)
    write_notices(packages, by_package, arguments.notices)
    json.dump(document(arguments, packages, by_package, installed), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
