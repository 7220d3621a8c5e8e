#!/usr/bin/env bats
# Tests gpurota on other machines through a real sshd; hosts.sh runs this file.
# machine: demo
#
# shellcheck disable=SC2153,SC2154 # hosts.sh sets GPUROTA_SSHD, `run` sets stderr

load ../e2e/helpers

setup() {
  start_daemon
  mkdir -m 700 "$E2E_DIR/run2" "$E2E_DIR/state2" "$E2E_DIR/ssh"
  gpurota-sim h100x2 -- env "LD_PRELOAD=${E2E_LOOP_GUARD:-}" gpurotad \
    --runtime-dir "$E2E_DIR/run2" \
    --state-dir "$E2E_DIR/state2" --config "$E2E_DIR/gpurota.toml" >gpurotad2.log 2>&1 3>&- &
  BACKGROUND+=($!)
  ssh-keygen -q -t ed25519 -N '' -f ssh/key
  cp ssh/key.pub ssh/authorized
  start_sshd gpu1 "$E2E_DIR/run"
  start_sshd gpu2 "$E2E_DIR/run2"
  printf '#!/bin/sh\nexec ssh -F "%s/ssh/config" "$@"\n' "$E2E_DIR" >ssh/ssh
  chmod 755 ssh/ssh
  export GPUROTA_SSH=$E2E_DIR/ssh/ssh
  wait_until both_answer || { cat both ssh/*.log && return 1; }
}
teardown() { end_test; }

# start_sshd HOST RUN: starts an sshd on a port of its own, whose logins find the daemon in RUN.
start_sshd() {
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(
    s.getsockname()[1])')
  cat >"ssh/$1.config" <<END
ListenAddress 127.0.0.1
Port $port
HostKey $E2E_DIR/ssh/key
AuthorizedKeysFile $E2E_DIR/ssh/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
SetEnv "PATH=$PATH" "GPUROTA_RUNTIME_DIR=$2" "E2E_DIR=$E2E_DIR" "GPUROTA_SIM_DIR=${GPUROTA_SIM_DIR:-}" "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
END
  "$GPUROTA_SSHD" -D -e -f "$PWD/ssh/$1.config" >"ssh/$1.log" 2>&1 3>&- &
  echo $! >"ssh/$1.pid"
  BACKGROUND+=($!)
  cat >>ssh/config <<END
Host $1
  HostName 127.0.0.1
  Port $port
  IdentityFile $E2E_DIR/ssh/key
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile $E2E_DIR/ssh/known
END
}
remote() { env GPUROTA_RUNTIME_DIR="$E2E_DIR/nowhere" gpurota "$@"; }
both_answer() { remote status --host gpu1,gpu2 >both 2>&1; }

# in_terminal CODE KEYS WHEN COMMAND…: runs the command in a terminal, types KEYS when the command
# has printed WHEN, and expects the exit code CODE.
in_terminal() {
  python3 - "$@" <<'END' >terminal || { cat terminal; return 1; }
import os, pty, sys
code, keys, when, command = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3].encode(), sys.argv[4:]
pid, fd = pty.fork()
if pid == 0:
    os.environ["GPUROTA_RUNTIME_DIR"] = os.environ["E2E_DIR"] + "/nowhere"
    os.execvp(command[0], command)
seen, typed = b"", False
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    seen += data
    if when in seen and not typed:
        typed = True
        os.write(fd, keys)
sys.stdout.buffer.write(seen)
ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print("ended with", ended)
sys.exit(0 if ended == code else 1)
END
}

@test "two machines are one table, and a third that is not there a line" {
  printf 'Host gpu3\n  HostName 127.0.0.1\n  Port 1\n' >>ssh/config
  run -1 --separate-stderr remote status --host gpu2,gpu3,gpu1
  grep -qE '^gpu2 +0 free ' <<<"$output"
  grep -qE '^gpu1 +0 free ' <<<"$output"
  local why="ssh: connect to host 127.0.0.1 port 1: Connection refused"
  [[ $stderr = "gpurota: gpu3: cannot be reached: $why"* ]]
  run -125 remote run --host gpu3 -- true
}

@test "arguments, streams, folder and exit status are as they are" {
  run -0 --separate-stderr remote run --host gpu1 --memory 1G -- \
    printf '%s|' 'a b' "it's" '' '*' '$HOME' '"x"' $'new\nline' $'\\' 'ä→' '--' '-v'
  [ "$output" = "a b|it's||*|\$HOME|\"x\"|"$'new\nline'"|\\|ä→|--|-v|" ]
  [ "$(remote run --host gpu1 -- pwd)" = "$PWD" ]
  [ "$(head -c 300000 /dev/zero | remote run --host gpu1 -- wc -c)" = 300000 ]
  for code in 0 1 7 125 254 255; do
    run "-$code" remote run --host gpu1 -- sh -c "exit $code"
  done
  run -137 remote run --host gpu1 -- sh -c 'kill -KILL $$'
  cd /
  mkdir -p "$E2E_DIR/here"
  [ "$(remote run --host gpu1 -- pwd)" = / ]
}

@test "the program ends when gpurota does, and when the connection does" {
  local signal
  for signal in TERM HUP KILL; do
    in_background "program.$signal" env GPUROTA_RUNTIME_DIR="$E2E_DIR/nowhere" gpurota run \
      --host gpu1 --memory 1G -- "$PROGRAM" hold 100
    wait_until says "program.$signal" holding
    kill "-$signal" "$BACKGROUND_PID"
    ends_with $((128 + $(kill -l "$signal"))) "$BACKGROUND_PID"
    wait_until no_leases
  done
  in_background lost env GPUROTA_RUNTIME_DIR="$E2E_DIR/nowhere" gpurota run --host gpu1 \
    --memory 1G -- "$PROGRAM" hold 100
  wait_until says lost holding
  pkill -KILL -P "$(cat ssh/gpu1.pid)"
  ends_with 125 "$BACKGROUND_PID"
  says lost 'or its connection was lost'
  wait_until no_leases
}

@test "a terminal is one there, and Ctrl-C reaches the program" {
  in_terminal 9 $'\x03' ready gpurota run --host gpu1 -- sh \
    -c 'trap "echo caught; exit 9" INT; test -t 0 && test -t 1 && echo ready; sleep 100 & wait'
  grep -q caught terminal
  in_terminal 130 $'\x03' ready gpurota run --host gpu1 -- sh -c 'echo ready; exec sleep 100'
  wait_until no_leases
  in_terminal 255 '' ready gpurota run --host gpu1 -- sh -c 'echo ready; exit 255'
  in_terminal 0 q 'GPU 0' gpurota top --host gpu2
}

@test "the program ends when its terminal does" {
  python3 - <<'END'
import os, pty
pid, fd = pty.fork()
if pid == 0:
    os.environ["GPUROTA_RUNTIME_DIR"] = os.environ["E2E_DIR"] + "/nowhere"
    os.execvp("gpurota", ["gpurota", "run", "--host", "gpu1", "--", "sh", "-c", "echo ready; exec sleep 100"])
seen = b""
while b"ready" not in seen:
    seen += os.read(fd, 4096)
os.close(fd)
os.waitpid(pid, 0)
END
  wait_until no_leases
}

@test "a shared connection of ssh keeps nobody waiting" {
  printf 'Host *\n  ControlMaster auto\n  ControlPath %s/ssh/%%n\n  ControlPersist 30\n' \
    "$E2E_DIR" >>ssh/config
  local begun=$SECONDS
  run -0 remote status --host gpu1,gpu2
  run -0 remote status --host gpu1,gpu2
  ((SECONDS - begun < 8))
  [ -S ssh/gpu1 ]
  run -7 remote run --host gpu1 -- sh -c 'exit 7'
  # A shared connection stays when the ssh of the program ends.
  in_background program env GPUROTA_RUNTIME_DIR="$E2E_DIR/nowhere" gpurota run --host gpu1 \
    --memory 1G -- "$PROGRAM" hold 100
  wait_until says program holding
  kill -TERM "$BACKGROUND_PID"
  ends_with 143 "$BACKGROUND_PID"
  wait_until no_leases
  ssh -F ssh/config -O exit gpu1
  ssh -F ssh/config -O exit gpu2
}
