#!/usr/bin/env bats
# Names that users give to leases, and the users' own defaults.

load helpers

setup() {
  start_daemon
  export XDG_CONFIG_HOME=$PWD/config
  mkdir -p config/gpurota
}
teardown() { end_test; }

@test "a name is accepted wherever an id is" {
  in_background train gpurota run --name train7 --memory 1G -- "$PROGRAM" hold 1
  wait_until says train holding
  gpurota status | grep 'L1 .*train7'
  gpurota status --json | grep '"name": *"train7"'
  gpurota explain train7 | grep '^L1 (train7) on GPU '
  gpurota ps train7 | grep -q gpu_program
  gpurota update train7 --memory 2G | grep '^updated L1 (train7) on GPU .* (2 GiB)'
  run gpurota release train7
  [ "$status" = 0 ]
  [[ $output == 'released L1 ('*'train7'* ]]
  ends_with 123 "$BACKGROUND_PID"
}

@test "a name is unique among a user's leases and requests, and free again afterwards" {
  gpurota reserve --gpu-ids 0 --name lab >/dev/null
  run gpurota reserve --gpu-ids 1 --name lab
  [ "$status" = 1 ]
  [[ $output == *"L1 of yours is called 'lab' already"* ]]
  in_background waiting gpurota run --gpu-ids 0 --name next -- true
  local waiting=$BACKGROUND_PID
  wait_until gpurota_queue_has next
  run gpurota reserve --gpu-ids 1 --name next
  [[ $output == *"R1 of yours is called 'next' already"* ]]
  gpurota explain next | grep R1
  gpurota cancel next | grep -x 'cancelled R1'
  ends_with 122 "$waiting"
  gpurota release lab
  gpurota reserve --gpu-ids 1 --name lab >/dev/null
}

gpurota_queue_has() { gpurota queue | grep -q "($1)"; }

@test "a name outlives a restart" {
  gpurota reserve --gpu-ids 0 --name lab >/dev/null
  stop_daemon
  start_daemon
  gpurota update lab --for 1h | grep 'L1 (lab)'
}

@test "an invalid name, and a lease without one, are reported" {
  run -2 gpurota run --name L7 -- true
  [[ $output == *"looks like the id of a lease"* ]]
  run -2 gpurota run --name 'a b' -- true
  [[ $output == *"cannot be the name of a lease"* ]]
  run -1 gpurota release trian
  [[ $output == *"no lease is called 'trian'"* ]]
  run -1 gpurota explain trian
  [[ $output == *"'trian' is neither a request"*"gpurota job show NAME"* ]]
  run -2 gpurota run --lease L1 --name a -- true
  run -2 gpurota reserve --at +1h --name a
}

@test "own defaults are added to typed options" {
  printf '%s\n' '[run]' 'memory = "2G"' 'note = "mine"' '[output]' 'quiet = true' \
    >config/gpurota/config.toml
  gpurota -v run -- "$PROGRAM" info >out 2>said
  grep -- '--memory 2G --note mine (from .*/config/gpurota/config.toml)' said
  grep '^gpurota: lease L1 on GPU .* (2 GiB)' said
  gpurota -v run --no-defaults -- true 2>said
  lacks from said
  grep 'whole' said
}

@test "a mistake in one's own defaults stops only commands that would use them" {
  printf '%s\n' '[run]' 'memry = "2G"' >config/gpurota/config.toml
  run -2 gpurota run -- true
  [[ $output == \
    *"config.toml:2: run.memry: there is no such option of gpurota run; did you mean memory?"* ]]
  run -0 gpurota status
  printf '%s\n' '[run]' 'memory = "2X"' >config/gpurota/config.toml
  run -2 gpurota run -- true
  local file=$PWD/config/gpurota/config.toml
  [[ $output == *"not typed, but in $file: --memory 2X; --no-defaults leaves it out"* ]]
  chmod 666 config/gpurota/config.toml
  run -2 gpurota run -- true
  [[ $output == *"others can write it"* ]]
}
