#!/bin/bash
# Makes Debian packages for another processor:
#
#   make_packages.sh [--kubernetes] [--without-page] FOLDER WORK JOBS ARCHITECTURE [IMAGE.tar]
#
# The options are those of packaging/make_packages.sh; IMAGE.tar needs --kubernetes. FOLDER gets the
# packages for ARCHITECTURE (arm64), IMAGE.tar becomes an image of the plugins for Kubernetes. The
# packages and the image are built in a fresh Debian 12 for this machine's processor, with a
# compiler and libraries for ARCHITECTURE. The fresh Debian is in a temporary folder, which is
# removed afterwards; nothing of this system is changed. WORK keeps what was compiled, for the next
# time. Needs mmdebstrap and a mirror (MIRROR names another); root, or subordinate users
# (/etc/subuid). Called by ./dev package --arch and ./dev image --arch.
set -euo pipefail
here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
options=() profiles=cross
while [[ ${1:-} == --* ]]; do options+=("$1") && shift; done
folder=$(realpath -m "$1") work=$(realpath -m "$2") jobs=$3 architecture=$4 \
  image=${5:+$(realpath -m "$5")}
mirror=()
if [ -n "${MIRROR:-}" ]; then mirror=("$MIRROR/debian"); fi

die() { printf 'cross: %s\n' "$*" >&2; exit 1; }

case $architecture in
  arm64) ;;
  *) die "there is no cross build for '$architecture': write arm64" ;;
esac
native=$(dpkg --print-architecture)
[ "$native" != "$architecture" ] || die "this machine is $architecture itself: leave --arch out"
command -v mmdebstrap >/dev/null || die "mmdebstrap is not there (package mmdebstrap)"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage" # another user, the root of a user namespace, must be able to enter
mkdir -p "$folder" "$work/ccache" "$stage/build" "$stage/packages"
chmod 777 "$stage/packages"
"$here/packaging/copy_sources.sh" "$stage/build/sources"

# The bundle of the page is made here, because it is the same for all processors, and npm in the
# other Debian would need several hundred more packages.
if [[ " ${options[*]} " != *" --without-page "* ]]; then
  sources=$stage/build/sources
  python3 -B "$sources/tools/build_page.py" "$sources/src/web/page" "$work/page" --bundle
fi
if [[ " ${options[*]} " != *" --kubernetes "* ]]; then profiles+=,pkg.gpurota.nokubernetes; fi

# Runs in the other Debian, as its root: installs what debian/control asks for, and builds.
cat >"$stage/build/run" <<END
#!/bin/sh
set -e
export DEBIAN_FRONTEND=noninteractive
echo "dev: packages for $architecture are built with \$(aarch64-linux-gnu-g++ --version | head -n 1)"
apt-get build-dep -y -q --no-install-recommends -a $architecture -P $profiles /build/sources >/build/log 2>&1 || { tail -n 20 /build/log; exit 1; }
export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=/build/ccache CCACHE_MAXSIZE=1G
/build/sources/packaging/make_packages.sh ${options[*]} /build/packages $jobs $architecture
${image:+/build/sources/packaging/cross/make_image.sh /build/packages /build/packages/image.tar}
END
chmod 755 "$stage/build/run"

# Files that a failed build has compiled are kept as well.
# shellcheck disable=SC2016 # mmdebstrap's
mmdebstrap --quiet --variant=apt --architectures="$native,$architecture" \
  --include="crossbuild-essential-$architecture,ccache" --format=null \
  --customize-hook='mkdir "$1/build" "$1/build/ccache" "$1/build/packages"' \
  --customize-hook="sync-in '$stage/build' /build" \
  --customize-hook="sync-in '$work/ccache' /build/ccache" \
  --customize-hook='chroot "$1" /build/run; echo $? >"$1/build/packages/status"' \
  --customize-hook="sync-out /build/ccache '$work/ccache'" \
  --customize-hook="sync-out /build/packages '$stage/packages'" \
  bookworm /dev/null "${mirror[@]}"
[ "$(cat "$stage/packages/status")" = 0 ] || die "the packages cannot be built: see above"
rm "$stage/packages/status"
if [ -n "$image" ]; then
  mkdir -p "$(dirname "$image")" && mv "$stage/packages/image.tar" "$image"
fi
version=$(dpkg-parsechangelog -l "$here/debian/changelog" -S Version)
rm -f "$folder"/*_"$version"_*.{deb,changes,buildinfo}
cp "$stage"/packages/* "$folder"
