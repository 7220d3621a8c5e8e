#!/bin/bash
# Makes the same packages with another version, without building: renumber.sh FROM TO SUFFIX
#
# TO gets each package of the folder FROM, with SUFFIX after its version. Tests of upgrades use
# this.
set -euo pipefail
from=$(realpath "$1") to=$(realpath -m "$2") suffix=$3
mkdir -p "$to"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in "$from"/*.deb; do
  version=$(dpkg-deb --field "$package" Version)
  rm -rf "$work/tree"
  dpkg-deb --raw-extract "$package" "$work/tree"
  sed -i "s/^Version: .*/&$suffix/; s/(= ${version//./\\.})/(= $version$suffix)/g" \
    "$work/tree/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone --build "$work/tree" "$to" >/dev/null
done
