#!/usr/bin/env python3
"""Which functions of a driver does gpurota not know?

    check_driver_functions.py FILE [TSV]    FILE: a cuda.h (or cudaGL.h …), or a libcuda.so

Prints the names that src/abi/driver_functions.tsv lacks. If FILE is a library, also prints the
names of that list that FILE no longer exports. Exits 0 if nothing is new, 1 if something is, 2 if
FILE cannot be read. New versions of hooked functions are printed first, because libgpurota passes
their calls on to the driver, and only NVML counts the memory.
"""
import pathlib
import re
import subprocess
import sys

import driver_functions

DEFAULT_LIST = pathlib.Path(__file__).resolve().parent.parent / "src/abi/driver_functions.tsv"


def names_in_library(path):
    shown = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                           check=True)
    return set(re.findall(r"^\S+ [TW] (cu[A-Z]\w*)$", shown.stdout, re.M))


def names_in_header(text):
    """The declared names, and the names that the header's macros make of them: cuMemAlloc stands
    for cuMemAlloc_v2, and __CUDA_API_PTSZ(cuLaunchKernel) for cuLaunchKernel_ptsz too."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    names = set(re.findall(r"\bCUDAAPI\s+(cu[A-Z]\w*)\s*\(", text))
    for target in re.findall(r"^\s*#\s*define\s+cu[A-Z]\w*\s+(\S.*?)\s*$", text, re.M):
        match = re.fullmatch(r"(?:__CUDA_API_(PTDS|PTSZ)\()?(cu[A-Z]\w*)\)?", target)
        if match:
            names.add(match.group(2))
            if match.group(1):
                names.add(f"{match.group(2)}_{match.group(1).lower()}")
    return names - set(re.findall(r"\bstatic inline CUresult (cu[A-Z]\w*)", text))


def family(name):
    return re.sub(r"(_v\d+)?(_ptds|_ptsz)?$", "", name)


def main():
    path = sys.argv[1]
    rows = driver_functions.read_rows(sys.argv[2] if len(sys.argv) > 2 else DEFAULT_LIST)
    try:
        content = pathlib.Path(path).read_bytes()
        is_library = content.startswith(b"\x7fELF")
        names = (names_in_library(path) if is_library
                 else names_in_header(content.decode("utf-8", "replace")))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    if not names:
        print(f"{path}: no function of the driver is in it", file=sys.stderr)
        return 2
    known = {row.symbol for row in rows}
    hooked = {row.base for row in rows if row.use == "hook"}
    new = sorted(names - known, key=lambda name: (family(name) not in hooked, name))
    for name in new:
        print(f"new: {name}"
              + (" (another version of a hooked function)" if family(name) in hooked else ""))
    gone = sorted(known - names) if is_library else []
    for name in gone:
        print(f"gone: {name}")
    print(f"{len(names)} functions, {len(new)} new" + (f", {len(gone)} gone" if is_library else ""))
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
