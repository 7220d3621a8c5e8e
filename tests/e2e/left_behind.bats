#!/usr/bin/env bats
# Processes that a command leaves running, or starts through a server; and messages to shells whose
# reservation is over.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

@test "processes that the command left running are ended, counted and reported" {
  gpurota run --memory 1G -- sh -c 'sleep 600 & sleep 600 & exit 3' 2>said || [ $? = 3 ]
  local left='that the command left running' with='as the lease ends with the command'
  [ "$(cat said)" = "gpurota: 2 processes $left were ended, $with" ]
  gpurota run --memory 1G -- sh -c 'sleep 600 & true' 2>said
  [ "$(cat said)" = "gpurota: 1 process $left was ended, $with" ]
  gpurota run --quiet --memory 1G -- sh -c 'sleep 600 & true' 2>said
  [ ! -s said ]
}

@test "a process that ends with the command by itself was not left running" {
  # The end of the command closes the child's standard input, which ends the child.
  gpurota run --memory 1G -- python3 \
    -c 'import subprocess; subprocess.Popen(["cat"], stdin=subprocess.PIPE)' 2>said
  [ ! -s said ]
}

@test "a command that passes work to a server gets a hint that it is not in the lease" {
  command -v tmux || skip "needs tmux"
  export TMUX_TMPDIR=$E2E_DIR
  gpurota run --memory 1G -- tmux -L new new-session -d sleep 600 2>said
  local ended='that the command left running (was|were) ended, as the lease ends with tmux'
  local hint="write tmux new-session -d 'gpurota run … -- COMMAND'"
  grep -E "^gpurota: [0-9]+ process(es)? $ended; $hint$" said
  tmux -L old new-session -d -s base sleep 600
  gpurota run --memory 1G -- tmux -L old new-session -d -s job sleep 600 2>said
  local server='tmux hands its work to a server, which is not in the lease'
  grep "^gpurota: $server; write tmux new-session -d " said
  tmux -L old kill-server
  # tmux -V starts no server, so it gets no hint.
  gpurota run --memory 1G -- tmux -V 2>said
  [ ! -s said ]
}

# in_terminal COMMANDS TEXT: the output of a shell with these commands on a terminal of its own. A
# line is typed when TEXT is shown.
in_terminal() {
  timeout "$PATIENCE" python3 - "$@" <<'END'
import os, pty, sys
out = b""
pid, fd = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "-c", sys.argv[1]])
typed = False
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    out += data
    if not typed and sys.argv[2].encode() in out:
        typed = True
        os.write(fd, b"\n")
os.waitpid(pid, 0)
sys.stdout.write(out.decode().replace("\r\n", "\n"))
END
}

@test "a shell that outlives its reservation is notified once" {
  in_terminal 'eval "$(gpurota reserve --gpu-ids 0 --for 1s)"; read -r; echo "$GPUROTA_LEASE"' \
    'is over' >said
  local over='L1 is over: its time is over; if this shell still has its variables: '
  over+='unset GPUROTA_LEASE LD_PRELOAD CUDA_VISIBLE_DEVICES, or open a new shell'
  [ "$(grep -c "^gpurota: $over$" said)" = 1 ]
  grep -x L1 said
  # A process watches the lease for the shell. The process ends with the shell, and the shell does
  # not wait for the process.
  in_terminal 'eval "$(gpurota reserve --gpu-ids 0 --for 1h)"; read -r; echo "$GPUROTA_LEASE"' \
    'L2 on GPU 0' >said
  grep -x L2 said
  wait_until no_shell_watch
}
no_shell_watch() {
  local pid
  for pid in $(pgrep -f '^gpurota reserve --gpu-ids 0 --for 1h'); do
    if is_of_case "$pid"; then return 1; fi
  done
}

@test "a new program under an expired reservation is notified" {
  eval "$(gpurota reserve --gpu-ids 0 --memory 1G --for 2s 2>/dev/null)"
  in_background holder "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until holds 'leases[0]["state"] == "expired"'
  "$PROGRAM" info >out 2>said
  grep -q 'gpus=1' out
  local over='the time of L1 is over, so this program may be stopped when somebody needs the GPU; '
  over+='to keep it: gpurota update L1 --for 2h'
  [ "$(cat said)" = "gpurota: $over" ]
  run -125 --separate-stderr gpurota run -- true
  # shellcheck disable=SC2154 # stderr is of bats
  [[ $stderr == *'the time of L1 is over'* ]]
}

@test "a user whose program in a lease uses another GPU is always notified" {
  in_background stray gpurota run --gpu-ids 1 -- env CUDA_VISIBLE_DEVICES=0 "$PROGRAM" hold 900
  wait_until says stray \
    'your process [0-9]* uses GPU 0 without a lease.*it was started in L1, which has GPU 1'
}
