#!/bin/bash
# Tests gpurota on other machines through a real sshd: hosts.sh BUILD
#
# BUILD is a build folder whose stage is installed (ctest -R '^stage$'). Runs hosts.bats with two
# sshd on ports of their own, which lead to two daemons. Needs sshd (openssh-server; GPUROTA_SSHD
# names an sshd other than that on the PATH). As root, the script makes the user and the folder that
# sshd needs. Both are only in a mount namespace of the script's own, so that nothing of this
# machine changes.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
build=$(realpath "$1")
GPUROTA_SSHD=${GPUROTA_SSHD:-$(PATH=$PATH:/usr/sbin:/sbin command -v sshd || true)}
export GPUROTA_SSHD
[ -n "$GPUROTA_SSHD" ] || { echo "sshd is not installed (openssh-server)"; exit 77; }

if [ "$(id -u)" = 0 ] && [ -z "${GPUROTA_HOSTS_APART:-}" ]; then
  exec env GPUROTA_HOSTS_APART=1 unshare --mount --propagation private "$0" "$build"
fi
if [ "$(id -u)" = 0 ]; then
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir /run/sshd
  if ! grep -q '^sshd:' /etc/passwd; then
    cp /etc/passwd /run/passwd
    echo 'sshd:x:64999:65534::/run/sshd:/usr/sbin/nologin' >>/run/passwd
    mount --bind /run/passwd /etc/passwd
  fi
fi
exec "$here/../e2e/run_file.sh" "$here/hosts.bats" "$build"
