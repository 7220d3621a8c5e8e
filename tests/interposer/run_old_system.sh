#!/bin/bash
# run_old_system.sh LIBRARY [SUITE]: loads libgpurota.so into programs of an old Debian with that
# system's C library, from the packages of SUITE (bullseye: glibc 2.31, where dlsym and
# pthread_create are still in libdl and libpthread). Needs apt and the network; exits with 77
# without them. Changes nothing of this system.
set -euo pipefail
library=$(realpath "$1") suite=${2:-bullseye}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root" "$work/packages"
: > "$work/status" # so that packages installed on this system are not considered
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
  "http://deb.debian.org/debian $suite main" > "$work/sources"
apt=(-q -o "Dir::Etc::SourceList=$work/sources" -o Dir::Etc::SourceParts=/dev/null \
  -o "Dir::State::Lists=$work/lists"
  -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" \
    -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root)
apt-get "${apt[@]}" update > "$work/apt.log" 2>&1 || { cat "$work/apt.log"; exit 77; }
(cd "$work/packages" && apt-get "${apt[@]}" download libc6 coreutils libselinux1 libpcre2-8-0 \
  python3.9-minimal \
  libpython3.9-minimal libpython3.9-stdlib libffi7 zlib1g libexpat1 >> "$work/apt.log" 2>&1) ||
  { cat "$work/apt.log"; exit 77; }
for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/root"; done

multiarch=$(uname -m)-linux-gnu
libraries=$work/root/lib/$multiarch:$work/root/usr/lib/$multiarch
loader=$(echo "$work/root/lib/$multiarch"/ld-linux-*.so.*)
old() { # uses the old loader and C library, under a lease whose daemon is away
  env LD_BIND_NOW=1 PYTHONHOME="$work/root/usr" GPUROTA_LEASE=L1 \
    GPUROTA_TOKEN=0123456789abcdef0123456789abcdef \
    GPUROTA_SOCKET="$work/none" GPUROTA_DEBUG="$work/debug" \
    "$loader" --library-path "$libraries" --preload "$library" "$work/root/$1" "${@:2}"
}
"$loader" "$work/root/lib/$multiarch/libc.so.6" > "$work/version"
head -n 1 "$work/version"
[ "$(old bin/echo loaded)" = loaded ] && echo "echo: ok"
# Python finds extension modules by dlsym. ctypes looks up hooked names in libraries that do not
# have them.
old usr/bin/python3.9 -c '
import ctypes, math, threading
everything = ctypes.CDLL(None)
assert everything.getpid() > 0
assert "libgpurota" in open("/proc/self/maps").read()
for name in ("cuNothing", "nvmlNothing", "no_such_function"):
    assert not hasattr(everything, name), name
# Linked names are ours; without a driver they say so.
assert everything.cuMemGetInfo_v2(None, None) == 3, everything.cuMemGetInfo_v2(None, None)
assert everything.nvmlDeviceGetMemoryInfo(None, None) == 13
thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
print("python: ok")'
