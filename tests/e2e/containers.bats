#!/usr/bin/env bats
# Effects of containers on processes, without an engine: a pid namespace, in which a program has
# a number that differs from the one outside, and a user namespace.

load helpers

setup() {
  make_folders
  OWN_PIDS=(unshare --fork --pid --mount-proc)
  "${OWN_PIDS[@]}" true 2>/dev/null ||
    OWN_PIDS=(unshare --user --map-root-user --fork --pid --mount-proc)
  "${OWN_PIDS[@]}" true 2>/dev/null || skip "no pid namespace can be made here"
  start_daemon
}
teardown() { end_test; }

has_processes() { [ "$(value 'sum(gpu["processes"] for gpu in leases[0]["gpus"])')" -ge "$1" ]; }
# held_by: the process of the only lease, by its number outside the namespace.
held_by() { value 'leases[0]["pid"]'; }

@test "gpurota run in a pid namespace of its own holds its program to the limit, and ends with it" {
  learn_context_cost
  in_background greedy "${OWN_PIDS[@]}" gpurota run --memory 2G -- "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  grep 'refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY' greedy
  gpurota release --all
  wait_until no_leases
  run -7 "${OWN_PIDS[@]}" gpurota run --memory 2G -- sh -c 'exit 7'
  wait_until no_leases
}

@test "status has our number of its process, not the one inside" {
  in_background holder "${OWN_PIDS[@]}" gpurota run --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder holding
  local pid
  pid=$(held_by)
  grep -qz gpu_program "/proc/$pid/cmdline"
  [ "$(awk '/^NSpid:/ {print NF}' "/proc/$pid/status")" = 3 ]
  gpurota release --all
  wait_until no_leases
  wait_until gone "$pid"
}

@test "killed with the namespace, it leaves no lease and no memory" {
  in_background holder "${OWN_PIDS[@]}" gpurota run --memory 1G -- sh \
    -c "\"$PROGRAM\" hold 100 & wait"
  wait_until says holder holding
  # unshare's child is the first process of the namespace; its end ends all other processes there.
  kill -KILL "$(pgrep -P "$BACKGROUND_PID" | head -n 1)"
  wait_until no_leases
  wait_until memory_is_back
}

@test "under a reservation commands may be in pid namespaces with the same numbers" {
  gpurota reserve --gpu-ids 0 --memory 2G --for 1h
  local i
  for i in 1 2; do
    in_background "holder$i" "${OWN_PIDS[@]}" gpurota run --lease L1 -- "$PROGRAM" hold 100
  done
  wait_until says holder1 holding
  wait_until says holder2 holding
  wait_until has_processes 2
  gpurota release --all
  wait_until no_leases
}

@test "root of a user namespace counts as the user outside, and nobody else" {
  [ "$(id -u)" = 0 ] || skip "needs root: it switches users"
  as_nobody unshare --user --map-root-user --fork --pid --mount-proc true 2>/dev/null ||
    skip "no user namespace can be made here"
  chmod 755 . run "$GPUROTA_SIM_DIR"
  chmod 666 "$GPUROTA_SIM_DIR"/{state,locks,pids}
  in_background holder setpriv --reuid 65534 --regid 65534 --clear-groups \
    unshare --user --map-root-user --fork --pid --mount-proc gpurota run \
    --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder holding
  holds 'leases[0]["uid"] == 65534'
  run ! as_nobody unshare --user --map-root-user gpurota drain 0
  in_background mine gpurota run --memory 1G -- "$PROGRAM" hold 100
  wait_until says mine holding
  run ! as_nobody unshare --user --map-root-user --fork --pid --mount-proc gpurota release L2
  holds 'len(leases) == 2'
  gpurota release L1 L2
  wait_until no_leases
}
