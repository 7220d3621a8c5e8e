#!/usr/bin/env bats
# The compute time of a GPU is divided between slices with shares. Kernels of the simulated driver
# take their time whatever else the GPU does, so a program that is never held back runs as many as
# if it were alone.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# program NAME HOW MICROSECONDS SECONDS OPTION…: in the background, with a slice of GPU 0.
program() {
  local name=$1 how=$2 length=$3 seconds=$4
  shift 4
  in_background "$name" gpurota run --gpu-ids 0 --memory 1G "$@" -- \
    "$E2E_LATENCY_PROGRAM" kernels "$how" "$length" "$seconds"
}
# kernels_of NAME: how many kernels it has run.
kernels_of() { tail -n 1 "$E2E_DIR/$1"; }
end_of() { wait "${BACKGROUND[@]:0:$1}"; }
# check_part LEAST MOST: in percent, the first program's part of all kernels.
check_part() {
  local first second
  first=$(kernels_of first) second=$(kernels_of second)
  echo "first $first, second $second"
  python3 -c '
import sys
first, second, least, most = map(float, sys.argv[1:])
sys.exit(not least <= 100 * first / (first + second) <= most)' "$first" "$second" "$1" "$2"
}

@test "a program has its share, and a program without a share the rest" {
  program first batch 1000 6 --compute 30%
  program second batch 1000 6
  end_of 2
  check_part 22 38
}

@test "programs that wait for each kernel, or never, have their shares" {
  program first each 500 6 --compute 20%
  program second never 500 6 --compute 60
  end_of 2
  check_part 17 33
}

# share_of LEASE EXPRESSION: of its last_minute, as `m`.
share_of() {
  gpurota status --json | python3 -c '
import json, sys
lease = [l for l in json.load(sys.stdin)["leases"] if l["lease_id"] == sys.argv[1]][0]
m = lease["last_minute"]
print(m)
sys.exit(not (m and eval(sys.argv[2])))' "$1" "$2"
}

@test "status and explain say how much a lease got, and for whom it was held back" {
  program first batch 1000 60 --compute 30%
  wait_until says first ready
  program second batch 1000 60
  wait_until says second ready
  wait_until share_of L1 'm["seconds"] >= 5'
  share_of L1 '22 <= m["got_percent"] <= 38 and 50 <= m["held_percent"] <= 85'
  share_of L1 '[h["lease_id"] for h in m["held_for"]] == ["L2"]'
  share_of L2 '60 <= m["got_percent"] <= 80 and 15 <= m["held_percent"] <= 45'
  run gpurota explain L1
  [[ $output == *"its work was held back for "*" s, for L2"* ]]
  [[ $output == *"its part of the compute time of GPU 0: "*"and wants more"* ]]
  COLUMNS=200 gpurota status | grep -q 'compute 30% (got [23].%), held back .*% for L2'
  gpurota ps | grep -q 'has waited for .* until its lease could compute'
  kill "${BACKGROUND[1]}"
  wait_until holds 'len(leases) == 1 and leases[0]["last_minute"] is None'
}

@test "a change of the share counts at once" {
  program first batch 1000 8 --compute 10%
  wait_until says first ready
  program second batch 1000 8
  gpurota update L1 --compute 80%
  end_of 2
  check_part 65 88
  run -2 gpurota update L1 --compute 99%
}

@test "a program alone has the whole GPU, whatever its share is" {
  program first batch 1000 4 --compute 5%
  end_of 1
  (($(kernels_of first) > 2000))
}

@test "a program alone has no more than its upper bound" {
  program first batch 1000 6 --compute-max 30%
  end_of 1
  # 6 s have room for 6000 kernels, and a busy machine runs fewer.
  (($(kernels_of first) > 300 && $(kernels_of first) < 2300))
}

@test "an upper bound counts beside others, and update changes it" {
  program first batch 1000 60 --compute 20% --compute-max 40%
  wait_until says first ready
  gpurota status | grep -q 'compute 20%, at most 40%'
  gpurota explain L1 | grep -q 'has an upper bound of 40 % of the compute time of GPU 0'
  wait_until share_of L1 'm["seconds"] >= 4'
  share_of L1 '10 <= m["got_percent"] <= 48 and m["bounded_percent"] >= 20'
  share_of L1 'm["held_for"] == []'
  program second batch 1000 4 --compute 70%
  wait "${BACKGROUND[1]}"
  run ! gpurota update L1 --compute 50%
  [[ $output == *"write --compute 40%, or --compute-max 50% or more"* ]]
  gpurota update L1 --compute-max 100%
  run gpurota explain L1
  [[ $output == *'has at least 20 %'* && $output != *'upper bound'* ]]
  wait_until holds 'leases[0]["last_minute"] is None'
}

@test "a program that is stopped or killed keeps nobody waiting for long" {
  program first batch 1000 60 --compute 90%
  wait_until says first ready
  local stopped
  stopped=$(value 'leases[0]["pid"]')
  program second batch 1000 6
  wait_until says second ready
  stop_process "$stopped"
  wait "${BACKGROUND[1]}"
  # A share of 10 % is 600 kernels. After 2 s without a sign of work the program does not count.
  (($(kernels_of second) > 2500))
  program third batch 1000 4
  kill -KILL "$stopped"
  wait "${BACKGROUND[2]}"
  (($(kernels_of third) > 2000))
}

@test "programs go on while the daemon is killed, and divide the time when it is back" {
  program first batch 1000 10 --compute 20%
  program second batch 1000 10
  wait_until says second ready
  kill_daemon
  sleep 2
  start_daemon
  end_of 2
  # 20 % of 10 s is 2000 kernels, 20 % of 8 s and all of 2 s are 3600.
  (($(kernels_of first) > 2200))
  check_part 20 43
}

@test "shares of a GPU are promised once" {
  in_background first gpurota run --gpu-ids 0 --memory 1G --compute 60% -- sleep 60
  wait_until holds 'len(leases) == 1'
  run -75 gpurota run --gpu-ids 0 --memory 1G --compute 40% --nonblock -- true
  [[ $output == *"has 35 % of its compute time left"*"L1"* ]]
  gpurota run --gpu-ids 0 --memory 1G --compute 35% --nonblock -- true
  gpurota run --gpu-ids 1 --memory 1G --compute 95% --nonblock -- true
  gpurota explain L1 | grep -q 'at least 60 % of the compute time of GPU 0'
  gpurota status | grep -q 'compute 60%'
  in_background waiting gpurota run --gpu-ids 0 --memory 1G --compute 40% -- true
  wait_until says waiting 'L1'
  gpurota update L1 --compute 0
  wait "${BACKGROUND[1]}"
  gpurota run --gpu-ids 0 --memory 1G --compute 95% --nonblock -- true
}

@test "a share that cannot be had is refused with what to write instead" {
  run -2 gpurota run --memory 1G --compute 100% -- true
  [[ $output == *"from 1 to 95, such as 30%"* ]]
  run -2 gpurota run --compute 30% -- true
  [[ $output == *"add --memory 8G"* ]]
  run -2 gpurota run --memory 1G --compute 30% --latency interactive -- true
  [[ $output == *"leave out --latency interactive or --compute"* ]]
  run -2 gpurota run --memory 1G --compute 60% --compute-max 50% -- true
  [[ $output == *"write --compute 50%, or --compute-max 60% or more"* ]]
  run -2 gpurota run --compute-max 50% -- true
  [[ $output == *"add --memory 8G to share the GPU, or leave out --compute-max"* ]]
  run -2 gpurota run --memory 1G --compute-max 0 -- true
  [[ $output == *"from 1 to 99, such as 50%, or 100% for no bound"* ]]
  run -2 gpurota run --gpus 2 --memory 1G --compute 30% -- true
  [[ $output == *"ask for one GPU"* ]]
  run -125 gpurota run --gpu-ids 0-1 --memory 1G --compute 30% -- true
  [[ $output == *"ask for one GPU"* ]]
}

@test "a booking keeps its share" {
  in_background first gpurota run --gpu-ids 0 --memory 1G --compute 10% --timeout 3h -- sleep 60
  wait_until holds 'len(leases) == 1'
  gpurota reserve --gpu-ids 0 --memory 1G --compute 40% --at +10m --for 1h
  run -1 gpurota update L1 --compute 90%
  [[ $output == *"has booked a GPU of L1"* ]]
  gpurota update L1 --compute 50%
  gpurota update L1 --note x
}

@test "the site limits the share that a user may be promised on a GPU" {
  stop_daemon
  printf '%s\n' '[limits]' 'compute = "50%"' >gpurota.toml
  start_daemon
  gpurota limits | grep -E 'compute share of a GPU +- +50 % +everyone'
  run -125 gpurota run --gpu-ids 0 --memory 1G --compute 60% -- true
  [[ $output == *"allows you 50 % of a GPU's compute time ([limits] compute)"* ]]
  [[ $output == *"write --compute 50%"* ]]
  in_background first gpurota run --gpu-ids 0 --memory 1G --compute 30% -- sleep 60
  wait_until holds 'len(leases) == 1'
  gpurota run --gpu-ids 0 --memory 1G --compute 20% --nonblock -- true
  gpurota run --memory 1G --compute 40% --nonblock -- true
  run -125 gpurota run --gpu-ids 0 --memory 1G --compute 40% -- true
  [[ $output == *"you have 30 % there and ask for 40 %: write --compute 20%"* ]]
  in_background second gpurota run --gpu-ids 0 --memory 1G --compute 10% -- sleep 60
  wait_until holds 'len(leases) == 2'
  run -1 gpurota update L1 --compute 45%
  [[ $output == *"you have 10 % there and ask for 45 %: write --compute 40%"* ]]
  gpurota update L1 --compute 40%
}

@test "a job keeps its share and its bound over a restart, and both change while it runs" {
  gpurota job add night --gpu-ids 0 --memory 1G --compute 20% --compute-max 60% -- sleep 300
  wait_until holds 'len(leases) == 1'
  kill_daemon
  start_daemon
  share_is() {
    holds "(leases[0]['compute_percent'], leases[0]['compute_max_percent']) == ($1, $2)"
  }
  wait_until share_is 20 60
  gpurota job update night --compute-max 50%
  wait_until share_is 20 50
  gpurota job update night --compute 40%
  wait_until share_is 40 50
  gpurota job update night --compute-max 100%
  wait_until share_is 40 None
  run ! gpurota job update night --compute-max 30%
  [[ $output == *"write --compute 30%"* ]]
}
