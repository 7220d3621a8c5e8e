# Helpers of the tests of parking; load helpers first.
#
# shellcheck shell=bash

# begin WHAT OPTION…: starts a program under a lease of GPU 0; $PROGRAM_PID is its gpurota run.
begin() {
  local what=$1
  shift
  in_background "program" gpurota run --gpu-ids 0 "$@" -- \
    "$E2E_PARK_PROGRAM" "$what" "$E2E_DIR/stop"
  PROGRAM_PID=$BACKGROUND_PID
  wait_until says program ready
}
# figure steps|polls: the last that the program has printed.
figure() {
  sed -n "s/.*$1 \([0-9]*\).*/\1/p" "$E2E_DIR/program" | tail -n 1
}
# grows steps|polls NUMBER: the figure is above the number.
grows() { (($(figure "$1") > $2)); }
goes_on() {
  wait_until grows steps "$(figure steps)"
  wait_until grows polls "$(figure polls)"
}
ends_right() {
  touch "$E2E_DIR/stop"
  ends_with 0 "$PROGRAM_PID"
  says program right
  ! says program wrong
}
used_on_gpu() { holds "gpus[0]['used_bytes'] $1"; }
