#!/usr/bin/env bats
# The program, the CLI, the daemon or the terminal dies at some moment: nothing may be left.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

@test "the exit code is the command's own" {
  gpurota run --memory 1G -- true
  run -1 gpurota run --memory 1G -- false
  run -7 gpurota run --memory 1G -- sh -c 'exit 7'
  run -75 gpurota run --memory 1G -- sh -c 'exit 75'
}

@test "a command that a signal ended is reported as the shell reports it" {
  run -143 gpurota run --memory 1G -- sh -c 'kill -TERM $$'
  run -137 gpurota run --memory 1G -- sh -c 'kill -KILL $$'
}

@test "standard input and output are the command's" {
  [ "$(printf 'one\ntwo\n' | gpurota run --memory 1G -- cat)" = "$(printf 'one\ntwo\n')" ]
  gpurota run --memory 1G -- sh -c 'echo out; echo err >&2' >out 2>err
  [ "$(cat out)" = out ]
  [ "$(cat err)" = err ]
}

@test "SIGTERM to the CLI reaches the command, which may end as it likes" {
  in_background traps gpurota run --memory 1G -- sh \
    -c 'trap "echo asked; exit 5" TERM; echo ready; while :; do sleep 0.05; done'
  wait_until says traps ready
  kill -TERM "$BACKGROUND_PID"
  ends_with 5 "$BACKGROUND_PID"
  says traps asked
}

@test "a program is signalled ahead of its end, and processes that do not handle the signal are left alone" {
  in_background warned gpurota run --memory 1G --timeout 6s --warn 3s -- sh \
    -c '(trap "echo saved" USR1; echo ready; while :; do sleep 0.05; done); exit 0'
  wait_until says warned ready
  value 'leases[0]["warn_signal"]' | grep -x USR1
  wait_until says warned saved
  wait_until says warned 'L1 ends in 3 seconds: SIGUSR1 was sent to 1 of its processes'
  ends_with 124 "$BACKGROUND_PID"
  run -125 gpurota run --timeout 3s --warn 3s -- true
  [[ "$output" == *"the warning would come before the start"* ]]
  run -2 gpurota run --warn 10m:KILL -- true
  [[ "$output" == *"'KILL' is not a signal to warn with"* ]]
}

@test "the death of the CLI ends the command and the lease" {
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder 'holding'
  local pid
  pid=$(value 'leases[0]["pid"]')
  kill -KILL "$BACKGROUND_PID"
  wait_until gone "$pid"
  wait_until no_leases
  wait_until memory_is_back
}

@test "kill -9 of the daemon loses nothing: the program runs on under the same lease" {
  in_background computing gpurota run --memory 2G --note kept -- "$PROGRAM" compute 64 6
  wait_until says computing 'round'
  local computing=$BACKGROUND_PID id
  id=$(value 'leases[0]["lease_id"]')
  kill_daemon
  start_daemon
  holds "leases[0]['lease_id'] == '$id' and leases[0]['note'] == 'kept'"
  wait "$computing"
  grep ' 0 wrong' "$E2E_DIR/computing"
  wait_until no_leases
}

@test "a clean stop of the daemon loses nothing either" {
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder 'holding'
  local id
  id=$(value 'leases[0]["lease_id"]')
  stop_daemon
  start_daemon
  holds "leases[0]['lease_id'] == '$id'"
  wait_until holds 'leases[0]["gpus"][0]["used_bytes"] >= 100 * 2**20'
}

@test "the limit holds across a restart of the daemon" {
  in_background holder gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder 'holding'
  kill_daemon
  start_daemon
  holds 'leases[0]["gpus"][0]["limit_bytes"] == 2**30 and gpus[0]["reserved_bytes"] == 2**30'
  in_background greedy gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" greedy 32
  wait_until says greedy 'goes on with'
  wait_until holds 'all(l["gpus"][0]["used_bytes"] <= 2**30 for l in leases)'
}

@test "a program that ended while the daemon was away is released at the next start" {
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder 'holding'
  local pid
  pid=$(value 'leases[0]["pid"]')
  kill_daemon
  kill -KILL "$pid"
  wait_until gone "$pid"
  start_daemon
  wait_until no_leases
  wait_until memory_is_back
}

@test "CLI and program dead while the daemon was away leave nothing behind" {
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder 'holding'
  local pid
  pid=$(value 'leases[0]["pid"]')
  kill_daemon
  kill -KILL "$BACKGROUND_PID" "$pid"
  wait_until gone "$BACKGROUND_PID"
  start_daemon
  wait_until no_leases
  wait_until memory_is_back
}

@test "a released lease ends its program, and run exits with 123" {
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder 'holding'
  gpurota release "$(value 'leases[0]["lease_id"]')"
  ends_with 123 "$BACKGROUND_PID"
  wait_until no_leases
}

@test "release --all ends everything of the user" {
  in_background first gpurota run --memory 1G -- "$PROGRAM" hold 10
  in_background second gpurota run --memory 1G -- "$PROGRAM" hold 10
  wait_until says first 'holding'
  wait_until says second 'holding'
  gpurota release --all
  wait_until no_leases
}

@test "a hangup ends the command and the lease" {
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 10
  wait_until says holder 'holding'
  kill -HUP "$BACKGROUND_PID"
  wait_until gone "$BACKGROUND_PID"
  wait_until no_leases
}

@test "under nohup a hangup changes nothing" {
  in_background holder nohup gpurota run --memory 1G -- "$PROGRAM" hold 10
  wait_until says holder 'holding'
  kill -HUP "$BACKGROUND_PID"
  kill -HUP "$(value 'leases[0]["pid"]')"
  # Both signals were delivered before the daemon answers this query. Neither signal ended anything.
  holds 'len(leases) == 1 and leases[0]["state"] == "active"'
  kill -0 "$BACKGROUND_PID"
}

@test "a session that is dropped ends what ran in it" {
  # script(1) gives the command a terminal. Killing script(1) hangs up the terminal, as the end of
  # sshd does.
  in_background session script -qfec "gpurota run --memory 1G -- '$PROGRAM' hold 10" /dev/null
  wait_until says session 'holding'
  kill -KILL "$BACKGROUND_PID"
  wait_until no_leases
  wait_until memory_is_back
}

@test "a stopped program keeps its lease and its memory, and continues" {
  in_background computing gpurota run --memory 1G -- "$PROGRAM" compute 64 3
  wait_until says computing 'round'
  local pid
  pid=$(value 'leases[0]["pid"]')
  stop_process "$pid"
  holds 'leases[0]["state"] == "active"'
  kill -CONT "$pid"
  wait "$BACKGROUND_PID"
  grep ' 0 wrong' "$E2E_DIR/computing"
}

@test "the command has the terminal" {
  script -qec "gpurota run --memory 1G -- sh -c 'test -t 0 && test -t 1 && stty size >/dev/null && \
    echo a terminal'" /dev/null >out </dev/null
  grep 'a terminal' out
}

@test "control-C at the terminal interrupts the command, not gpurota" {
  # The interrupt character goes to the whole foreground group, as from a keyboard.
  mkfifo keys
  exec 4<>keys
  # A shell without job control makes its background programs ignore interrupts.
  env --default-signal=INT script -qfec "gpurota run --memory 1G -- sh -c \
    'trap \"echo interrupted; exit 9\" INT; echo ready; while :; do sleep 0.05; done'" \
    /dev/null <keys >session 2>&1 3>&- &
  BACKGROUND+=("$!")
  wait_until says session ready
  printf '\003' >&4
  wait_until says session interrupted
  exec 4>&-
  wait_until no_leases
}
