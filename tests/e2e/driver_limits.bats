#!/usr/bin/env bats
# The driver's own memory limits, beside the library's: they follow leases, and those of others
# stay. driver_evasions.bats has the programs that evade the library. The control groups are
# simulated (cgroup_tree.c), so these cases run anywhere.
#
# machine: demo-r615

load helpers
load driver_limits_helpers

setup() { make_groups; }
teardown() {
  end_test
  remove_groups
}

# in_user_group COMMAND…: runs the command in a control group that gpurota has not made.
in_user_group() {
  mkdir "$TREE/user"
  echo "$BASHPID" >"$TREE/user/cgroup.procs"
  exec "$@"
}

# slow MILLISECONDS: how long each call of gpurotad about a limit takes from now on.
slow() { echo "$1" >"$TREE-slow"; }

@test "a command waits for its limit before it executes anything, and others are served" {
  enforce auto
  slow 100
  in_background evader gpurota run --gpu-ids 0 --memory 1G -- \
    env -u LD_PRELOAD "$PROGRAM" hold 2000
  wait_until eval '[ -n "$(group)" ]'
  gpurota status >/dev/null
  local code=0
  wait "$BACKGROUND_PID" || code=$?
  [ "$code" != 0 ]
  lacks holding evader
}

@test "a start goes on without an answer of the driver, and is refused where a limit is required" {
  for mode in auto driver; do
    rm -f "$TREE-slow"
    enforce "$mode"
    slow 4000
    run gpurota run --gpu-ids 0 --memory 1G -- echo started
    if [ "$mode" = auto ]; then
      [ "$status" = 0 ]
      [ "$output" = started ]
    else
      [ "$status" != 0 ]
      [[ "$output" != *started* ]]
      [[ "$output" == *"the driver did not answer in time"* ]]
    fi
    rm "$TREE-slow"
    wait_until no_leases
    stop_daemon
  done
}

@test "a start that waits for a required limit is refused by the next daemon, too" {
  enforce driver
  slow 500
  in_background held gpurota run --gpu-ids 0 --memory 1G -- echo started
  wait_until eval '[ -n "$(group)" ]'
  kill_daemon
  slow 4000
  start_daemon
  local code=0
  wait "$BACKGROUND_PID" || code=$?
  [ "$code" != 0 ]
  lacks started held
  says held 'the driver did not answer in time'
}

@test "a program with the library is refused by the library, at its limit and not before" {
  enforce auto
  in_background greedy gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  wait_until by_driver
  refused=$(sed -n 's/^refused at \([0-9]*\) MiB.*/\1/p' greedy)
  gpurota release --all
  wait_until no_leases
  stop_daemon
  : >gpurota.toml
  start_daemon
  in_background before gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" greedy 64
  wait_until says before 'goes on with'
  [ "$refused" = "$(sed -n 's/^refused at \([0-9]*\) MiB.*/\1/p' before)" ]
}

@test "the driver's limit follows the lease, ends with the setting, and is shown" {
  enforce auto
  in_background held gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 100
  wait_until says held holding
  wait_until by_driver
  [ "$(limit)" = 1536 ]
  gpurota update L1 --memory 3G
  wait_until lease 'l["gpus"][0].get("driver_limit_bytes") == 3584 << 20'
  [ "$(limit)" = 3584 ]
  gpurota explain L1 | grep 'by the library and the driver, which lets its programs have 3.5 GiB'
  gpurota doctor | grep 'experimental: the driver limits 1 of 1 slice beside libgpurota'
  printf 'enforcement = "library"\n' >gpurota.toml
  gpurota reload
  wait_until lease 'l["enforced_by"] == "library"'
  [ "$(limit)" = none ]
  [ ! -e run/driver-limits ]
}

@test "a daemon that is killed leaves limits to the next one, even of leases that have ended" {
  enforce auto
  in_background first gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 100
  wait_until says first holding
  wait_until by_driver
  kill_daemon
  start_daemon
  wait_until by_driver
  lease 'not l.get("limited_group")'
  [ "$(limit)" = 1536 ]
  # A control group is left behind, as by a daemon that could not remove it.
  kill_daemon
  mkdir "$TREE/gpurota-L9-1"
  python3 "$LIMITS" set "$TREE/gpurota-L9-1" 1536
  local known
  known=$(grep "^GPU-" run/driver-limits)
  echo "${known% *} $TREE/gpurota-L9-1" >>run/driver-limits
  start_daemon
  wait_until by_driver
  [ "$(limit "$TREE/gpurota-L9-1")" = none ]
  rmdir "$TREE/gpurota-L9-1"
  gpurota release --all
  wait_until no_leases
  wait_until no_group
}

@test "a limit that somebody else has set stays, counts and is shown" {
  enforce auto
  in_background held in_user_group gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 100
  wait_until says held holding
  wait_until by_driver
  [ "$(limit)" = 1536 ]
  python3 "$LIMITS" set "$TREE/user" 900
  gpurota update L1 --memory 2G
  wait_until lease 'l.get("limited_group") == "'"$TREE/user"'"'
  lease 'l["gpus"][0]["driver_limit_bytes"] == 900 << 20'
  [ "$(limit)" = none ]
  gpurota explain L1 | grep "somebody else has set a limit of the driver, which counts: $TREE/user"
  gpurota doctor | grep "somebody else has set a limit: 900 MiB on GPU 0 for $TREE/user"
  gpurota release --all
  wait_until no_leases
  [ "$(limit "$TREE/user")" = 900 ]
}

# in_box COMMAND…: runs the command in the control group $BOX, which it makes. The last line of
# gpurotad in the file has no newline at its end.
in_box() {
  mkdir -p "$BOX"
  printf '\n%s\n' "$BASHPID" >>"$BOX/cgroup.procs"
  exec "$@"
}

@test "a program that evades the library in the container of a lease is refused by the driver" {
  BOX=$TREE/docker-$(printf 'a%.0s' {1..64}).scope
  enforce auto
  mkdir "$BOX"
  # The shell is the engine's client; the program shows by its token that the container is the
  # lease's.
  in_background held gpurota run --gpu-ids 0 --memory 1G -- sh -c \
    "sh -c 'echo \$\$ >>$BOX/cgroup.procs; exec $PROGRAM hold 100' & wait"
  wait_until says held holding
  wait_until limit_is 1536 "$BOX"
  [ "$(limit)" = none ] # never once for each group
  wait_until lease 'l["not_by_driver"].startswith("it is in 2 control groups")'
  lease 'l["enforced_by"] == "library" and l["gpus"][0]["driver_limit_bytes"] == 1536 << 20'
  gpurota explain L1 | grep 'by the library, and by the driver in part: it is in 2 control groups'
  run in_box env -u LD_PRELOAD "$PROGRAM" hold 2000
  [ "$status" != 0 ]
  [[ "$output" != *holding* ]]
  gpurota release --all
  wait_until no_leases
  wait_until limit_is none "$BOX"
}

@test "a pod's programs are limited from the start, by the pod's group, until its leases end" {
  enforce driver
  run pod_lease claim-1 1b-2
  [ "$status" != 0 ]
  [[ "$output" == *"its pod has no control group of cgroup v2"* ]]
  no_leases
  POD=$TREE/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b_2.slice
  mkdir -p "$POD"
  slow 100
  pod_lease claim-1 1b-2
  [ "$(limit "$POD")" = 1536 ]
  rm "$TREE-slow"
  by_driver
  BOX=$POD/cri-containerd-$(printf 'a%.0s' {1..64}).scope
  run in_box env -u LD_PRELOAD "$PROGRAM" hold 2000
  [ "$status" != 0 ]
  [[ "$output" != *holding* ]]
  kill_daemon
  start_daemon
  wait_until by_driver
  [ "$(limit "$POD")" = 1536 ]
  gpurota explain L2 | grep 'which lets all programs of its pod together have 1.5 GiB'
  run pod_lease claim-2 1b-2 # L1 was refused, too
  [ "$status" != 0 ]
  [[ "$output" == *"its pod has L2 on the same GPU"* ]]
  by_driver
  gpurota release L2
  wait_until no_leases
  wait_until limit_is none "$POD"
  slow 4000
  run pod_lease claim-3 1b-2
  [ "$status" != 0 ]
  [[ "$output" == *"the driver did not answer in time"* ]]
  rm "$TREE-slow"
  wait_until no_leases
}

@test "the leases of a pod on a GPU have one limit, which each has in part only" {
  enforce auto
  POD=$TREE/kubepods/pod1b-2
  mkdir -p "$POD"
  pod_lease claim-1 1b-2
  by_driver
  pod_lease claim-2 1b-2
  [ "$(limit "$POD")" = 3072 ] # the sum for the leases of the pod
  for id in L1 L2; do
    gpurota explain "$id" | grep 'and by the driver in part: the driver limits only all leases'
  done
  gpurota release L1
  wait_until limit_is 1536 "$POD"
  wait_until by_driver
}

@test "a pod below a kubelet's cgroupRoot is limited, a group that a pod has made is not" {
  enforce driver
  mkdir -p "$TREE/kubepods/pod9-9/$(printf 'a%.0s' {1..64})/kubepods/pod1b-2"
  run pod_lease claim-1 1b-2
  [[ "$output" == *"its pod has no control group of cgroup v2"* ]]
  POD=$TREE/site/kube/kubepods/besteffort/pod1b-2
  mkdir -p "$POD"
  wait_until pod_lease claim-1 1b-2 # a search is repeated after a second
  by_driver
  [ "$(limit "$POD")" = 1536 ]
  kill_daemon
  start_daemon
  wait_until by_driver
  [ "$(limit "$POD")" = 1536 ]
  gpurota release --all
  wait_until no_leases
  wait_until limit_is none "$POD"
}

@test "a lease is limited on each of its GPUs, for all its processes together" {
  enforce auto
  in_background held gpurota run --gpus 2 --memory 1G --soft-limit 512M -- sh -c \
    "env -u LD_PRELOAD '$PROGRAM' hold 300 & '$PROGRAM' hold 50 & wait"
  wait_until by_driver
  [ "$(limit)" = 1536 ]
  [ "$(python3 "$LIMITS" get "$(group)" 1)" = 1536 ]
  lease 'all(gpu["driver_limit_bytes"] == 1536 << 20 for gpu in l["gpus"])'
  wait_until eval '[ "$(grep -c holding held)" = 2 ]'
  # The memory of the three processes together is above the limit.
  BOX=$(group)
  run in_box env -u LD_PRELOAD "$PROGRAM" hold 1200
  [ "$status" != 0 ]
  [[ "$output" != *holding* ]]
}

@test "a pod whose group or driver answers late is limited then" {
  enforce auto
  pod_lease claim-1 1b-2
  lease '"its pod has no control group" in l["not_by_driver"]'
  POD=$TREE/kubepods/besteffort/pod1b-2
  mkdir -p "$POD"
  gpurota update L1 --note x
  wait_until by_driver
  gpurota release --all
  wait_until no_leases
  wait_until limit_is none "$POD"
  slow 500
  pod_lease claim-2 1b-2
  [ "$(limit "$POD")" = none ]
  wait_until limit_is 1536 "$POD"
}

@test "of the commands of a reservation one is limited, and its shell says that it is not" {
  enforce auto
  gpurota reserve --gpu-ids 0 --memory 1G --for 1h
  gpurota explain L1 | grep 'by the library alone: a reservation has no control group of its own'
  in_background first gpurota run --lease L1 -- "$PROGRAM" hold 100
  wait_until says first holding
  wait_until lease '"a shell with the reservation" in (l["not_by_driver"] or "")'
  [ "$(limit)" = 1536 ]
  in_background second gpurota run --lease L1 -- "$PROGRAM" hold 100
  wait_until says second holding
  wait_until lease 'l["not_by_driver"].startswith("it is in 2 control groups")'
  local group hard=
  for group in "$TREE"/gpurota-*; do hard+="$(limit "$group") "; done
  [ "$hard" = '1536 none ' ] || [ "$hard" = 'none 1536 ' ]
}

@test "limits of others below a lease's group are shown and stay" {
  enforce auto
  in_background held gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 100
  wait_until says held holding
  wait_until by_driver
  local below
  below=$(group)/below
  mkdir "$below"
  python3 "$LIMITS" set "$below" 4000
  gpurota update L1 --note x
  wait_until lease 'l.get("limited_group") == "'"$below"'"'
  lease '"a larger limit for some of its programs" in l["not_by_driver"]'
  gpurota doctor | grep "somebody else has set a limit: .* on GPU 0 for $below"
  [ "$(limit "$below")" = 4000 ]
  rmdir "$below"
}

@test "swap leases get no limit of the driver, and whole GPUs neither" {
  enforce driver
  in_background swap gpurota run --gpu-ids 0 --swap --memory 2G -- "$PROGRAM" hold 1000
  wait_until says swap holding
  lease 'l["enforced_by"] == "library" and "takes turns" in l["not_by_driver"]'
  [ "$(limit)" = none ]
  gpurota release --all
  wait_until no_leases
  in_background whole gpurota run --gpu-ids 0 -- "$PROGRAM" hold 3000
  wait_until says whole holding
  lease 'l.get("enforced_by") is None'
}

@test "a slice that the driver cannot limit is refused where the site requires that" {
  enforce driver
  run gpurota reserve --memory 1G --for 1h
  [ "$status" != 0 ]
  [[ "$output" == *"the driver cannot limit this lease, which the site requires"* ]]
  [[ "$output" == *"a reservation has no control group of its own"* ]]
  no_leases
  run gpurota reserve --memory 1G --for 1h --at +2h
  [ "$status" != 0 ]
  [[ "$output" == *"a reservation has no control group of its own"* ]]
  gpurota reserve --gpu-ids 0 --for 1h --at +2h
}
