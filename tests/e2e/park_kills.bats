#!/usr/bin/env bats
# Leases are parked and brought back at random, while gpurota-park and the daemon are killed at
# random moments. Prints its seed, and takes one from E2E_SEED; E2E_PARK_SECONDS: for how long.

load helpers

setup() { start_daemon; }
teardown() {
  gpurota-sim set park_delay_ms=0 2>/dev/null || true
  end_test
}

begin() { # begin NAME OPTION…
  local name=$1
  shift
  in_background "$name" gpurota run --gpu-ids 0 "$@" -- \
    "$E2E_PARK_PROGRAM" compute "$E2E_DIR/stop"
  PROGRAMS+=("$BACKGROUND_PID")
  wait_until says "$name" ready
}
steps_of() { sed -n 's/.*steps \([0-9]*\).*/\1/p' "$E2E_DIR/$1" | tail -n 1; }
has_moved() { (($(steps_of "$1") > $2)); }
nothing_under_way() { holds 'all(l.get("parked") in (None, "parked") for l in leases)'; }
none_parked() { holds 'all(l.get("parked") is None for l in leases)'; }

one_deed() {
  local lease=L$((1 + RANDOM % 3))
  case $((RANDOM % 8)) in
    0 | 1 | 2) (gpurota park "$lease" >>"$E2E_DIR/deeds" 2>&1 &) ;;
    3 | 4 | 5) (gpurota unpark "$lease" >>"$E2E_DIR/deeds" 2>&1 &) ;;
    6) pkill -KILL -f "gpurota-park .*$E2E_DIR/run/park.lock" || true ;;
    7)
      kill_daemon
      start_daemon
      ;;
  esac
}

@test "no program is lost or computes wrong, whatever is killed while leases are parked" {
  local seed=${E2E_SEED:-$RANDOM}
  RANDOM=$seed
  echo "seed $seed"
  PROGRAMS=()
  begin one --memory 1G
  begin two --swap
  begin three --swap
  gpurota-sim set park_delay_ms=40
  local end=$((SECONDS + ${E2E_PARK_SECONDS:-15}))
  while ((SECONDS < end)); do
    one_deed
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
  done
  gpurota-sim set park_delay_ms=0
  wait_until nothing_under_way
  for lease in L1 L2 L3; do
    holds "[l for l in leases if l['lease_id'] == '$lease'][0].get('parked') is None" ||
      gpurota unpark "$lease"
  done
  wait_until none_parked
  for name in one two three; do wait_until has_moved "$name" "$(steps_of "$name")"; done
  touch "$E2E_DIR/stop"
  for program in "${PROGRAMS[@]}"; do ends_with 0 "$program"; done
  for name in one two three; do says "$name" right; done
  grep -q 'is parked' "$E2E_DIR/deeds"
}
