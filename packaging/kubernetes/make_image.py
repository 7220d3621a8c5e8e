#!/usr/bin/env python3
"""Makes a container image of programs of this machine, without a registry, a daemon or root.

    make_image.py OUT.tar NAME:TAG PROGRAM…

The image has the programs in /usr/sbin (libgpurota.so where gpurotad expects it), the libraries
that they need, and the list from which scanners learn their packages. The image has no shell.
OUT.tar is an OCI layout, which `ctr images import`, `podman load`, `skopeo` and `docker load` (25
or newer) take. The same files give the same bytes: times are SOURCE_DATE_EPOCH (default: 0), and
everything belongs to root.

The image has the libraries that the dynamic linker finds on this machine, so this machine must run
the oldest supported system, Debian. For programs of another processor, the libraries are those in
Debian's folder for that processor (/usr/lib/aarch64-linux-gnu), where a cross build has them;
finding these needs readelf.
"""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time

LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MACHINES = {62: "x86_64", 183: "aarch64"}  # of ELF's header
# Mount points for the machine's folders. The read-only image must have all of them.
FOLDERS = ("etc/gpurota", "host", "proc", "run/gpurota", "sys", "tmp", "var/lib/gpurota",
           "var/lib/gpurota-library", "var/lib/gpurota-dra", "var/lib/gpurota-kubernetes",
           "var/lib/kubelet", "var/run/cdi")
ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\n"
                  "nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n"}
# NAME:TAG as image references are written, with a registry or not.
REFERENCE = re.compile(
    r"[a-z0-9]+(?:[._-][a-z0-9]+)*(?::[0-9]+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r":[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


# Parts of the C library before 2.34: gpurota's programs do not need these names, but the driver's
# libraries, which come from outside, do.
PARTS_OF_LIBC = ("libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1")


class Mistake(Exception):
    pass


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, env=dict(os.environ, LC_ALL="C"))
    if done.returncode != 0:
        raise Mistake("%s: %s" % (" ".join(command), (done.stderr or done.stdout).strip()))
    return done.stdout


def machine_of(program):
    """The processor as uname names it; None if `program` is not a 64-bit ELF file."""
    with open(program, "rb") as file:
        head = file.read(20)
    return (MACHINES.get(int.from_bytes(head[18:20], "little"), "that processor")
            if head.startswith(b"\x7fELF\x02\x01") else None)


def foreign_libraries_of(program, machine):
    """The same as libraries_of() for a program that cannot run here, whose libraries are in
    Debian's folders for that processor."""
    folders = ["/lib/%s-linux-gnu" % machine, "/usr/lib/%s-linux-gnu" % machine]
    found, todo = {}, [program]
    while todo:
        said = output_of("readelf", "--wide", "--dynamic", "--program-headers", todo.pop())
        for name in re.findall(r"\(NEEDED\) +Shared library: \[(.+)\]|interpreter: (.+)\]", said):
            places = [name[1]] if name[1] else [os.path.join(folder, name[0]) for folder in folders]
            path = next(filter(os.path.exists, places), None)
            if not path:
                raise Mistake("%s: %s is not on this machine" % (program, name[0] or name[1]))
            if path not in found and os.path.basename(path) not in map(os.path.basename, found):
                found[path] = os.path.realpath(path)
                todo.append(found[path])
    return found


def libraries_of(program):
    """Finds the libraries of a program and its dynamic linker: the real path by the path that the
    program knows."""
    machine = machine_of(program)
    if machine and machine != os.uname().machine:
        return foreign_libraries_of(program, machine)
    found = {}
    for line in output_of("ldd", program).splitlines():
        words = line.split()
        if "not found" in line:
            raise Mistake("%s: %s is not on this machine" % (program, words[0]))
        path = words[2] if len(words) > 2 and words[1] == "=>" else words[0]
        if path.startswith("/"):
            found[path] = os.path.realpath(path)
    return found


def packages_of(paths):
    """Debian's packages that have these paths, with what dpkg says of each; a path that belongs to
    no package is skipped."""
    packages = {}
    for path in sorted(set(paths)):
        for name in (path, path.removeprefix("/usr")):  # the path without merged /usr
            try:
                package = output_of("dpkg-query", "-S", name).split(": ")[0].split(",")[0]
            except (Mistake, FileNotFoundError):
                continue
            packages[package] = output_of("dpkg-query", "-s", package)
            break
    return packages


def write_tar(tar, entries, when):
    """Writes the entries sorted, without anything that differs between two builds. `entries` has
    mode and bytes by name, or None for a folder."""
    for name in sorted(entries):
        info = tarfile.TarInfo(name)
        info.mtime, info.uname, info.gname = when, "root", "root"
        if entries[name] is None:
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(info)
        else:
            info.mode, info.size = entries[name][0], len(entries[name][1])
            tar.addfile(info, io.BytesIO(entries[name][1]))


class Layer:
    """Files by their names, and their folders."""

    def __init__(self, when):
        self.when, self.files = when, {}

    def add(self, name, data, mode=0o644):
        self.files[name.lstrip("/")] = (mode, data)

    def add_file(self, name, path, mode=0o644):
        with open(path, "rb") as file:
            self.add(name, file.read(), mode)

    def folders(self, more):
        names = {name.strip("/") for name in more}
        for name in list(self.files) + list(names):
            while "/" in name:
                name = os.path.dirname(name)
                names.add(name)
        return names

    def pack(self, folders=()):
        """The layer's bytes, and the digest of what is in them."""
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
            entries = {name: None for name in self.folders(folders)}
            entries.update(self.files)
            write_tar(tar, entries, self.when)
        packed = io.BytesIO()
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as file:
            file.write(plain.getvalue())
        return packed.getvalue(), digest_of(plain.getvalue())


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def with_parts_of_libc(libraries):
    for path in list(libraries):
        if os.path.basename(path) == "libc.so.6":
            parts = (os.path.join(os.path.dirname(path), part) for part in PARTS_OF_LIBC)
            libraries.update((part, os.path.realpath(part)) for part in parts
                             if part not in libraries and os.path.exists(part))
    return libraries


def library_layer(programs, when):
    layer, libraries = Layer(when), {}
    for program in programs:
        libraries.update(libraries_of(program))
    libraries = with_parts_of_libc(libraries)
    for name, path in libraries.items():
        layer.add_file(name, path, 0o755)
    for package, status in packages_of(libraries.values()).items():
        name = package.split(":")[0]
        layer.add("var/lib/dpkg/status.d/" + name, status.encode())
        rights = "/usr/share/doc/%s/copyright" % name
        if os.path.exists(rights):
            layer.add_file(rights, rights)
    if os.path.exists("/etc/os-release"):
        layer.add_file("etc/os-release", "/etc/os-release")
    for name, text in ACCOUNTS.items():
        layer.add(name, text.encode())
    return layer


def program_layer(programs, when):
    layer = Layer(when)
    for program in programs:
        folder = "usr/sbin/"
        if program.endswith(".so"):
            folder = "usr/lib/gpurota/"
        layer.add_file(folder + os.path.basename(program), program, 0o755)
    return layer


class Layout:
    """An OCI layout in a tar: blobs by their digests."""

    def __init__(self):
        self.blobs = {}

    def put(self, data, media_type):
        digest = digest_of(data)
        self.blobs[digest] = data
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def put_json(self, value, media_type):
        return self.put(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(),
                        media_type)

    def write(self, path, index, when):
        entries = {"blobs/" + digest.replace(":", "/"): (0o644, data)
                   for digest, data in self.blobs.items()}
        entries["oci-layout"] = (0o644, b'{"imageLayoutVersion":"1.0.0"}')
        entries["index.json"] = (0o644, json.dumps(index, sort_keys=True).encode())
        temporary = path + ".new"
        with tarfile.open(temporary, "w", format=tarfile.GNU_FORMAT) as tar:
            write_tar(tar, entries, when)
        os.replace(temporary, path)


def architecture_of(programs):
    machines = {machine_of(program) or os.uname().machine for program in programs}
    if len(machines) != 1 or not machines <= set(ARCHITECTURES):
        raise Mistake("images for %s are not known" % " and ".join(sorted(machines)))
    return ARCHITECTURES[machines.pop()]


def make_image(path, reference, programs, when):
    architecture = architecture_of(programs)
    layout, layers, diff_ids = Layout(), [], []
    for layer, folders in ((library_layer(programs, when), FOLDERS),
                           (program_layer(programs, when), ())):
        data, diff_id = layer.pack(folders)
        layers.append(layout.put(data, LAYER))
        diff_ids.append(diff_id)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    labels = {"org.opencontainers.image.title": reference.rsplit(":", 1)[0].rsplit("/", 1)[-1],
              "org.opencontainers.image.version": reference.rsplit(":", 1)[1]}
    config = layout.put_json({"architecture": architecture, "os": "linux", "created": created,
                              "config": {"Env": ["PATH=/usr/sbin"], "Labels": labels,
                                         "WorkingDir": "/"},
                              "rootfs": {"type": "layers", "diff_ids": diff_ids}},
                             "application/vnd.oci.image.config.v1+json")
    manifest = layout.put_json({"schemaVersion": 2,
                                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                "config": config,
                                "layers": layers}, "application/vnd.oci.image.manifest.v1+json")
    manifest["annotations"] = {"io.containerd.image.name": reference,
                               "org.opencontainers.image.ref.name": reference}
    layout.write(path, {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                        "manifests": [manifest]}, when)
    return sum(each["size"] for each in layers)


def main(arguments):
    if len(arguments) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    path, reference, programs = arguments[1], arguments[2], arguments[3:]
    try:
        if not REFERENCE.fullmatch(reference):
            raise Mistake("'%s' is no name of an image: write localhost/NAME:VERSION" % reference)
        size = make_image(path, reference, programs, int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    except (Mistake, OSError, ValueError) as error:
        print("make_image: %s" % error, file=sys.stderr)
        return 1
    print("%s is %s: %.1f MB in two layers" % (path, reference, size / 1e6))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
