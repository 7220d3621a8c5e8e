#!/bin/bash
# Runs Debian's own test of installing, upgrading and purging: piuparts.sh FOLDER [DEBIAN.tar.gz]
#
# FOLDER has packages (`./dev package FOLDER`). Needs root, piuparts, mmdebstrap and a mirror
# (MIRROR). DEBIAN.tar.gz is a Debian 12 that `mmdebstrap --variant=apt` has made before.
set -euo pipefail
folder=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ "$(id -u)" = 0 ] || { echo "skipped: needs root" && exit 77; }
for tool in piuparts mmdebstrap; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
done
base=${2:-$work/debian.tar.gz}
[ -n "${2:-}" ] || mmdebstrap --quiet --variant=apt bookworm "$base"

# These folders belong to systemd, which is installed because gpurotad needs it. systemd's tmpfiles
# make the folders, and its purge leaves them.
ignored='^/(root/\.ssh|var/(cache|lib|log)/private|var/lib/systemd/(coredump|pstore))/?$'
systemd=(--ignore-regex="$ignored")
mapfile -t packages < <(compgen -G "$folder/*.deb" | grep -v -- -dbgsym_)
piuparts --basetgz="$base" -d bookworm --mirror="${MIRROR:-http://deb.debian.org/debian} main" \
  --no-eatmydata \
  "${systemd[@]}" "${packages[@]}" >"$work/log" 2>&1 || { grep -A 4 'ERROR' "$work/log" && exit 1; }
echo "ok piuparts: ${#packages[@]} packages are installed, upgraded and purged"
