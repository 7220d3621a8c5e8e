#!/bin/bash
# Makes a folder of old headers and libraries to build against: sysroot.sh FOLDER
#
# FOLDER gets everything that programs find at run time (the C library, libsystemd, libacl) from
# Debian 11, the oldest Debian whose packages are on the mirrors. Everything that becomes part of
# the programs is from Debian 12. FOLDER/packages.tsv and FOLDER/files.tsv are for sbom.py. Needs
# apt and its mirror (MIRROR names another), gcc, no root; changes nothing of this system. A folder
# that this script has made is left as it is, unless there are newer packages. Called by
# make_portable.sh.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
folder=$(realpath -m "$1")
mirror=${MIRROR:-http://deb.debian.org}
old=(libc6 libc6-dev linux-libc-dev libcrypt-dev libsystemd0 libsystemd-dev libacl1 libacl1-dev)
# Packages whose archives and headers become part of the programs: the same as in the Debian
# packages. libtinfo6 has the licence of ncurses.
linked=(libsqlite3-dev libncurses-dev libtinfo6 libfmt-dev libtomlplusplus-dev libexpected-dev \
  nlohmann-json3-dev)

say() { printf '%s\n' "$*" >&2; }
die() { say "sysroot: $*"; exit 1; }

command -v apt-get >/dev/null ||
  die "there is no apt-get here; the folder is made of Debian's packages"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/packages" "$work/root"
: >"$work/status" # so that packages installed on this system are not considered
for suite in bullseye bookworm; do
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror/debian $suite main"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror/debian-security $suite-security main"
done >"$work/sources"
apt=(-q -o "Dir::Etc::SourceList=$work/sources" -o Dir::Etc::SourceParts=/dev/null \
  -o "Dir::State::Lists=$work/lists"
  -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" \
    -o Acquire::Check-Valid-Until=false)
if [ "$(id -u)" = 0 ]; then apt+=(-o APT::Sandbox::User=root); fi

# newest SUITE PACKAGE…: prints each as NAME=VERSION, from the suite or its security updates.
newest() {
  local suite=$1 name
  shift
  apt-cache "${apt[@]}" madison "$@" | awk -F ' *[|] *' -v suite=" $suite(-security)?/" \
    '$3 ~ suite && !seen[$1]++ {sub(/^ */, "", $1); print $1 "=" $2}' >"$work/$suite"
  for name in "$@"; do
    grep -q "^$name=" "$work/$suite" || die "$mirror has no $name in $suite"
  done
  cat "$work/$suite"
}

# Ends this script if the folder is up to date, or if that cannot be checked without a network.
check_for_updates() {
  local scripts
  scripts=$(cat "$here/sysroot.sh" "$here/libc_gaps.c" | sha256sum)
  if ! apt-get "${apt[@]}" update --error-on=any >"$work/log" 2>&1; then
    [ "$(head -n 1 "$folder/made-by" 2>/dev/null)" = "$scripts" ] || { cat "$work/log" >&2 &&
      die "the lists of $mirror cannot be had"; }
    say "sysroot: the lists of $mirror cannot be had, so updates are unknown; continuing with what $folder has"
    exit 0
  fi
  chosen=$(newest bullseye "${old[@]}" && newest bookworm "${linked[@]}")
  stamp=$scripts$'\n'$chosen
  if [ "$(cat "$folder/made-by" 2>/dev/null)" = "$stamp" ]; then exit 0; fi
}

fetch() {
  # shellcheck disable=SC2086 # words
  (cd "$work/packages" && apt-get "${apt[@]}" download $chosen) >"$work/log" 2>&1 ||
    { cat "$work/log" >&2 && die "packages cannot be fetched from $mirror"; }
}

unpack() {
  local package
  for package in "$work"/packages/*.deb; do
    dpkg-deb -x "$package" "$work/root"
    dpkg-deb --fsys-tarfile "$package" | tar -t |
      sed -n "s|^\./\(.*[^/]\)$|\1\t$(dpkg-deb -f "$package" Package)|p" >>"$work/root/files.tsv"
    # shellcheck disable=SC2016 # fields of dpkg-deb
    dpkg-deb -W --showformat='${Package}\t${Version}\t${source:Package}\t${source:Version}\t${Architecture}\n' "$package"
  done >"$work/root/packages.tsv"
}

# Makes the packages' absolute links relative, so that they stay in the folder.
turn_links() {
  local link target
  while IFS= read -r link; do
    target=$(readlink "$link")
    case $target in /*) ln -sfnr "$work/root$target" "$link" ;; esac
  done < <(find "$work/root" -type l)
}

# Removes shared libraries so that the linker takes the archives of the same packages. fmt's CMake
# and pkg-config files are removed as well, so that fmt is used as headers.
keep_archives() {
  local libraries
  libraries=$(echo "$work"/root/usr/lib/*-linux-gnu)
  rm -f "$libraries"/lib{sqlite3,ncursesw,tinfo,fmt,tomlplusplus}.so "$libraries"/pkgconfig/fmt.pc
  rm -rf "$libraries"/cmake/fmt
  # The compiler's own headers of C++, in the version that is here.
  ln -s /usr/include/c++ "$work/root/usr/include/c++"
  ln -s "/usr/include/$(basename "$libraries")/c++" \
    "$work/root/usr/include/$(basename "$libraries")/c++"
}

# Adds the symbols that the C library itself lacks, where the linker finds them.
fill_gaps() {
  gcc --sysroot="$work/root" -std=c11 -O2 -fPIC -fstack-protector-strong -Wall -Wextra -Werror -c -o "$work/libc_gaps.o" "$here/libc_gaps.c"
  ar rD "$(compgen -G "$work/root/usr/lib/*-linux-gnu/libc_nonshared.a")" "$work/libc_gaps.o"
}

check_for_updates
fetch
unpack
turn_links
keep_archives
fill_gaps
echo "$stamp" >"$work/root/made-by"
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$work/root" "$folder"
