# Kills parts of an engine, the daemon and programs with kill -9, at random: `load kill_helpers`
# after the helpers of an engine. E2E_SEED repeats a run, E2E_KILLS is the number of rounds.
#
# shellcheck shell=bash disable=SC2034 # read by the tests

# Moves the case into a control group of its own, which shows what is left behind.
enter_own_groups() {
  CGROUPS=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
  OURS=gpurota-e2e-kills-$BASHPID BEFORE=$(sed -n 's/^0:://p' /proc/self/cgroup)
  if ! mkdir "${CGROUPS:-/nonexistent}/$OURS" "$CGROUPS/$OURS/case" 2>/dev/null; then
    skip "no control group can be made here"
  fi
  echo "$BASHPID" >"$CGROUPS/$OURS/case/cgroup.procs"
  RANDOM=${E2E_SEED:=$$}
  echo "seed: $E2E_SEED"
}
leave_own_groups() {
  if [ -z "${OURS:-}" ]; then return 0; fi
  echo "$BASHPID" >"$CGROUPS$BEFORE/cgroup.procs" || true
  find "$CGROUPS/$OURS" -depth -type d -exec rmdir {} + 2>/dev/null || true
}
teardown() {
  end_containers
  end_test
  leave_own_groups
}

# The lease's processes inside of containers.
in_container() {
  local pid
  for pid in $(pgrep -f "gpu_program hold" || true); do
    if grep -qsE '[0-9a-f]{64}' "/proc/$pid/cgroup" &&
      grep -qzsxF "GPUROTA_SIM_DIR=$GPUROTA_SIM_DIR" "/proc/$pid/environ"; then
      echo "$pid"
    fi
  done
}
nobody_inside() { [ -z "$(in_container)" ]; }
# Kills the processes on standard input that still exist.
killed() { xargs -r kill -KILL 2>/dev/null || true; }

# Groups with processes in them. Empty groups do not count, because a killed engine may leave them.
groups_left() {
  grep -lsx 'populated 1' "$CGROUPS/$OURS"/*/cgroup.events | grep -v -e conmon -e "$OURS/case/" ||
    true
}
# Groups of leases, empty or not.
our_groups() { find "$CGROUPS/$OURS" -mindepth 1 -type d -name 'gpurota-*'; }
no_groups() { end_unbegun && [ -z "$(groups_left)$(our_groups)" ]; }
# Ends processes of runc that wait forever. Such a process is left when a monitor is killed before
# it has started its container, and its engine does not know the process any more. The container has
# no program and nothing of a lease yet. The same happens without gpurota.
end_unbegun() {
  local group pid
  for group in $(groups_left); do
    while read -r pid; do
      case $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in
        *runc\ init\ ) kill -KILL "$pid" 2>/dev/null && UNBEGUN=$((UNBEGUN + 1)) ;;
      esac
    done < <(cat "${group%/*}/cgroup.procs" 2>/dev/null)
  done
  return 0
}
UNBEGUN=0

# round COMMAND…: starts a program in a container, and runs COMMAND, which kills something, at a
# random moment of the start or while the program holds memory. RUN_PID is the pid of gpurota run.
round() {
  local options=(--memory 1G)
  if [ $((RANDOM % 3)) = 0 ]; then options=(--swap); fi
  in_background held gpurota run "${options[@]}" -- "${ENGINE[@]}" run \
    --cgroup-parent "/$OURS" "${INSIDE[@]}" "$PROGRAM" hold 100
  RUN_PID=$BACKGROUND_PID
  if [ $((RANDOM % 2)) = 0 ]; then wait_until says held holding; else sleep "0.$((RANDOM % 10))"; fi
  "$@"
  # The program still holds memory if COMMAND ran before its victim existed.
  wait_until released || return 1
  wait_until memory_is_back || return 1
  wait_until nobody_inside || return 1
  remove_containers
  wait_until no_groups || { groups_left && our_groups && return 1; }
}
# Repeats the release, because a run that has not asked for its lease yet has none to release.
released() {
  gpurota release --all >/dev/null 2>&1 || true
  gone "$RUN_PID" && no_leases
}
kill_gpurotad() { kill_daemon && start_daemon && killed <<<"$RUN_PID"; }
kill_container() { in_container | killed; }
kill_run() { killed <<<"$RUN_PID"; }

# rounds COMMAND…: runs rounds that kill with each of the commands in turn.
rounds() {
  local i
  for ((i = 0; i < ${E2E_KILLS:-$#}; ++i)); do
    local how=${*:$((i % $# + 1)):1}
    round "$how" || { echo "round $i: $how; seed $E2E_SEED" && return 1; }
  done
  holds 'leases == [] and all(g["reserved_bytes"] == 0 for g in gpus)'
  echo "# $i rounds; $UNBEGUN times the engine left a process of runc" >&3
}
