#!/usr/bin/env bats
# Programs in swap leases take turns while they, their `gpurota run` and the daemon are killed and
# stopped at random: each program must read what it wrote. Runs for E2E_STRESS_SECONDS (30), with
# the seed E2E_SEED. tests/stress/hours.sh runs this file for hours, many instances at once.
# bench/HISTORY.md has the longest run.

load helpers

setup() {
  start_daemon
  learn_context_cost
  # A program has up to 700 MiB, including two contexts of 128 MiB. The capacity also has room for
  # the contexts of the two other programs, which cannot move.
  gpurota set --gpu-ids 0 --capacity 1400M --quantum 200ms
  RUNS=0 DONE=0 KILLED=0 EVICTED=0
  COMMAND_OF=() FILE_OF=() KILLED_OF=()
}
# The counts are reported even if the run failed.
teardown() {
  if [ -z "${BATS_TEST_COMPLETED:-}" ]; then show_what_runs; fi
  echo "# $DONE programs ended, $KILLED were killed, $EVICTED evictions" |
    tee -a "${E2E_REPORT:-/dev/null}"
  end_test
}

# Prints, after a failure, the current turn, the last steps of each program, and where its threads
# are.
show_what_runs() {
  local log pid task
  gpurota turns || true
  for log in probe.*.debug; do
    echo "--- $log" && tail -n 40 "$log" | cut -c1-160
  done
  for pid in $(pgrep -f "^$E2E_SWAP_PROBE torture"); do
    if ! is_of_case "$pid"; then continue; fi
    for task in "/proc/$pid/task"/*; do
      echo "$pid: $(cat "$task/comm") $(grep State "$task/status") $(cat "$task/wchan")" || true
    done
  done
}

# start SLOT: starts another program that writes, copies, captures, forks, frees and reads back.
start() {
  RUNS=$((RUNS + 1))
  FILE_OF[$1]=probe.$RUNS KILLED_OF[$1]=
  in_background "probe.$RUNS" env GPUROTA_DEBUG="$E2E_DIR/probe.$RUNS.debug" PROBE_BUFFERS=32 \
    E2E_RUN="$RUNS" \
    gpurota run --gpu-ids 0 --swap --memory 700M -- "$E2E_SWAP_PROBE" torture $((3 + RANDOM % 6)) \
    "$RUNS"
  COMMAND_OF[$1]=$BACKGROUND_PID
}

# The program of a slot, below its `gpurota run`; empty while there is none. Only children are
# searched, because other tests run such programs too.
program_of() { pgrep -P "${COMMAND_OF[$1]}" -f "^$E2E_SWAP_PROBE torture" | head -n 1; }

# ended SLOT: counts a program that has ended; fails if it has read anything that it did not write.
ended() {
  local file=${FILE_OF[$1]} evicted
  if grep -e '^line' -e '^no context' "$file"; then return 1; fi
  if [ -n "${KILLED_OF[$1]}" ]; then
    KILLED=$((KILLED + 1))
  else
    grep -q '^done$' "$file" || { echo "$file:" && tail -n 20 "$file" && return 1; }
    DONE=$((DONE + 1))
  fi
  # There is no debug file if the run was killed while it waited for its lease.
  evicted=$(grep -cs ': evicted' "$file.debug") || true
  EVICTED=$((EVICTED + ${evicted:-0}))
  rm -f "$file" "$file.debug"
}

renew() {
  local slot
  for slot in 0 1 2; do
    if ! gone "${COMMAND_OF[slot]}"; then continue; fi
    ended "$slot" || return 1
    start "$slot"
  done
}

disturb() {
  local slot=$((RANDOM % 3)) pid
  pid=$(program_of "$slot")
  case $((RANDOM % 6)) in
    0) kill_daemon && start_daemon ;;
    1)
      KILLED_OF[slot]=yes
      [ -z "$pid" ] || kill -KILL "$pid" || true
      ;;
    2)
      KILLED_OF[slot]=yes
      kill -KILL "${COMMAND_OF[slot]}" || true
      ;;
    3)
      [ -z "$pid" ] || { kill -STOP "$pid" && sleep "0.$((RANDOM % 9))" && kill -CONT "$pid"; } ||
        true
      ;;
  esac
}

@test "nothing is lost while programs and the daemon are killed at random" {
  local slot end=$((SECONDS + ${E2E_STRESS_SECONDS:-30}))
  RANDOM=${E2E_SEED:-$$}
  echo "seed ${E2E_SEED:-$$}"
  for slot in 0 1 2; do start "$slot"; done
  while ((SECONDS < end)); do
    sleep "$((RANDOM % 2)).$((RANDOM % 9 + 1))"
    disturb
    renew
  done
  for slot in 0 1 2; do
    wait_until gone "${COMMAND_OF[slot]}"
    ended "$slot"
  done
  [ "$DONE" -gt 0 ]
  [ "$EVICTED" -gt 0 ]
  wait_until no_leases
  memory_is_back
}
