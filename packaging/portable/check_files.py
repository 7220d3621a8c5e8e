#!/usr/bin/env python3
"""Checks that the programs and libraries of an installed tree run on all supported systems.

    packaging/portable/check_files.py STAGE     prints each problem and exits 1, or prints the
                                                oldest glibc that is enough

A program may need at load time only the libraries in the lists below, in versions that Ubuntu
20.04, Debian 11 and RHEL 9 have. A library neither needs nor offers a C++ symbol. Needs readelf and
nm. Called by make_portable.sh.
"""

import os
import re
import subprocess
import sys

EVERYWHERE = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2",
              "ld-linux-aarch64.so.1"}
# The libraries that a file may need, by its name; all other files may need those of EVERYWHERE.
ALLOWED = {
    "gpurotad": EVERYWHERE | {"libsystemd.so.0", "libacl.so.1"},
    "gpurota-keeper": EVERYWHERE | {"libsystemd.so.0"},
    "libgpurota.so": {"libc.so.6", "ld-linux-aarch64.so.1"},
}
# glibc of Debian 11 and Ubuntu 20.04, libsystemd of Ubuntu 20.04, libacl of 2005.
NEWEST = {"GLIBC": (2, 31), "LIBSYSTEMD": (245,), "ACL": (1, 1)}


def lines(*command):
    environment = dict(os.environ, LC_ALL="C")
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          env=environment).stdout.splitlines()


def elf_files(stage):
    for folder, _, names in sorted(os.walk(stage)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def needed_versions(path):
    """Library and version of each symbol version that the loader needs."""
    library = None
    inside = False
    for line in lines("readelf", "-VW", path):
        if line.startswith("Version "):
            inside = line.startswith("Version needs")
        file = re.search(r"File: (\S+)", line)
        library = file.group(1) if file else library
        version = re.search(r"Name: (\S+)\s+Flags", line)
        if inside and version:
            yield library, version.group(1)


def number_of(version):
    name, _, number = version.partition("_")
    return (name, tuple(int(part) for part in number.split(".")) if re.fullmatch(r"[\d.]+", number)
            else None)


def check_libraries(path):
    dynamic = lines("readelf", "-dW", path)
    for line in dynamic:
        found = re.search(r"\((NEEDED|RPATH|RUNPATH)\).*\[(.*)\]", line)
        if found and found.group(1) != "NEEDED":
            yield "has a search path for libraries: %s" % found.group(2)
        elif found and found.group(2) not in ALLOWED.get(os.path.basename(path), EVERYWHERE):
            yield ("needs %s: link it in (packaging/portable/sysroot.sh), or allow it if all "
                   "systems have it" % found.group(2))


def check_versions(path):
    for library, version in needed_versions(path):
        name, number = number_of(version)
        if name not in NEWEST or number is None or number > NEWEST[name]:
            yield "needs %s of %s: older systems have not" % (version, library)


def check_symbols(path):
    """No name of the C++ library is needed or offered, as the program that loads this library may
    have another C++ library."""
    for line in lines("nm", "-D", path):
        kind, symbol = line.split()[-2:]
        if (symbol.startswith(("_ZS", "_ZNS", "_ZNKS", "__cxa_", "__gxx_", "_Unwind_"))
            and kind.upper() not in "VW"):
            # These are names of the C library itself, which have nothing to do with C++.
            if symbol.partition("@")[0] not in ("__cxa_finalize", "__cxa_atexit",
                                                "__cxa_thread_atexit_impl"):
                yield "%s %s" % ("needs" if kind == "U" else "offers", symbol)


def main(arguments):
    problems = []
    glibc = (2, 0)
    files = list(elf_files(arguments[0]))
    for path in files:
        for check in (check_libraries, check_versions, check_symbols):
            problems += ["%s: %s" % (path, problem) for problem in check(path)]
        for _, version in needed_versions(path):
            name, number = number_of(version)
            if name == "GLIBC" and number:
                glibc = max(glibc, number)
    if len(files) < 5:
        problems.append("%s: only %d programs and libraries: is it an installed gpurota?"
                        % (arguments[0], len(files)))
    for problem in problems:
        print(problem)
    if not problems:
        print(".".join(str(part) for part in glibc))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
