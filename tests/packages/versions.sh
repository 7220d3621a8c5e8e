#!/bin/bash
# Tests two versions of gpurota with each other: versions.sh PREFIX PROGRAM COMMIT|OLD
#
# PREFIX is an installed gpurota, PROGRAM the demo's gpu_program, OLD another installed gpurota; a
# COMMIT is built and installed first, which takes minutes without a compiler cache. Commands,
# libraries, daemons and databases of one version must work with those of the other, or say what to
# do. Needs no root and no GPU. Prints which checks pass and which fail, and exits with the number
# of failed checks.
# shellcheck disable=SC2317 # functions are called by `holds`
set -euo pipefail

here=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
new=$(realpath "$1") program=$(realpath "$2") old=$3
if [ -z "${GPUROTA_VERSIONS_DIR:-}" ]; then
  GPUROTA_VERSIONS_DIR=$(mktemp -d)
  export GPUROTA_VERSIONS_DIR
  if [ -x "$old/sbin/gpurotad" ]; then
    old=$(realpath "$old")
  else
    mkdir "$GPUROTA_VERSIONS_DIR/source"
    git -C "$here" archive "$old" | tar -x -C "$GPUROTA_VERSIONS_DIR/source"
    old=$GPUROTA_VERSIONS_DIR/old
    (cd "$GPUROTA_VERSIONS_DIR/source" && cmake --preset release &&
      cmake --build --preset release &&
      cmake --install build/release --prefix "$old") >"$GPUROTA_VERSIONS_DIR/build.log" 2>&1 ||
      { tail -n 30 "$GPUROTA_VERSIONS_DIR/build.log" && exit 1; }
  fi
  code=0
  "$new/bin/gpurota-sim" demo -- "$0" "$new" "$program" "$old" || code=$?
  if [ "$code" = 0 ]; then
    rm -rf "$GPUROTA_VERSIONS_DIR"
  else
    echo "kept: $GPUROTA_VERSIONS_DIR"
  fi
  exit "$code"
fi

work=$GPUROTA_VERSIONS_DIR
held=0 broken=0 daemon=
cd "$work"
trap 'if [ -n "$daemon" ]; then kill -KILL "$daemon" 2>/dev/null || true; fi' EXIT

# holds WHAT COMMAND…
holds() {
  local what=$1
  shift
  if "$@" >said 2>&1; then
    echo "ok $what" && held=$((held + 1))
  else
    echo "FAIL: $what: $(tail -n 3 said)" && broken=$((broken + 1))
  fi
}
# says PATTERN COMMAND…: the command fails, with a message that matches.
says() {
  local pattern=$1 code=0
  shift
  "$@" >words 2>&1 || code=$?
  cat words
  [ "$code" != 0 ] && grep -qE -- "$pattern" words
}
ends_with() {
  local wanted=$1 code=0
  shift
  "$@" || code=$?
  [ "$code" = "$wanted" ]
}
wait_until() {
  local end=$((SECONDS + 30))
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS > end)); then echo "waited too long for: $*" && return 1; fi
    sleep 0.05
  done
}
library_of() {
  readlink -f "$1"/lib/*/gpurota/libgpurota.so "$1/lib/gpurota/libgpurota.so" 2>/dev/null |
    head -n 1
}
# start DAEMON LIBRARY: starts the daemon of the prefix DAEMON, with the library of the prefix
# LIBRARY and the state that is there.
start() {
  mkdir -p -m 700 run state
  : >gpurota.toml
  GPUROTA_RUNTIME_DIR=$work/run
  export GPUROTA_RUNTIME_DIR
  "$1/sbin/gpurotad" --runtime-dir "$work/run" --state-dir "$work/state" \
    --config "$work/gpurota.toml" \
    --preload "$(library_of "$2")" >>gpurotad.log 2>&1 &
  daemon=$!
  wait_until "$1/bin/gpurota" status
}
stop() {
  kill "-${1:-TERM}" "$daemon"
  wait "$daemon" 2>/dev/null || true
  daemon=
}
fresh() { rm -rf run state gpurotad.log; }

# commands PREFIX NAME: PREFIX's commands make a lease whose limit is enforced, and which ends.
commands() {
  local cli=$1/bin/gpurota of=$2
  holds "$of: status" "$cli" status
  holds "$of: status --json" "$cli" status --json
  holds "$of: run --memory" "$cli" run --memory 1G -- "$program" info
  holds "$of: run, exclusive" "$cli" run -- "$program" info
  holds "$of: run --swap" "$cli" run --swap -- "$program" info
  holds "$of: run's exit code" ends_with 7 "$cli" run --memory 1G -- sh -c 'exit 7'
  holds "$of: reserve" "$cli" reserve --memory 1G --for 10m
  holds "$of: release" "$cli" release --all
  holds "$of: job add" "$cli" job add one --memory 1G -- true
  holds "$of: job list" "$cli" job list
  holds "$of: job ends" wait_until job_finished "$cli"
  holds "$of: job logs" "$cli" job logs one
  holds "$of: job remove" "$cli" job remove one
  holds "$of: filler list" "$cli" filler list
  holds "$of: queue" "$cli" queue
  holds "$of: events" "$cli" events
  holds "$of: report" "$cli" report
  holds "$of: turns" "$cli" turns
  holds "$of: ps" "$cli" ps
  holds "$of: limits" shown_or_told "$cli" limits
  holds "$of: config show" shown_or_told "$cli" config show
  holds "$of: reload" "$cli" reload
  # The driver is simulated, but doctor's report on the versions is real.
  holds "$of: doctor" shows 'control socket' "$cli" doctor
}
# If one of the two versions does not know a feature yet, the command must say what to do.
shown_or_told() {
  "$@" >words 2>&1 || { cat words &&
    grep -qE 'there is no command|older than this program; restart it' words; }
}
job_finished() { "$1" job list --json | grep -q '"state": *"finished"'; }
shows() {
  local pattern=$1
  shift
  "$@" >words 2>&1 || true
  cat words
  grep -q -- "$pattern" words
}

# programs PREFIX NAME: programs under a limit and in turns, with the library that the daemon gives
# them.
programs() {
  local cli=$1/bin/gpurota of=$2
  holds "$of: a limit is seen" shows 'total=1073741824' "$cli" run --gpu-ids 0 \
    --memory 1G -- "$program" info
  holds "$of: a limit holds" shows 'goes on with' timeout 10 "$cli" run --gpu-ids 0 \
    --memory 1G -- "$program" greedy 64
  holds "$of: results are right" shows ' 0 wrong' "$cli" run --memory 1G -- "$program" compute 64 1
  holds "$of: in turns" shows ' 0 wrong' "$cli" run --swap -- "$program" compute 64 1
}

fresh
start "$new" "$new"
commands "$old" "old command, new daemon"
stop
fresh
start "$old" "$old"
commands "$new" "new command, old daemon"
stop

fresh
start "$new" "$old"
programs "$new" "old library, new daemon"
stop
fresh
start "$old" "$new"
programs "$old" "new library, old daemon"
stop

# An upgrade and a downgrade while a program runs.
fresh
start "$old" "$old"
"$old/bin/gpurota" run --gpu-ids 0 --memory 1G -- "$program" hold 100 >holder 2>&1 &
holder=$!
wait_until grep -q holding holder
"$old/bin/gpurota" run --gpu-ids 0 --memory 1G -- "$program" compute 64 12 >computing 2>&1 &
computing=$!
wait_until grep -q round computing
stop
start "$new" "$new"
two_leases() { [ "$("$new/bin/gpurota" status --json | grep -c '"lease_id"')" -ge 2 ]; }
holds "upgrade: leases continue" two_leases
holds "upgrade: an old program goes on, under its limit" shows 'holding' cat holder
copy=$(compgen -G 'state/gpurota.db.version-*' | head -n 1) || copy=
stop KILL
: >gpurotad.log
if [ -n "$copy" ]; then
  holds "upgrade: a copy of the database is kept" test -s "$copy"
  holds "downgrade: the old daemon refuses the newer database and says so" says \
    'was written by a newer gpurota' timeout 30 \
    "$old/sbin/gpurotad" --runtime-dir "$work/run" --state-dir "$work/state" \
    --config "$work/gpurota.toml"
  mkdir newer && mv state/gpurota.db* state/store.mark newer/ &&
    mv "newer/$(basename "$copy")" state/gpurota.db
fi
start "$old" "$old"
holds "downgrade: with the copy leases continue" test \
  "$("$old/bin/gpurota" status --json | grep -c '"lease_id"')" -ge 2
wait "$computing" || true
holds "both: results of the program are right" grep ' 0 wrong' computing
kill "$holder" 2>/dev/null || true
wait "$holder" 2>/dev/null || true
stop

echo "$held hold, $broken do not"
exit "$broken"
