#!/bin/bash
# Tests the portable tarball and the RPMs on Debian 11, 12 and 13, from their installation to their
# removal: portable.sh FOLDER BUILD [SYSTEM.tar…]
#
# FOLDER has what `./dev portable FOLDER` made, and BUILD is build/portable/work, for programs to
# try. Needs root, rpm, g++, mmdebstrap and the mirror that apt uses here. SYSTEM.tar is a system
# that `mmdebstrap --variant=minbase` has made before; the systems given here replace the three of
# Debian. The RPMs are tried with this system's rpm in a chroot. Without systemd as the first
# process, nothing is started.
set -euo pipefail
here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
packages=$(realpath "$1") build=$(realpath "$2")
shift 2
[ "$(id -u)" = 0 ] || { echo "skipped: needs root" && exit 77; }
for tool in rpm g++; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
done
work=$(mktemp -d)
root=$work/root

leave() {
  umount -R "$root/proc" 2>/dev/null || true
  umount -R "$root/dev" 2>/dev/null || true
  # The folder is removed only if nothing of this machine is mounted below it any more.
  if ! grep -q " $root/" /proc/mounts; then rm -rf "$root"; fi
}
finish() {
  local code=$?
  leave
  [ -e "$root" ] || rm -rf "$work"
  exit "$code"
}
trap finish EXIT

fail() { echo "FAIL: $*" && exit 1; }
inside() {
  chroot "$root" env -i \
    PATH=/opt/gpu/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LC_ALL=C.UTF-8 "$@"
}
# quietly WHAT COMMAND…: shows the command's output only if it fails.
quietly() {
  local what=$1
  shift
  "$@" >"$work/log" 2>&1 || { cat "$work/log" && fail "$what on $system"; }
}
files() {
  (cd "$root" && find . \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./try \
    -o -path ./var/lib/rpm \) -prune -o -print | LC_ALL=C sort)
}
as_before() {
  local what=$1 left
  files >"$work/after"
  # The group and the user stay, because files may have their numbers.
  local accounts='\./etc/\.?(group|gshadow|passwd|shadow|subuid|subgid|\.pwd\.lock)-?(\.lock)?$'
  left=$(diff "$work/before" "$work/after" | grep -E '^[<>]' | grep -vE "$accounts" || true)
  [ -z "$left" ] || fail "$what leaves, or takes: $left"
}
says() {
  local pattern=$1
  shift
  ! "$@" >"$work/said" 2>&1 || fail "should have been refused: $*"
  grep -q -- "$pattern" "$work/said" || fail "$* says: $(cat "$work/said")"
}

# Builds the probe for the other systems, as a program and as a library.
make_tries() {
  local sysroot=$build/sysroot flags
  flags=(--sysroot="$sysroot" "-B$(compgen -G "$sysroot/usr/lib/*-linux-gnu")/" -std=c++20 -O1 -fPIC
    -D_GLIBCXX_GTHREAD_USE_WEAK=0 -static-libstdc++ \
      -static-libgcc "$here/tests/packages/libc_gaps_probe.cpp")
  mkdir "$work/try"
  g++ "${flags[@]}" -o "$work/try/probe" -Wl,--no-as-needed -ldl -lpthread
  g++ -shared "${flags[@]}" -o "$work/try/libprobe.so" -Wl,--exclude-libs,ALL -Wl,--no-as-needed \
    -ldl -lpthread
  cp "$build/build/demo/gpu_program" "$here/debian/tests/lease" "$work/try/"
  tar -xJf "$packages"/gpurota-*.tar.xz -C "$work/try"
  mv "$work"/try/gpurota-* "$work/try/gpurota"
}

enter() {
  rm -rf "$root"
  case $1 in
    *.tar*) mkdir "$root" && tar -C "$root" -xf "$1" ;;
    *) mmdebstrap --quiet --variant=minbase "$1" "$root" || fail "$1 cannot be had here" ;;
  esac
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --make-rslave "$root/dev"
  cp -a "$work/try" "$root/try"
  # shellcheck disable=SC2016 # for the other shell
  system="$(inside sh -c '. /etc/os-release && echo "$PRETTY_NAME"'), $(
    inside ldd --version | head -n 1)"
}

# A mistake in the configuration makes the parser throw, and must be reported in a sentence.
try_programs() {
  quietly "the smoke test" inside /try/lease /try/gpu_program
  grep '^ok' "$work/log"
  inside gpurotad --check-config >/dev/null || fail "the installed configuration has a mistake"
  echo 'reconnect_grace = [' >"$root/try/broken.toml"
  says 'broken.toml:1' inside gpurotad --check-config --config /try/broken.toml
  inside getent group gpurota >/dev/null || fail "there is no group gpurota"
  inside getent passwd gpurota-notify >/dev/null || fail "there is no user gpurota-notify"
}

# Without systemd, the site has to restart or end the daemon itself; install.sh says so.
upgrade_under_a_daemon() {
  inside gpurotad >"$work/gpurotad.log" 2>&1 &
  local daemon=$!
  for _ in {1..300}; do
    if inside gpurota status >/dev/null 2>&1; then break; fi
    sleep 0.1
  done
  quietly "gpurota status" inside gpurota status
  quietly "an upgrade under a daemon" inside /try/gpurota/install.sh
  grep -q 'The old gpurotad still runs' "$work/log" ||
    fail "an upgrade does not say that the old daemon runs: $(cat "$work/log")"
  quietly "the next gpurota status" inside gpurota status
  says 'gpurotad still runs' inside /usr/local/share/gpurota/install.sh --uninstall
  pkill -P "$daemon" -x gpurotad || kill "$daemon"
  wait "$daemon" 2>/dev/null || true
}

try_tarball() {
  local mine=/usr/local/share/gpurota/install.sh
  inside /try/probe /try/libprobe.so || fail "libc_gaps.c does not do on $system"
  files >"$work/before"
  quietly install.sh inside /try/gpurota/install.sh
  try_programs
  # An upgrade removes an outdated file, and keeps the site's own file.
  echo '# of this site' >>"$root/etc/gpurota/gpurota.toml"
  echo old >"$root/usr/local/share/gpurota/outdated"
  echo /usr/local/share/gpurota/outdated >>"$root/usr/local/share/gpurota/installed"
  quietly "an upgrade" inside /try/gpurota/install.sh
  [ ! -e "$root/usr/local/share/gpurota/outdated" ] ||
    fail "an upgrade leaves what the new version has not"
  tail -n 1 "$root/etc/gpurota/gpurota.toml" | grep -qx '# of this site' ||
    fail "the upgrade lost what the site has written"
  upgrade_under_a_daemon
  quietly "install.sh --uninstall" inside "$mine" --uninstall
  for kept in var/lib/gpurota/gpurota.db etc/gpurota/gpurota.toml; do
    [ -e "$root/$kept" ] || fail "--uninstall took $kept along"
  done
  [ ! -e "$root/usr/local/bin/gpurota" ] || fail "--uninstall leaves the programs"
  quietly "install.sh --prefix" inside /try/gpurota/install.sh --prefix /opt/gpu
  grep -qx 'ExecStart=/opt/gpu/sbin/gpurotad' "$root/etc/systemd/system/gpurotad.service" ||
    fail "the unit does not name the prefix"
  quietly "the smoke test below another prefix" inside /try/lease /try/gpu_program
  quietly "install.sh --purge" inside /opt/gpu/share/gpurota/install.sh --purge
  as_before "install.sh --purge"
  says 'nothing was installed' inside /try/gpurota/install.sh --uninstall
  says 'whole path' inside /try/gpurota/install.sh --prefix here
  says 'a space or a colon' inside /try/gpurota/install.sh --prefix '/opt/my gpus'
  as_before "a refused install.sh"
  echo "ok install.sh on $system: install, run, upgrade, uninstall, purge, nothing is left"
}

rpm_there() { rpm --root "$root" --dbpath /var/lib/rpm "$@"; }
# Uses the rpm of this machine, because these systems have none. Besides what the tarball needs, the
# RPMs need only systemd.
try_rpms() {
  local name
  quietly "apt-get update" inside apt-get update -q
  quietly "apt-get install systemd" inside env DEBIAN_FRONTEND=noninteractive apt-get install \
    -y -q --no-install-recommends systemd
  mkdir -p "$root/usr/lib/systemd/system" # Debian 11's systemd does not have it
  files >"$work/before"
  quietly "rpm -i" rpm_there --nodeps -i "$packages"/*.rpm
  try_programs
  for name in sockets.target.wants/gpurotad.socket multi-user.target.wants/gpurotad.service; do
    [ -L "$root/etc/systemd/system/$name" ] || fail "the RPM does not enable $name"
  done
  quietly "rpm -U" rpm_there --nodeps -U --force "$packages"/*.rpm
  for name in gpurota gpurota-burn gpurota-web gpurota-sim; do
    quietly "rpm -V $name" rpm_there -V --nodeps "$name"
  done
  quietly "rpm -e" rpm_there -e gpurota-burn gpurota-web gpurota-sim gpurota
  as_before "rpm -e"
  echo "ok RPMs on $system: install, run, upgrade, verify, remove, nothing is left"
}

make_tries
if [ $# = 0 ]; then set -- bullseye bookworm trixie; fi
for each in "$@"; do
  enter "$each"
  try_tarball
  try_rpms
  leave
done
