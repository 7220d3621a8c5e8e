#!/usr/bin/env bats
# kill -9 of the daemon, of podman, of its monitor (conmon), of the container and of gpurota run, at random: nothing is left. A few rounds;
# tests/system/container_kills.sh has 200 of them. E2E_SEED repeats a run.

load helpers
load podman_helpers

setup() {
  have_podman
  # All of the case in a control group of its own, so that it is seen what it leaves.
  CGROUPS=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
  OURS=gpurota-e2e-kills-$BASHPID BEFORE=$(sed -n 's/^0:://p' /proc/self/cgroup)
  if ! mkdir "${CGROUPS:-/nonexistent}/$OURS" "$CGROUPS/$OURS/case" 2>/dev/null; then skip "no control group can be made here"; fi
  echo "$BASHPID" >"$CGROUPS/$OURS/case/cgroup.procs"
  start_daemon
  RANDOM=${E2E_SEED:=$$}
  echo "seed: $E2E_SEED"
}
teardown() {
  end_containers
  end_test
  if [ -n "${OURS:-}" ]; then
    echo "$BASHPID" >"$CGROUPS$BEFORE/cgroup.procs" || true
    find "$CGROUPS/$OURS" -depth -type d -exec rmdir {} + 2>/dev/null || true
  fi
}

of_case() { pgrep -f -- "$1.*$E2E_DIR/podman" || true; }
# The container's first process: its monitor's child, or whose parent that was.
in_container() {
  local pid
  for pid in $(pgrep -f "gpu_program hold" || true); do
    if grep -qs libpod- "/proc/$pid/cgroup" && grep -qzsxF "GPUROTA_SIM_DIR=$GPUROTA_SIM_DIR" "/proc/$pid/environ"; then echo "$pid"; fi
  done
}
# Those on standard input, if they are still there.
killed() { xargs -r kill -KILL 2>/dev/null || true; }
# With processes in them. An empty one that an engine leaves when it is killed is the engine's.
groups_left() { grep -lsx 'populated 1' "$CGROUPS/$OURS"/*/cgroup.events | grep -v -e conmon -e "$OURS/case/" || true; }
no_groups() { [ -z "$(groups_left)" ]; }
nobody_inside() { [ -z "$(in_container)" ]; }

# round VICTIM
round() {
  local options=(--memory 1G)
  if [ $((RANDOM % 3)) = 0 ]; then options=(--swap); fi
  in_background held gpurota run "${options[@]}" -- "${ENGINE[@]}" run --cgroup-parent "/$OURS" "${INSIDE[@]}" "$PROGRAM" hold 100
  local run=$BACKGROUND_PID
  # At any moment of its start, or when it holds.
  if [ $((RANDOM % 2)) = 0 ]; then wait_until says held holding; else sleep "0.$((RANDOM % 10))"; fi
  case $1 in
    daemon) kill_daemon && start_daemon && killed <<<"$run" ;;
    conmon) of_case conmon | killed ;;
    podman) of_case 'podman .* run' | killed ;;
    container) in_container | killed ;;
    run) killed <<<"$run" ;;
  esac
  # What was not there yet to be killed holds on.
  gpurota release --all >/dev/null 2>&1 || true
  wait_until no_leases || return 1
  wait_until memory_is_back || return 1
  wait_until nobody_inside || return 1
  "${ENGINE[@]}" rm --all --force --time 0 >/dev/null 2>&1 || true
  wait_until no_groups || { groups_left && return 1; }
}

@test "killed at random, no lease, no memory and no process is left" {
  local i victims=(daemon conmon podman container run)
  for ((i = 0; i < ${E2E_KILLS:-5}; ++i)); do
    local victim=${victims[$((i % 5))]}
    round "$victim" || { echo "round $i: $victim; seed $E2E_SEED" && return 1; }
  done
  holds 'all(g["reserved_bytes"] == 0 for g in gpus)'
  [ "$(gpurota status --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["leases"]))')" = 0 ]
}
