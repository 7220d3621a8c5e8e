#!/usr/bin/env bats
# Several machines: their status, queue and report in one table, and programs run on one of them. A
# script replaces ssh: gpu1 and gpu2 are simulated machines with daemons of their own, other hosts
# do what their names say.
# machine: demo
#
# shellcheck disable=SC2154 # `run` sets stderr

load helpers

setup() {
  start_daemon
  mkdir -m 700 "$E2E_DIR/run2" "$E2E_DIR/state2"
  gpurota-sim h100x2 -- env "LD_PRELOAD=${E2E_LOOP_GUARD:-}" gpurotad \
    --runtime-dir "$E2E_DIR/run2" \
    --state-dir "$E2E_DIR/state2" --config "$E2E_DIR/gpurota.toml" >gpurotad2.log 2>&1 3>&- &
  BACKGROUND+=($!)
  wait_until env GPUROTA_RUNTIME_DIR="$E2E_DIR/run2" gpurota status >/dev/null 2>&1
  write_ssh
  # No daemon uses the local folder, because each host has its own.
  export HERE=$E2E_DIR/nowhere
}
teardown() { end_test; }

write_ssh() {
  cat >"$E2E_DIR/ssh" <<'END'
#!/bin/bash
echo "$*" >>"$E2E_DIR/ssh.log"
while [ "$1" != -- ]; do shift; done
host=$2 line=$3
case $host in
  gpu1) export GPUROTA_RUNTIME_DIR=$E2E_DIR/run ;;
  user@gpu2) export GPUROTA_RUNTIME_DIR=$E2E_DIR/run2 ;;
  hangs) exec sleep 600 ;;
  garbage) head -c 200000 /dev/urandom; exit 0 ;;
  evil) printf '{"gpus": [], "leases": [], "findings": [], "x": "\033[2J"}'; exit 0 ;;
  refuses) printf 'ssh: connect to host refuses port 22: Connection \033[31mrefused\n' >&2; exit 255 ;;
  bare) export PATH=/usr/bin:/bin ;;
  afar) rmdir "$E2E_DIR/gone" ;;
  older) echo "gpurota: there is no command 'status'" >&2; exit 2 ;;
esac
sh -c "$line"
END
  chmod 700 "$E2E_DIR/ssh"
  export GPUROTA_SSH=$E2E_DIR/ssh
}
# remote ARGUMENT…: calls gpurota so that it finds no daemon of this machine; only ssh leads to one.
remote() { env GPUROTA_RUNTIME_DIR="$HERE" gpurota "$@"; }
json() { python3 -c 'import json, sys
hosts = json.load(open(sys.argv[1]))["hosts"]
sys.exit(0 if eval(sys.argv[2]) else 1)' "$@"; }

@test "status of several machines is one table, in the order given" {
  in_background holder gpurota run --memory 2G --note night -- "$PROGRAM" hold 100
  wait_until says holder holding
  remote status --host user@gpu2,gpu1 >table
  grep -q '^HOST  *GPU STATE' table
  grep -qE '^user@gpu2 +0 free .*H100' table
  grep -qE '^user@gpu2 +1 free ' table
  grep -qE '^gpu1 +0 in use .* L1 ' table
  [ "$(awk 'NR > 1 {print $1}' table | uniq | head -n 2 | xargs)" = "user@gpu2 gpu1" ]
  printf '# all\ngpu1 # small\n\nuser@gpu2\n' >hosts
  remote status --summary --hosts-file hosts >table
  grep -qE '^HOST +GPUS +FREE +IN USE' table
  grep -qE '^gpu1 +2 +1 +1 ' table
  grep -qE '^user@gpu2 +2 +2 +0 ' table
}

@test "a machine that does not answer is a line that says why, and no other waits for it" {
  local begun=$SECONDS
  run -1 --separate-stderr remote status --host hangs,gpu1,refuses,garbage,bare,older,evil,user@gpu2
  ((SECONDS - begun < 20))
  grep -q '^gpu1 ' <<<"$output"
  grep -q '^user@gpu2 ' <<<"$output"
  [ "$stderr" = "gpurota: hangs: no answer within 5 s
gpurota: refuses: cannot be reached: ssh: connect to host refuses port 22: Connection �[31mrefused
gpurota: garbage: what it prints is not the JSON of gpurota: does its shell print something of its \
own, or is its gpurota older?
gpurota: bare: there is no gpurota on its PATH
gpurota: older: there is no command 'status' (is its gpurota older?)
gpurota: evil: what it prints is not the JSON of gpurota: does its shell print something of its \
own, or is its gpurota older?" ]
  run -1 remote status --host refuses
}

@test "JSON has each machine, with its answer or why there is none" {
  run -1 --separate-stderr remote status --json --host gpu1,refuses,user@gpu2
  echo "$output" >all
  json all '[h["host"] for h in hosts] == ["gpu1", "refuses", "user@gpu2"]'
  json all 'len(hosts[0]["status"]["gpus"]) == 2 and "error" not in hosts[0]'
  json all '"Connection" in hosts[1]["error"] and "status" not in hosts[1]'
  lacks '\x1b' all
  gpurota queue --json >one
  remote queue --json --host gpu1 >all
  json all 'hosts[0]["queue"] == json.load(open("one"))'
}

@test "queues and reports of several machines are one table" {
  gpurota reserve --gpu-ids all --for 1h >/dev/null 2>&1
  in_background waits gpurota run -- true
  wait_until says waits R1
  remote queue --host gpu1,user@gpu2 >table
  grep -q '^HOST  *REQUEST' table
  grep -qE '^gpu1 +1 +R1 ' table
  wait_until is_reported
  remote report --csv --host gpu1 | grep -q '^"gpu1",'
  gpurota cancel R1
}
is_reported() {
  remote report --host gpu1,user@gpu2 --days 3 >table
  grep -qE '^HOST +USER' table && grep -qE '^gpu1 +[a-z]+ +1 ' table
}

@test "run --host runs there, with arguments, folder, streams and exit status as they are" {
  mkdir 'a folder'
  cd 'a folder'
  run -0 --separate-stderr remote run --host gpu1 --memory 1G --note 'it'\''s $HOME' -- \
    printf '%s|' 'a b' "it's" '' '*' '$HOME' '"x"' $'new\nline' $'\\' 'ä→' '--' '-v'
  [ "$output" = "a b|it's||*|\$HOME|\"x\"|"$'new\nline'"|\\|ä→|--|-v|" ]
  [ "$(remote run --host gpu1 -- pwd)" = "$PWD" ]
  [ "$(echo in | remote run --host gpu1 -- cat)" = in ]
  for code in 0 1 7 75 125 254 255; do
    run "-$code" remote run --host gpu1 -- sh -c "exit $code"
  done
  run -137 remote run --host gpu1 -- sh -c 'kill -KILL $$'
  [ "$(remote run --host user@gpu2 -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"')" != "" ]
  run -2 remote run --host gpu1 --memory nothing -- true
  # The inner run is refused, because it wants the GPU of the lease in which it runs itself: it
  # could only start after the end of that lease.
  run -125 remote run --host gpu1 --gpu-ids 0 --nonblock -- sh \
    -c 'env GPUROTA_RUNTIME_DIR="$E2E_DIR/run" gpurota run --gpu-ids 0 --nonblock -- true'
  run -127 remote run --host gpu1 -- no-such-command
}

@test "an unreachable machine, or a failed start there, is distinguished from a failing program" {
  run -125 --separate-stderr remote run --host refuses -- true
  [[ $stderr = *"cannot reach refuses, or its connection was lost"* ]]
  run -125 --separate-stderr remote run --host bare -- true
  [[ $stderr = *"there is no gpurota on the PATH of bare"* ]]
  mkdir gone
  cd gone
  run -125 --separate-stderr remote run --host afar -- true
  local why="there is no such folder for you; start in a folder that both machines have"
  [[ $stderr = *"gpurota: cannot run in $E2E_DIR/gone on afar: $why" ]]
  run -125 --separate-stderr remote run --host gpu1 -- true
  [[ $stderr = *"the current folder is gone"* ]]
  cd "$E2E_DIR"
  GPUROTA_SSH=/no/such/ssh run -125 --separate-stderr remote run --host gpu1 -- true
  [[ $stderr = *"cannot execute /no/such/ssh"* ]]
}

@test "a signal to gpurota ends the program there, and gpurota by the same signal" {
  local signal
  for signal in TERM HUP USR1; do
    in_background "program.$signal" env GPUROTA_RUNTIME_DIR="$HERE" GPUROTA_SSH="$GPUROTA_SSH" \
      gpurota run --host gpu1 --memory 1G -- "$PROGRAM" hold 100
    wait_until says "program.$signal" holding
    kill "-$signal" "$BACKGROUND_PID"
    ends_with $((128 + $(kill -l "$signal"))) "$BACKGROUND_PID"
    wait_until no_leases
  done
}

@test "Ctrl-C on a terminal reaches the program there, which may do as it likes" {
  python3 - "$HERE" <<'END' >terminal || { cat terminal; false; }
import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ["GPUROTA_RUNTIME_DIR"] = sys.argv[1]
    os.execvp("gpurota", ["gpurota", "run", "--host", "gpu1", "--", "sh", "-c",
                          "trap 'echo caught; exit 9' INT; echo ready; sleep 100 & wait"])
seen = b""
while b"caught" not in seen:
    seen += os.read(fd, 4096)
    sys.stdout.buffer.write(seen)
    if b"ready" in seen and b"^C" not in seen:
        os.write(fd, b"\x03")
        time.sleep(0.2)
sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9 else 1)
END
  grep -q -- '^-t ' ssh.log
}

@test "of several machines the one with room is taken" {
  gpurota reserve --gpu-ids all --for 1h >/dev/null 2>&1
  run -0 --separate-stderr remote run --host refuses,gpu1,user@gpu2 -- sh \
    -c 'echo "$GPUROTA_RUNTIME_DIR"'
  [ "$output" = "$E2E_DIR/run2" ]
  [[ $stderr = *"gpurota: on user@gpu2"* ]]
  run -125 --separate-stderr remote run --gpus 9 --host gpu1,user@gpu2 -- true
  [[ $stderr = *"no host that has answered has the GPUs"* ]]
}

@test "names that ssh would take for options or commands are refused before ssh is called" {
  run -2 remote status --host=-oProxyCommand=reboot
  run -2 remote status --host 'a;reboot'
  run -2 remote run --host 'gpu1,$(reboot)' -- true
  echo '-l' >hosts
  run -2 remote status --hosts-file hosts
  run -2 remote status --hosts-file none
  [ ! -e ssh.log ]
  run -0 remote top --once --host gpu1
  [[ $output = *"gpurota top"* ]]
}
