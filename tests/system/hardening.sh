#!/bin/bash
# Checks how exposed the units are, as `systemd-analyze security` counts it (0.0 to 10.0):
# hardening.sh SOURCES
#
# The limits may only be lowered. docs/operate/install.md says what is left open, and why. Exits
# with 77 where systemd-analyze cannot count the exposure.
set -euo pipefail

units=$(realpath "$1")/packaging/systemd
systemd-analyze security --help 2>/dev/null | grep -q -- --offline ||
  { echo "skipped: no systemd-analyze with --offline" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed=0
# most UNIT EXPOSURE [DROP_IN]: the exposure is at most this, in tenths.
most() {
  local unit=$1 limit=$2 said
  sed 's|@CMAKE_INSTALL_FULL_S\?BINDIR@|/usr/bin|' "$units/$unit.in" ${3:+"$units/$3"} \
    >"$work/$unit"
  if said=$(systemd-analyze security --no-pager --offline=true --threshold="$limit" \
    "$work/$unit"); then
    echo "ok $(tail -n 1 <<<"$said")"
  else
    echo "FAIL: $unit is less locked up than it was, at most $((limit / 10)).$((limit % 10)):"
    grep -e '✗' -e Overall <<<"$said" || echo "$said"
    failed=1
  fi
}
most gpurotad.service 20
most gpurota-web.service 9
most gpurotad.service 22 per-lease.conf
exit "$failed"
