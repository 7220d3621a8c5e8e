#!/bin/bash
# Runs a command on a machine that seems to run programs for another processor: emulated.sh
# ARCHITECTURE COMMAND…
#
# ARCHITECTURE is arm64. The command runs as root in a user namespace of its own. Only in that
# namespace does the kernel run programs for ARCHITECTURE, by qemu-user; the rest of the machine is
# unchanged. Needs root, qemu-user-static, and Linux 6.7. For tests of packages.
set -euo pipefail
architecture=$1
shift
skip() { echo "skipped: $*" && exit 77; }

if [ "${EMULATED:-}" != "$architecture" ]; then
  [ "$(id -u)" = 0 ] || skip "needs root"
  [ "$architecture" = arm64 ] || skip "programs for $architecture cannot be emulated here"
  command -v qemu-aarch64-static >/dev/null || skip "qemu-user-static is not installed"
  # All users keep their own numbers in the namespace. Only root outside the namespace can write
  # that mapping, while the process inside waits.
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkfifo "$work/go"
  # shellcheck disable=SC2016 # expanded by the inner shell
  EMULATED=$architecture unshare --user "$BASH" \
    -c 'read -r <"$1" && shift && exec "$@"' bash "$work/go" \
    unshare --mount --pid --fork --kill-child --mount-proc "$BASH" "$0" "$architecture" "$@" <&0 &
  inside=$!
  until [ "$(readlink "/proc/$inside/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do
    sleep 0.01
  done
  echo '0 0 65536' >"/proc/$inside/uid_map"
  echo '0 0 65536' >"/proc/$inside/gid_map"
  echo >"$work/go"
  status=0
  wait "$inside" || status=$?
  exit "$status"
fi
unset EMULATED
# The first bytes of an ELF file for that processor, and a mask of the bits to compare, as
# binfmt_misc takes them.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc 2>/dev/null ||
  skip "the kernel has no emulation of a namespace's own (Linux 6.7)"
printf '%s' ":gpurota-$architecture:M::$magic:$mask:$(command -v qemu-aarch64-static):F" \
  >/proc/sys/fs/binfmt_misc/register
exec "$@"
