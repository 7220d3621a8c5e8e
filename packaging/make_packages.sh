#!/bin/bash
# Makes the Debian packages of this tree: make_packages.sh FOLDER [JOBS]
#
# Builds in a copy of the tree, FOLDER/gpurota-VERSION, as whoever calls it, and leaves the packages in FOLDER. The same tree
# gives the same bytes, wherever it is built. Called by ./dev, and by tests/packages.
set -euo pipefail
here=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
folder=$(realpath -m "$1") jobs=${2:-$(nproc)}
version=$(dpkg-parsechangelog -l "$here/debian/changelog" -S Version)
copy=$folder/gpurota-$version

# What git would commit; without git, as from an archive, everything but what was built here.
sources() {
  cd "$here"
  if ! git -c safe.directory="$here" ls-files -z --cached --others --exclude-standard 2>/dev/null; then
    find . -mindepth 1 \( -path ./build -o -path ./.git -o -path "./${folder#"$here"/}" -o -name __pycache__ \) -prune -o ! -type d -print0
  fi
}

mkdir -p "$folder"
rm -rf "$copy" "$folder"/*_"$version"_*.{deb,changes,buildinfo}
mkdir "$copy"
(cd "$here" && sources | tar -c --null --files-from=- --ignore-failed-read 2>/dev/null) | tar -x -C "$copy"
cd "$copy"
DEB_BUILD_OPTIONS="parallel=$jobs ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --build=binary --unsigned-changes
rm -rf "$copy"
