#!/usr/bin/env python3
"""Checks debian/ and the RPMs' spec against what CMake installs. Needs no package tools. Runs as a
test.

    tools/check_packages.py [ROOT [STAGE]]     prints each problem; exits 1 if there are any

STAGE is an installed tree (cmake --install --prefix STAGE): each of its files must be in exactly
one Debian package and in one RPM, and each line of a *.install file or of %files must name
something.
"""

import fnmatch
import os
import re
import sys
import tomllib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_layers  # noqa: E402

CONFIGURATION = "packaging/gpurota.toml"
SPEC = "packaging/rpm/gpurota.spec"
# Files that have another place in the RPMs than in the Debian packages: see
# packaging/portable/stage.sh and the preset portable.
RPM_PLACES = {
    "usr/lib/x/gpurota/": "usr/lib/gpurota/",
    "usr/lib/python3/dist-packages/": "usr/share/gpurota/python/",
    "usr/share/zsh/vendor-completions/": "usr/share/zsh/site-functions/",
}
# Files that stage.sh adds to those that CMake installs.
RPM_ONLY = {"usr/lib/systemd/system/gpurota-web.service.d"}
# Files that the RPMs lack, because the portable build has no gRPC.
DEBIAN_ONLY = re.compile(
    "usr/(sbin/gpurota-(device-plugin|dra)|share/man/man8/gpurota-(device-plugin|dra).8|"
    "share/gpurota/kubernetes/.*|"
    "lib/systemd/system/gpurota-device-plugin.service)$")
# Packages that need no mention, because every Debian system that builds packages has them.
ESSENTIAL_TO_BUILD = {"g++"}


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def lines_of(root, path):
    return [line for line in read(root, path).splitlines() if line.strip()
            and not line.startswith("#")]


def packages(root):
    return re.findall(r"^Package: (\S+)$", read(root, "debian/control"), re.MULTILINE)


def install_lines(root):
    """Each line of each debian/PACKAGE.install: the package, the file or pattern that it takes, and
    whether that is in the sources."""
    for name in sorted(os.listdir(os.path.join(root, "debian"))):
        if name.endswith(".install"):
            for line in lines_of(root, "debian/" + name):
                what = line.split()[0]
                yield name[: -len(".install")], what, os.path.exists(os.path.join(root, what))


def check_packages(root):
    """Each package has files, each list belongs to a package, and no two lists take the same
    file."""
    taken = {}
    listed = set()
    for package, what, _ in install_lines(root):
        listed.add(package)
        if what in taken:
            yield "debian/%s.install: %s is in %s too" % (package, what, taken[what])
        taken[what] = package
    for package in sorted(set(packages(root)) ^ listed):
        yield "debian/%s.install, debian/control: %s is in one of them only" % (package, package)


def check_build_depends(root):
    """`./dev setup` and debian/control name the same packages to build with."""
    needed = re.search(r"^readonly BUILD_PACKAGES=\((.*?)\)", read(root, "dev"),
                       re.MULTILINE | re.DOTALL)
    more = re.search(r"^readonly KUBERNETES_PACKAGES=\((.*?)\)", read(root, "dev"),
                     re.MULTILINE | re.DOTALL)
    control = re.search(r"^Build-Depends:(.*?)\n(?=\S|\n)", read(root, "debian/control"),
                        re.MULTILINE | re.DOTALL)
    if not needed or not control:
        yield ("dev, debian/control: no packages to build with found; has one of them changed its "
               "form?")
        return
    mine = set(needed.group(1).split()) - ESSENTIAL_TO_BUILD
    mine |= set(more.group(1).split() if more else [])
    theirs = {re.split(r"[\s(:]", each.strip())[0] for each in control.group(1).split(",")}
    theirs = {name for name in theirs if name and not name.startswith(("debhelper", "dh-"))}
    for name in sorted(mine - theirs):
        yield "debian/control: Build-Depends has no %s, which BUILD_PACKAGES of dev names" % name
    for name in sorted(theirs - mine):
        yield "dev: BUILD_PACKAGES has no %s, which Build-Depends of debian/control names" % name


def check_configuration(root):
    """The installed gpurota.toml sets nothing. With the '#' before each setting removed, it is a
    valid file, and gpurota.toml(5) describes all its settings."""
    text = read(root, CONFIGURATION)
    try:
        if tomllib.loads(text):
            yield ("%s: sets something: a default belongs into the code, a suggestion behind '#'"
                   % CONFIGURATION)
        offered = tomllib.loads(re.sub(r"^#(?=[\w\[])", "", text, flags=re.MULTILINE))
    except tomllib.TOMLDecodeError as error:
        yield "%s: cannot be read once each '#' before a setting is taken away: %s" % (
            CONFIGURATION, error)
        return
    page = read(root, "man/gpurota.toml.5").replace("\\fB", "").replace("\\fR", "")
    for name in sorted(names_in(offered)):
        if not re.search(r"(?<!\w)%s(?!\w)" % re.escape(name), page):
            yield "%s: gpurota.toml(5) does not describe %s" % (CONFIGURATION, name)


def names_in(table, named_by_users=("user", "group")):
    for name, value in table.items():
        yield name
        if isinstance(value, dict):
            # In [limits.user.alice], alice is the name of a user, not a setting.
            below = value.values() if name in named_by_users else [value]
            for each in below:
                yield from names_in(each)


def installed_files(stage):
    for folder, _, names in os.walk(stage):
        for name in names:
            # The path below Debian's prefix. Debian's library folder has one more level, which the
            # lists write as a pattern.
            path = "usr/" + os.path.relpath(os.path.join(folder, name), stage)
            yield re.sub(r"^usr/lib/gpurota/", "usr/lib/x/gpurota/", path)


def spec_lines(root):
    """Each line of %files: the RPM, and the path that the RPM takes. Folders that an RPM only owns
    are left out."""
    package = None
    for line in lines_of(root, SPEC):
        section = re.match(r"%(\w+) ?(\w*)$", line)
        if section:
            package = ("gpurota-"
                       + section.group(2)).rstrip("-") if section.group(1) == "files" else None
        path = re.sub(r"^%{unitdir}", "usr/lib/systemd/system", re.sub(r"^%{_prefix}", "usr", line))
        if package and path.startswith("usr/") and path not in RPM_ONLY:
            yield package, path


def rpm_place(path):
    for debian, rpm in RPM_PLACES.items():
        if path.startswith(debian):
            return rpm + path[len(debian):]
    return path


def check_takers(paths, takers, where):
    """Each path is taken by exactly one taker (a package and a pattern), and each taker takes some
    path."""
    unused = set(takers)
    for path in sorted(paths):
        found = [taker for taker in takers if fnmatch.fnmatchcase(path, taker[1])
                 or path.startswith(taker[1] + "/")]
        unused -= set(found)
        if len(found) != 1:
            yield "%s: is in %s" % (path, " and ".join(package for package, _ in found)
                                    or "no package: add it to " + where)
    for package, what in sorted(unused):
        yield "%s of %s: %s is not installed by CMake" % (where, package, what)


def check_stage(root, stage):
    paths = list(installed_files(stage))
    takers = [(package, what) for package, what, in_sources in install_lines(root)
              if not in_sources]
    takers += [("not-installed", what) for what in lines_of(root, "debian/not-installed")]
    yield from check_takers(paths, takers, "debian/*.install")
    yield from check_takers([rpm_place(path) for path in paths if not DEBIAN_ONLY.match(path)],
                            list(spec_lines(root)), "%%files in %s" % SPEC)


def check_tree(root):
    problems = []
    for check in (check_packages, check_build_depends, check_configuration):
        problems += check(root)
    return problems


def main(arguments):
    if len(arguments) > 1:
        problems = list(check_stage(arguments[0], arguments[1]))
        for problem in problems:
            print(problem)
        print("packages: %d problems with what is installed" % len(problems))
        return 1 if problems else 0
    return check_layers.check_whole(arguments, check_tree, "packages: %d problems")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
