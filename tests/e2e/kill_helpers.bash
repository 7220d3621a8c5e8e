# kill -9 of parts of an engine, of the daemon and of programs, at random: `load kill_helpers`
# behind the helpers of an engine. E2E_SEED repeats a run, E2E_KILLS says how many rounds.
#
# shellcheck shell=bash disable=SC2034 # read by the tests

# All of the case in a control group of its own, so that it is seen what it leaves.
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

# The containers' own processes of the lease.
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
# Those on standard input, if they are still there.
killed() { xargs -r kill -KILL 2>/dev/null || true; }

# With processes in them. An empty one that an engine leaves when it is killed is the engine's.
groups_left() {
  grep -lsx 'populated 1' "$CGROUPS/$OURS"/*/cgroup.events | grep -v -e conmon -e "$OURS/case/" ||
    true
}
# Those of leases, empty or not.
our_groups() { find "$CGROUPS/$OURS" -mindepth 1 -type d -name 'gpurota-*'; }
no_groups() { end_unbegun && [ -z "$(groups_left)$(our_groups)" ]; }
# A monitor that is killed before it has started its container leaves a process of runc that waits
# for that, of which its engine does not know any more. No program has begun in there, and nothing
# of a lease is in it; the same happens without gpurota.
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

# round COMMAND…: a program in a container; at any moment of its start, or when it holds, the
# command kills. RUN_PID is the pid of gpurota run.
round() {
  local options=(--memory 1G)
  if [ $((RANDOM % 3)) = 0 ]; then options=(--swap); fi
  in_background held gpurota run "${options[@]}" -- "${ENGINE[@]}" run \
    --cgroup-parent "/$OURS" "${INSIDE[@]}" "$PROGRAM" hold 100
  RUN_PID=$BACKGROUND_PID
  if [ $((RANDOM % 2)) = 0 ]; then wait_until says held holding; else sleep "0.$((RANDOM % 10))"; fi
  "$@"
  # If the command came before its victim was there, the program still holds.
  wait_until released || return 1
  wait_until memory_is_back || return 1
  wait_until nobody_inside || return 1
  remove_containers
  wait_until no_groups || { groups_left && our_groups && return 1; }
}
# One that has not asked yet has no lease to release.
released() {
  gpurota release --all >/dev/null 2>&1 || true
  gone "$RUN_PID" && no_leases
}
kill_gpurotad() { kill_daemon && start_daemon && killed <<<"$RUN_PID"; }
kill_container() { in_container | killed; }
kill_run() { killed <<<"$RUN_PID"; }

# rounds COMMAND…: of each kind in turn.
rounds() {
  local i
  for ((i = 0; i < ${E2E_KILLS:-$#}; ++i)); do
    local how=${*:$((i % $# + 1)):1}
    round "$how" || { echo "round $i: $how; seed $E2E_SEED" && return 1; }
  done
  holds 'leases == [] and all(g["reserved_bytes"] == 0 for g in gpus)'
  echo "# $i rounds; $UNBEGUN times the engine left a process of runc" >&3
}
