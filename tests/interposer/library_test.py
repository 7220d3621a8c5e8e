"""Checks properties of the file libgpurota.so: python3 library_test.py LIBRARY DRIVER_FUNCTIONS
NVML_HEADER

The library is loaded into other people's programs, so it may need only libc.so.6, in no version
newer than glibc 2.17, and may export only dlsym, dlvsym, dlmopen and the functions that it hooks.
"""

import re
import subprocess
import sys

OLDEST_GLIBC = (2, 17)


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def machine(library):
    header = "\n".join(lines("readelf", "-hW", library))
    return re.search(r"Machine:\s*(.*)", header).group(1).strip()


def check_needed(library):
    needed = [re.search(r"\[(.*)\]", line).group(1)
              for line in lines("readelf", "-dW", library) if "(NEEDED)" in line]
    # The stack guard of aarch64 is in the dynamic linker, which every process has.
    needed = [name for name in needed if name != "ld-linux-aarch64.so.1"]
    assert needed == ["libc.so.6"], f"it needs {needed}"


def check_exports(library, hooks):
    base = {"Advanced Micro Devices X86-64": "GLIBC_2.2.5",
            "AArch64": "GLIBC_2.17"}[machine(library)]
    wanted = set(hooks) | {f"{name}@{version}" for name in ("dlsym", "dlvsym", "dlmopen")
                           for version in (base, "GLIBC_2.34")}
    if base == "GLIBC_2.2.5":  # dlmopen came later
        wanted = wanted - {"dlmopen@GLIBC_2.2.5"} | {"dlmopen@GLIBC_2.3.4"}
    found = set()
    for line in lines("nm", "-D", "--defined-only", library):
        _, kind, name = line.split()
        if kind != "A" and not (name.startswith("__gcov") or name == "mangle_path"):  # ./dev cov
            found.add(name.replace("@@", "@"))
    assert found == wanted, f"too many: {found - wanted}, too few: {wanted - found}"


def check_versions(library):
    """Each undefined symbol comes from the C library, in a version of 2.17 or older. Only weak
    symbols of the compiler's start files may be missing."""
    undefined = [line.split() for line in lines("nm", "-D", "--undefined-only", library)]
    assert len(undefined) > 10
    for kind, symbol in undefined:
        name, _, version = symbol.partition("@")
        if kind == "w" and name in ("__cxa_finalize", "__gmon_start__",
                                    "_ITM_deregisterTMCloneTable",
                                    "_ITM_registerTMCloneTable"):
            continue
        assert not name.startswith("_Z"), f"of the C++ library: {name}"
        number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
        assert number, f"of no version of glibc: {symbol}"
        assert tuple(map(int, number.groups()[:2])) <= OLDEST_GLIBC, f"too new: {symbol}"


def check_loading(library):
    """The library has nothing that an old dynamic linker refuses, that takes much memory of each
    thread, or that a hardened system forbids."""
    segments = "\n".join(lines("readelf", "-lW", library))
    dynamic = "\n".join(lines("readelf", "-dW", library))
    # Thread-local storage of a preloaded library takes memory of every thread, or of the small
    # reserve of static storage. The library has two pointers of it: the thread's marks at the gate
    # and for parking.
    for size in re.findall(r"^\s*TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+(0x\w+)", segments, re.M):
        assert int(size, 16) <= 16, f"it has {size} bytes of thread-local storage"
    stack = re.search(r"GNU_STACK\s.*?\s([RWE ]{3})\s+0x", segments)
    assert stack and "E" not in stack.group(1), "its stack is executable"
    assert "GNU_RELRO" in segments and re.search(r"\bNOW\b", dynamic), "its tables stay writable"
    assert not re.search(r"^\s*LOAD\s.*\bRWE\b", segments,
                         re.M), "a segment is writable and executable"
    assert "NODELETE" in dynamic, "dlclose could take it away under its thread"
    for tag in ("TEXTREL", "RELR", "RPATH", "RUNPATH"):
        assert not re.search(rf"\b{tag}\b", dynamic), f"it has {tag}"
    assert "(GNU_HASH)" in dynamic or "(HASH)" in dynamic


def check_start(library):
    """Constructors of other libraries use libgpurota before it is initialised, so nothing in it may
    depend on initialisation. The only start-up functions are the compiler's, and the function that
    reads the environment. Every entry point calls that function too."""
    names = {}
    for line in lines("nm", library):
        fields = line.split()
        if len(fields) == 3 and fields[1] in "tT":
            names[int(fields[0], 16)] = fields[2]
    found = {names.get(address, f"0x{address:x}") for address in start_functions(library)}
    allowed = {"frame_dummy", "_ZN7gpurota10interposer12_GLOBAL__N_17on_loadEv"}
    # The functions of ./dev cov are also allowed, and on aarch64 libgcc's init_have_lse_atomics:
    # before that function has run, libgcc's atomics use instructions that all processors have.
    late = {name for name in found
            if not name.startswith("_sub_I_00100")} - allowed - {"init_have_lse_atomics"}
    assert not late, f"it has dynamic initialisers: {late}"
    assert allowed <= found, f"its constructor is gone: {found}"


def start_functions(library):
    """The addresses in .init_array. In the file, they are addends of relocations; the section has
    zeros or the same addresses."""
    for line in lines("readelf", "-SW", library):
        section = re.search(r"\.init_array\s+INIT_ARRAY\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)",
                            line)
        if section:
            begin, size = (int(each, 16) for each in section.groups())
            break
    for line in lines("readelf", "-rW", library):
        relocation = re.match(r"([0-9a-f]{16})\s+[0-9a-f]+\s+R_\w+_RELATIVE\s+([0-9a-f]+)", line)
        if relocation and begin <= int(relocation.group(1), 16) < begin + size:
            yield int(relocation.group(2), 16)


def read_hooks(driver_functions):
    rows = [line.rstrip("\n").split("\t") for line in open(driver_functions, encoding="utf-8")
            if not line.startswith("#")]
    return [row[0] for row in rows if row[5] == "hook"]


def read_nvml_hooks(header):
    text = open(header, encoding="utf-8").read().replace("\\\n", " ")
    return re.findall(r"X\((nvml\w+)\)",
                      re.search(r"#define GPUROTA_NVML_FUNCTIONS\(X\)(.*)", text).group(1))


def main():
    library, driver_functions, nvml_header = sys.argv[1:]
    hooks = read_hooks(driver_functions) + read_nvml_hooks(nvml_header)
    assert len(hooks) > 40
    check_needed(library)
    check_exports(library, hooks)
    check_versions(library)
    check_loading(library)
    check_start(library)


main()
