#!/usr/bin/env bats
# Containers of containerd's own client, ctr (Debian's 1.6, which has no CDI), with the output of
# `gpurota container-args --format ctr`.

load helpers
load engine_helpers
load docker_helpers

setup_file() { make_containerd; }
teardown_file() { stop_engines; }

setup() {
  have_containerd
  start_daemon
}

teardown() {
  end_ctr
  end_test
}

# inside NAME ID COMMAND…: runs a container with this id in the lease NAME.
inside() {
  gpurota container-args "$1" --format ctr --env-file "$1.env" >"$1.options"
  # shellcheck disable=SC2046
  "${ENGINE[@]}" run $(cat "$1.options") "${INSIDE[@]}" "${@:2}"
}
# Prints an id like those of other clients of containerd.
long_id() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

@test "ctr: a container is held to the limit of its lease, whose token is on no command line" {
  learn_context_cost
  gpurota reserve --memory 2G --for 1h --name web
  in_background greedy inside web web "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  grep 'refused at 1[0-9]* MiB: CUDA_ERROR_OUT_OF_MEMORY' greedy
  run ! grep -qf <(sed -n 's/^GPUROTA_TOKEN=//p' web.env) web.options
  gpurota release web
  wait_until all_have_ended
  wait_until no_tasks
}
no_tasks() { [ -z "$("${ENGINE[@]}" task ls --quiet)" ]; }

@test "ctr: a container with an id of its engine's is in the lease as a whole, even after a restart" {
  local id unset=(-u GPUROTA_LEASE -u GPUROTA_TOKEN -u GPUROTA_SOCKET -u GPUROTA_WHOLE \
    -u GPUROTA_RUNTIME_DIR)
  id=$(long_id)
  gpurota reserve --memory 1G --for 1h --name web
  in_background holder inside web "$id" /bin/sh \
    -c "\"$PROGRAM\" hold 100 & while [ ! -e $E2E_DIR/shared/go ]; do sleep 0.1; done
    exec env ${unset[*]} \"$PROGRAM\" hold 200"
  wait_until has_processes 1
  touch shared/go
  wait_until has_processes 2
  gpurota ps L1 | grep -E "containerd ${id:0:12}.*gpu_program"
  kill_daemon
  start_daemon
  wait_until has_processes 2
  nothing_is_found
  gpurota release web
  wait_until all_have_ended
  wait_until no_tasks
}

@test "ctr: two containers and a bare program share a GPU by memory, and their reservations outlive them" {
  learn_context_cost
  local name
  for name in one two; do
    gpurota reserve --gpu-ids 0 --memory 2G --for 1h --name "$name"
    in_background "$name" inside "$name" "$name" "$PROGRAM" hold 500
  done
  in_background bare gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 500
  for name in one two bare; do wait_until says "$name" holding; done
  "${ENGINE[@]}" task kill --signal KILL one
  wait_until only_two
  holds 'len(leases) == 3'
  gpurota release --all
  wait_until all_have_ended
}
only_two() { [ "$("${ENGINE[@]}" task ls --quiet)" = two ]; }

@test "ctr: after gpurota run it is refused with the remedy" {
  run gpurota run --memory 1G -- ctr version
  [[ $output = *container-args* ]]
}
