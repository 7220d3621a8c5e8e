#!/usr/bin/env bats
# Several fillers, of which only one can be on a GPU at a time.

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
# starts_of NAME: how many times this filler has started.
starts_of() { gpurota events --json | grep '"filler_started"' | grep -c "\"$1: " || true; }
has_started() { [ "$(starts_of "$1")" -ge "$2" ]; }
is_alone() { holds 'sum(l["kind"] == "filler" for l in leases) <= 1'; }

@test "fillers take rounds, one after the other, and one that is alone stays" {
  add_hold first
  wait_until is_on first
  sleep 3 # longer than its stay would be if another filler waited
  is_on first
  [ "$(starts_of first)" = 1 ]
  add_hold second
  wait_until has_started second 1
  event_is 'filler_yielded.*its stay is over, and another filler waits'
  is_alone
  wait_until filler_is first 'p["why"] == "another filler"'
  add_hold third
  wait_until has_started third 1
  # The two fillers may have had any number of rounds. From now on no filler gets a second stay
  # before each of the others has had one.
  wait_until has_started third 2
  wait_until has_started third 3
  is_alone
  gpurota events --json | grep '"filler_started"' | grep -o '\(first\|second\|third\): ' |
    tr -d ' :' | sed -n '/third/,$p' | head -n 7 >order
  [ "$(sort -u order | wc -l)" = 3 ]
  [ "$(sed -n 1,3p order)" = "$(sed -n 4,6p order)" ]
  [ "$(sed -n 7p order)" = third ]
}

@test "no filler is ended for one that fails, nor for one that cannot run on the GPU" {
  add_filler broken -- false
  wait_until event_is 'filler_ended.*broken\|filler_ended.*by itself'
  gpurota filler add elsewhere --gpu-ids 1 --idle-after 1s "${machine[@]}" -- "$PROGRAM" hold 100
  add_hold good
  wait_until is_on good
  sleep 4
  [ "$(starts_of good)" = 1 ]
  is_on good
}

add_moved() { # a filler that is evicted when it has to leave; its pid is $PID
  add_filler moved --on-yield evict "$@" -- sh -c 'echo "pid $$"; exec "$@"' sh "$PROGRAM" hold 100
  wait_until is_on moved
  wait_until holds_memory
  PID=$(gpurota filler logs moved | sed -n 's/^pid \([0-9]*\)$/\1/p')
}
holds_memory() {
  holds 'any(l["kind"] == "filler" and l["gpus"][0]["used_bytes"] > 90 << 20 for l in leases)'
}
is_evicted() { filler_is moved 'p["state"] == "evicted" and p["lease_id"]'; }
newcomer() { # starts a program that waits for the GPU
  in_background newcomer gpurota run --gpu-ids 0 --memory 90% -- "$PROGRAM" hold 200
  NEWCOMER=$BACKGROUND_PID
}
# The first filler was not continued: `other` came first.
other_is_on_instead() {
  wait_until has_started other 1
  wait_until gone "$PID"
  event_is 'filler_yielded.*leaves GPU 0: its stay is over, and another filler waits'
  [ "$(count_of filler_resumed)" = 0 ]
}

@test "a moved filler is ended when its stay is over and another one waits" {
  add_moved
  sleep 2 # its whole stay, while no other filler waits
  newcomer
  wait_until says newcomer holding
  is_evicted
  add_hold other
  is_evicted
  kill -TERM "$NEWCOMER"
  other_is_on_instead
  wait_until has_started moved 2
}

@test "a paused filler does not keep others off its GPU, even if the daemon was killed meanwhile" {
  stays_last 1h
  gpurota reload
  add_moved
  add_hold other
  gpurota filler pause moved
  wait_until is_evicted
  kill_daemon
  local started=$SECONDS
  start_daemon
  wait_until is_evicted
  # The new daemon counts the filler's stay from the moment when the new daemon saw the eviction.
  # The new `longest_stay` must be longer than the new daemon has run so far: the stay is then not
  # over yet.
  stays_last $((SECONDS - started + 2))s
  gpurota reload
  other_is_on_instead
}

@test "a filler that is paused while it makes room for somebody does not keep others off its GPU" {
  stays_last 1h
  gpurota reload
  add_moved --grace 60s
  add_hold other
  # A stopped filler cannot be moved to host memory before it is continued.
  stop_process "$PID"
  newcomer
  wait_until event_is 'filler_yielded.*is moved from GPU 0 to host memory'
  gpurota filler pause moved
  kill -CONT "$PID"
  wait_until is_evicted
  wait_until says newcomer holding
  stays_last 2s
  gpurota reload
  kill -TERM "$NEWCOMER"
  other_is_on_instead
}

@test "time in host memory does not count in a filler's stay, even if it was paused meanwhile" {
  stays_last 1h
  gpurota reload
  local started=$SECONDS stayed
  add_moved
  newcomer
  wait_until says newcomer holding
  is_evicted
  gpurota filler pause moved
  gpurota filler resume moved
  stayed=$((SECONDS - started + 1))
  sleep $((stayed + 2))
  stays_last $((stayed + 1))s
  gpurota reload
  add_hold other
  kill -TERM "$NEWCOMER"
  # An ended filler would be started again; only an evicted one is resumed.
  wait_until event_is filler_resumed
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
