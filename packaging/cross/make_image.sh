#!/bin/sh
# Makes the image of the plugins for Kubernetes from their package: make_image.sh FOLDER IMAGE.tar
#
# FOLDER has the packages. Called by make_packages.sh where their libraries are.
set -eu
here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
version=$(sed -n 's/^project(gpurota VERSION \([0-9.]*\).*/\1/p' "$here/CMakeLists.txt")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb --extract "$1"/gpurota-kubernetes_*.deb "$work"
python3 -B "$here/packaging/kubernetes/make_image.py" "$2" "localhost/gpurota-kubernetes:$version" "$work/usr/sbin/gpurota-device-plugin" "$work/usr/sbin/gpurota-dra"
