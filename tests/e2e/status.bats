#!/usr/bin/env bats
# gpurota status: leases and GPUs, in tables for people and in JSON for programs.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

# on_terminal COLUMNS SECONDS COMMAND…: runs the command on a terminal of this width, and interrupts
# it (Ctrl-C) after SECONDS if it still runs. Prints the command's output, and has its exit status.
on_terminal() {
  python3 - "$@" <<'END'
import fcntl, os, pty, select, struct, sys, termios, time
columns, seconds, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)
deadline, interrupted = time.monotonic() + seconds, False
while True:
    if not interrupted and time.monotonic() > deadline:
        interrupted = True
        os.write(fd, b"\x03")
    if select.select([fd], [], [], 0.05)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        sys.stdout.buffer.write(data)
status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
END
}

@test "each lease has a row at its GPU, with memory, model and note, and so has its leftover memory" {
  in_background holder gpurota run --memory 2G --note night -- \
    sh -c 'exec "$0" hold 100' "$PROGRAM" --model org/some-7b
  wait_until says holder holding
  wait_until row_is_there
}
row_is_there() {
  gpurota status >table
  grep -qE '^  0 in use .* L1 +0\.[0-9]+ / 2 .* night, org/some-7b \(sh -c' table &&
    grep -qE '^    free +0 / ' table
}

@test "status fits narrow terminals and is coloured on terminals only" {
  in_background holder gpurota run --memory 2G \
    --note "$(printf 'n%.0s' {1..300})" -- "$PROGRAM" hold 100
  wait_until says holder holding
  on_terminal 50 30 gpurota status >narrow
  grep -q $'\e\[' narrow
  sed -e 's/\x1b\[[0-9;]*m//g' -e 's/\r//' narrow >plain
  lacks '^.{51,}$' plain
  NO_COLOR=1 on_terminal 200 30 gpurota status >colourless
  lacks '\x1b' colourless
  gpurota status >piped
  lacks '\x1b' piped
  gpurota status --color always | grep -q $'\e\['
  NO_COLOR=1 gpurota --color=always status | grep -q $'\e\['
  on_terminal 200 30 gpurota status --color=never >colourless
  lacks '\x1b' colourless
  run -2 gpurota status --color=sometimes
  [[ $output == *"'sometimes' is not auto, always or never"* ]]
}

@test "--watch redraws in place and leaves the terminal as it was at Ctrl-C" {
  run -0 on_terminal 100 2.5 gpurota status --watch
  [[ $output == *$'\e[?1049h'*"free"*$'\e[?1049l'* ]]
  # The clock is drawn each second; lines that have not changed are drawn once.
  [ "$(grep -o $'\e\[1;1H' <<<"$output" | wc -l)" -ge 2 ]
  [ "$(grep -o $'\e\[2;1H' <<<"$output" | wc -l)" = 1 ]
  [[ ${output: -20} == *$'\e[?25h'* ]]
}

@test "--watch into a pipe prints changes, and waits for a daemon that goes away" {
  in_background watched gpurota status --watch
  wait_until says watched free
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 100
  wait_until says watched 'in use'
  lacks '\x1b' watched
  kill_daemon
  wait_until says watched 'waiting for the daemon'
  start_daemon
  wait_until tail_says_in_use
}
tail_says_in_use() { tail -n 4 watched | grep -q 'in use'; }

@test "--watch ends with its reader, at once and without a word, although nothing changes" {
  in_background first bash \
    -c 'gpurota status --watch 2>complaints | head -n 2; echo "${PIPESTATUS[0]}"'
  local reader=$BACKGROUND_PID
  wait_until says first GPU
  wait_until gone "$reader"
  [[ "$(tail -n 1 first)" =~ ^(0|141)$ ]] # 141: SIGPIPE, if something changed in that moment
  [ ! -s complaints ]
}

@test "events --follow ends with its reader, although nothing happens" {
  in_background first bash \
    -c 'gpurota events --follow --since 1h 2>complaints | head -n 1; echo "${PIPESTATUS[0]}"'
  local reader=$BACKGROUND_PID
  wait_until gone "$reader"
  [[ "$(tail -n 1 first)" =~ ^(0|141)$ ]] # 141: SIGPIPE, if something changed in that moment
  [ ! -s complaints ]
}

@test "--summary is one line for the machine" {
  gpurota status --summary >summary
  [ "$(wc -l <summary)" = 2 ]
  grep -qE "^HOST +GPUS +FREE +IN USE +MODELS" summary
  run -2 gpurota status --summary --json
}

@test "the threshold of unreserved use can be chosen" {
  in_background stranger "$PROGRAM" hold 100
  wait_until says stranger holding
  wait_until marked_at 0
  gpurota status --memory-threshold 40G >table
  lacks 'NO LEASE' table
  gpurota status --memory-threshold 0 --json | grep -q '"unreserved_use"'
  run -2 gpurota status --memory-threshold much
}
marked_at() { gpurota status --memory-threshold "$1" | grep -q 'NO LEASE'; }

@test "a refused request says how many GPUs are free and why the others are not" {
  local count
  count=$(value 'len(gpus)')
  in_background holder gpurota run --gpus "$count" -- "$PROGRAM" hold 100
  wait_until says holder holding
  run gpurota run --nonblock --gpus 1 -- true
  [ "$status" != 0 ]
  [[ $output == *"0 of $count GPU"*"free"* ]]
  [[ $output == *"GPU 0 "*"L1"* ]]
}

@test "waiting users are in the last line, and the GPU that is kept for them is not free" {
  local count
  count=$(value 'len(gpus)')
  in_background holder gpurota run --gpu-ids 0 -- "$PROGRAM" hold 100
  wait_until says holder holding
  in_background waits gpurota run --gpus "$count" -- true
  wait_until eval '[ "$(value "s[\"waiting\"]")" = 1 ]'
  gpurota status >table
  [ "$(tail -n 1 table)" = '1 waits: gpurota queue' ]
  if [ "$count" = 1 ]; then return; fi
  wait_until holds 'all(g["state"] == "held" for g in gpus[1:])'
  gpurota status | grep '^  1 held .* kept for R1'
  gpurota status --summary | grep 'HELD'
}

@test "a process that has ended leaves no row beneath a GPU that is free again" {
  in_background stranger "$PROGRAM" hold 2000
  wait_until says stranger holding
  wait_until eval 'gpurota status | grep -q "NO LEASE"'
  kill -KILL "$BACKGROUND_PID"
  wait_until holds 'gpus[0]["state"] == "available"'
  holds 's["findings"] == []' # the process was gone in the last sample
  gpurota status | grep '^  0 free'
}

@test "others see neither the model nor the note" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  in_background holder gpurota run --memory 2G --note secret -- \
    sh -c 'exec "$0" hold 100' "$PROGRAM" --model org/secret-7b
  wait_until says holder holding
  setpriv --reuid 54001 --regid 54001 --clear-groups gpurota status >table
  setpriv --reuid 54001 --regid 54001 --clear-groups gpurota status --json >json
  lacks secret table
  lacks secret json
  gpurota status | grep -q 'org/secret-7b'
}

@test "columns by name are for scripts: every row says all, and nothing is empty" {
  in_background holder gpurota run --memory 1G --name train7 -- "$PROGRAM" hold 64
  wait_until says holder holding
  gpurota status --format gpu,state,lease,user,size,name,kind --no-titles >rows
  local gpu state lease user size name kind
  IFS=$'\t' read -r gpu state lease user size name kind < <(grep train7 rows)
  [ "$state, $lease $user $size $name $kind" = "in use, L1 $(id -un) 1 train7 run" ]
  # The rest of that GPU has a row of its own, with the same index.
  [ "$(awk -F'\t' -v gpu="$gpu" '$1 == gpu' rows | wc -l)" = 2 ]
  [ "$(awk -F'\t' 'NF != 7' rows | wc -l)" = 0 ]
  local title other
  read -r title other < <(gpurota status --format uuid,free)
  [ "$title $other" = "UUID FREE" ]
}

@test "an unknown column is refused with the known ones" {
  run -2 gpurota status --format gpu,usr
  [[ $output == *"there is no column 'usr' (did you mean 'user'?)"*"host, gpu, state"* ]]
  run -2 gpurota status --format gpu --json
  run -2 gpurota status --no-titles
}
