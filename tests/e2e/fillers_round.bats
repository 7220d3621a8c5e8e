#!/usr/bin/env bats
# Several fillers of which only one can be on a GPU.

# shellcheck disable=SC2094,SC2154 # machine is of filler_helpers
load helpers
load filler_helpers

setup() {
  make_folders
  stays_last 2s
  start_daemon
}
teardown() {
  remove_fillers >/dev/null 2>&1 || true
  end_test
}

stays_last() { printf '[filler]\nlongest_stay = "%s"\n' "$1" >gpurota.toml; }
add_hold() { add_filler "$1" "${@:2}" -- "$PROGRAM" hold 100; }
# starts_of NAME: how often it has started.
starts_of() { gpurota events --json | grep '"filler_started"' | grep -c "\"$1: " || true; }
has_started() { [ "$(starts_of "$1")" -ge "$2" ]; }
is_alone() { holds 'sum(l["kind"] == "filler" for l in leases) <= 1'; }

@test "they go round, one after the other, and one that is alone stays" {
  add_hold first
  wait_until is_on first
  sleep 3 # longer than it may stay while another one waits
  is_on first
  [ "$(starts_of first)" = 1 ]
  add_hold second
  wait_until is_on second
  event_is 'filler_yielded.*its stay is over, and another filler waits'
  is_alone
  filler_is first 'p["why"] == "another filler"'
  add_hold third
  wait_until has_started third 1
  wait_until has_started first 2
  wait_until has_started second 2
  is_alone
  # Nobody is served twice before the others are.
  gpurota events --json | grep '"filler_started"' | grep -o '\(first\|second\|third\): ' >order
  [ "$(head -n 5 order | tr -d ' :\n')" = firstsecondthirdfirstsecond ]
}

@test "nobody is ended for one that fails, nor for one that cannot be there" {
  add_filler broken -- false
  wait_until event_is 'filler_ended.*broken\|filler_ended.*by itself'
  gpurota filler add elsewhere --gpu-ids 1 --idle-after 1s "${machine[@]}" -- "$PROGRAM" hold 100
  add_hold good
  wait_until is_on good
  sleep 4
  [ "$(starts_of good)" = 1 ]
  is_on good
}

@test "one that was moved out is ended instead of coming back when its stay is over and another one waits" {
  add_filler moved --on-yield evict -- "$PROGRAM" hold 100
  wait_until is_on moved
  sleep 2
  # It goes on where it was: nobody waits.
  gpurota run --gpu-ids 0 --memory 90% -- true
  wait_until event_is filler_resumed
  add_hold other
  wait_until is_on other
  wait_until has_started moved 2
}

@test "longest_stay = 0s: the first one stays" {
  stays_last 0s
  stop_daemon
  start_daemon
  add_hold first
  wait_until is_on first
  add_hold second
  sleep 3
  is_on first
  [ "$(starts_of second)" = 0 ]
}
