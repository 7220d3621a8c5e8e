#!/usr/bin/env bats
# Programs in swap leases that do not fit together: they take turns, and lose nothing.

load helpers

setup() {
  start_daemon
  learn_context_cost
  gpurota set --gpu-ids 0 --capacity 1G --quantum 300ms
}
teardown() { end_test; }

# probe NAME SECONDS SEED: starts a program that writes, copies, captures, frees and reads back, in
# a swap lease.
probe() {
  in_background "$1" env GPUROTA_DEBUG="$E2E_DIR/$1.debug" PROBE_BUFFERS=32 \
    gpurota run --gpu-ids 0 --swap --memory 700M -- "$E2E_SWAP_PROBE" torture "$2" "$3"
}
moves() { sed -n '/: evicted/p' "$E2E_DIR/$1.debug" 2>/dev/null | wc -l; }
# 0: the program has printed "done", and no error; 2: the program has reported an error.
is_done() {
  if grep -q -e '^line' -e '^no context' "$1"; then cat "$1" && return 2; fi
  grep -q '^done$' "$1"
}

@test "two programs take turns, and read what they wrote" {
  probe one 10 1
  probe two 10 2
  wait_until eval '[ "$(moves one)" -gt 0 ] && [ "$(moves two)" -gt 0 ]'
  gpurota turns | grep -q 'taking turns; short by'
  wait_until status_says_whose_turn
  wait_until is_done one
  wait_until is_done two
}
status_says_whose_turn() {
  gpurota status >table
  grep -qE ' L[0-9]+ .* / 0\.[0-9]+ +now ' table &&
    grep -qE ' / 0\.[0-9]+ +next .* MiB in host memory' table
}

@test "a daemon that is killed in mid-turn finds everything as it was" {
  probe one 14 3
  probe two 14 4
  wait_until eval '[ "$(moves one)" -gt 0 ] || [ "$(moves two)" -gt 0 ]'
  kill_daemon
  start_daemon
  local before=$(($(moves one) + $(moves two)))
  wait_until eval '[ $(($(moves one) + $(moves two))) -gt '"$before"' ]'
  kill_daemon
  start_daemon
  wait_until is_done one
  wait_until is_done two
}

@test "the turn and the memory of a killed program go to its neighbour" {
  probe one 60 5
  wait_until eval '[ "$(value "len(leases)")" = 1 ]'
  probe two 10 6
  wait_until eval '[ "$(moves one)" -gt 0 ] || [ "$(moves two)" -gt 0 ]'
  kill -KILL "$(value 'leases[0]["pid"]')"
  wait_until is_done two
  wait_until eval '[ "$(value "len(leases)")" = 0 ]'
}
