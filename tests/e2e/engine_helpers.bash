# Container engines for end-to-end tests: `load engine_helpers` after `load helpers`, and the
# helpers of an engine after that. The image is a folder whose /usr is the host's; the driver inside
# is the simulated one. The cases that all engines share are here.
#
# The helpers of an engine set two variables. ENGINE is a command. INSIDE has options of the
# engine's `run`, and the image. A program in a container with these options has everything that it
# has outside, except its lease.
#
# shellcheck shell=bash disable=SC2034,SC2154 # read by the tests, and set by bats

# installed NAME…: whether each of these programs is installed.
installed() {
  local name
  for name in "$@"; do command -v "$name" >/dev/null || return 1; done
}

# Makes the files of a root file system in ./image; /shared in a container is ./shared.
make_image() {
  local folder
  mkdir -p shared image/{usr,proc,sys,dev,tmp,run,etc,shared}
  chmod 777 shared
  for folder in bin lib lib64 sbin; do ln -s "usr/$folder" "image/$folder"; done
}

# SHOWN: options of `run` that give a container what it needs of the machine.
make_options() {
  local build=${E2E_PREFIX%/stage}
  SHOWN=(--rm --network none --volume /usr:/usr:ro --volume "$build:$build:ro" \
    --volume "$GPUROTA_SIM_DIR:$GPUROTA_SIM_DIR"
    --volume "$E2E_DIR/shared:/shared" --env GPUROTA_SIM_DIR --env LD_LIBRARY_PATH)
}

# contained OPTION… -- COMMAND…: runs a program in a container under a lease.
contained() {
  local options=()
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  "${AS_USER[@]}" gpurota run "${options[@]}" -- "${ENGINE[@]}" run "${MORE[@]}" "${INSIDE[@]}" "$@"
}
# with_options OPTION…: adds these options to `run`.
with_options() { MORE=("$@"); }
MORE=()
# engine ARGUMENT…: calls the engine as the user who owns its containers.
engine() { "${AS_USER[@]}" "${ENGINE[@]}" "$@"; }
AS_USER=()
# started ARGUMENT…: runs a container by the engine, without `gpurota run`.
started() { engine run "${MORE[@]}" "$@"; }

has_processes() { [ "$(counted_processes)" -ge "$1" ]; }
no_containers() { [ -z "$(engine ps --quiet)" ]; }
all_have_ended() { no_leases && memory_is_back; }
# Waits long enough for the watch to report a finding.
nothing_is_found() { sleep 6 && run ! grep -q 'the watch found' gpurotad.log; }

case_limit_and_exit_code() {
  learn_context_cost
  in_background greedy contained --memory 2G -- "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  grep 'refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY' greedy
  gpurota release --all-users --yes
  wait_until no_leases
  run -7 contained --memory 2G -- sh -c 'exit 7'
  wait_until no_leases
}

# The limit applies to all processes together, so the second process gets what the first one leaves.
case_limit_of_all_processes() {
  learn_context_cost
  in_background both contained --memory 2G -- sh -c \
    "\"$PROGRAM\" hold 1200 & while [ ! -e /shared/go ]; do sleep 0.1; done; \"$PROGRAM\" greedy 64"
  wait_until says both holding
  touch shared/go
  wait_until says both 'goes on with'
  grep 'refused at [0-9]\{3\} MiB: CUDA_ERROR_OUT_OF_MEMORY' both
  wait_until has_processes 2
  gpurota release --all-users --yes
  wait_until all_have_ended
}

# case_our_numbers ENGINE NAME: runs a container with the name web. NAME is a pattern for the name
# or id that `gpurota ps` shows for this container.
case_our_numbers() {
  MORE+=(--name web)
  in_background holder contained --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until has_processes 1
  wait_until ps_says "$1 $2 .*gpu_program"
  nothing_is_found
  gpurota release --all-users --yes
  wait_until all_have_ended
}

ps_says() { gpurota ps L1 | grep -E "$1"; }

case_in_by_its_container() {
  local unset=(-u GPUROTA_LEASE -u GPUROTA_TOKEN -u GPUROTA_SOCKET -u GPUROTA_WHOLE \
    -u GPUROTA_RUNTIME_DIR)
  in_background holder contained "$@" -- sh -c "\"$PROGRAM\" hold 100 &
    while [ ! -e /shared/go ]; do sleep 0.1; done; exec env ${unset[*]} \"$PROGRAM\" hold 200"
  wait_until has_processes 1
  touch shared/go
  wait_until has_processes 2
  kill_daemon
  start_daemon
  wait_until has_processes 2
  nothing_is_found
  gpurota release --all-users --yes
  wait_until all_have_ended
}

case_ends_together() {
  in_background holder contained --memory 1G -- sh \
    -c "trap '' TERM; \"$PROGRAM\" hold 100; sleep 1000"
  wait_until says holder holding
  gpurota release --all-users --yes
  wait_until all_have_ended
  # The engine also removes its container.
  wait_until no_containers
  in_background second contained --memory 1G -- "$PROGRAM" hold 100
  wait_until says second holding
  engine kill "$(engine ps --quiet)" >/dev/null
  wait_until no_leases
  in_background third contained --memory 1G -- "$PROGRAM" hold 100
  wait_until says third holding
  engine stop --time 1 "$(engine ps --quiet)" >/dev/null
  wait_until all_have_ended
}

case_share_by_memory() {
  learn_context_cost
  local i
  for i in 1 2; do
    in_background "inside$i" contained --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 500
  done
  in_background bare gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 500
  for i in inside1 inside2 bare; do wait_until says "$i" holding; done
  holds 'len(leases) == 3'
  kill_daemon
  start_daemon
  holds 'len(leases) == 3'
  gpurota release --all-users --yes
  wait_until all_have_ended
}

# Only the user of the simulated driver may access its files by default.
open_driver_to_all() {
  chmod 755 "$GPUROTA_SIM_DIR"
  chmod 666 "$GPUROTA_SIM_DIR"/{state,locks,pids}
}

case_another_user_inside() {
  open_driver_to_all
  in_background holder gpurota run --memory 1G -- "${ENGINE[@]}" run \
    --user 4711 "${INSIDE[@]}" "$PROGRAM" hold 100
  wait_until says holder holding
  local token
  token=$(tr '\0' '\n' <"/proc/$(pgrep -u 4711 -f 'hold 100' | head -n 1)/environ" |
    sed -n 's/^GPUROTA_TOKEN=//p')
  [ "${#token}" = 32 ]
  run ! grep -rqs "$token" /proc/[0-9]*/cmdline
  # A process that belongs to no lease and does not have the token gets nothing.
  run ! setpriv --reuid 4712 --clear-groups env GPUROTA_LEASE=L1 GPUROTA_TOKEN="${token//[0-9]/a}" \
    GPUROTA_SOCKET="$GPUROTA_RUNTIME_DIR/container/tenant.sock" \
    LD_PRELOAD="$(sed -n 1p run/container/ld.so.preload)" "$PROGRAM" info
  [[ $output = *"another user's"* ]]
}

# case_container_args FORMAT
case_container_args() {
  learn_context_cost
  gpurota reserve --memory 2G --for 1h --name web
  gpurota container-args web --format "$1" --env-file web.env >options
  [ "$(stat -c %a web.env)" = 600 ]
  run ! grep -qf <(sed -n 's/^GPUROTA_TOKEN=//p' web.env) options
  # shellcheck disable=SC2046
  in_background greedy engine run $(cat options) "${INSIDE[@]}" "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  grep 'refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY' greedy
  gpurota release web
  wait_until all_have_ended
}

case_in_the_background() {
  run gpurota run --memory 1G -- "${ENGINE[@]}" run -d "${INSIDE[@]}" "$PROGRAM" hold 100
  [ "$status" = 2 ]
  [[ $output = *"leave out --detach"* ]]
  run -2 gpurota run --memory 1G -- "${ENGINE[@]}" exec some true
  gpurota reserve --memory 1G --for 1h
  gpurota run --lease L1 -- "${ENGINE[@]}" run -d "${INSIDE[@]}" "$PROGRAM" hold 100
  wait_until has_processes 1
  gpurota release --all-users --yes
  wait_until all_have_ended
  wait_until no_containers
}

# A program that the engine starts in the container later also belongs to the lease, and ends with
# it.
case_exec() {
  in_background holder contained --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until has_processes 1
  in_background later engine exec "$(engine ps --quiet)" env -u GPUROTA_LEASE -u GPUROTA_TOKEN \
    -u GPUROTA_SOCKET \
    -u GPUROTA_RUNTIME_DIR LD_PRELOAD= "$PROGRAM" hold 100
  wait_until says later holding
  wait_until has_processes 2
  nothing_is_found
  gpurota release --all-users --yes
  wait_until all_have_ended
  wait_until no_containers
}

# The parent control group for tests of --cgroup-parent. Engines leave the group behind, in each
# hierarchy.
ELSEWHERE=gpurota-e2e-elsewhere-$$
remove_elsewhere() {
  find /sys/fs/cgroup -depth -maxdepth 4 -type d -path "*/$ELSEWHERE*" -exec rmdir {} + \
    2>/dev/null || true
}

case_control_group_of_its_own() {
  with_options --cgroup-parent "/$ELSEWHERE"
  case_in_by_its_container --memory 1G
}

# automatic [LINE…]: makes the daemon give leases to programs in containers, with these lines added
# to gpurota.toml.
automatic() {
  printf '%s\n' '[automatic]' 'enabled = true' 'memory = "1G"' 'max_memory = "2G"' "$@" \
    >gpurota.toml
  gpurota reload
}
# The options that docs/operate/container-recipes.md gives a container of an engine without CDI.
automatic_options() {
  local folder=$GPUROTA_RUNTIME_DIR/container library
  library=$(cat "$folder/ld.so.preload")
  with_options --env GPUROTA_CONTAINER=1 --env "GPUROTA_RUNTIME_DIR=$folder" \
    --volume "$folder:$folder:ro" \
    --volume "$folder/ld.so.preload:/etc/ld.so.preload:ro" --volume "$library:$library:ro"
}

# case_automatic ENGINE
case_automatic() {
  automatic '[containers]' 'owner = "nobody"'
  automatic_options
  in_background both started --env GPUROTA_MEMORY=2G "${INSIDE[@]}" \
    sh -c "\"$PROGRAM\" hold 100 & \"$PROGRAM\" hold 200 & wait"
  wait_until has_processes 2
  holds '(len(leases) == 1 and leases[0]["gpus"][0]["limit_bytes"] == 2 * 2**30 and
    leases[0]["uid"] == 65534)'
  gpurota ps L1 | grep -E "$1 [0-9a-f]{12}.*gpu_program"
  # The lease belongs to the named account, whatever user is inside, and wherever the control group
  # is.
  open_driver_to_all
  in_background other started --user 4711 \
    --cgroup-parent "/$ELSEWHERE" "${INSIDE[@]}" "$PROGRAM" hold 100
  wait_until says other holding
  holds 'len(leases) == 2 and leases[1]["uid"] == 65534'
  run started --env GPUROTA_MEMORY=3G "${INSIDE[@]}" "$PROGRAM" info
  [ "$status" != 0 ]
  [[ $output = *"GPUROTA_MEMORY=3G is more than the 2 GiB"* ]]
  engine ps --quiet | xargs "${AS_USER[@]}" "${ENGINE[@]}" kill >/dev/null
  wait_until all_have_ended
}

# in_turns NAME SEED COMMAND…: starts a program that writes, copies, frees and reads back in a swap
# lease. The library's debug output is in ./shared.
in_turns() {
  local name=$1 seed=$2
  shift 2
  in_background "$name" "$@" env "GPUROTA_DEBUG=$SHARED/$name.debug" PROBE_BUFFERS=32 \
    "$E2E_SWAP_PROBE" torture 8 "$seed"
}
# 0: the program has printed "done", and no error; 2: the program has reported an error.
is_done() {
  if grep -q -e '^line' -e '^no context' "$1"; then cat "$1" && return 2; fi
  grep -q '^done$' "$1"
}
has_moved() { grep -qs ': evicted' "shared/$1.debug"; }

case_share_in_turns() {
  learn_context_cost
  gpurota set --gpu-ids 0 --capacity 1G --quantum 300ms
  local name options=(--gpu-ids 0 --swap --memory 700M)
  SHARED=/shared in_turns one 1 contained "${options[@]}" --
  SHARED=/shared in_turns two 2 contained "${options[@]}" --
  SHARED=$E2E_DIR/shared in_turns bare 3 gpurota run "${options[@]}" --
  for name in one two bare; do wait_until is_done "$name"; done
  for name in one two bare; do has_moved "$name"; done
  wait_until all_have_ended
}

# CLOSED: a control group in which no process may open /dev/fuse. /dev/fuse stands for a GPU's
# device file, because machines without GPUs have it too.
have_closed_group() {
  [ -c /dev/fuse ] || skip "there is no /dev/fuse"
  CGROUPS=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
  CLOSED=gpurota-e2e-closed-$BASHPID
  if ! mkdir "${CGROUPS:-/nonexistent}/$CLOSED" 2>/dev/null; then
    skip "no control group can be made here"
  fi
  python3 -B "$BATS_TEST_DIRNAME/close_group.py" "$CGROUPS/$CLOSED" \
    $((16#$(stat -c %t /dev/fuse))) 2>tried || skip "$(cat tried)"
}
remove_closed_group() {
  if [ -n "${CLOSED:-}" ]; then wait_until removed_groups; fi
}
removed_groups() {
  find "$CGROUPS/$CLOSED" -depth -type d -exec rmdir {} + 2>/dev/null || [ ! -d "$CGROUPS/$CLOSED" ]
}

opens() { engine run "$@" "${INSIDE[@]}" sh -c 'exec 3<>/dev/fuse && echo opened'; }
# refused COMMAND…: the kernel refuses the command to open the device.
refused() {
  run "$@"
  [ "$status" != 0 ]
  [[ $output = *"not permitted"* && $output != *opened* ]]
}

# PRIVILEGED: options for a container that may open every device. docker's --privileged fails where
# its daemon lacks a capability.
find_privileged() {
  PRIVILEGED=(--privileged)
  opens --privileged >tried 2>&1 ||
    PRIVILEGED=(--device /dev/fuse --cap-add MKNOD --device-cgroup-rule 'c *:* rwm')
}

case_closed_group() {
  find_privileged
  [ "$(opens --device /dev/fuse)" = opened ]
  [ "$(opens "${PRIVILEGED[@]}")" = opened ]
  refused opens --cgroup-parent "/$CLOSED" --device /dev/fuse
  refused opens --cgroup-parent "/$CLOSED" "${PRIVILEGED[@]}"
}

case_closed_group_and_own_file() {
  find_privileged
  refused engine run "${PRIVILEGED[@]}" --cgroup-parent "/$CLOSED" "${INSIDE[@]}" \
    sh -c "mknod /tmp/own c $((16#$(stat -c %t /dev/fuse))) $((16#$(stat -c %T /dev/fuse))) &&
      exec 3<>/tmp/own && echo opened"
}
