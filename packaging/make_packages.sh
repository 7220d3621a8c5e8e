#!/bin/bash
# Makes the Debian packages of this tree: make_packages.sh FOLDER [JOBS [ARCHITECTURE]]
#
# Builds in a copy of the tree, FOLDER/gpurota-VERSION, as whoever calls it, and leaves the packages in FOLDER. The same tree
# gives the same bytes, wherever it is built. Called by ./dev, and by tests/packages. For another ARCHITECTURE than this system's its
# compiler and libraries must be there: cross/make_packages.sh brings them.
set -euo pipefail
here=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
folder=$(realpath -m "$1") jobs=${2:-$(nproc)}
foreign=()
if [ -n "${3:-}" ]; then foreign=(--host-arch "$3" --build-profiles=cross); fi
version=$(dpkg-parsechangelog -l "$here/debian/changelog" -S Version)
copy=$folder/gpurota-$version

mkdir -p "$folder"
rm -rf "$copy" "$folder"/*_"$version"_*.{deb,changes,buildinfo}
"$here/packaging/copy_sources.sh" "$copy" "$folder"
cd "$copy"
DEB_BUILD_OPTIONS="parallel=$jobs ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --build=binary --unsigned-changes "${foreign[@]}"
rm -rf "$copy"
