#!/bin/bash
# Copies what packages are made of: copy_sources.sh COPY [LEFT-OUT]
#
# The folder COPY gets the files that git would commit of this tree. A tree without git, such as an
# unpacked source archive, is copied as a whole, except for build outputs and the folder LEFT-OUT.
# Called by packaging/make_packages.sh and packaging/cross/make_packages.sh.
set -euo pipefail
here=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
copy=$(realpath -m "$1") left=$(realpath -m "${2:-$1}")

sources() {
  cd "$here"
  if [ ! -e .git ] || ! git -c safe.directory="$here" ls-files -z --cached --others \
    --exclude-standard 2>/dev/null; then
    find . -mindepth 1 \( -path ./build -o -path ./.git -o -path "./${left#"$here"/}" \
      -o -name __pycache__ \) -prune -o ! -type d -print0
  fi
}

mkdir -p "$copy"
(cd "$here" && sources | tar -c --null --files-from=- --ignore-failed-read 2>/dev/null) |
  tar -x -C "$copy"
