#!/bin/bash
# Stands in for podman where no engine is available. Runs `run [OPTION…] --rootfs FOLDER COMMAND…`
# in a pid and a mount namespace with a root of its own, with the files and devices of --volume and
# --device, and with the environment of --env. Needs root. A file of --volume that is not in FOLDER
# is left out, unless it is in /etc.
set -euo pipefail
[ "${1:-}" = run ] || { echo "only run" >&2 && exit 125; }
shift
mounts=() devices=() variables=(PATH="$PATH" HOME=/tmp)
while [ "${1:-}" != --rootfs ]; do
  case $1 in
    --env)
      case $2 in *=*) variables+=("$2") ;; *) variables+=("$2=${!2}") ;; esac
      shift ;;
    --volume) mounts+=("$2") && shift ;;
    --device) devices+=("$2") && shift ;;
    --network | --cidfile) shift ;;
    --*) ;;
    *) echo "container_like: $1?" >&2 && exit 125 ;;
  esac
  shift
done
root=$2
shift 2
work=$(mktemp -d)
export work root mounts_text devices_text
mounts_text=$(printf '%s\n' "${mounts[@]}") devices_text=$(printf '%s\n' "${devices[@]}")
# shellcheck disable=SC2016  # expanded by the inner shell
exec unshare --mount --pid --fork --propagation private bash -c '
  set -eu
  mount --rbind "$root" "$work"
  mount -t tmpfs -o mode=755,dev tmpfs "$work/dev"
  mkdir "$work/dev/etc" && cp -a "$root/etc/." "$work/dev/etc" &&
    mount --bind "$work/dev/etc" "$work/etc"
  for node in null zero full random urandom tty; do
    touch "$work/dev/$node" && mount --bind "/dev/$node" "$work/dev/$node" 2>/dev/null ||
      mknod -m 666 "$work/dev/$node" c $(stat -c "0x%t 0x%T" "/dev/$node")
  done
  mkdir -m 1777 "$work/dev/shm" && ln -s /proc/self/fd "$work/dev/fd"
  for device in $devices_text; do
    [ -e "$work$device" ] || mknod -m 666 "$work$device" c $(stat -c "0x%t 0x%T" "$device")
  done
  for entry in $mounts_text; do
    from=${entry%%:*} rest=${entry#*:} to=${rest%%:*}
    case $to in /etc/*) touch "$work$to" ;; esac
    [ -e "$work$to" ] || continue
    mount --bind "$from" "$work$to"
  done
  mount -t proc proc "$work/proc"
  exec chroot "$work" "$@"' inside env -i "${variables[@]}" "$@"
