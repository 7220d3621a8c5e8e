#!/bin/sh
# Makes the image for Kubernetes from the packages: make_image.sh FOLDER IMAGE.tar
#
# FOLDER has the packages. make_packages.sh and make_release.sh call this script on the system that
# has the libraries of the packages' programs.
set -eu
here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
version=$(python3 -B "$here/tools/version.py")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in gpurota-kubernetes gpurotad gpurota libgpurota; do
  for file in "$1/${package}"_*.deb; do dpkg-deb --extract "$file" "$work"; done
done
python3 -B "$here/packaging/kubernetes/make_image.py" "$2" "localhost/gpurota-kubernetes:$version" \
  "$work/usr/sbin/gpurota-device-plugin" \
  "$work/usr/sbin/gpurota-dra" "$work/usr/sbin/gpurotad" "$work/usr/bin/gpurota" \
  "$work"/usr/lib/*/gpurota/libgpurota.so
