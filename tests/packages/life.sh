#!/bin/bash
# Tests packages from their installation to their purge: life.sh FOLDER [DEBIAN.tar]
#
# FOLDER has packages (`./dev package --kubernetes FOLDER`). Needs root, mmdebstrap, and the mirror
# that apt uses here; DEBIAN.tar is a Debian 12 that `mmdebstrap --variant=apt` has made before.
# Installs, tries, upgrades, removes and purges the packages in a fresh Debian 12 in a folder of its
# own, and says how long that took and how large they are. Without systemd as the first process,
# nothing is started; tests/system/machine.sh FOLDER does the same on a machine with systemd.
# Packages for another processor (`./dev package --arch arm64`) are tried in a Debian of that
# processor, whose programs are all emulated (see emulated.sh for what that needs; also needs
# g++-aarch64-linux-gnu).
set -euo pipefail
here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
packages=$(realpath "$1")
[ "$(id -u)" = 0 ] || { echo "skipped: needs root" && exit 77; }
command -v mmdebstrap >/dev/null || { echo "skipped: mmdebstrap is not installed" && exit 77; }
architecture=$(dpkg-deb --field "$(compgen -G "$packages/gpurotad_*.deb" | head -n 1)" Architecture)
compiler=g++ debian=()
if [ "$architecture" != "$(dpkg --print-architecture)" ]; then
  [ -n "${GPUROTA_EMULATED:-}" ] ||
    GPUROTA_EMULATED=yes exec "$here/tests/packages/emulated.sh" "$architecture" "$0" "$@"
  compiler=$(dpkg-architecture -a "$architecture" -q DEB_HOST_GNU_TYPE 2>/dev/null)-g++
  command -v "$compiler" >/dev/null || { echo "skipped: $compiler is not installed" && exit 77; }
  # The root of a user namespace cannot mount sysfs.
  debian=(--mode=root --skip=chroot/mount/sys "--architectures=$architecture")
fi
work=$(mktemp -d)
root=$work/root

finish() {
  local code=$?
  umount -R "$root/proc" 2>/dev/null || true
  umount -R "$root/dev" 2>/dev/null || true
  # The folder is removed only if nothing of this machine is mounted below it any more.
  if ! grep -q " $root/" /proc/mounts; then rm -rf "$work"; fi
  exit "$code"
}
trap finish EXIT

fail() { echo "FAIL: $*" && exit 1; }
inside() {
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
    LC_ALL=C.UTF-8 "$@"
}
files() {
  (cd "$root" && find . -path ./proc -prune -o -path ./dev -prune -o -path ./tmp -prune -o -print |
    sort)
}
milliseconds() { echo $(($(date +%s%N) / 1000000)); }
# The packages that users install: no debug symbols, no simulator.
ours() {
  local name
  for name in "$@"; do
    compgen -G "$root/$folder/${name}_*.deb" >/dev/null || fail "there is no package $name"
  done
  (cd "$root" && for name in "$@"; do printf '/%s\n' "$folder/${name}_"*.deb; done)
}

if [ -n "${2:-}" ]; then
  mkdir "$root" && tar -C "$root" --exclude='./dev/*' -xf "$2"
else
  mmdebstrap --quiet --variant=apt "${debian[@]}" bookworm "$root" ||
    fail "Debian 12 cannot be had here"
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
mkdir -p "$root/packages" && cp "$packages"/*.deb "$root/packages"
"$here/tests/packages/renumber.sh" "$packages" "$root/newer" +next
folder=packages
mapfile -t installed < <(ours gpurota gpurotad libgpurota gpurota-web)
# In the order of removal.
names=(gpurota-web gpurota-kubernetes gpurota-burn gpurotad gpurota libgpurota gpurota-sim
  python3-gpurota)
mapfile -t others < <(ours gpurota-burn gpurota-kubernetes gpurota-sim python3-gpurota)
bytes=0 kib=0
for package in "${installed[@]}"; do
  bytes=$((bytes + $(stat -c %s "$root$package")))
  kib=$((kib + $(dpkg-deb --field "$root$package" Installed-Size)))
done
echo "ok without the simulator they have $bytes bytes and take $kib KiB"

# Installs as a user does; other packages that Debian adds are downloaded too.
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends --download-only "${installed[@]}" >/dev/null
before=$(milliseconds)
inside apt-get install -y -qq --no-install-recommends "${installed[@]}" >"$work/log" 2>&1 ||
  { cat "$work/log" && fail "apt-get install"; }
echo "ok apt-get install in a fresh Debian 12 takes $(($(milliseconds) - before)) ms" \
  "once all is fetched"
inside dpkg --purge gpurota-web gpurotad gpurota libgpurota >/dev/null 2>&1

# Debian's packages that our module and the plugins for Kubernetes need.
inside apt-get install -y -qq --no-install-recommends "${installed[@]}" "${others[@]}" \
  >"$work/log" 2>&1 ||
  { cat "$work/log" && fail "apt-get install of all"; }
inside dpkg --purge "${names[@]}" >/dev/null 2>&1

# Installs once more, to see what the packages alone leave. A group stays, because files may have
# its number.
# The suggestions of the configuration name these groups and this user.
inside sh -c 'groupadd gpu-admin; groupadd students; useradd -M alice'
inside getent group gpurota >/dev/null || fail "the group gpurota is not there"
files >"$work/before"
before=$(milliseconds)
inside dpkg -i "${installed[@]}" "${others[@]}" >/dev/null
echo "ok of that, dpkg takes $(($(milliseconds) - before)) ms for ours"
inside test -L /etc/systemd/system/multi-user.target.wants/gpurotad.service ||
  fail "gpurotad.service is not enabled"
inside test -L /etc/systemd/system/sockets.target.wants/gpurotad.socket ||
  fail "gpurotad.socket is not enabled"
[ ! -e "$root/etc/systemd/system/multi-user.target.wants/gpurota-device-plugin.service" ] ||
  fail "the plugin is enabled, which nobody has asked for"
! pgrep -x gpurotad | xargs -r -I@ readlink /proc/@/root | grep -qx "$root" ||
  fail "a daemon was started in a chroot"
inside gpurotad --check-config >/dev/null || fail "the installed configuration has a mistake"
inside man gpurota >/dev/null 2>&1 || inside test -s /usr/share/man/man1/gpurota.1.gz ||
  fail "there is no gpurota(1)"
python3 -c 'import re, sys; print(re.sub(
  "^#(?=[\\w[])", "", open(sys.argv[1]).read(), flags=re.M))' "$root/etc/gpurota/gpurota.toml" \
  >"$root/tmp/all.toml"
inside gpurotad --check-config --config /tmp/all.toml >"$work/log" 2>&1 ||
  { cat "$work/log" && fail "a setting that the configuration suggests has a mistake"; }
# says PROGRAM OPTION: the program runs, with all its libraries.
says() {
  inside "$1" "$2" >"$work/said" 2>&1 || fail "$1 $2 ends with $?: $(head -n 3 "$work/said")"
  grep -q "^\([Uu]sage: \)\?$(basename "$1" | sed 's/-burn/ burn/')" "$work/said" ||
    fail "$1 $2 says $(head -n 3 "$work/said")"
}
mapfile -t programs < <(inside dpkg -L "${names[@]}" | grep -E '^/usr/s?bin/' | sort)
for program in "${programs[@]}"; do
  case $program in
    */gpurota-keeper)
      (inside "$program" 2>&1 || true) | grep -q 'is started by gpurotad' ||
        fail "$program does not run"
      ;;
    */gpurota-burn) says "$program" --help ;;
    *) says "$program" --version && says "$program" --help ;;
  esac
done
# The licences in the page must name the authors of the packages from npm.
grep -q 'Jason Miller' "$root/usr/bin/gpurota-web" || fail "gpurota-web has no page"
echo "ok each of the ${#programs[@]} programs runs: ${programs[*]##*/}"
echo "ok installed: enabled, not started in a chroot, and the configuration and its suggestions" \
  "are right"

cp "$here/debian/tests/lease" "$root/tmp/lease"
if [ -n "${GPU_PROGRAM:-}" ]; then cp "$GPU_PROGRAM" "$root/tmp/gpu_program"; else
  "$compiler" -std=c++20 -O1 -I"$here/src" \
    -o "$root/tmp/gpu_program" "$here/demo/gpu_program.cpp" "$here/demo/driver.cpp" \
    -static-libstdc++ -static-libgcc -ldl
fi
inside /tmp/lease /tmp/gpu_program || fail "debian/tests/lease"

echo '# of this site' >>"$root/etc/gpurota/gpurota.toml"
# As the units of the daemon and of the plugin have them.
for name in gpurota/gpurota.db gpurota-kubernetes/allocations.textproto; do
  mkdir -p "$(dirname "$root/var/lib/$name")" && echo state >"$root/var/lib/$name"
done
folder=newer
mapfile -t newer < <(ours "${names[@]}")
inside dpkg -i "${newer[@]}" >"$work/log" 2>&1 </dev/null || { cat "$work/log" && fail "upgrade"; }
tail -n 1 "$root/etc/gpurota/gpurota.toml" | grep -qx '# of this site' ||
  fail "the upgrade lost what the site has written"
[ "$(cat "$root"/var/lib/gpurota{/gpurota.db,-kubernetes/allocations.textproto} | uniq)" = state ] \
  || fail "the upgrade lost the state"
! inside dpkg -i /packages/gpurotad_*.deb >"$work/log" 2>&1 ||
  fail "a daemon of another version than its library could be installed"
inside dpkg -i "${newer[@]}" >/dev/null 2>&1
echo "ok an upgrade asks nothing and keeps configuration and state;" \
  "the daemon needs the library of its version"

inside dpkg --remove "${names[@]}" >/dev/null 2>&1
for kept in var/lib/gpurota/gpurota.db var/lib/gpurota-kubernetes/allocations.textproto \
  etc/gpurota/gpurota.toml; do
  [ -e "$root/$kept" ] || fail "remove took $kept along"
done
inside dpkg --purge "${names[@]}" >/dev/null 2>&1
files >"$work/after"
# Files that Debian's own tools keep, whatever is installed, do not count.
left=$(comm -13 "$work/before" "$work/after" |
  grep -vE '^\./(etc/(group|gshadow)-|var/(log|cache)/.*|var/lib/dpkg/(info|triggers)/.*)$' || true)
[ -z "$left" ] || fail "purge leaves: $left"
for gone in var/lib/gpurota var/lib/gpurota-kubernetes etc/gpurota run/gpurota; do
  [ ! -e "$root/$gone" ] || fail "purge leaves $gone"
done
echo "ok remove keeps configuration and state, purge leaves nothing but the group"
