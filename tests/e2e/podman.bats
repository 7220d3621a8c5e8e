#!/usr/bin/env bats
# Containers by a real engine, podman with runc: `gpurota run -- podman run …`. The image is a folder whose /usr is the host's; the
# driver inside is the simulated one.

load helpers
load podman_helpers

setup() {
  have_podman
  start_daemon
}

teardown() {
  end_containers
  end_test
}

# contained OPTION… -- COMMAND…: a program in a container under a lease.
contained() {
  local options=()
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  gpurota run "${options[@]}" -- "${ENGINE[@]}" run "${INSIDE[@]}" "$@"
}

@test "a container is held to the limit of its lease, and its exit code is the command's" {
  learn_context_cost
  in_background greedy contained --memory 2G -- "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  grep 'refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY' greedy
  gpurota release --all
  wait_until no_leases
  run -7 contained --memory 2G -- sh -c 'exit 7'
  wait_until no_leases
}

@test "its processes are the lease's, by our numbers" {
  in_background holder contained --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until has_processes 1
  gpurota ps L1 | grep -E 'podman [0-9a-f]{12}.*gpu_program'
}

@test "a program that nobody told of the lease is in it by its container, also after a restart" {
  local unset=(-u GPUROTA_LEASE -u GPUROTA_TOKEN -u GPUROTA_SOCKET -u GPUROTA_WHOLE -u GPUROTA_RUNTIME_DIR)
  in_background holder contained -- sh -c "\"$PROGRAM\" hold 100 &
    while [ ! -e /tmp/go ]; do sleep 0.1; done; exec env ${unset[*]} \"$PROGRAM\" hold 200"
  wait_until has_processes 1
  touch image/tmp/go
  wait_until has_processes 2
  kill_daemon
  start_daemon
  wait_until has_processes 2
  # Long enough for a finding.
  sleep 6
  run ! grep -q 'the watch found' gpurotad.log
  gpurota release L1
  wait_until no_leases
  wait_until memory_is_back
}

@test "a whole GPU: its processes are in the lease, and nothing is found" {
  in_background holder contained -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until has_processes 1
  gpurota ps L1 | grep -q gpu_program
  # Long enough for a finding.
  sleep 6
  run ! grep -q 'the watch found' gpurotad.log
}

@test "the end of the lease ends the container, that of the container the lease" {
  in_background holder contained --memory 1G -- sh -c "trap '' TERM; \"$PROGRAM\" hold 100; sleep 1000"
  wait_until says holder holding
  gpurota release L1
  wait_until no_leases
  wait_until memory_is_back
  # What it runs beside the program goes, too.
  wait_until no_containers
  in_background second contained --memory 1G -- "$PROGRAM" hold 100
  wait_until says second holding
  "${ENGINE[@]}" kill --latest >/dev/null
  wait_until no_leases
}

@test "two containers and a bare program share a GPU" {
  learn_context_cost
  local i
  for i in 1 2; do in_background "inside$i" contained --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 500; done
  in_background bare gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 500
  for i in inside1 inside2 bare; do wait_until says "$i" holding; done
  holds 'len(leases) == 3'
  kill_daemon
  start_daemon
  holds 'len(leases) == 3'
  gpurota release --all
  wait_until no_leases
  wait_until memory_is_back
}

@test "another user in the container is in the lease by its token, which is on no command line" {
  # The simulated driver's files are its user's alone.
  chmod 755 "$GPUROTA_SIM_DIR"
  chmod 666 "$GPUROTA_SIM_DIR"/{state,locks,pids}
  in_background holder gpurota run --memory 1G -- "${ENGINE[@]}" run --user 4711 "${INSIDE[@]}" "$PROGRAM" hold 100
  wait_until says holder holding
  local token
  token=$(tr '\0' '\n' <"/proc/$(pgrep -u 4711 -f 'hold 100' | head -n 1)/environ" | sed -n 's/^GPUROTA_TOKEN=//p')
  [ "${#token}" = 32 ]
  run ! grep -rqs "$token" /proc/[0-9]*/cmdline
  # Who is in no lease and has it not gets nothing.
  run ! setpriv --reuid 4712 --clear-groups env GPUROTA_LEASE=L1 GPUROTA_TOKEN="${token//[0-9]/a}" \
    GPUROTA_SOCKET="$GPUROTA_RUNTIME_DIR/container/tenant.sock" LD_PRELOAD="$(sed -n 1p run/container/ld.so.preload)" "$PROGRAM" info
  [[ $output = *"another user's"* ]]
}

@test "a script gives a container its lease by what container-args prints" {
  learn_context_cost
  gpurota reserve --memory 2G --for 1h --name web
  gpurota container-args web --format podman --env-file web.env >options
  [ "$(stat -c %a web.env)" = 600 ]
  run ! grep -qf <(sed -n 's/^GPUROTA_TOKEN=//p' web.env) options
  # shellcheck disable=SC2046
  in_background greedy "${ENGINE[@]}" run $(cat options) "${INSIDE[@]}" "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  grep 'refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY' greedy
  gpurota release web
  wait_until no_leases
  wait_until memory_is_back
}

@test "under a reservation a container may stay in the background; else the command is refused" {
  run gpurota run --memory 1G -- "${ENGINE[@]}" run -d "${INSIDE[@]}" "$PROGRAM" hold 100
  [ "$status" = 2 ]
  [[ $output = *"leave out --detach"* ]]
  run -2 gpurota run --memory 1G -- podman exec some true
  gpurota reserve --memory 1G --for 1h
  gpurota run --lease L1 -- "${ENGINE[@]}" run -d "${INSIDE[@]}" "$PROGRAM" hold 100
  wait_until has_processes 1
  gpurota release L1
  wait_until no_leases
  wait_until memory_is_back
}
