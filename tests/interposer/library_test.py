"""What libgpurota.so is, seen from outside: python3 library_test.py LIBRARY DRIVER_FUNCTIONS NVML_HEADER

It is loaded into other people's programs, so it may need libc.so.6 only, in no version newer than
glibc 2.17's, and may export nothing but dlsym, dlvsym and the functions that it hooks.
"""

import platform
import re
import subprocess
import sys

OLDEST_GLIBC = (2, 17)


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def check_needed(library):
    needed = [re.search(r"\[(.*)\]", line).group(1)
              for line in lines("readelf", "-dW", library) if "(NEEDED)" in line]
    assert needed == ["libc.so.6"], f"it needs {needed}"


def check_exports(library, hooks):
    base = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}[platform.machine()]
    wanted = set(hooks) | {f"{name}@{version}" for name in ("dlsym", "dlvsym")
                           for version in (base, "GLIBC_2.34")}
    found = set()
    for line in lines("nm", "-D", "--defined-only", library):
        _, kind, name = line.split()
        if kind != "A":
            found.add(name.replace("@@", "@"))
    assert found == wanted, f"too many: {found - wanted}, too few: {wanted - found}"


def check_versions(library):
    for line in lines("objdump", "-T", library):
        if "*UND*" not in line:
            continue
        version = re.search(r"GLIBC_(\d+)\.(\d+)", line)
        if version:
            assert tuple(map(int, version.groups())) <= OLDEST_GLIBC, f"too new: {line}"


def read_hooks(driver_functions):
    rows = [line.rstrip("\n").split("\t") for line in open(driver_functions, encoding="utf-8")
            if not line.startswith("#")]
    return [row[0] for row in rows if row[5] == "hook"]


def read_nvml_hooks(header):
    text = open(header, encoding="utf-8").read().replace("\\\n", " ")
    return re.findall(r"X\((nvml\w+)\)", re.search(r"#define GPUROTA_NVML_FUNCTIONS\(X\)(.*)", text).group(1))


def main():
    library, driver_functions, nvml_header = sys.argv[1:]
    hooks = read_hooks(driver_functions) + read_nvml_hooks(nvml_header)
    assert len(hooks) > 40
    check_needed(library)
    check_exports(library, hooks)
    check_versions(library)


main()
