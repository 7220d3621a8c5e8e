#!/usr/bin/env bats
# Tenants of swap leases lie about their memory, or do not give back memory that others need.

load ../e2e/helpers

setup() {
  start_daemon # makes the folder
  kill_daemon
  printf '%s\n' '[turns]' 'yield_deadline = "1s"' 'longest_drain = "4s"' >"$E2E_DIR/gpurota.toml"
  start_daemon
  learn_context_cost
  gpurota set --gpu-ids 0 --capacity 1G --quantum 300ms
}
teardown() { end_test; }

# liar NAME here|keep MIB HOW: starts a liar under a reservation of its own, whose number is in
# $LIED_FOR.
liar() {
  LIED_FOR=$(gpurota reserve --gpu-ids 0 --swap --memory 700M --for 10m --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["lease"]["lease_id"])')
  in_background "$1" python3 -B "$BATS_TEST_DIRNAME/turns.py" "$2" "$LIED_FOR" "$3" "$4"
}
# worker NAME SECONDS: starts a program that works on 500 MiB, and reads back every byte it has
# written.
worker() {
  in_background "$1" gpurota run --gpu-ids 0 --swap --memory 700M -- "$E2E_PROGRAM" compute 500 "$2"
}
turns() {
  gpurota turns --json |
    python3 -c "import json, sys; r = json.load(sys.stdin); gpus = r['gpus']; print($1)"
}
of_liar() {
  turns "[sum(l[k] for k in ('resident_bytes', 'out_bytes', 'wired_bytes')) \
    for l in gpus[0]['leases'] if l['lease_id'] == '$LIED_FOR'][0]"
}

@test "a new tenant that claims memory in host memory is not believed" {
  liar liar here 650 out
  wait_until says liar said
  [ "$(of_liar)" = 0 ]
  [ "$(turns 'r["host_out_bytes"]')" = 0 ]
  worker honest 2
  wait_until grep -q '^done: .*, 0 wrong$' honest
  [ "$(turns 'gpus[0]["handovers"]')" = 0 ]
}

@test "a new tenant that claims memory on the GPU is not believed" {
  worker honest 6
  wait_until eval \
    '[ "$(turns "sum(l[\"resident_bytes\"] for l in gpus[0][\"leases\"]) >> 20")" -gt 450 ]'
  liar liar here 650 resident
  wait_until says liar said
  [ "$(of_liar)" = 0 ]
  [ "$(turns 'gpus[0]["takes_turns"]')" = False ]
  wait_until grep -q '^done: .*, 0 wrong$' honest
  [ "$(turns 'gpus[0]["evictions"]')" = 0 ]
}

keeps() { # the worker gets the keeper's room, and events say what happened
  liar keeper keep 650 "$1" # beside which the worker never fits
  wait_until says keeper granted
  worker honest 2
  wait_until grep -q '^done: .*, 0 wrong$' honest
  wait_until eval 'gpurota events | grep "$LIED_FOR" |
    grep -q "did not give its turn back while others waited, and is ended"'
  gpurota events | grep "$LIED_FOR" | grep -q 'is ended in [0-9]* s unless its work ends'
  [ "$(value "[l for l in leases if l['lease_id'] == '$LIED_FOR']")" = '[]' ]
}

@test "a tenant that answers nothing keeps its turn for longest_drain, and its lease ends" {
  keeps silent
}
@test "a tenant that always claims to be at work loses its lease after longest_drain" {
  keeps busy
}
@test "a tenant whose evictions all fail loses its lease after longest_drain" {
  keeps fails
}
@test "a tenant that undoes every eviction loses its lease after longest_drain" {
  keeps returns
}

@test "while nobody waits, a tenant that answers nothing keeps its memory" {
  liar keeper keep 500 silent
  wait_until says keeper granted
  sleep 6 # longer than longest_drain
  [ "$(value "len([l for l in leases if l['lease_id'] == '$LIED_FOR'])")" = 1 ]
}
