#!/bin/bash
# Each file that CMake installs is in one package: lists.sh SOURCE BUILD
set -euo pipefail
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cmake --install "$2" --prefix "$stage" >/dev/null
python3 -B "$1/tools/check_packages.py" "$1" "$stage"
