#!/usr/bin/env bats
# A machine with two different cards, which CUDA by default does not number in the order of
# nvidia-smi.
# machine: mixed

load helpers

setup() {
  start_daemon
  [ "$("$PROGRAM" info | sed -n 's/^gpu=0 name="\([^"]*\)".*/\1/p')" != \
    "$(value 'gpus[0]["name"]')" ] ||
    skip "for a machine where CUDA's first GPU is not nvidia-smi's"
}
teardown() { end_test; }

# The names of the GPUs that a command sees, in its order.
seen() { "$@" -- "$PROGRAM" info | sed -n 's/^gpu=[0-9]* name="\([^"]*\)".*/\1/p' | paste -sd,; }

@test "the program sees the GPU that it has been given, whatever CUDA calls it" {
  local first second
  first=$(value 'gpus[0]["name"]') second=$(value 'gpus[1]["name"]')
  [ "$(seen gpurota run --gpu-ids 0)" = "$first" ]
  [ "$(seen gpurota run --gpu-ids 1)" = "$second" ]
  [ "$(seen gpurota run --gpu-ids 0 --memory 2G)" = "$first" ]
  [ "$(seen gpurota run --gpus 2)" = "$first,$second" ]
  eval "$(gpurota reserve --gpu-ids 1)"
  [ "$("$PROGRAM" info | grep -c "name=\"$second\"")" = 1 ]
  [ "$("$PROGRAM" info | head -n 1)" = gpus=1 ]
}

@test "a program that asks for more than the small card has gets the large one" {
  [ "$(seen gpurota run --memory 12G)" = "$(value 'gpus[1]["name"]')" ]
  run -125 gpurota run --gpus 2 --memory 12G -- true
  [[ $output == *"12 GiB is more than GPU 0 has"* ]]
}
