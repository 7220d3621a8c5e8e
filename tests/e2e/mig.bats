#!/usr/bin/env bats
# machine: h100-mig
# A GPU that is split by MIG: its instances are leased, and programs on them are counted once.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

uuid_of() { value "[g['uuid'] for g in gpus if g['label'] == '$1'][0]"; }

@test "an instance is named by its UUID, a unique beginning of it, or its place" {
  local id uuid
  uuid=$(uuid_of 0:1)
  for id in 0:1 "$uuid" "${uuid:0:12}"; do
    # shellcheck disable=SC2016 # for the command
    run -0 gpurota run --gpu-ids "$id" --memory 1G -- sh \
      -c 'echo "$CUDA_VISIBLE_DEVICES" && "$0" info' "$PROGRAM"
    [ "${lines[0]}" = "$uuid" ]
    grep -q 'size=1073741824' <<<"$output"
  done
}

@test "a lease of several instances is warned that CUDA shows one" {
  run --separate-stderr -0 gpurota run --gpu-ids 0:0,0:1 --memory 1G -- "$PROGRAM" info
  # shellcheck disable=SC2154 # `run --separate-stderr` sets it
  grep -q 'MIG' <<<"$stderr"
  grep -q 'gpus=1' <<<"$output"
  run --separate-stderr -0 gpurota run --gpu-ids 0:0 --memory 1G -- true
  [ -z "$stderr" ]
}

@test "a split GPU is not leased, and a request for it is refused with its instances" {
  run -125 gpurota run --gpu-ids 0 --memory 1G -- true
  grep -q 'instances' <<<"$output"
  run -125 gpurota run --gpus 4 --memory 1G -- true
  grep -q 'this machine has 3 of one kind, and 4 in all with MIG instances' <<<"$output"
  gpurota run --gpus 3 -- true
  gpurota run --gpu-ids 0:0,0:1,0:2,1 -- true
}

@test "a lease's process on an instance is no unreserved use of the whole GPU, and listed once" {
  in_background holder gpurota run --gpu-ids 0:1 --memory 2G -- "$PROGRAM" hold 1200
  wait_until says holder holding
  wait_until holds '[g for g in gpus if g["label"] == "0"][0]["used_bytes"] > 2**30'
  holds '[(g["state"], g["unreserved_bytes"]) for g in gpus if g["label"] == "0"] == [("split", 0)]'
  gpurota status >table
  grep -E '^  0 split ' table
  gpurota ps L1 >table
  [ "$(grep -c 'hold 1200' table)" = 1 ]
  grep -E '^ *0:1 ' table
}

@test "use of an instance without a lease is found there, and only there" {
  in_background stranger env CUDA_VISIBLE_DEVICES="$(uuid_of 0:0)" "$PROGRAM" hold 1200
  wait_until says stranger holding
  wait_until holds '[g["label"] for g in gpus if g["state"] == "unreserved_use"] == ["0:0"]'
}
