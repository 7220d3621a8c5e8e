#!/usr/bin/env bats
# Swap leases with more memory than their GPU has.

load helpers

setup() {
  start_daemon
  learn_context_cost
}
teardown() { end_test; }

# turns EXPRESSION: prints the value of a Python expression of `gpurota turns --json`.
turns() {
  gpurota turns --json |
    python3 -c "import json, sys; globals().update(json.load(sys.stdin)); print($1)"
}
configure() {
  printf '%s\n' "$@" >"$E2E_DIR/gpurota.toml"
  gpurota reload
}

@test "a program has one and a half times the GPU, in turns with another, and reads what it wrote" {
  # All memory is written while turns are taken, so wait long enough even for a machine that zeroes
  # only half a GiB of pages a second.
  # shellcheck disable=SC2034 # wait_until reads it
  PATIENCE=240
  configure '[turns]' 'host_budget = "3G"' 'pinned = "100%"'
  gpurota set --gpu-ids 0 --capacity 640M --quantum 1s
  # The small program starts first, so that the daemon knows which part of its memory cannot move,
  # and does not promise that part to the large program. The small program has a second context most
  # of the time.
  mkfifo "$E2E_DIR/tell" "$E2E_DIR/tell_beside"
  in_background beside gpurota run --gpu-ids 0 --swap --memory 500M -- \
    sh -c 'exec env PROBE_BUFFERS=8 "$0" torture 0 5 <"$1"' "$E2E_SWAP_PROBE" "$E2E_DIR/tell_beside"
  exec 8<>"$E2E_DIR/tell_beside" # to read and write, which does not block
  wait_until eval '[ "$(turns "sum(l[\"resident_bytes\"] for l in gpus[0][\"leases\"])")" -gt 0 ]'
  wait_until eval '[ "$(turns "gpus[0][\"leases\"][0][\"wired_bytes\"] >> 20")" -gt 230 ]'
  in_background big gpurota run --gpu-ids 0 --swap --oversize --memory 960M -- \
    sh -c 'exec "$0" <"$1"' "$E2E_SWAP_OVERSIZE" "$E2E_DIR/tell"
  exec 7<>"$E2E_DIR/tell"
  wait_until grep -q '^filled$' big
  grep -q 'L3 is oversize: of its 960 MiB on GPU 0, .* lie in host memory' big
  grep -q '^total 960 MiB' big
  gpurota status | grep -q ' oversize'
  [ "$(value 'leases[1]["gpus"][0]["limit_bytes"] == 960 << 20')" = True ]
  [ "$(value 'leases[1]["gpus"][0]["oversize_bytes"] >= 320 << 20')" = True ]
  [ "$(turns 'gpus[0]["leases"][1]["hosted_bytes"] >= 320 << 20')" = True ]
  gpurota explain L3 | grep -q 'stays in host memory, of the'
  local before
  before=$(turns 'gpus[0]["evictions"]')
  wait_until eval '[ "$(turns "gpus[0][\"evictions\"]")" -gt $((before + 1)) ]'
  echo >&7
  wait_until grep -q '^checked$' big
  echo >&7
  wait_until grep -q '^done$' big
  echo >&8
  exec 7<&- 8<&-
  wait_until grep -q '^done$' beside
  run -1 grep '^line' big
  run -1 grep 'lowered' big
  run -1 grep '^line' beside
}

@test "an oversize lease is refused, with the figures, if host memory cannot be reserved for it" {
  configure '[turns]' 'host_budget = "1G"' 'pinned = "100%"'
  gpurota set --gpu-ids 0 --capacity 2G
  run -125 gpurota run --gpu-ids 0 --swap --oversize --memory 6G -- true
  grep -q 'host memory is needed, and 1 GiB' <<<"$output"
  configure '[turns]' 'host_budget = "8G"' 'pinned = "1G"'
  run -125 gpurota run --gpu-ids 0 --swap --oversize --memory 6G -- true
  grep -q 'pinned host memory is needed, and 1 GiB is available now' <<<"$output"
  run -2 gpurota run --oversize -- true
  grep -q 'also give --swap' <<<"$output"
  run -2 gpurota run --swap --oversize -- true
  grep -q -e '--memory' <<<"$output"
}

@test "an oversize lease that fits is an ordinary one; one that does not outlives a restart" {
  configure '[turns]' 'host_budget = "4G"' 'pinned = "100%"'
  gpurota set --gpu-ids 0 --capacity 2G
  run gpurota run --gpu-ids 0 --swap --oversize --memory 1G -- true
  [ -z "$output" ]
  in_background one gpurota run --gpu-ids 0 --swap --oversize --memory 4G -- sleep 60
  wait_until eval '[ "$(value "len(leases)")" = 1 ]'
  local before
  before=$(value 'leases[0]["gpus"][0]["oversize_bytes"]')
  [ "$before" -ge $((2 << 30)) ]
  run -1 gpurota update "$(value 'leases[0]["lease_id"]')" --memory 3G
  grep -q 'is oversize: its limit cannot change' <<<"$output"
  kill_daemon
  start_daemon
  [ "$(value 'leases[0]["gpus"][0]["oversize_bytes"]')" = "$before" ]
  # Host memory that the lease has reserved is not available to another lease.
  run -125 gpurota run --gpu-ids 0 --swap --oversize --memory 4G -- true
  grep -q 'host memory is needed' <<<"$output"
}
