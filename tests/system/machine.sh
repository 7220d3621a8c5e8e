#!/bin/bash
# Tests a whole machine that runs the packaged gpurota: machine.sh PREFIX|FOLDER PROGRAM
#
# PREFIX is an installed gpurota, FOLDER has its Debian packages, PROGRAM is the demo's gpu_program.
# Boots Debian's systemd, with its journal, D-Bus and logins, as the first process of namespaces of
# its own, on an overlay of this machine's root, and reboots it: what users have started must live
# as long as the manual says. Nothing outside is changed. Exits with 77, and says why, where this
# machine cannot boot it. GPUROTA_MACHINE_SHELL=1 opens a shell in the booted machine before the
# tests. The machine also serves the tests of upgrade.sh (with other packages to upgrade to), of
# recipes.sh (with more of Debian's packages), and of portable.sh (for the tarball).
set -euo pipefail

skip() { echo "skipped: $*" && exit 77; }
fail() {
  echo "FAIL: $*"
  as alice gpurota job list || true
  in_there gpurota status || true
  in_there journalctl --no-pager -n 30 -u gpurota-web.service || true
  in_there journalctl --no-pager -n 60 -t gpurotad -t gpurota-keeper -t '(gpurotad)' -p info || true
  exit 1
}

readonly SYSTEMD=/lib/systemd/systemd

# The disk of the machine, in a mount namespace of ours: it outlives a boot.
make_disk() {
  mount --make-rprivate /
  mount -t tmpfs tmpfs "$dir"
  mkdir "$dir/upper" "$dir/work" "$root"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$root" ||
    skip "an overlay of / cannot be mounted"
  if [ "$where" != /usr ]; then
    mkdir -p "$root$where"
    cp -a "$prefix/." "$root$where"
    chmod -R go+rX "$root$where"
  fi
  local more
  read -ra more <<<"${GPUROTA_MACHINE_PROGRAMS:-}"
  install -D -m 755 -t "$root$where/bin" "$program" "${more[@]}"

  # Only the units that the machine needs: none of this machine's services, and nothing that would
  # change settings of the kernel.
  local units=$root/etc/systemd/system unit
  rm -rf "$units" "$root"/etc/rc?.d "$root/etc/init.d" "$root/var/lib/gpurota" "$root/etc/gpurota" \
    "$root/var/log/journal"
  mkdir -p "$units/gpurotad.service.d" "$units/gpurota-web.service.d" \
    "$units/multi-user.target.wants" "$root/etc/systemd/logind.conf.d"
  for unit in systemd-sysctl systemd-binfmt systemd-random-seed systemd-modules-load systemd-udevd \
    systemd-resolved \
    systemd-networkd systemd-timesyncd systemd-firstboot systemd-machine-id-commit \
    systemd-tmpfiles-clean; do
    ln -s /dev/null "$units/$unit.service"
  done
  for unit in dev-hugepages.mount sys-fs-fuse-connections.mount sys-kernel-config.mount \
    sys-kernel-debug.mount \
    sys-kernel-tracing.mount proc-sys-fs-binfmt_misc.automount getty.target \
    systemd-ask-password-wall.path; do
    ln -s /dev/null "$units/$unit"
  done
  if [ "$where" = /usr ]; then
    install_packages
  else
    for unit in gpurotad gpurota-web; do
      [ -e "$prefix/lib/systemd/system/$unit.service" ] || continue # a build without the web page
      sed "s|$prefix|$where|g" "$prefix/lib/systemd/system/$unit.service" >"$units/$unit.service"
      ln -s "../$unit.service" "$units/multi-user.target.wants/$unit.service"
    done
    mkdir -p "$units/sockets.target.wants"
    for unit in gpurotad gpurota-web; do
      [ -e "$prefix/lib/systemd/system/$unit.socket" ] || continue
      cp "$prefix/lib/systemd/system/$unit.socket" "$units"
      ln -s "../$unit.socket" "$units/sockets.target.wants/$unit.socket"
    done
  fi
  # The GPUs are simulated, so the simulated driver needs files that it may write. The files belong
  # to one boot, because they name processes of its pid namespace, which the next boot does not see.
  mkdir -p "$root/var/gpurota-sim"
  chmod 1777 "$root/var/gpurota-sim"
  local gpus=${GPUROTA_MACHINE_FILE:-demo-r615}
  if [ -f "$gpus" ]; then cp "$gpus" "$root/var/gpus.toml" && gpus=/var/gpus.toml; fi
  printf '%s\n' '#!/bin/sh' 'rm -rf /var/gpurota-sim/machine' \
    "exec $simulator/bin/gpurota-sim --dir /var/gpurota-sim/machine --shared $gpus -- true" \
    >"$root/var/make-gpus"
  chmod 755 "$root/var/make-gpus"
  printf '%s\n' '[Service]' 'Environment=GPUROTA_SIM_DIR=/var/gpurota-sim/machine' \
    "Environment=LD_LIBRARY_PATH=$sim" 'ReadWritePaths=/var/gpurota-sim' \
    'BindReadOnlyPaths=/var/boot_id:/proc/sys/kernel/random/boot_id' \
    >"$units/gpurotad.service.d/simulated.conf"
  # logind ends everything that a login has started when the login ends.
  printf '%s\n' '[Login]' KillUserProcesses=yes >"$root/etc/systemd/logind.conf.d/test.conf"
  printf '%s\n' 'auth required pam_permit.so' 'account required pam_permit.so' \
    'session required pam_systemd.so class=user type=tty' >"$root/etc/pam.d/gpurota-test"
  echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
  mkdir -p "$root/var/log/journal"
  new_user alice
  new_user bob
}

# new_user NAME: makes a user. If this machine has a user of that name, that user is first removed
# from the overlay.
new_user() {
  local file
  for file in passwd shadow group gshadow subuid subgid; do
    if [ -f "$root/etc/$file" ]; then sed -i "/^$1:/d" "$root/etc/$file"; fi
  done
  rm -rf "${root:?}/home/$1" "${root:?}/var/mail/$1"
  chroot "$root" useradd -m -s /bin/sh "$1"
}

# Installs the packages as an administrator does, which also enables the units. A newer version is
# put into /var/packages/newer for later tests.
install_packages() {
  # Container images have a policy-rc.d, which keeps packages from starting services.
  rm -f "$root/usr/sbin/policy-rc.d"
  mkdir "$root/var/packages"
  cp "$prefix"/*.deb "$root/var/packages"
  "$tests/../packages/renumber.sh" "${GPUROTA_MACHINE_NEWER:-$prefix}" "$root/var/packages/newer" \
    +next
  rm -f "$root"/var/packages/{,newer/}*-dbgsym_*.deb
  chroot "$root" sh -c 'dpkg -i /var/packages/*.deb' >"$dir/dpkg" 2>&1 ||
    skip "the packages cannot be installed here: $(tail -n 3 "$dir/dpkg")"
  if [ -n "${GPUROTA_MACHINE_PACKAGES:-}" ]; then install_debians; fi
  if [ "$simulator" != /usr ]; then
    dpkg-deb --extract "$(compgen -G "$root/var/packages/newer/gpurota-sim_*.deb")" \
      "$root${simulator%/usr}"
  fi
}

# Installs Debian's programs that the tests need.
install_debians() {
  local wanted
  read -ra wanted <<<"$GPUROTA_MACHINE_PACKAGES"
  mount --rbind /dev "$root/dev"
  mount --make-rslave "$root/dev"
  chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install \
    -y -qq --no-install-recommends "${wanted[@]}" >"$dir/apt" 2>&1 ||
    skip "packages of Debian's cannot be had here: $(tail -n 3 "$dir/apt")"
  umount -l "$root/dev"
}

# Runs in the namespaces of one boot, as their first process.
boot_inside() {
  mount --make-rprivate /
  mount -t proc proc "$root/proc"
  # A new boot id makes programs in the namespaces believe that the kernel was booted again.
  mount --bind "$root/var/boot_id" "$root/proc/sys/kernel/random/boot_id"
  mount --rbind "$root/proc/sys" "$root/proc/sys"
  mount -o remount,bind,ro "$root/proc/sys"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
  local node
  for node in null zero full random urandom tty; do
    : >"$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
  done
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  # pivot_root instead of chroot, because no user namespace can be made in a chroot (PrivateUsers=).
  cd "$root"
  pivot_root . .
  umount -l .
  cd /
  /var/make-gpus
  exec env -i container=test PATH="$PATH" "$SYSTEMD" --system --unit=multi-user.target \
    --log-target=journal --show-status=no
}

unless_booted=skip
boot() {
  cat /proc/sys/kernel/random/uuid >"$root/var/boot_id"
  (
    echo "$BASHPID" >"$own/cgroup.procs"
    exec unshare --mount --pid --fork --kill-child --cgroup --uts --ipc --net \
      "$BASH" "$0" --boot "$dir" "$own"
  ) >>"$dir/console" 2>&1 </dev/null &
  launcher=$!
  local end=$((SECONDS + 60))
  until in_there systemctl is-active multi-user.target >/dev/null 2>&1; do
    # The boot target does not depend on gpurotad, so a failure here is a failure of other services.
    ((SECONDS < end)) || "$unless_booted" \
      "systemd does not come up here: $(tail -n 3 "$dir/console")"
    kill -0 "$launcher" 2>/dev/null ||
      "$unless_booted" "systemd does not start here: $(tail -n 3 "$dir/console")"
    sleep 0.1
  done
  unless_booted=fail # from now on, any failure is a fault
  wait_until in_there systemctl is-active gpurotad.service
}
# Powers off as an administrator does; systemd ends the services in their order.
power_off() {
  in_there systemctl poweroff --no-block 2>/dev/null || true # systemd may be gone before it answers
  local end=$((SECONDS + 60))
  while kill -0 "$launcher" 2>/dev/null; do
    ((SECONDS < end)) || fail "it does not go down"
    sleep 0.1
  done
  wait "$launcher" || true
}

finish() {
  local code=$?
  if [ -n "${launcher:-}" ]; then
    kill -KILL "$launcher" 2>/dev/null || true
    wait "$launcher" 2>/dev/null || true
  fi
  if [ "$code" != 0 ] && [ "$code" != 77 ]; then tail -n 40 "$dir/console" || true; fi
  for _ in {1..50}; do
    find "$own" -depth -type d -exec rmdir {} + 2>/dev/null || true
    [ -d "$own" ] || break
    sleep 0.1
  done
}

wait_until() {
  local end=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "still not true: $*"
    kill -0 "$launcher" 2>/dev/null || fail "the machine has ended: $(tail -n 3 "$dir/console")"
    sleep 0.1
  done
}
# in_there COMMAND…: runs the command as root, beside systemd.
in_there() {
  local pid
  pid=$(pgrep -P "$launcher" | head -n 1) || return 1
  nsenter -t "$pid" --mount --pid --cgroup --uts --ipc --net --root env \
    -i -C / PATH="$where/bin:$PATH" \
    GPUROTA_SIM_DIR=/var/gpurota-sim/machine LD_LIBRARY_PATH="$sim" TERM=dumb "$@"
}
# login USER COMMAND…: runs the command in a login of the user, which ends with the command.
login() {
  local user=$1
  shift
  in_there systemd-run --quiet --wait --pipe --collect --uid="$user" \
    --property=PAMName=gpurota-test \
    --setenv=PATH="$where/bin:/usr/bin:/bin" --setenv=GPUROTA_SIM_DIR=/var/gpurota-sim/machine \
    --setenv=LD_LIBRARY_PATH="$sim" --working-directory="/home/$user" -- "$@"
}
# as USER COMMAND…: runs the command as the user, outside any login.
as() { in_there setpriv --reuid="$1" --regid="$1" --clear-groups -- "${@:2}"; }
# shows PATTERN COMMAND…
shows() {
  local text
  text=$("${@:2}" 2>&1) || true
  grep -q "$1" <<<"$text"
}
daemon_says() { shows "$1" in_there journalctl --no-pager --quiet -u gpurotad.service; }
# running MIB: the pid of the program that holds MIB, by which the tests tell programs apart.
running() { in_there pgrep -f "^[^ ]*gpu_program hold $1\$" | head -n 1; }
is_running() { [ -n "$(running "$1")" ]; }
main_pid() { in_there systemctl show -P MainPID gpurotad.service; }
other_than() {
  local pid
  pid=$(main_pid)
  [ "$(in_there systemctl is-active gpurotad.service)" = active ] && [ "$pid" != 0 ] &&
    [ "$pid" != "$1" ]
}
leases() {
  in_there gpurota status --json |
    python3 -c 'import json, sys; print(len(json.load(sys.stdin)["leases"]))'
}
has_leases() { [ "$(leases)" = "$1" ]; }
# Reads `gpurota status` from its input: prints the lease of `gpurota run` on a GPU.
lease_on() {
  python3 -c 'import json, sys
for lease in json.load(sys.stdin)["leases"]:
  if lease["kind"] == "run" and str(lease["gpus"][0]["index"]) == sys.argv[1]:
    print(lease["lease_id"])' "$1"
}
state_of() {
  as alice gpurota job show "$1" --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["jobs"][0]["state"])'
}
job_is() { [ "$(state_of "$1")" = "$2" ]; }

tests=$(dirname "$(realpath "$0")")
# Sets where gpurota and the simulator are in the machine. A unit cannot see /home, /root or /tmp.
places() {
  where=/opt/gpurota simulator=/opt/gpurota sim=/opt/gpurota/lib/gpurota/sim
  if compgen -G "$prefix/gpurotad_*.deb" >/dev/null; then
    # An upgrade does not replace the simulated driver, just as it would not replace a real one.
    where=/usr simulator=${GPUROTA_MACHINE_NEWER:+/opt/simulator}/usr
    sim=$simulator/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)/gpurota/sim
  fi
}
case ${1:-} in
  --boot)
    dir=$2 own=$3 root=$2/root
    boot_inside
    ;;
  --disk)
    dir=$2 own=$3 prefix=$4 program=$5 root=$2/root
    places
    ;;
  *)
    prefix=$(realpath "$1") program=$(realpath "$2")
    [ "$(id -u)" = 0 ] || skip "needs root"
    [ -x "$SYSTEMD" ] || skip "systemd is not installed"
    command -v dbus-daemon >/dev/null || skip "dbus is not installed, without which nobody logs in"
    compgen -G '/lib/*/security/pam_systemd.so' >/dev/null || skip "libpam-systemd is not installed"
    grep -qw overlay /proc/filesystems || skip "the kernel has no overlayfs"
    cgroups=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
    [ -n "$cgroups" ] || skip "no cgroup v2 is mounted"
    unshare --mount --pid --fork --cgroup --uts --ipc --net true 2>/dev/null ||
      skip "no namespaces can be made"
    own=$cgroups/gpurota-machine-$$
    mkdir "$own" 2>/dev/null || skip "$cgroups cannot be written"
    dir=$(mktemp -d)
    status=0
    unshare --mount "$BASH" "$0" --disk "$dir" "$own" "$prefix" "$program" || status=$?
    rmdir "$dir" "$own" 2>/dev/null || true
    exit "$status"
    ;;
esac

trap finish EXIT
make_disk
boot
if [ -n "${GPUROTA_MACHINE_SHELL:-}" ]; then in_there bash </dev/tty >/dev/tty 2>&1 || true; fi
# shellcheck source=tests/system/machine_tests.bash
source "$tests/${GPUROTA_MACHINE_TESTS:-machine_tests.bash}"
