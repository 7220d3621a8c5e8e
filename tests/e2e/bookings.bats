#!/usr/bin/env bats
# Bookings: made, planned around, begun, cancelled; shown in status and in the calendar.

load helpers
load filler_helpers

setup() { start_daemon; }
teardown() { end_test; }

# booking FIELD: prints this field of the first booking.
booking() {
  gpurota calendar --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["bookings"][0][sys.argv[1]])' "$1"
}
bookings() {
  gpurota calendar --json |
    python3 -c 'import json, sys; print(len(json.load(sys.stdin)["bookings"]))'
}

# Starts a daemon for the users root and nobody. Work without a time limit may start beside a
# booking.
serve_two_users() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  stop_daemon
  printf '%s\n' '[bookings]' 'min_unbooked = "1s"' >gpurota.toml
  start_daemon
}

@test "a booking is confirmed, shown, and becomes a reservation of its owner in time" {
  gpurota reserve --gpu-ids 1 --at +4s --for 1h --note course >said
  local time='[0-9]{2}:[0-9]{2}'
  grep -E "^booked R1: GPU 1 from .*$time to .*$time; to cancel it: gpurota cancel R1$" said
  gpurota status | grep -E '^ *1 +free .*booked from [0-9:]+ by'
  gpurota status | grep -x '1 booking: gpurota calendar'
  gpurota calendar | grep -E 'R1 +course'
  gpurota explain R1 | grep 'becomes a reservation when it begins'
  wait_until holds \
    "[l['kind'] for l in leases] == ['reservation'] and leases[0]['note'] == 'course'"
  holds "s['bookings'] == [] and leases[0]['gpus'][0]['label'] == '1'"
  gpurota events | grep 'R1 has begun as L1'
  # shellcheck disable=SC2016 # for the inner shell
  [ "$(gpurota run --lease L1 -- sh -c 'echo $CUDA_VISIBLE_DEVICES')" = 1 ]
}

@test "work with a stated end starts if it ends before a booking; the site can have all other work wait" {
  stop_daemon
  printf '%s\n' '[bookings]' 'open_ended = "wait"' >gpurota.toml
  start_daemon
  gpurota reserve --gpus "$(value 'len(gpus)')" --at +2h --for 1h
  run -75 gpurota run --nonblock -- true
  [[ "$output" == \
    *"GPU 0 is free until "*", then "*"'s booking R1 begins; starts now with --timeout 1h59m" ]]
  gpurota run --nonblock --timeout 1h59m -- true
  run -75 gpurota run --nonblock --timeout 3h -- true
  in_background waits gpurota run -- echo it ran
  local why="GPU 0 is free until .*, then .*'s booking R1 begins"
  wait_until says waits "waiting as R2, position 1: $why; starts now with --timeout 1h59m"
  gpurota release R1
  wait "$BACKGROUND_PID"
  says waits 'it ran'
}

@test "work without a time limit runs on booked GPUs until the booking is used" {
  serve_two_users
  gpurota reserve --gpu-ids 0 --at +4s --for 1h
  in_background work as_nobody gpurota run --gpu-ids 0 -- sleep 300
  wait_until holds "[l['kind'] for l in leases] == ['run']"
  run -1 gpurota claim R1
  [[ "$output" == *"R1 begins at "*", and cannot be used before"* ]]
  wait_until eval "[ \"\$(booking waits_for_use)\" = True ]"
  holds "[l['kind'] for l in leases] == ['run']"
  run -1 as_nobody gpurota claim R1
  [[ "$output" == *"R1 is somebody else's booking"* ]]
  # shellcheck disable=SC2016 # for the inner shell
  [ "$(gpurota run --lease R1 -- sh -c 'echo $CUDA_VISIBLE_DEVICES' 2>said)" = 0 ]
  wait "$BACKGROUND_PID" || [ $? = 123 ]
  says work "began to use booking R1"
  wait_until holds "[l['kind'] for l in leases] == ['reservation']"
  gpurota claim R1 | grep -x 'R1 is L2 now; to use it: gpurota run --lease L2 -- …'
  run -1 gpurota claim R9
  [[ "$output" == *"there is no booking R9"* ]]
  run -2 gpurota claim L2
}

@test "an administrator's booking that is on time needs no use" {
  serve_two_users
  run -1 as_nobody gpurota reserve --gpu-ids 0 --at +1d --for 1h --on-time
  [[ "$output" == *"only administrators can"* ]]
  gpurota reserve --gpu-ids 0 --at +4s --for 1h --on-time
  in_background work as_nobody gpurota run --gpu-ids 0 -- sleep 300
  wait_until holds "[l['kind'] for l in leases] == ['reservation']"
}

@test "a program is warned ahead of a booking that its lease leaves for" {
  serve_two_users
  gpurota reserve --gpu-ids 0 --at +45s --for 1h --on-time
  in_background work as_nobody gpurota run --gpu-ids 0 --warn 39s:USR2 -- sh \
    -c 'trap "echo saved" USR2; echo ready; while :; do sleep 0.05; done'
  wait_until says work ready
  wait_until says work saved
  says work 'L1 leaves for a booking in .* at the earliest: SIGUSR2 was sent to 1 of its processes'
  holds "[l['kind'] for l in leases] == ['run'] and leases[0]['leaves'] is not None"
  gpurota cancel R1
  holds "leases[0]['leaves'] is None"
  gpurota release L1
}

@test "a booked slice moves a swap lease to host memory until it is over, and no byte is lost" {
  serve_two_users
  as_nobody gpurota reserve --gpu-ids 0 --memory 3G --at +4s --for 1h
  in_background work env PROBE_BUFFERS=60 \
    gpurota run --gpu-ids 0 --swap --memory 7G -- "$E2E_SWAP_PROBE" torture 15 1
  wait_until holds "[l['gpus'][0]['used_bytes'] > 900 << 20 for l in leases] == [True]"
  wait_until eval "[ \"\$(booking waits_for_use)\" = True ]"
  as_nobody gpurota claim R1
  wait_until holds "len(leases) == 2"
  holds "sorted(l['kind'] for l in leases) == ['reservation', 'run']"
  gpurota turns --gpu-ids 0 --json | python3 -c '
import json, sys
sys.exit(any(lease["resident_bytes"] for lease in json.load(sys.stdin)["gpus"][0]["leases"]))'
  gpurota events | grep 'L1 is moved to host memory: nobody begins to use booking R1'
  gpurota explain L1 | grep 'waits for its GPU not to be needed'
  # No other lease gets the room that the swap lease needs when its memory is restored.
  run -75 gpurota run --nonblock --gpu-ids 0 --memory 2G -- true
  kill_daemon
  start_daemon
  wait_until eval "[ \"\$(gpurota events | grep -c 'L1 is moved to host memory')\" = 2 ]"
  gpurota release L2
  wait_until is_checked
  gpurota events | grep 'L1 takes turns again'
}
is_checked() {
  if grep -e '^line' -e '^no context' work; then return 2; fi
  grep -q '^done$' work
}

@test "a booking survives the daemon, and its time is kept" {
  gpurota reserve --gpu-ids 0 --at +5s --for 1h
  kill_daemon
  start_daemon
  [ "$(bookings)" = 1 ]
  wait_until holds "len(leases) == 1 and leases[0]['gpus'][0]['label'] == '0'"
}

@test "a lease without a time limit cannot be booked away, and no lease is extended into a booking" {
  in_background runs gpurota run --gpu-ids 0 -- sleep 60
  wait_until holds "len(leases) == 1"
  run -1 gpurota reserve --gpu-ids 0 --at +1h --for 1h
  [[ "$output" == *"(L1) on GPU 0 has no time limit"* ]]
  gpurota reserve --gpu-ids 1 --for 30m --short
  gpurota reserve --gpu-ids 1 --at +1h --for 1h
  run -1 gpurota update L2 --for 2h
  [[ "$output" == *"has booked a GPU of L2 from "*"(R1): ask for "*" min at most"* ]]
  gpurota update L2 --for 45m
}

@test "a filler leaves when a booking begins" {
  add_filler fold -- "$PROGRAM" hold 100
  wait_until holds \
    "[l['gpus'][0]['used_bytes'] > 0 for l in leases if l['kind'] == 'filler'] == [True]"
  gpurota reserve --gpu-ids 0 --at +2s --for 1h
  wait_until holds "[l['kind'] for l in leases] == ['reservation']"
}

@test "a GPU that is out of service is replaced by another, unless it was named" {
  gpurota reserve --at +4s --for 1h
  [ "$(booking labels)" = "['0']" ]
  gpurota drain 0
  wait_until holds "[l['gpus'][0]['label'] for l in leases] == ['1']"
}

@test "weekly bookings are all made or none, at the same time of day" {
  local day
  day=$(date -d '+2 days' +%F)
  gpurota reserve --gpu-ids 0 --at "$day 09:00" --until 17:00 --weekly 3 >said
  [ "$(grep -c 'GPU 0 from .*09:00 to .*17:00' said)" = 3 ]
  [ "$(bookings)" = 3 ]
  run -1 gpurota reserve --gpu-ids 0 --at "$(date -d '+9 days' +%F) 08:00" --for 2h
  [[ "$output" == *"has booked GPU 0 (R2) until "*"17:00"* ]]
  gpurota calendar | grep -E '09:00-17:00 +0 '
  gpurota calendar --ical >gpus.ics
  [ "$(grep -c '^BEGIN:VEVENT' gpus.ics)" = 3 ]
  gpurota cancel R1 R2 R3
  [ "$(bookings)" = 0 ]
}

@test "how many and how far ahead is the site's to say" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  stop_daemon
  printf '%s\n' '[limits]' 'bookings = 1' 'book_ahead = "2d"' >gpurota.toml
  start_daemon
  chmod 755 . run
  gpurota limits | grep -E 'bookings +0 +1 +everyone'
  run -1 as_nobody gpurota reserve --at +3d --for 1h
  [[ "$output" == *"the site allows you to book 2 days ahead"* ]]
  as_nobody gpurota reserve --at +1d --for 1h
  run -1 as_nobody gpurota reserve --at +1d --for 1h
  [[ "$output" == *"the site allows you 1 booking; you have 1 and ask for 1"* ]]
  # These limits do not apply to administrators, who may also cancel the booking.
  gpurota reserve --at +3d --for 1h
  gpurota cancel R1
}

@test "users book so many GPU hours of any seven days, and see it" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  stop_daemon
  printf '%s\n' '[bookings]' 'longest = "10h"' 'user_share = 3' >gpurota.toml
  start_daemon
  chmod 755 . run
  run -1 as_nobody gpurota reserve --at +1d --for 11h
  [[ "$output" == *"the site allows bookings of 10 h at most, 11 h were asked for"* ]]
  as_nobody gpurota reserve --gpus "$(value 'len(gpus)')" --at +1d --for 5h
  run -1 as_nobody gpurota reserve --gpus "$(value 'len(gpus)')" --at +3d --for 1h
  [[ "$output" == *"nobody has booked "*" GPU hours of the 7 days from "* ]]
  as_nobody gpurota limits | grep -E 'time of a booking +- +10 h +\[bookings\]'
  as_nobody gpurota limits | grep -E 'booked GPU hours in 7 d +[0-9.]+ +[0-9.]+ +\[bookings\]'
  # Administrators have no such bound, and their bookings are not counted.
  gpurota reserve --gpus "$(value 'len(gpus)')" --at +5d --for 100h
  gpurota limits | grep -E 'booked GPU hours in 7 d +0 +none'
}

@test "--until ends a run or a reservation at a time of day" {
  gpurota reserve --gpu-ids 0 --until +1h --short
  holds "leases[0]['ends'] is not None"
  run -2 gpurota run --until 18:00 --timeout 1h -- true
  run -2 gpurota run --until noon -- true
  [[ "$output" == *"'noon' is not a time to come"* ]]
  run -124 gpurota run --until +1s -- sleep 60
}
