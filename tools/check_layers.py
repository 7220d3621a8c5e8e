#!/usr/bin/env python3
"""Checks every #include against the tables of layers and rooms of ARCHITECTURE.md. Runs as a test.

    tools/check_layers.py [ROOT]     prints each violation as file:line: text; exits 1 if there are
                                     any

A quoted include is a file of the project, named from src/ (or the repository's root, or the folder
of the including file); an angled one is the system's or a third party's.
"""

import os
import re
import sys

# Module: the modules it may include besides itself. base and abi are leaves.
ALLOWED = {
    "base": [],
    "abi": [],
    "core": ["base"],
    "lease": ["base", "core"],
    "sched": ["base", "core"],
    "watch": ["base", "core"],
    "jobs": ["base", "core"],
    "filler": ["base", "core"],
    "access": ["base", "core"],
    "series": ["base", "core"],
    "config": ["base", "core"],
    "proto": ["base", "core"],
    "ports": ["base", "core"],
    "ipc": ["base", "abi", "ports"],
    "sys": ["base", "abi", "core", "ports", "ipc"],
    "nvml": ["base", "abi", "core", "ports"],
    "store": ["base", "abi", "core", "ports"],
    "daemon": ["base", "abi", "core", "lease", "sched", "watch", "jobs", "filler", "access",
               "series", "containers", "config", "proto", "ports", "ipc",
               "keeper", "sys", "nvml", "store"],
    "client": ["base", "core", "proto", "ipc"],
    "containers": ["base", "abi", "core", "proto", "ipc"],
    "cli": ["base", "abi", "core", "config", "proto", "client", "containers"],
    "kube": ["base", "abi", "core", "proto", "client"],
    "keeper": ["base", "abi", "core", "jobs"],
    "web": ["base", "core", "proto", "client"],
    "park": ["base", "abi"],
    "interposer": ["abi"],
    "burn": ["base", "abi"],
    "testing": ["base", "core", "ports"],
    "sim": ["abi", "base"],
}
# Guests: modules that the others can do without, which are clients of the daemon or independent
# programs. No other module includes a guest. A guest may include plain types, the protocol and the
# protocol's client (FOR_GUESTS). Of the other modules a guest may include only the headers that are
# listed here.
GUESTS = {
    "kube": ["containers/cdi_spec.h", "containers/parts.h", "ports/event_loop.h", "sys/journal.h",
             "sys/sd_event_loop.h", "sys/secret.h", "sys/worker.h", "watch/container.h"],
    "web": [],
    "burn": [],
}
FOR_GUESTS = ["base", "abi", "core", "proto", "client"]
# Folders that test, measure or show the whole may include anything of the project.
FREE = ("tests", "bench", "demo")
# Module with sub-folders: its rooms, the lowest first, and the rooms that each may include besides
# itself. A room may name only rooms above it in this table, so that no include leads back. ROOT
# stands for the files that are in no room. Tests may include all of their module.
ROOT = "."
# Folders that are not rooms: their files count as files of ROOT.
WITH_ROOT = {("cli", folder) for folder in ("args", "history", "jobs", "queue", "run", "site",
                                            "status", "text", "turns")}
ROOMS = {
    "cli": {
        "containers": [],
        ROOT: ["containers"],
        "top": ["containers", ROOT],
        "hosts": ["containers", ROOT],
    },
    "kube": {
        "api": [],
        ROOT: ["api"],
        "dra": ["api", ROOT],
    },
    "interposer": {
        "os": [],
        "driver": ["os"],
        "account": ["os", "driver"],
        "gate": ["os", "driver", "account"],
        "memory": ["os", "driver", "account", "gate"],
        "swap": ["os", "driver", "account", "gate", "memory"],
        ROOT: ["os", "driver", "account", "gate", "memory", "swap"],
    },
    "daemon": {
        "users": [],
        "gpus": [],
        "leases": ["users", "gpus"],
        "history": ["users", "gpus", "leases"],
        "notices": ["users", "gpus", "leases"],
        "tenants": ["users", "gpus", "leases", "history"],
        "watch": ["users", "gpus", "leases", "history", "notices", "tenants"],
        "supervised": ["users", "gpus", "leases", "history", "tenants", "watch"],
        "control": ["users", "gpus", "leases", "history", "notices", "tenants", "watch",
                    "supervised"],
        ROOT: ["users", "gpus", "leases", "history", "notices", "tenants", "watch", "supervised",
               "control"],
    },
}
# Modules that every *_test.cpp and *_test.h may include, in addition to the modules that ALLOWED
# gives to its module.
FOR_TESTS = ["base", "abi", "core", "testing"]

# A header that is expensive to include or belongs to one subsystem, and the modules whose .cpp
# files may include it. Headers (.h) must not include it, because every file that includes them
# would pay for it. The exception is a header NAME_internal.h: such a header may include it, because
# NAME_internal.h itself may only be included by the .cpp files of its folder, and of the rooms that
# may include its room.
OWNED_HEADERS = [
    (r"nlohmann/.*", ["proto", "client", "cli", "containers", "kube", "web"]),
    (r"curl/.*", ["kube", "web"]),
    (r"toml\+\+/.*|toml\+\+\.h|toml\.hpp", ["config", "sim"]),
    (r"sqlite3\.h", ["store"]),
    (r"systemd/.*", ["sys", "keeper"]),
    (r"acl/.*|sys/acl\.h", ["sys"]),
    (r"n?curses\.h|ncursesw/.*", ["cli"]),
    (r"grpcpp/.*|google/protobuf/.*|kube/proto/.*", ["kube"]),
]
INTERNAL = "_internal.h"
# Modules that only decide: they do no I/O and have no threads, no clock and no log.
PURE = ["core", "lease", "sched", "watch", "jobs", "filler", "access", "proto", "config"]
NOT_IN_PURE = (r"thread|mutex|shared_mutex|condition_variable|future|iostream|fstream|"
               r"sys/(socket|epoll|mman|wait|stat|ioctl|un)\.h|"
               r"fcntl\.h|poll\.h|pthread\.h|dlfcn\.h")
# The module config may read its one file.
PURE_EXCEPTIONS = {("config", "fstream"), ("config", "fcntl.h"), ("config", "sys/stat.h")}
LOG_HEADER = "base/log.h"
# Headers of C++ that a library inside other people's programs may use: nothing that needs
# libstdc++.so.
INTERPOSER_CXX = ["atomic", "cerrno", "climits", "csignal", "cstdarg", "cstddef", "cstdint",
                  "cstdio",
                  "cstdlib", "cstring", "ctime", "limits", "type_traits", "utility"]
# Headers that no file may include, and why.
NOWHERE = {"regex": "slow to compile and to run; parse by hand",
           "iostream": "constructs global objects; use fmt and write()",
           "source_location": "clang 14 does not have it",
           "format": "g++ 12 does not have it; use fmt",
           "expected": "g++ 12 does not have it; use Result"}

SUFFIXES = (".h", ".c", ".cpp", ".inc")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class File:
    def __init__(self, root, path):
        self.path = path  # from the root
        self.folder = os.path.dirname(path)
        parts = path.split(os.sep)
        self.module = parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]
        self.room = room_of(path)
        self.is_header = path.endswith((".h", ".inc"))
        self.is_test = path.endswith(("_test.cpp", "_test.c", "_test.h")) or self.module in FREE
        self.is_free = self.module in FREE
        with open(os.path.join(root, path), encoding="utf-8") as text:
            self.includes = [(number, match.group(1), match.group(2))
                             for number, match in ((n, INCLUDE.match(line))
                                                   for n, line in enumerate(text, 1))
                             if match]


def room_of(path):
    """The room of a file of src/; ROOT for a file in no room; None where the module has no
    rooms."""
    parts = path.split(os.sep)
    if parts[0] != "src" or len(parts) < 3 or parts[1] not in ROOMS:
        return None
    return parts[2] if len(parts) > 3 and tuple(parts[1:3]) not in WITH_ROOT else ROOT


def path_of(root, includer, name):
    """The file that a quoted include names, from the root; None if there is no such file (it is
    generated, or the name is a mistake)."""
    for base in ("src", "", includer.folder):
        path = os.path.normpath(os.path.join(base, name))
        if os.path.isfile(os.path.join(root, path)):
            return path
    return None


def check_rooms(file, room):
    """Checks an include of a file in `room` of the same module, which has rooms."""
    if file.is_test or room == file.room:
        return None
    allowed = ROOMS[file.module][file.room]
    if room in allowed:
        return None
    said = ["its root" if name == ROOT else "%s/%s" % (file.module, name)
            for name in (file.room, room)]
    return "%s may not include %s (only %s)" % (said[0], said[1], ", ".join(allowed) or "itself")


def check_quoted(root, file, name):
    path = path_of(root, file, name)
    if path is not None:
        parts = path.split(os.sep)
        module = parts[1] if parts[0] == "src" else parts[0]
    else:
        # No file has this name: the file is generated, or the name is a mistake. The include of a
        # generated file is also written "MODULE/NAME", so the first part of the name is the module.
        module = name.split("/")[0]
        if module not in ALLOWED and module != "generated":
            return "'%s' is no file of the project: write it as \"module/file.h\"" % name
    own = (os.path.dirname(name) == "/".join(file.folder.split(os.sep)[1:])
           or (module == file.module and file.room is not None))
    if name.endswith(INTERNAL) and (file.is_header or not own):
        return "'%s' is for the .cpp files of its own folder" % name
    if name == LOG_HEADER and file.module in PURE and not file.is_test:
        return "%s never logs: return the error" % file.module
    if module == file.module and file.room is not None and path is not None:
        return check_rooms(file, room_of(path))
    if file.is_free or module in (file.module, "generated"):
        return None
    if name in GUESTS.get(file.module, []):
        return None
    allowed = ALLOWED[file.module] + (FOR_TESTS if file.is_test else [])
    if module not in allowed:
        return "%s may not include %s (only %s)" % (file.module, module, ", ".join(allowed)
                                                    or "itself")
    return None


def check_owned(file, name):
    for pattern, owners in OWNED_HEADERS:
        if not re.fullmatch(pattern, name) or file.is_free:
            continue
        if file.module not in owners:
            return "<%s> belongs to %s" % (name, ", ".join(owners))
        if file.is_header and not file.path.endswith(INTERNAL):
            return "<%s> is heavy: include it in .cpp files only" % name
    return None


def check_angled(file, name):
    if name in NOWHERE and not (file.is_test and name == "iostream"):
        return "<%s> is not used here: %s" % (name, NOWHERE[name])
    is_cxx = not name.endswith(".h")
    if file.module == "abi" and not file.is_test and is_cxx:
        return "abi is C-compatible: no <%s>" % name
    if file.module == "interposer" and not file.is_test and is_cxx and name not in INTERPOSER_CXX:
        return "the interposer needs nothing but libc: no <%s>" % name
    forbidden = file.module in PURE and not file.is_test and re.fullmatch(NOT_IN_PURE, name)
    if forbidden and (file.module, name) not in PURE_EXCEPTIONS:
        return "%s only decides: no <%s>" % (file.module, name)
    return check_owned(file, name)


def check_file(root, path):
    file = File(root, path)
    if file.module not in ALLOWED and not file.is_free:
        return ["%s:1: folder '%s' is not in the layer table" % (path, file.module)]
    if file.room not in ROOMS.get(file.module, {None: []}):
        return ["%s:1: room '%s/%s' is not in the table of rooms" % (path, file.module, file.room)]
    problems = []
    for number, kind, name in file.includes:
        problem = check_quoted(root, file, name) if kind == '"' else check_angled(file, name)
        if problem:
            problems.append("%s:%d: %s" % (path, number, problem))
    return problems


def source_files(root, suffixes=SUFFIXES):
    for top in ("src", "sim", "tests", "bench", "demo"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith(suffixes):
                    yield os.path.relpath(os.path.join(folder, name), root)


def check_room_table():
    """Each room may include only rooms above it in the table, so that no include leads back."""
    for module, rooms in ROOMS.items():
        names = list(rooms)
        for at, room in enumerate(names):
            for other in rooms[room]:
                if other not in names[:at]:
                    yield ("tools/check_layers.py: room '%s/%s' may include '%s', which is not "
                           "before it" % (module, room, other))


def check_guest_table():
    for module, allowed in ALLOWED.items():
        for other in allowed:
            if other in GUESTS:
                yield "tools/check_layers.py: '%s' may not include guest '%s'" % (module, other)
            elif module in GUESTS and other not in FOR_GUESTS:
                yield "tools/check_layers.py: guest '%s' may not include '%s'" % (module, other)


def check_guest_headers(root):
    """Each header that a guest is allowed to include is included by that guest."""
    for module, headers in GUESTS.items():
        paths = [path for path in source_files(root) if path.startswith("src/%s/" % module)]
        used = {name for path in paths for _, _, name in File(root, path).includes}
        for header in headers:
            if header not in used:
                yield "tools/check_layers.py: '%s' needs no '%s'" % (module, header)


def check_tree(root):
    problems = list(check_room_table()) + list(check_guest_table())
    return problems + [problem for path in sorted(source_files(root))
                       for problem in check_file(root, path)]


def check_each(arguments, check_file, summary, suffixes=SUFFIXES):
    """The main() of a check that looks at each file by itself. `summary`: a line with the numbers
    of files and of problems."""
    root = (arguments[0] if arguments
            else os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = sorted(source_files(root, suffixes))
    problems = [problem for path in paths for problem in check_file(root, path)]
    for problem in problems:
        print(problem)
    print(summary % (len(paths), len(problems)))
    return 1 if problems or not paths else 0


def check_whole(arguments, check_tree, summary):
    """The main() of a check that looks at all files together. `summary`: a line with the number of
    problems."""
    root = (arguments[0] if arguments
            else os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    problems = check_tree(root)
    for problem in problems:
        print(problem)
    print(summary % len(problems))
    return 1 if problems else 0


def main(arguments):
    root = (arguments[0] if arguments
            else os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    problems = check_tree(root) + list(check_guest_headers(root))
    for problem in problems:
        print(problem)
    count = len(list(source_files(root)))
    if count == 0:
        print("no source files under %s" % root)
        return 1
    print("layers: %d files, %d violations" % (count, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
