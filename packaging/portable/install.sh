#!/bin/sh
# Installs gpurota on a system that has no package of it; `install.sh --help` says how. Needs sh and
# coreutils.
#
# Each file is put into its place by a rename, so that running programs keep theirs.
# PREFIX/share/gpurota/installed lists them all, even after an interruption; a copy of this script
# beside it uninstalls without the tarball.
set -eu

usage() {
  cat <<'END'
usage: ./install.sh [--prefix PREFIX] [--start]      install, or upgrade the gpurota that is there
       ./install.sh --uninstall [--prefix PREFIX]    remove it; state and configuration stay
       ./install.sh --purge [--prefix PREFIX]        remove it with its state and configuration

  --prefix PREFIX  install below this folder (default: /usr/local)
  --start          start gpurotad, now and at each boot (needs root and systemd)
  --uninstall      stop gpurotad, end its jobs, and remove the programs
  --purge          also remove /var/lib/gpurota and /etc/gpurota/gpurota.toml; only the group and the user of gpurota stay
  --root FOLDER    install into the system whose files are below FOLDER; start and stop nothing
  --help           print this text

Root also installs the systemd units, the group gpurota, the user gpurota-notify and /etc/gpurota/gpurota.toml. An upgrade does not
change that file. Another user installs the files below PREFIX only.
END
}

say() { printf '%s\n' "$*"; }
die() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

here=$(cd "$(dirname "$0")" && pwd)
files=$here/files/usr/local
config=/etc/gpurota/gpurota.toml
prefix='' root='' start=no task=install

while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --root)
      [ $# -ge 2 ] || die "$1 needs a folder"
      [ "$1" = --root ] && root=$2 || prefix=$2
      shift
      ;;
    --prefix=*) prefix=${1#*=} ;;
    --root=*) root=${1#*=} ;;
    --start) start=yes ;;
    --uninstall) task=uninstall ;;
    --purge) task=purge ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; die "unknown option '$1': see above" ;;
  esac
  shift
done
root=${root%/}
# An installed copy of this script finds the prefix from its own place.
if [ -z "$prefix" ] && [ ! -d "$files" ] && [ "${here%/share/gpurota}" != "$here" ]; then
  prefix=${here%/share/gpurota}
  prefix=${prefix#"$root"}
fi
prefix=${prefix:-/usr/local}
[ "$prefix" = / ] || prefix=${prefix%/}
case $prefix in
  *[[:space:]:\|\&\\]*)
    die "--prefix '$prefix': the loader cannot preload a library from a path with a space or a" \
      "colon, nor is | & or \\ allowed"
    ;;
  /?*) ;;
  *) die "--prefix '$prefix': give a folder by its whole path, such as /usr/local" ;;
esac
case $root in '' | /*) ;; *) die "--root '$root': give a folder by its whole path" ;; esac

base=$root$prefix
list=$base/share/gpurota/installed
folders=$base/share/gpurota/folders # folders that this installation has made
case $prefix in
  /usr | /usr/local) units=$prefix/lib/systemd/system ;;
  *) units=/etc/systemd/system ;;
esac
is_root() { [ "$(id -u)" = 0 ]; }
# Whether there is a systemd to talk to; in a chroot or an image there is none.
has_systemd() { is_root && [ -z "$root" ] && [ -d /run/systemd/system ]; }

running_daemons() {
  for program in /proc/[0-9]*/exe; do
    case $(readlink "$program" 2>/dev/null || true) in
      "$prefix/sbin/gpurotad" | "$prefix/sbin/gpurotad (deleted)") say "$program" | cut -d/ -f3 ;;
    esac
  done
}

# Refuses before anything is changed.
check() {
  [ -d "$files" ] ||
    die "$files is not there; unpack the whole gpurota tarball and call the install.sh in it"
  machine=$(uname -m)
  [ -n "$root" ] || [ "$machine" = "@MACHINE@" ] ||
    die "these programs are for @MACHINE@, and this machine is $machine"
  for program in bin/gpurota sbin/gpurotad; do
    if [ -z "$root" ] && ! why=$("$files/$program" --version 2>&1); then
      die "$program cannot run here: $why. It needs glibc @GLIBC@ or newer, libacl.so.1 and" \
        "libsystemd.so.0 (packages libacl1 and libsystemd0, or libacl and systemd-libs), and a" \
        "folder whose programs may be executed"
    fi
  done
  if [ ! -e "$list" ]; then
    # Two installations would share the units, the configuration and the state.
    for other in "$prefix" /usr/local /usr; do
      if [ -e "$root$other/bin/gpurota" ] && is_root; then
        die "$root$other/bin/gpurota is there already: remove that gpurota first (with apt-get," \
          "dnf or its own share/gpurota/install.sh)"
      fi
    done
  fi
  above=$base
  while [ ! -e "$above" ]; do above=$(dirname "$above"); done
  if [ ! -d "$above" ] || [ ! -w "$above" ] || { [ -e "$list" ] && [ ! -w "$list" ]; }; then
    die "cannot write below $base: become root, or name a folder of yours with --prefix"
  fi
}

# make_folder FOLDER: makes a path of the installed system, with the folders above it. The new
# folders are listed as soon as the folder of the list is there.
make_folder() {
  if [ -d "$root$1" ]; then return; fi
  make_folder "$(dirname "$1")"
  mkdir "$root$1"
  new_folders="$1
$new_folders"
  if [ -d "$(dirname "$folders")" ]; then
    printf '%s' "$new_folders" >>"$folders"
    new_folders=''
  fi
}

# put MODE FROM TO: puts a file into its place by a rename, and its name into both lists: the new
# one and the one that an interrupted installation leaves. TO is a path of the installed system.
put() {
  make_folder "$(dirname "$3")"
  say "$3" | tee -a "$list" >>"$list.new"
  install -m "$1" "$2" "$root$3.gpurota-new"
  mv -f "$root$3.gpurota-new" "$root$3"
}

put_tree() {
  (cd "$files" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$list.files"
  while IFS= read -r file; do
    mode=644
    if [ -x "$files/$file" ]; then mode=755; fi
    case $file in
      lib/systemd/system/* | lib/sysusers.d/*) ;; # root's, below
      *) put "$mode" "$files/$file" "$prefix/$file" ;;
    esac
  done <"$list.files"
  put 755 "$0" "$prefix/share/gpurota/install.sh"
}

# Only the units name paths of programs; all other files find gpurota's parts relative to
# themselves.
put_units() {
  for unit in gpurotad.service gpurotad.socket gpurota-web.service gpurota-web.socket \
    gpurota-web.service.d/group.conf; do
    sed "s|/usr/local/|$prefix/|g" "$files/lib/systemd/system/$unit" >"$list.unit"
    put 644 "$list.unit" "$units/$unit"
  done
  put 644 "$files/lib/sysusers.d/gpurota.conf" "$prefix/lib/sysusers.d/gpurota.conf"
}

put_config() {
  if [ -e "$root$config" ]; then return; fi
  make_folder /etc/gpurota
  install -m 644 "$here/files$config" "$root$config"
}

make_accounts() {
  if [ -n "$root" ]; then return; fi
  if command -v systemd-sysusers >/dev/null 2>&1; then
    systemd-sysusers "$prefix/lib/sysusers.d/gpurota.conf" ||
      say "install.sh: systemd-sysusers could not make the group gpurota, continuing"
    return
  fi
  getent group gpurota >/dev/null || groupadd --system gpurota ||
    say "install.sh: could not make the group gpurota, continuing"
  getent passwd gpurota-notify >/dev/null ||
    useradd --system --no-create-home --home-dir / --shell /usr/sbin/nologin gpurota-notify ||
    say "install.sh: could not make the user gpurota-notify, so gpurotad cannot send notices;" \
      "continuing"
}

# Removes files that an older gpurota had and this one does not have.
remove_outdated() {
  if [ -e "$list" ]; then
    while IFS= read -r file; do
      grep -qxF -- "$file" "$list.new" || rm -f -- "$root$file"
    done <"$list"
  fi
  mv -f "$list.new" "$list"
  rm -f "$list.files" "$list.unit"
}

label() {
  if [ -z "$root" ] && is_root && command -v restorecon >/dev/null 2>&1; then
    xargs -d '\n' restorecon <"$list" || true
  fi
}

serve() {
  if ! has_systemd; then
    [ "$start" = no ] ||
      die "installed, but gpurotad is not started: --start needs root and a running systemd." \
        "By hand: $prefix/sbin/gpurotad"
    running=$(running_daemons | xargs)
    [ -n "$root" ] || [ -z "$running" ] ||
      say "The old gpurotad still runs (process $running): restart it; programs and leases" \
        "survive that."
    return
  fi
  systemctl daemon-reload
  # As after an upgrade of a package, the new daemon answers the clients that wait at its socket.
  systemctl try-restart gpurotad.service gpurota-web.service
  if [ "$start" = yes ]; then
    systemctl enable gpurotad.socket gpurotad.service
    systemctl start gpurotad.service ||
      die "installed, but gpurotad does not start; journalctl -u gpurotad says why"
  elif ! systemctl is-enabled --quiet gpurotad.service 2>/dev/null; then
    say "To start it, now and at each boot: systemctl enable --now gpurotad.socket gpurotad"
  fi
}

install_all() {
  check
  umask 022
  new_folders=''
  make_folder "$prefix/share/gpurota"
  rm -f "$list.new"
  put_tree
  if is_root; then
    put_units
    put_config
  fi
  remove_outdated
  if is_root; then make_accounts; fi
  label
  say "gpurota @VERSION@ is installed below $base." \
    "To remove it: $prefix/share/gpurota/install.sh --uninstall (or --purge)"
  serve
}

# Stops the daemon too, as the Debian package does: without gpurotad nobody could end the jobs that
# the daemon has started, or open GPUs under strict access.
stop_all() {
  if has_systemd; then
    systemctl disable --now gpurotad.socket gpurotad.service gpurota-web.socket \
      gpurota-web.service 2>/dev/null || true
    systemctl stop gpurota-jobs.slice 2>/dev/null || true
  fi
  if [ -z "$root" ]; then
    running=$(running_daemons | xargs)
    [ -z "$running" ] || die "gpurotad still runs (process $running): end it first, with its jobs"
    if is_root && [ -x "$base/sbin/gpurotad" ]; then
      "$base/sbin/gpurotad" --restore-device-files || true
    fi
  fi
}

remove_data() {
  if ! is_root; then
    say "The state and the configuration of a gpurotad of yours stay in ~/.local/state/gpurota" \
      "and ~/.config/gpurota."
    return
  fi
  rm -rf "$root/var/lib/gpurota"
  rm -f "$root$config"
  rmdir "$root/etc/gpurota/gpurota.toml.d" "$root/etc/gpurota" 2>/dev/null || true
  if [ -e "$root/etc/gpurota" ]; then
    say "$root/etc/gpurota stays, as it has files that this script has not installed."
  fi
}

has_data() { [ -e "$root/var/lib/gpurota" ] || [ -e "$root$config" ]; }

uninstall_all() {
  # Files that an earlier --uninstall has left.
  if [ "$task" = purge ] && [ ! -e "$list" ] && is_root && has_data; then
    [ ! -e "$root/usr/sbin/gpurotad" ] ||
      die "$root/usr/sbin/gpurotad is there: its package has the state and the configuration"
    remove_data
    return
  fi
  [ -r "$list" ] || die "nothing was installed below $base with this script: there is no $list"
  if grep -qsF "$prefix/lib/gpurota/libgpurota.so" "$root/etc/ld.so.preload"; then
    die "$root/etc/ld.so.preload names $prefix/lib/gpurota/libgpurota.so: remove that line first," \
      "or each program complains"
  fi
  [ -w "$list" ] || die "cannot write below $base: become the user who has installed gpurota there"
  stop_all
  copy=$(mktemp)
  # `./dev install` writes no list of folders.
  [ ! -e "$folders" ] || LC_ALL=C sort -ru "$folders" >"$copy"
  # Removes also the files that an interrupted installation has left.
  while IFS= read -r file; do rm -f -- "$root$file" "$root$file.gpurota-new"; done <"$list"
  rm -f "$list" "$list.new" "$list.files" "$list.unit" "$folders"
  if has_systemd; then
    systemctl daemon-reload
    systemctl reset-failed gpurotad.service gpurota-web.service 2>/dev/null || true
  fi
  if [ -z "$root" ] && is_root; then rm -rf /run/gpurota; fi
  if [ "$task" = purge ]; then remove_data; fi
  while IFS= read -r folder; do rmdir "$root$folder" 2>/dev/null || true; done <"$copy"
  rm -f "$copy"
  say "gpurota is removed from $base."
  if [ "$task" = uninstall ] && is_root && has_data; then
    say "Kept: $root/var/lib/gpurota and $root/etc/gpurota." \
      "./install.sh --purge of the tarball removes them."
  fi
}

case $task in install) install_all ;; *) uninstall_all ;; esac
