#!/usr/bin/env bats
# A tenant can write anything into the page that it shares with the daemon: nobody else notices.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# All commands must answer, and show no unreadable text.
all_is_shown() {
  gpurota status >/dev/null
  gpurota ps >"$E2E_DIR/table"
  gpurota doctor >/dev/null || [ "$?" -le 1 ]
  gpurota ps --json | python3 -c '
import json, sys
processes = json.load(sys.stdin)["processes"]
assert len(processes) == 2, processes
for p in processes:
    for key in ("used_bytes", "allocations", "refusals", "unhooked"):
        assert p[key] is None or 0 <= p[key] <= 2**63 - 1, (key, p[key])'
}

@test "a tenant whose page is full of garbage is shown beside the others" {
  local garbage
  in_background good gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 100
  wait_until says good holding
  for garbage in 255 127 random; do
    in_background bad gpurota run --gpu-ids 0 --memory 1G -- "$E2E_PAGE_WRITER" "$garbage"
    local bad=$BACKGROUND_PID
    wait_until says bad written
    wait_until all_is_shown
    all_is_shown
    kill -TERM "$bad"
    wait_until gone "$bad"
    wait_until holds 'len(leases) == 1'
  done
}

@test "a tenant of a swap lease whose page is full of garbage is shown beside the others" {
  in_background good gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 100
  wait_until says good holding
  in_background bad gpurota run --gpu-ids 0 --swap --memory 2G -- "$E2E_PAGE_WRITER" 255
  wait_until says bad written
  wait_until all_is_shown
  all_is_shown
}
