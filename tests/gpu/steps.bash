# A test of named steps: the scripts here source it. Counts those that failed in $failed, with which
# they exit.
# shellcheck shell=bash

failed=0

say() { printf '%-8s %s\n' "$1" "$2"; }

step() { # step TEXT COMMAND…
  local text=$1
  shift
  if "$@"; then say ok "$text"; else say FAILED "$text" && failed=$((failed + 1)); fi
}

within() { # within SECONDS COMMAND…: as soon as it succeeds
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.02
  done
}
