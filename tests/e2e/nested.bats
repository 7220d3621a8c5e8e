#!/usr/bin/env bats
# `gpurota run` in a shell that already has a lease: the run joins that lease, or gets a lease of
# its own, whose environment replaces the shell's.

# shellcheck disable=SC2016,SC2154 # for the inner shell; machine is of job_helpers
load helpers
load job_helpers

setup() { start_daemon; }
teardown() { end_test; }

# in_slice COMMAND: runs the command in a shell that has a slice as its lease.
in_slice() { gpurota run --quiet --gpu-ids 0 --memory 1G -- sh -c "$1"; }

@test "a run without options joins the lease of the shell, and prints it" {
  local outer
  for outer in '--gpu-ids 0' '--gpu-ids 0 --memory 1G' '--gpu-ids 0 --swap'; do
    # shellcheck disable=SC2086 # words
    gpurota run --quiet $outer -- sh \
      -c 'gpurota run -- sh -c "echo \$GPUROTA_LEASE; $0 info"; gpurota status --json' \
      "$PROGRAM" >out 2>said
    grep -E '^gpurota: in L[0-9]+ on GPU 0 ' said
    [ "$(sed -n 1p out)" = "$(grep -oE 'L[0-9]+' said | head -n 1)" ]
    grep -q 'gpus=1' out
    sed -n '/^{/,$p' out |
      python3 -c 'import json, sys; assert len(json.load(sys.stdin)["leases"]) == 1'
  done
  eval "$(gpurota reserve --gpu-ids 1 --memory 1G 2>/dev/null)"
  gpurota run -- "$PROGRAM" info >out 2>said
  grep '^gpurota: in L4 on GPU 1 (1 GiB)$' said
  grep "size=$((1 << 30))" out
  gpurota run --quiet -- true >out 2>&1
  [ ! -s out ]
}

@test "a run with options of a lease gets a lease of its own, in which its programs work" {
  local outer inner
  for outer in '' '--memory 1G' '--swap'; do
    for inner in '--gpus 1' '--memory 512M' '--swap' '--gpu-ids 1'; do
      # shellcheck disable=SC2086 # words
      gpurota run --gpu-ids 0 $outer -- sh \
        -c "gpurota run $inner -- sh -c 'echo in \$GPUROTA_LEASE; $PROGRAM info'; exit 0" >out \
        2>said
      grep -q 'gpus=1' out
      lacks 'refused|is over' said
      lacks '^gpurota: in L' said
    done
  done
  # The same, where the shell takes both leases from the variables that `reserve` prints.
  for outer in '' '--memory 1G' '--swap'; do
    for inner in '' '--memory 512M' '--swap'; do
      # shellcheck disable=SC2086 # words
      sh -c "eval \"\$(gpurota reserve --gpu-ids 0 $outer 2>/dev/null)\"; \
        eval \"\$(gpurota reserve --gpu-ids 1 $inner 2>/dev/null)\"; $PROGRAM info" >out 2>said
      grep -q 'gpus=1' out
      [ ! -s said ]
      gpurota release --all --quiet
      wait_until no_leases
    done
  done
}

@test "nothing of the shell's lease stays in the environment of another" {
  eval "$(gpurota reserve --gpu-ids 0 --memory 1G 2>/dev/null)"
  [ -n "$GPUROTA_TOKEN" ] && [ -n "$LD_PRELOAD" ]
  gpurota run --gpu-ids 1 -- env >out
  [ "$(grep -c '^GPUROTA_LEASE=L2$' out)" = 1 ]
  [ "$(grep -c '^CUDA_VISIBLE_DEVICES=1$' out)" = 1 ]
  lacks '^(GPUROTA_TOKEN|GPUROTA_SOCKET|GPUROTA_WHOLE|LD_PRELOAD)=' out
  LD_PRELOAD=$LD_PRELOAD:/none/other.so gpurota run --gpu-ids 1 -- env 2>/dev/null >out
  grep -x 'LD_PRELOAD=/none/other.so' out
  eval "$(gpurota reserve --gpu-ids 1 2>/dev/null)"
  [ -z "${GPUROTA_TOKEN+set}${GPUROTA_SOCKET+set}${LD_PRELOAD+set}" ]
  "$PROGRAM" info | grep 'gpus=1'
}

@test "variables for a container of another lease are unset too" {
  eval "$(gpurota reserve --gpu-ids 1 2>/dev/null)"
  eval "$(gpurota container-args --format apptainer "$GPUROTA_LEASE")"
  [ "$APPTAINERENV_GPUROTA_WHOLE" = 1 ]
  eval "$(gpurota reserve --gpu-ids 0 --memory 1G 2>/dev/null)"
  eval "$(gpurota container-args --format apptainer "$GPUROTA_LEASE")"
  [ -z "${APPTAINERENV_GPUROTA_WHOLE+set}${SINGULARITYENV_GPUROTA_WHOLE+set}" ]
  [ "$APPTAINERENV_GPUROTA_LEASE" = L2 ]
}

@test "the user's defaults give a nested run neither its own lease nor a time limit" {
  export XDG_CONFIG_HOME=$PWD/config
  mkdir -p config/gpurota
  printf '%s\n' '[run]' 'memory = "512M"' 'timeout = "1s"' >config/gpurota/config.toml
  gpurota run --no-defaults --gpu-ids 0 --memory 1G -- sh \
    -c 'gpurota run -- sh -c "sleep 1.5; exec $0 info"' "$PROGRAM" >out
  grep "size=$((1 << 30))" out
}

@test "a time limit is the command's alone, and options of a new lease are said to have no effect" {
  gpurota run --quiet --gpu-ids 0 --memory 1G -- sh \
    -c 'gpurota run --timeout 1s --note x -- sleep 600; echo "inner $?"; exit 7' >out 2>said ||
    [ $? = 7 ]
  grep -x 'inner 124' out
  grep 'in L1 .*--note is of new leases only: no effect here' said
}

@test "a request that could only start when the shell has ended is refused at once" {
  run -125 --separate-stderr gpurota run --quiet --gpu-ids 0 -- gpurota run --gpu-ids 0 -- true
  [ "$stderr" = \
    'gpurota: your L1, in whose shell you are, has GPU 0: leave out --gpu-ids to use it' ]
  run -125 --separate-stderr gpurota run --quiet --gpus 2 -- gpurota run --gpus 1 -- true
  [ "$stderr" = \
    'gpurota: your L2, in whose shell you are, has GPU 0, 1: leave out --gpus to use it' ]
  # Without the variables, the daemon recognises the shell by what the kernel reports. A reservation
  # is refused as well.
  run -1 --separate-stderr gpurota run --quiet --gpu-ids 0 -- env -u GPUROTA_LEASE gpurota reserve \
    --gpu-ids 0
  [[ $stderr == \
    *'your L3, in whose shell you are, has GPU 0: this could only start when that has ended'* ]]
  eval "$(gpurota reserve --gpu-ids 0 2>/dev/null)"
  run -125 --separate-stderr gpurota run --gpu-ids 0 -- true
  [[ $stderr == *'your L4, in whose shell you are, has GPU 0: leave out --gpu-ids to use it'* ]]
  # The end of another lease would help, so the request waits.
  in_background other gpurota run --gpu-ids 1 -- sleep 600
  wait_until holds 'len(leases) == 2'
  run -75 --separate-stderr gpurota run --gpus 1 --wait 1s -- true
  # The shell's reservation can end before the shell does, so a request for another reservation may
  # wait for its end.
  run -75 --separate-stderr gpurota reserve --gpu-ids 0 --wait 1s
}

@test "a lease that is over, or another user's, is refused and never silently another" {
  eval "$(gpurota reserve --gpu-ids 0 --memory 1G 2>/dev/null)"
  gpurota release --quiet
  wait_until no_leases
  run -125 --separate-stderr gpurota run -- true
  local hint='unset GPUROTA_LEASE LD_PRELOAD CUDA_VISIBLE_DEVICES, or open a new shell'
  [[ $stderr == *"gpurota: L1 is over: $hint"* ]]
  holds 'leases == []'
  gpurota run --quiet --memory 512M -- true
  run -125 --separate-stderr env GPUROTA_LEASE=pod gpurota run -- true
  [[ $stderr == *'pod, which GPUROTA_LEASE names, is not a lease of this machine: unset'* ]]
  gpurota reserve --gpu-ids 0 --memory 1G >/dev/null 2>&1
  # GPUROTA_LEASE names a lease other than that of this shell.
  run -125 --separate-stderr env GPUROTA_LEASE=L3 gpurota run -- true
  [[ $stderr == *'L3 is over: unset'* ]]
}

@test "another user's lease is refused" {
  [ "$(id -u)" = 0 ] || skip "needs root, to be somebody else"
  chmod 755 "$E2E_DIR" "$E2E_DIR/run"
  gpurota reserve --gpu-ids 0 --memory 1G >/dev/null 2>&1
  run -125 --separate-stderr as_nobody env GPUROTA_LEASE=L1 gpurota run -- true
  [[ $stderr == *"L1 is another user's: unset GPUROTA_LEASE"* ]]
  # An administrator may see the lease, but cannot run a command in it either.
  as_nobody gpurota reserve --gpu-ids 1 --memory 1G >/dev/null 2>&1
  run -125 --separate-stderr env GPUROTA_LEASE=L2 gpurota run -- touch ran
  [[ $stderr == *"L2 is another user's: unset GPUROTA_LEASE"* ]]
  [ ! -e ran ]
}

@test "a command in a job's lease is in it, and a job that is added in a lease has its own" {
  add web --memory 1G "${machine[@]}" --env PATH -- sh \
    -c 'gpurota run -- sh -c "echo inner \$GPUROTA_LEASE"; echo outer $GPUROTA_LEASE'
  wait_until in_state web finished
  [ "$(gpurota job logs web | sed -n 's/^inner //p')" = \
    "$(gpurota job logs web | sed -n 's/^outer //p')" ]
  eval "$(gpurota reserve --gpu-ids 0 --memory 2G 2>/dev/null)"
  add own "${machine[@]}" --env GPUROTA_LEASE --env GPUROTA_TOKEN --env GPUROTA_SOCKET \
    --env LD_PRELOAD -- sh -c 'echo "lease $GPUROTA_LEASE"; env; exec '"$PROGRAM"' info'
  wait_until in_state own finished
  run ! grep -x "lease $GPUROTA_LEASE" <(gpurota job logs own)
  gpurota job logs own >log
  grep -q 'gpus=1' log
  lacks '^(GPUROTA_TOKEN|GPUROTA_SOCKET)=' log
}

@test "a command in a lease ends with it, and is counted and limited with it" {
  in_background outer gpurota run --gpu-ids 0 --memory 1G -- sh \
    -c 'gpurota run -- "$0" hold 300 & gpurota run -- "$0" hold 300 & wait' "$PROGRAM"
  wait_until holds 'leases and leases[0]["gpus"][0]["used_bytes"] >= 600 * 2**20'
  holds 'len(leases) == 1'
  kill_daemon
  start_daemon
  wait_until holds 'leases and leases[0]["gpus"][0]["used_bytes"] >= 600 * 2**20'
  gpurota release L1
  ends_with 123 "$BACKGROUND_PID"
  wait_until no_leases
  wait_until memory_is_back
}

@test "a process in nested leases belongs to the innermost one" {
  in_background outer gpurota run --gpu-ids 0 --memory 1G -- gpurota run --gpu-ids 1 \
    --memory 1G -- "$PROGRAM" hold 200
  wait_until says outer holding
  wait_until holds \
    '[g["used_bytes"] >= 200 * 2**20 for l in leases for g in l["gpus"]] == [False, True]'
  in_background whole gpurota run --gpu-ids 0 --memory 1G -- sh \
    -c 'true; gpurota reserve --short --gpu-ids 0 --memory 512M;
    gpurota run --lease L4 -- "$0" hold 100' "$PROGRAM"
  wait_until says whole holding
  wait_until holds 'sum(g["used_bytes"] >= 100 * 2**20
    for l in leases if l["lease_id"] == "L4" for g in l["gpus"]) == 1'
}

@test "GPUs that the user has chosen, and that the lease does not have, are reported once" {
  CUDA_VISIBLE_DEVICES=0 gpurota run --gpu-ids 1 -- true 2>said
  [ "$(grep -c "^gpurota: CUDA_VISIBLE_DEVICES was '0' and is '1' for the command" said)" = 1 ]
  CUDA_VISIBLE_DEVICES=1 gpurota run --gpu-ids 1 -- true 2>said
  [ ! -s said ]
  local uuid
  uuid=$(value 'gpus[1]["uuid"]')
  CUDA_VISIBLE_DEVICES=${uuid%????} gpurota run --gpu-ids 1 -- true 2>said
  [ ! -s said ]
  # A variable that the shell's lease has set is not a choice of the user.
  gpurota run --gpu-ids 0 -- gpurota run --gpu-ids 1 -- true 2>said
  [ ! -s said ]
  gpurota run --gpu-ids 0 -- env CUDA_VISIBLE_DEVICES=1 gpurota run -- true 2>said
  grep "CUDA_VISIBLE_DEVICES was '1' and is '0'" said
}
