#!/usr/bin/env bats
# A day of a hostile user beside a day in a lab. One user does at random all that these tests know,
# for E2E_DAY_SECONDS (30; half an hour is a long day) with the seed E2E_SEED; the other user works.
# No command of the other user may fail, and no lease or byte may be lost. The times of answers are
# reported, but have no limit.

load ../e2e/helpers
load ../e2e/job_helpers

setup() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  make_folders
  chmod 755 . run
  # All users may use the simulated machine.
  chmod -R a+rwX "$GPUROTA_SIM_DIR"
  # The hostile user has a limit, because sites divide memory by limits, and this test is about
  # everything else.
  printf '%s\n' '[limits.user.54001]' 'memory = "1G"' >gpurota.toml
  start_daemon
  learn_context_cost
  # The capacity fits one of two programs beside the contexts of the other.
  gpurota set --gpu-ids 1 --capacity 1200M --quantum 200ms
  DAYS=0
}
teardown() {
  echo "# $DAYS days; ${MALLORY:-}; ${ALICE:-}" | tee -a "${E2E_REPORT:-/dev/null}"
  remove_jobs >/dev/null 2>&1 || true
  end_test
}

# must COMMAND…: runs as the user who works, and shows the output of the command if it fails.
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

# shellcheck disable=SC2154 # job_helpers sets machine
as_a_job() {
  must gpurota job add "day$DAYS" --gpu-ids 0 --memory 1G \
    --restart no "${machine[@]}" -- "$PROGRAM" info
  wait_until job_has_ended "day$DAYS"
  must gpurota job remove "day$DAYS"
}

# Each program reads back what it wrote, wherever its memory was in between.
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
  # Everything that the hostile user left behind ends; until then the user may still have
  # reservations.
  gpurota release --all-users --yes >/dev/null 2>&1 || true
  wait_until no_leases
  wait_until memory_is_back
}
