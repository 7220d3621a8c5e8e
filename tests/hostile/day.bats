#!/usr/bin/env bats
# A day of a hostile user beside a day in a lab: one does at random all that these tests know, for
# E2E_DAY_SECONDS (30; half an hour is a long one) with the seed E2E_SEED, the other works. No
# command of the other fails, and no lease or byte of it is lost. How long it waits for answers is
# told, and nobody is held to it.

load ../e2e/helpers
load ../e2e/job_helpers

setup() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  make_folders
  chmod 755 . run
  # The machine is everybody's.
  chmod -R a+rwX "$GPUROTA_SIM_DIR"
  # The memory of the machine is what a site divides; this is about everything else.
  printf '%s\n' '[limits.user.54001]' 'memory = "1G"' >gpurota.toml
  start_daemon
  learn_context_cost
  # One of two programs has room, without the context of the other.
  gpurota set --gpu-ids 1 --capacity 1200M --quantum 200ms
  DAYS=0
}
teardown() {
  echo "# $DAYS days; ${MALLORY:-}; ${ALICE:-}" | tee -a "${E2E_REPORT:-/dev/null}"
  remove_jobs >/dev/null 2>&1 || true
  end_test
}

# must COMMAND…: of the one who works, who sees what it said if it fails.
must() { as_nobody "$@" >said 2>&1 || { echo "failed: $*" && cat said && return 1; }; }
starts() { # FILE COMMAND…
  local file=$1
  shift
  in_background "$file" setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}
ended_well() { ends_with 0 "$2" || { cat "$1" && return 1; }; }
job_has_ended() { as_nobody gpurota job show "$1" | grep -q finished; }

alone() { must gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" compute 500 1; }

under_a_reservation() {
  local lease
  must gpurota reserve --gpu-ids 0 --memory 1G --for 10m
  lease=$(grep -o 'L[0-9]*' said | head -n 1)
  must gpurota run --lease "$lease" -- "$PROGRAM" info
  must gpurota release "$lease"
}

in_the_queue() {
  starts first gpurota run --gpu-ids 0 --memory 4G -- "$PROGRAM" compute 100 2
  local first=$BACKGROUND_PID
  must gpurota run --gpu-ids 0 --memory 4G -- "$PROGRAM" info
  ended_well first "$first"
}

# shellcheck disable=SC2154 # of job_helpers
as_a_job() {
  must gpurota job add "day$DAYS" --gpu-ids 0 --memory 1G \
    --restart no "${machine[@]}" -- "$PROGRAM" info
  wait_until job_has_ended "day$DAYS"
  must gpurota job remove "day$DAYS"
}

# Each program reads back what it wrote, wherever its memory was meanwhile.
in_turns() {
  local one two file
  starts one env PROBE_BUFFERS=32 gpurota run --gpu-ids 1 \
    --swap --memory 700M -- "$E2E_SWAP_PROBE" torture 3 "$RANDOM"
  one=$BACKGROUND_PID
  starts two env PROBE_BUFFERS=32 gpurota run --gpu-ids 1 \
    --swap --memory 700M -- "$E2E_SWAP_PROBE" torture 3 "$RANDOM"
  two=$BACKGROUND_PID
  ended_well one "$one"
  ended_well two "$two"
  for file in one two; do
    grep -q '^done$' "$file"
    lacks '^line|^no context' "$file"
  done
}

@test "whatever a hostile user does all day, nothing of another's work fails or is lost" {
  local seconds=${E2E_DAY_SECONDS:-30} seed=${E2E_SEED:-$$} daemon=$DAEMON_PID hostile looker \
    begun=$SECONDS
  echo "seed $seed"
  RANDOM=$seed
  in_background mallory python3 -B "$BATS_TEST_DIRNAME/day.py" mallory "$seconds" "$seed"
  hostile=$BACKGROUND_PID
  in_background alice python3 -B "$BATS_TEST_DIRNAME/day.py" alice "$seconds"
  looker=$BACKGROUND_PID
  while ((SECONDS - begun < seconds)); do
    DAYS=$((DAYS + 1))
    alone
    under_a_reservation
    in_the_queue
    as_a_job
    in_turns
  done
  ended_well alice "$looker"
  ended_well mallory "$hostile"
  MALLORY=$(cat mallory) ALICE=$(cat alice)
  kill -0 "$daemon"
  says gpurotad.log 'lease made .*uid=54001'
  # Everything that the hostile user left behind ends; reservations of that user may be there until
  # then.
  gpurota release --all-users --yes >/dev/null 2>&1 || true
  wait_until no_leases
  wait_until memory_is_back
}
