#!/bin/bash
# Tests install.sh of the portable tarball on folders: portable_install.sh BUILD
#
# BUILD is the developers' build, whose programs stand for those of the tarball. Installs, upgrades,
# uninstalls and purges below a folder of its own, even after interruptions; nothing of this system
# changes. If run as root, also tests what only root installs. portable.sh does the same in whole
# systems.
set -euo pipefail
here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tarball=$work/tarball root=$work/root
mine=$root/usr/local/share/gpurota/install.sh

fail() { echo "FAIL: $*" && exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" && fail "$*"; }; }
says() {
  local pattern=$1
  shift
  ! "$@" >"$work/log" 2>&1 || fail "should have been refused: $*"
  grep -q -- "$pattern" "$work/log" || fail "$* says: $(cat "$work/log")"
}
files() { (cd "$root" && find . | LC_ALL=C sort); }
is_empty() { [ "$(files)" = "$1" ] || fail "$2 leaves $(files)"; }

mkdir -p "$tarball" "$root/usr/local/share" "$root/etc" "$root/var/lib"
"$here/packaging/portable/stage.sh" "$build" "$tarball/files" /usr/local
sed "s/@MACHINE@/$(uname -m)/g; s/@VERSION@/1.2.3/g; s/@GLIBC@/2.31/g" \
  "$here/packaging/portable/install.sh" >"$tarball/install.sh"
chmod 755 "$tarball/install.sh"
before=$(files)

says 'whole path' "$tarball/install.sh" --prefix here
says 'a space or a colon' "$tarball/install.sh" --root "$root" --prefix '/opt/my gpus'
says "unknown option '--remove'" "$tarball/install.sh" --remove
says 'needs a folder' "$tarball/install.sh" --prefix
says 'nothing was installed' "$tarball/install.sh" --root "$root" --uninstall
is_empty "$before" "a refused install.sh"

# A file of the site makes the installation fail half-way. The next call completes the installation,
# or uninstalls the half that is there.
echo mine >"$root/usr/local/share/man"
says 'man' "$tarball/install.sh" --root "$root"
rm "$root/usr/local/share/man"
quietly "$tarball/install.sh" --root "$root" --purge
is_empty "$before" "an interrupted installation"

quietly "$tarball/install.sh" --root "$root"
(cd "$tarball/files/usr/local" && find . -type f ! -path './lib/sys*') | while IFS= read -r file; do
  cmp -s "$tarball/files/usr/local/$file" "$root/usr/local/$file" ||
    fail "$file is not installed as it is"
done
echo old >"$root/usr/local/share/gpurota/outdated"
echo /usr/local/share/gpurota/outdated >>"$root/usr/local/share/gpurota/installed"
quietly "$tarball/install.sh" --root "$root"
[ ! -e "$root/usr/local/share/gpurota/outdated" ] ||
  fail "an upgrade leaves what the new version has not"
grep -q '1.2.3' "$mine" || fail "the script is not beside what it has installed"

if [ "$(id -u)" = 0 ]; then
  grep -qx 'ExecStart=/usr/local/sbin/gpurotad' \
    "$root/usr/local/lib/systemd/system/gpurotad.service" || fail "the unit names another daemon"
  [ -e "$root/etc/gpurota/gpurota.toml" ] || fail "there is no configuration"
  says 'gpurota is there already' "$tarball/install.sh" --root "$root" --prefix /opt/gpu
  mkdir "$root/var/lib/gpurota"
  quietly "$mine" --root "$root" --uninstall
  [ -e "$root/etc/gpurota/gpurota.toml" ] || fail "--uninstall took the configuration along"
  [ -e "$root/var/lib/gpurota" ] || fail "--uninstall took the state along"
  [ ! -e "$root/usr/local/bin/gpurota" ] || fail "--uninstall leaves the programs"
  quietly "$tarball/install.sh" --root "$root" --purge
else
  quietly "$mine" --root "$root" --uninstall
fi
is_empty "$before" "--purge"

# Programs of this build need libraries that other systems do not have; check_files.py names each of
# them.
says 'needs libfmt' python3 -B "$here/packaging/portable/check_files.py" "$tarball/files"
says 'gpurotad.*needs libsqlite3' python3 \
  -B "$here/packaging/portable/check_files.py" "$tarball/files"
echo "ok install.sh installs, upgrades, uninstalls and purges"
