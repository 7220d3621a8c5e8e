#!/bin/bash
# Makes the packages for other distributions: make_portable.sh FOLDER BUILD [JOBS]
#
# FOLDER gets gpurota-VERSION-x86_64.tar.xz, the RPMs of the same programs,
# gpurota-VERSION-x86_64.spdx.json (what is linked in, from where and under which licence) and
# SHA256SUMS of all packages there. BUILD keeps the old headers and libraries, and the build itself.
# Called by ./dev portable. docs/design/portable.md says how and why.
set -euo pipefail
here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
folder=$(realpath -m "$1") build=$(realpath -m "$2") jobs=${3:-$(nproc)}
machine=x86_64
version=$(python3 -B "$here/tools/version.py")
name=gpurota-$version-$machine
export GPUROTA_SYSROOT=$build/sysroot
# All files in the packages have this time, as in Debian's packages.
SOURCE_DATE_EPOCH=$(date -u -d "$(sed -n 's/^ -- .*>  //p' "$here/debian/changelog" |
  head -n 1)" +%s)
export SOURCE_DATE_EPOCH

die() { printf 'portable: %s\n' "$*" >&2; exit 1; }

compile() {
  "$here/packaging/portable/sysroot.sh" "$GPUROTA_SYSROOT"
  # The old build is discarded when libraries were updated: files of the new libraries may be older
  # than objects that were built with the old ones, so the build would not see the change.
  cmp -s "$GPUROTA_SYSROOT/made-by" "$build/built-with" || rm -rf "$build/build"
  cp "$GPUROTA_SYSROOT/made-by" "$build/built-with"
  cmake -S "$here" --preset portable -B "$build/build" --log-level=NOTICE ||
    die "cmake could not configure $build/build"
  cmake --build "$build/build" -j "$jobs"
  # The library must pass the same test as Debian's.
  python3 -B "$here/tests/interposer/library_test.py" "$build/build/lib/libgpurota.so" \
    "$here/src/abi/driver_functions.tsv" \
    "$here/src/interposer/account/nvml.h" || die "libgpurota.so is not what it should be: see above"
}

# stage FOLDER PREFIX: does what stage.sh does, adds the notices of what is linked in, and checks
# that the files run on all supported systems.
stage() {
  rm -rf "$1"
  "$here/packaging/portable/stage.sh" "$build/build" "$1" "$2"
  python3 -B "$here/packaging/portable/sbom.py" --name "$name" --version "$version" --stage "$1" \
    --build "$build/build" \
    --sysroot "$GPUROTA_SYSROOT" --notices "$1$2/share/doc/gpurota/linked-in" \
    >"$folder/$name.spdx.json"
  glibc=$(python3 -B "$here/packaging/portable/check_files.py" "$1") || die "$glibc"
}

make_tarball() {
  local tree=$build/tarball/$name
  rm -rf "$build/tarball"
  mkdir -p "$tree"
  stage "$tree/files" /usr/local
  sed "s/@MACHINE@/$machine/g; s/@VERSION@/$version/g; s/@GLIBC@/$glibc/g" \
    "$here/packaging/portable/install.sh" >"$tree/install.sh"
  chmod 755 "$tree/install.sh"
  install -m 644 "$here/LICENSE" "$tree/LICENSE"
  cp "$folder/$name.spdx.json" "$tree/"
  chmod -R u=rwX,go=rX "$tree"
  XZ_OPT=-9 tar -C "$build/tarball" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
    --numeric-owner \
    -cJf "$folder/$name.tar.xz" "$name"
}

make_rpms() {
  local top=$build/rpm
  rm -rf "$top"
  mkdir -p "$top"
  stage "$top/stage" /usr
  rpmbuild -bb --quiet --target "$machine" --define "_topdir $top" \
    --define "gpurota_version $version" \
    --define "gpurota_stage $top/stage" --define 'use_source_date_epoch_as_buildtime 1' \
    --define 'clamp_mtime_to_source_date_epoch 1' --define '_buildhost gpurota' \
    --define '_binary_payload w6.xzdio' "$here/packaging/rpm/gpurota.spec"
  cp "$top"/RPMS/*/*.rpm "$folder/"
}

sum_up() {
  cd "$folder"
  find . -maxdepth 1 \( -name '*.tar.xz' -o -name '*.rpm' -o -name '*.deb' \
    -o -name '*.spdx.json' \) -printf '%P\0' |
    LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS
}

[ "$(uname -m)" = "$machine" ] ||
  die "this makes programs for $machine only, and this machine is $(uname -m)"
mkdir -p "$folder"
rm -f "$folder/$name".* "$folder"/gpurota*-"$version"-*.rpm
umask 022
compile
make_tarball
make_rpms
sum_up
