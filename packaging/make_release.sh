#!/bin/bash
# Makes everything that a release consists of: make_release.sh FOLDER WORK [JOBS]
#
# The release is made of the commit that is checked out; the script refuses to begin if there are
# changes that are not committed. FOLDER, which must be empty or new, gets the source archive with
# the bundle of the web page in it. The archive is then unpacked in WORK, and the rest is made of
# it, without git and without npm: Debian packages, the Python module, the chart, the image for
# Kubernetes, and SHA256SUMS. Called by ./dev release; docs/dev/release.md says what to check by
# hand.
set -euo pipefail
here=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
folder=$(realpath -m "$1") work=$(realpath -m "$2") jobs=${3:-$(nproc)}
version=$(python3 -B "$here/tools/version.py")
name=gpurota-$version
began=$SECONDS

die() { printf 'release: %s\n' "$*" >&2; exit 1; }
step() { printf 'release: %d s: %s\n' "$((SECONDS - began))" "$*" >&2; }
git_here() { git -c safe.directory="$here" -C "$here" "$@"; }

# Checks that everything needed is there, before anything is built.
check() {
  git_here rev-parse --verify -q HEAD >/dev/null ||
    die "$here is no git checkout: a release is made of a commit"
  local changed
  changed=$(git_here status --porcelain)
  [ -z "$changed" ] || die "there are changes that are not committed:"$'\n'"$changed"
  python3 -B "$here/tools/version.py" --check >&2 ||
    die "the files above have another version, or lack it"
  [ -z "$(ls -A "$folder" 2>/dev/null)" ] ||
    die "$folder is not empty: remove it, or name another folder"
  command -v npm >/dev/null ||
    die "npm is not there (package npm), and the web page cannot be made without it"
  "$python" -c 'import setuptools, wheel' 2>/dev/null ||
    die "$python has no setuptools or no wheel (packages python3-setuptools, python3-wheel)"
  local tag
  tag=$(git_here tag --points-at HEAD --list "v$version")
  [ -n "$tag" ] ||
    step "the commit has no tag v$version: set it when the checks of docs/dev/release.md pass"
}

# tar_of TREE NAME: the folder NAME of TREE as a tar on standard output, the same bytes each time.
tar_of() {
  tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX -c "$2"
}

make_source() {
  local tree=$work/source
  rm -rf "$work/source" "$work/unpacked"
  mkdir -p "$tree" "$work/unpacked" "$folder"
  git_here archive --prefix="$name/" HEAD | tar -x -C "$tree"
  python3 -B "$here/tools/build_page.py" "$tree/$name/src/web/page" "$work/page" --bundle
  tar_of "$tree" "$name" | xz -T1 >"$folder/$name.tar.xz"
  tar -C "$work/unpacked" -xf "$folder/$name.tar.xz"
}

make_python() {
  rm -rf "$work/python"
  cp -a "$source/python" "$work/python"
  # Calls the hooks of PEP 517, as pip does, with the setuptools that is installed.
  (cd "$work/python" && "$python" -c '
import sys
from setuptools import build_meta
folder = sys.argv[1]  # build_sdist() writes sys.argv anew
build_meta.build_sdist(folder)
build_meta.build_wheel(folder)' "$folder" >"$work/python.log" 2>&1) ||
    { cat "$work/python.log" && die "the Python module cannot be packed"; }
}

# Makes the same archive as `helm package`.
make_chart() {
  rm -rf "$work/chart"
  mkdir -p "$work/chart"
  cp -a "$source/packaging/kubernetes/chart" "$work/chart/gpurota"
  tar_of "$work/chart" gpurota | gzip -9n >"$folder/gpurota-chart-$version.tgz"
}

# Checks that the files of FOLDER say that they have this version.
check_made() {
  python3 -B "$here/packaging/check_release.py" "$folder" "$version" ||
    die "not all of the above is of version $version"
}

python=/usr/bin/python3
[ -x "$python" ] || python=python3
check
umask 022
SOURCE_DATE_EPOCH=$(date -u -d "$(sed -n 's/^ -- .*>  //p' "$here/debian/changelog" |
  head -n 1)" +%s)
export SOURCE_DATE_EPOCH
source=$work/unpacked/$name
step "the source archive, with the web page in it"
make_source
step "the Python module and the chart"
make_python
make_chart
step "Debian packages, of the source archive (most of the time goes here)"
"$source/packaging/make_packages.sh" --kubernetes "$work/packages" "$jobs"
cp "$work/packages"/*_"$version"_*.{deb,changes,buildinfo} "$folder"
step "the image for Kubernetes, of these packages"
"$source/packaging/cross/make_image.sh" "$work/packages" "$folder/gpurota-kubernetes-$version.tar"
(cd "$folder" && LC_ALL=C sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
step "checking what was made"
check_made
rm -rf "$work/source" "$work/unpacked"
step "done; all of it is in $folder, with SHA256SUMS:"
(cd "$folder" && ls -sh1 >&2)
