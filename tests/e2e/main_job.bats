#!/usr/bin/env bats
# The main job: programs on a GPU, each held to its memory.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# seen KEY FILE: the figure that `gpu_program info` has printed as KEY.
seen() { grep -o "$1=[0-9]*" "$2" | head -n 1 | cut -d= -f2; }

@test "a program sees its limit as the size of its GPU" {
  gpurota run --memory 2G -- "$PROGRAM" info >out
  [ "$(seen gpus out)" = 1 ]
  [ "$(seen size out)" = $((2 << 30)) ]
  [ "$(seen total out)" = $((2 << 30)) ]
  [ "$(seen free out)" -lt $((2 << 30)) ]
}

@test "a program without a lease sees the whole GPU" {
  "$PROGRAM" info >out
  [ "$(seen size out)" -gt $((2 << 30)) ]
}

@test "more than the limit is refused, and the program goes on" {
  in_background greedy gpurota run --memory 2G -- "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  grep 'refused at .*CUDA_ERROR_OUT_OF_MEMORY' "$E2E_DIR/greedy"
  # The reason, and the command that gives more memory, are printed once.
  local refused='^gpurota: L1 was refused .* of GPU memory: more than is left of its 2 GiB '
  refused+='(gpurota update L1 --memory SIZE)$'
  [ "$(grep -c "$refused" "$E2E_DIR/greedy")" = 1 ]
  # NVML's figure, with contexts, comes near the limit but never exceeds it.
  wait_until holds 'leases[0]["gpus"][0]["used_bytes"] >= 0.9 * 2**31'
  holds 'leases[0]["gpus"][0]["used_bytes"] <= 2**31'
}

@test "a user can turn off the message why memory was refused" {
  in_background user env GPUROTA_NOTICES=0 gpurota run --memory 1G -- "$PROGRAM" greedy 64
  wait_until says user 'goes on with'
  echo 'program_notices = false' >>gpurota.toml
  gpurota reload
  in_background site gpurota run --memory 1G -- "$PROGRAM" greedy 64
  wait_until says site 'goes on with'
  run ! grep 'was refused' "$E2E_DIR/user" "$E2E_DIR/site"
}

@test "a program in a shell whose lease is over is notified" {
  eval "$(gpurota reserve --memory 1G --for 1h)"
  gpurota release
  run "$PROGRAM" info
  local hint='unset GPUROTA_LEASE LD_PRELOAD CUDA_VISIBLE_DEVICES, or open a new shell'
  [[ "$output" == *'gpurota: lease L1 is over, or another user'*"$hint"* ]]
}

@test "two programs on one GPU each get their share and do not disturb each other" {
  in_background computing gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" compute 64 4
  local computing=$BACKGROUND_PID
  wait_until says computing 'round'
  in_background greedy gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  holds 'len(leases) == 2 and len(gpus[0]["leases"]) == 2'
  holds 'gpus[0]["reserved_bytes"] == 3 * 2**30'
  wait "$computing"
  grep ' 0 wrong' "$E2E_DIR/computing"
}

@test "a run without options gets a whole GPU" {
  in_background holder gpurota run --gpu-ids 0 -- "$PROGRAM" hold 100
  wait_until says holder 'holding'
  holds 'leases[0]["share"] == "exclusive"'
  run -75 gpurota run --nonblock --gpu-ids 0 --memory 1G -- true
}

@test "several GPUs are taken at once or not at all" {
  local count
  count=$(value 'len(gpus)')
  [ "$count" -ge 2 ] || skip "the machine has one GPU"
  gpurota run --gpus 2 --memory 1G -- "$PROGRAM" info >out
  [ "$(seen gpus out)" = 2 ]
  in_background holder gpurota run --gpu-ids 0 -- "$PROGRAM" hold 100
  wait_until says holder 'holding'
  run -75 gpurota run --nonblock --gpus "$count" -- true
  holds 'len(leases) == 1'
}

@test "a slice is reserved whole from the start" {
  in_background holder gpurota run --gpu-ids 0 --memory 75% -- "$PROGRAM" hold 1
  wait_until says holder 'holding'
  holds 'gpus[0]["reserved_bytes"] > 0.7 * gpus[0]["memory_bytes"]'
  run gpurota run --nonblock --gpu-ids 0 --memory 50% -- true
  [ "$status" = 75 ]
  gpurota run --gpu-ids 0 --memory 10% -- true
}

@test "after kill -9 of the program the lease is gone and the memory is back" {
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 1000
  wait_until says holder 'holding'
  kill -KILL "$(value 'leases[0]["pid"]')"
  wait_until no_leases
  wait_until memory_is_back
  wait_until holds 'all(g["used_bytes"] < 2**30 for g in gpus)'
}

@test "the limit of a running program can be changed" {
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 1000
  wait_until says holder 'holding'
  local id
  id=$(value 'leases[0]["lease_id"]')
  gpurota update "$id" --memory 3G --note "longer"
  holds 'leases[0]["gpus"][0]["limit_bytes"] == 3 * 2**30 and leases[0]["note"] == "longer"'
}

@test "the lease ends when the command ends, its background children with it" {
  gpurota run --memory 1G -- sh -c 'sleep 1000 & echo $! >child; setsid sleep 1000 & echo $! >other'
  wait_until gone "$(cat child)"
  wait_until gone "$(cat other)"
  wait_until no_leases
}
