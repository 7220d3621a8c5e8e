#!/bin/bash
# Makes the Debian packages of this tree:
#
#   make_packages.sh [--kubernetes] [--without-page] FOLDER [JOBS [ARCHITECTURE]]
#
# Builds in a copy of the tree, FOLDER/gpurota-VERSION, as the calling user, and leaves the packages
# in FOLDER. The same tree gives the same bytes, wherever it is built. --kubernetes adds the package
# gpurota-kubernetes, which needs gRPC. gpurota-web gets its page from the bundle in a source
# archive, or else by npm. If neither is available, the script fails, unless --without-page is
# given.
#
# Called by ./dev, make_release.sh and tests/packages. An ARCHITECTURE other than this system's
# needs its compiler and libraries, which cross/make_packages.sh installs.
set -euo pipefail
here=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
profiles=pkg.gpurota.nokubernetes
unset GPUROTA_WEB_PAGE
while [[ ${1:-} == --* ]]; do
  case $1 in
    --kubernetes) profiles='' ;;
    --without-page) export GPUROTA_WEB_PAGE=OFF ;;
    *) echo "make_packages.sh: there is no option '$1'" >&2 && exit 2 ;;
  esac
  shift
done
folder=$(realpath -m "$1") jobs=${2:-$(nproc)}
foreign=()
if [ -n "${3:-}" ]; then
  foreign=(--host-arch "$3")
  profiles=cross${profiles:+,$profiles}
fi
version=$(dpkg-parsechangelog -l "$here/debian/changelog" -S Version)
copy=$folder/gpurota-$version

mkdir -p "$folder"
rm -rf "$copy" "$folder"/*_"$version"_*.{deb,changes,buildinfo}
"$here/packaging/copy_sources.sh" "$copy" "$folder"
cd "$copy"
if [ "${GPUROTA_WEB_PAGE:-}" != OFF ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  python3 -B tools/build_page.py src/web/page "$work/page" --bundle
fi
DEB_BUILD_OPTIONS="parallel=$jobs ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --build=binary \
  --unsigned-changes --build-profiles="$profiles" "${foreign[@]}"
rm -rf "$copy"
