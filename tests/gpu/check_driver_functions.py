#!/usr/bin/env python3
"""Checks src/abi/driver_functions.tsv against a real driver.

For each row, the driver must export the symbol, and cuGetProcAddress_v2 must return exactly that
symbol for its base name at the version and stream flag of the row (where the driver is new enough).
Names that the driver exports and the list lacks are printed, because the simulator and the
interposer would not know them. Usage: check_driver_functions.py [TSV [LIBCUDA]]
"""
import ctypes
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
tsv = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "../../src/abi/driver_functions.tsv")
cuda = ctypes.CDLL(sys.argv[2] if len(sys.argv) > 2 else "libcuda.so.1")
cuda.cuInit(0)
version = ctypes.c_int()
cuda.cuDriverGetVersion(ctypes.byref(version))
get = cuda.cuGetProcAddress_v2
get.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_uint64,
                ctypes.POINTER(ctypes.c_int)]


def exported(name):
    try:
        return ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value
    except AttributeError:
        return None


rows = [line.rstrip("\n").split("\t") for line in open(tsv)
        if line.strip() and not line.startswith("#")]
by_address = {}
for row in rows:
    by_address.setdefault(exported(row[0]), []).append(row[0])
missing, wrong, checked = [], [], 0
for symbol, base, introduced, stream in (row[:4] for row in rows):
    if exported(symbol) is None:
        missing.append(symbol)
        continue
    if not introduced.isdigit() or int(introduced) > version.value:
        continue
    pointer, status = ctypes.c_void_p(), ctypes.c_int()
    flags = 2 if stream in ("ptsz", "ptds") else 1
    result = get(base.encode(), ctypes.byref(pointer), int(introduced), flags, ctypes.byref(status))
    checked += 1
    if result != 0 or pointer.value != exported(symbol):
        got = by_address.get(pointer.value, ["nothing"]) if result == 0 else [f"error {result}"]
        wrong.append(f"{base} {introduced} {stream}: {got[0]}, not {symbol}")
known = {row[0] for row in rows}
path = re.search(r"\S*/libcuda\.so\S*", open("/proc/self/maps").read())
names = subprocess.run(["nm", "-D", "--defined-only", path.group(0)], capture_output=True,
                       text=True, check=False).stdout if path else ""
new = sorted(set(re.findall(r" T (cu[A-Z]\w*)", names)) - known)
print(f"driver {version.value}: {len(rows)} rows, {checked} checked, {len(missing)} not exported, "
      f"{len(wrong)} different, {len(new)} names not in the list")
for title, items in (("not exported", missing), ("different", wrong), ("not in the list", new)):
    for item in items[:40]:
        print(f"  {title}: {item}")
sys.exit(1 if wrong else 0)
