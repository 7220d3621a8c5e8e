#!/bin/bash
# The packages of a tree have the same bytes wherever they are built: reproducible.sh [FOLDER]
#
# FOLDER has packages of this tree (`./dev package FOLDER`); without FOLDER, they are made here.
# The test makes the packages once more, in another place, time zone, language and umask, and
# without a compiler cache, and compares them.
set -euo pipefail
here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=${1:-$work/first}
second=$work/second-and-of-another-length
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
[ -n "${1:-}" ] || "$here/packaging/make_packages.sh" "$first" >"$work/log" 2>&1 ||
  { tail -n 30 "$work/log" && exit 1; }
(umask 027 && TZ=Asia/Tokyo LC_ALL=C "$here/packaging/make_packages.sh" "$second" >"$work/log" \
  2>&1) ||
  { tail -n 30 "$work/log" && exit 1; }

different=0
for package in "$second"/*.deb; do
  if ! cmp "$first/$(basename "$package")" "$package"; then different=1; fi
done
[ "$different" = 0 ] || { echo "FAIL: packages differ; diffoscope says where" && exit 1; }
echo "ok two builds give the same bytes: $(find "$second" -name '*.deb' | wc -l) packages"
