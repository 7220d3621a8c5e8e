# Helpers for tests of named steps, to be sourced. $failed counts the steps that failed, and is the
# exit status of the tests. $ONLY, a regular expression, runs only the steps whose text has it.
# shellcheck shell=bash

failed=0

say() { printf '%-8s %s\n' "$1" "$2"; }

step() { # step TEXT COMMAND…
  local text=$1
  shift
  [[ $text =~ ${ONLY:-} ]] || return 0
  if "$@"; then say ok "$text"; else say FAILED "$text" && failed=$((failed + 1)); fi
}

within() { # waits until the command succeeds
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.02
  done
}
