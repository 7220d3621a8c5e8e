#!/usr/bin/env bats
# `gpurota burn`: the built-in load.

load helpers

setup() { make_folders; }
teardown() {
  gpurota-sim set gpu0.lost=0
  end_test
}

# is EXPRESSION FILE: whether the expression is true of the JSON in the last line, d, and its first
# GPU, g.
is() {
  python3 -c '
import json, sys
d = json.loads(open(sys.argv[2]).read().splitlines()[-1])
sys.exit(0 if eval(sys.argv[1], {"d": d, "g": d["gpus"][0]}) else 1)' "$1" "$2" ||
    { cat "$2" && return 1; }
}
holds_something() { gpurota-sim show | grep -q "pid $1: "; }

@test "burn fills, checks and computes, and finds nothing wrong on a good GPU" {
  gpurota burn --gpu-ids 0 --memory 32M --for 2s --json >out 2>err
  [ "$(wc -l <out)" = 1 ]
  is 'd["ended"] == "time" and d["errors"] == 0 and len(d["gpus"]) == 1' out
  is 'g["held_bytes"] == 32 << 20 and g["checked_bytes"] >= 4 << 20 and g["flops"] > 0' out
  is 'g["temperature_c"] > 0 and g["power_watts"] > 0 and g["error"] is None' out
  grep 'no errors' err
}

@test "bad memory is found, and the exit code shows it" {
  gpurota-sim set gpu1.flip_bits=2
  run -3 gpurota burn --gpu-ids 1 --memory 16M --for 5s
  [[ "$output" == *'2 WRONG WORDS (bits 0x0000000000000004)'* ]]
}

@test "the self-test finds the errors it makes" {
  gpurota burn --self-test --memory 16M --gpu-ids 0 --json >out
  is '(d["ended"] == "self-test" and g["self_test"] and g["wrong_words"] == 1 and
    g["wrong_results"] > 0)' out
}

@test "all GPUs are burned at once if none is named" {
  gpurota burn --memory 8M --for 2s --json >out
  is 'len(d["gpus"]) == 2 and all(x["flops"] > 0 for x in d["gpus"])' out
}

@test "SIGTERM ends it cleanly, with a summary; with --for that is not a success" {
  in_background out gpurota burn --gpu-ids 0 --memory 8M
  wait_until holds_something "$BACKGROUND_PID"
  kill -TERM "$BACKGROUND_PID"
  ends_with 0 "$BACKGROUND_PID"
  grep -E 'GPU 0 \(gpurota Demo GPU 8GB\): .*(no errors|nothing checked yet)' "$E2E_DIR/out"
  in_background out gpurota burn --gpu-ids 0 --memory 8M --for 1h
  wait_until holds_something "$BACKGROUND_PID"
  kill -TERM "$BACKGROUND_PID"
  ends_with 143 "$BACKGROUND_PID"
}

@test "a signal that was ignored stays ignored" {
  in_background out sh -c 'trap "" HUP; exec gpurota burn --hold --for 1h --gpu-ids 0 --memory 8M'
  wait_until holds_something "$BACKGROUND_PID"
  kill -HUP "$BACKGROUND_PID"
  kill -TERM "$BACKGROUND_PID"
  ends_with 143 "$BACKGROUND_PID"
}

@test "a share of free memory is of the memory that others leave" {
  CUDA_VISIBLE_DEVICES=0 in_background hold "$PROGRAM" hold 6000
  wait_until says hold hold
  gpurota burn --hold --gpu-ids 0 --of-free 50% --for 1s --json >out
  is '512 << 20 < g["held_bytes"] < 1024 << 20' out
  run -2 gpurota burn --of-free 8G
  [[ $output == *"from 1% to 100%"* ]]
}

@test "burn gives memory back when the GPU gets short of it" {
  in_background out gpurota burn --hold --gpu-ids 0 --memory 88% --json
  local burning=$BACKGROUND_PID
  wait_until gpu0_has_less_than 900
  CUDA_VISIBLE_DEVICES=0 in_background hold "$PROGRAM" hold 600
  wait_until says hold hold
  wait_until gpu0_has_more_than 250
  kill -TERM "$burning"
  ends_with 0 "$burning"
  is 'g["chunks_handed_back"] >= 1 and g["held_bytes"] > 6 << 30' "$E2E_DIR/out"
}
gpu0_free() {
  CUDA_VISIBLE_DEVICES=0 "$PROGRAM" info | grep -o 'free=[0-9]*' | head -n 1 | cut -d= -f2
}
# `info` itself has a context of 128 MiB while it asks.
gpu0_has_less_than() { [ $(($(gpu0_free) >> 20)) -lt "$1" ]; }
gpu0_has_more_than() { [ $(($(gpu0_free) >> 20)) -gt $(($1 - 128)) ]; }

@test "burn reports that it can have no memory" {
  CUDA_VISIBLE_DEVICES=0 in_background hold "$PROGRAM" hold 7900
  wait_until says hold hold
  run -1 gpurota burn --hold --gpu-ids 0 --for 1s
  [[ "$output" == *'none of its memory is available'* || "$output" == *OUT_OF_MEMORY* ]]
}

@test "a GPU that falls off the bus is a failure, not a success" {
  in_background out gpurota burn --gpu-ids 0 --memory 8M --json
  wait_until holds_something "$BACKGROUND_PID"
  gpurota-sim set gpu0.lost=1
  ends_with 1 "$BACKGROUND_PID"
  is 'd["ended"] == "failed" and g["error"]' "$E2E_DIR/out"
}

@test "options of burn that make no sense are refused in words" {
  run -2 gpurota burn --memory much
  [[ "$output" == *'--memory'* ]]
  run -1 gpurota burn --gpu-ids 7
  [[ "$output" == *"'7' names none of the 2 GPUs"* ]]
  run -1 env CUDA_VISIBLE_DEVICES= gpurota burn
  [[ "$output" == *CUDA_ERROR_NO_DEVICE* || "$output" == *'no GPU is visible'* ]]
  gpurota help burn | grep -q -- --self-test
  gpurota burn --help | grep -q -- --self-test
}

@test "burn in a lease has the lease's GPU and keeps within its limit" {
  start_daemon
  gpurota run --gpu-ids 1 --memory 1G -- gpurota burn --memory 64M --for 2s --json >out
  is 'len(d["gpus"]) == 1 and d["errors"] == 0 and g["held_bytes"] == 64 << 20' out
  gpurota run --gpu-ids 1 --memory 1G -- gpurota burn --hold --memory 88% --for 1s --json >out
  is 'g["error"] is None and 0 < g["held_bytes"] <= 1 << 30' out
}
