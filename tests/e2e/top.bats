#!/usr/bin/env bats
# gpurota top in a terminal: its views, its keys, and that the terminal is restored at the end. The
# terminal is tmux.
# machine: h100x2

load helpers

setup() {
  command -v tmux >/dev/null || skip "tmux is not installed"
  make_folders
  start_daemon
}

teardown() {
  if [ -z "${BATS_TEST_COMPLETED:-}" ] && [ -n "${E2E_DIR:-}" ]; then screen || true; fi
  if [ -n "${E2E_DIR:-}" ]; then terminal kill-server 2>/dev/null || true; fi
  end_test
}

# Calls a tmux whose socket belongs to the case.
terminal() { env -u TMUX LC_ALL=C.UTF-8 tmux -S "$E2E_DIR/tmux" -f /dev/null "$@" 3>&-; }
# open_terminal [WIDTH HEIGHT [VARIABLE=VALUE…]]: opens a terminal with a shell.
open_terminal() {
  local width=${1:-100} height=${2:-30}
  shift $(($# < 2 ? $# : 2))
  terminal new-session -d -x "$width" -y "$height" env LC_ALL=C.UTF-8 PS1='ready> ' "$@" bash \
    --norc --noprofile
  wait_until shows '^ready>'
}
screen() { terminal capture-pane -p; }
shows() { screen | grep -qP -- "$1"; }
shows_no() { ! shows "$1"; }
keys() { terminal send-keys "$@"; }
# Starts gpurota top, and waits for its first picture.
open_top() {
  keys "gpurota top" Enter
  wait_until shows '^gpurota top  '
}
quit_top() {
  keys q
  wait_until shows '^ready> *$'
}
# The process is the only child of the shell.
pid_of_top() { pgrep -P "$(terminal list-panes -F '#{pane_pid}')"; }
reserve() { gpurota reserve --short "$@" >/dev/null; }

@test "top shows GPUs, leases and the queue, and leaves the terminal as it was" {
  reserve --gpu-ids 0 --for 1h --note "for the demo"
  reserve --gpu-ids 1 --for 1h
  in_background waits gpurota run -- "$PROGRAM" info
  wait_until says waits 'R1'
  open_terminal 100 30
  keys 'echo before' Enter
  wait_until shows '^before'
  open_top
  wait_until shows '^GPU 0 +in use +\[░+\]'
  shows '  L1 .*ends in 59m, unused, reservation, for the demo'
  shows '^QUEUE: 1 waits'
  shows '1  R1  .* 1 GPU  expected '
  shows '^\? help .* q quit'
  quit_top
  shows '^before'
  shows_no '^GPU 0'
  keys 'stty -a' Enter
  wait_until shows ' icanon .* '
  shows '(^| )echo '
}

@test "top is as wide and high as the terminal, even when that changes" {
  open_terminal 80 24
  open_top
  wait_until shows '^GPU 1 '
  [ "$(screen | sed -n 24p)" = \
    "? help  / filter  u user  s sort  t tree  e extend  r release  d drain  q quit" ]
  terminal resize-window -x 140 -y 40
  wait_until eval '[ "$(screen | sed -n 40p | cut -c 1-6)" = "? help" ]'
  terminal resize-window -x 30 -y 6
  wait_until eval '[ "$(screen | sed -n 6p | cut -c 1-6)" = "? help" ]'
  quit_top
}

@test "keys select, filter, explain and open details" {
  reserve --gpu-ids 0 --for 1h --note "first"
  reserve --gpu-ids 1 --for 1h --note "second"
  open_terminal
  open_top
  wait_until shows 'second'
  keys / sec
  wait_until shows '^show only what has this text: sec'
  wait_until shows_no 'first'
  keys Enter
  wait_until shows 'filter: sec'
  keys Escape
  wait_until shows 'first'
  keys '?'
  wait_until shows 'used by fillers, which leave for a lease'
  keys Escape
  keys Home Down Enter
  wait_until shows '^L1 of '
  shows '  note +first'
  wait_until shows 'memory, the last '
  keys Escape
  wait_until shows 'second'
  keys u nobody-here Enter
  wait_until shows 'nothing matches the filter or user'
  quit_top
}

@test "the turn of a GPU is shown with its remaining time, and processes are listed" {
  gpurota set --gpu-ids 0 --turns on --quantum 10m
  in_background one gpurota run --gpu-ids 0 --swap --note turning -- "$PROGRAM" compute 256 60
  in_background two gpurota run --gpu-ids 0 --swap -- "$PROGRAM" compute 256 60
  wait_until holds 'len(leases) == 2'
  open_terminal 132 30
  open_top
  wait_until shows '^  turn: L\d of \S+, [\d.]+ (s|min) of 10 min left; next: L\d of '
  wait_until shows '  L\d .* now [\d.]+ (s|min) '
  wait_until shows '\[▓+'
  keys t
  wait_until shows '└─ pid \d+ .*gpu_program compute 256 60'
  quit_top
}

@test "top has as many colours as the terminal" {
  reserve --gpu-ids 0 --for 1h
  open_terminal 100 30 TERM=tmux-256color
  open_top
  wait_until shows '^GPU 0 '
  terminal capture-pane -p -e | grep -q '\[38;5;33m'
  quit_top
  keys 'TERM=screen gpurota top' Enter
  wait_until shows '^GPU 0 '
  terminal capture-pane -p -e | grep -q '\[34m'
  quit_top
  keys 'gpurota --color never top' Enter
  wait_until shows '^GPU 0 '
  lacks '38;5|\[34m' <(terminal capture-pane -p -e)
  quit_top
}

@test "extend asks for how long, release asks whether, and a refusal is shown" {
  reserve --gpu-ids 0 --for 1h
  open_terminal
  open_top
  wait_until shows '  L1 '
  keys Down
  keys e soon Enter
  wait_until shows "'soon' is not a time"
  keys e 3h Enter
  wait_until shows '^updated L1 on GPU 0 .*until '
  wait_until shows 'ends in 2h59m'
  keys e 9999d Enter
  wait_until shows "'9999d' is more than"
  keys r
  wait_until shows '^release L1 of .* and end its processes\? \[y/N\]'
  keys n
  wait_until shows '^nothing is changed'
  holds 'len(leases) == 1'
  keys r y
  wait_until shows '^released L1'
  wait_until no_leases
  wait_until shows '^GPU 0 +free'
  keys r
  wait_until shows '^choose a lease first'
  quit_top
}

@test "administrators drain a GPU and put it back; others are refused in the daemon's words" {
  open_terminal
  open_top
  wait_until shows '^GPU 0 +free'
  keys d
  wait_until shows '^take GPU 0 out of service\?'
  keys y
  wait_until shows '^GPU 0 +DRAINING'
  keys d y
  wait_until shows '^GPU 0 +free'
  quit_top
  if [ "$(id -u)" != 0 ]; then return 0; fi
  chmod 755 . run
  keys "setpriv --reuid 65534 --regid 65534 --clear-groups gpurota top" Enter
  wait_until shows '^GPU 0 +free'
  keys d y
  wait_until shows '^only administrators may take GPUs out of service'
  quit_top
}

@test "top waits for a daemon that is restarted" {
  open_terminal
  open_top
  wait_until shows '^GPU 0 +free'
  stop_daemon
  wait_until shows '^no answer, trying again: '
  shows '^GPU 0 +free'
  start_daemon
  wait_until shows '^\? help'
  reserve --gpu-ids 0 --for 1h
  wait_until shows '^GPU 0 +in use'
  quit_top
}

@test "a daemon that hangs keeps nobody from leaving" {
  open_terminal
  open_top
  wait_until shows '^GPU 0 +free'
  stop_process "$DAEMON_PID"
  wait_until shows '^no answer, trying again: '
  keys '?'
  wait_until shows 'used by fillers'
  keys '?'
  kill -CONT "$DAEMON_PID"
  wait_until shows '^\? help'
  stop_process "$DAEMON_PID"
  quit_top
  kill -CONT "$DAEMON_PID"
}

@test "top can be suspended and continued" {
  open_terminal
  open_top
  wait_until shows '^GPU 0 '
  keys C-z
  wait_until shows 'Stopped +gpurota top'
  shows_no '^GPU 0 '
  keys fg Enter
  wait_until shows '^GPU 0 '
  quit_top
  shows_no '^GPU 0 '
}

@test "a signal ends top with the terminal restored" {
  open_terminal
  for signal in TERM INT HUP; do
    open_top
    wait_until shows '^GPU 0 '
    kill -"$signal" "$(pid_of_top)"
    wait_until shows '^ready> *$'
    shows_no '^GPU 0 '
    keys 'clear; stty -a' Enter
    wait_until shows ' icanon '
    keys clear Enter
  done
}

@test "top ends with its terminal" {
  open_terminal
  open_top
  pid=$(pid_of_top)
  terminal kill-server
  wait_until gone "$pid"
}

@test "top has plain forms: no colours, no UTF-8, a terminal that cannot be drawn on, a pipe" {
  reserve --gpu-ids 0 --for 1h
  run gpurota top
  [ "$status" = 0 ]
  [[ ${lines[0]} == "gpurota top  "* ]]
  [[ $output != *$'\033'* ]]
  [[ $output == *" L1 "* ]]
  run env LC_ALL=C.UTF-8 gpurota top --size 60x7
  [ "${#lines[@]}" -le 7 ]
  [[ $output == *"░"* ]]
  run env LC_ALL=C gpurota top --once
  lacks '[^\x00-\x7f]' <(echo "$output")
  run env LC_ALL=C.UTF-8 gpurota top --once --color always
  [[ $output == *$'\033['* ]]
  open_terminal 100 30 TERM=dumb
  keys 'gpurota top' Enter
  wait_until shows '^GPU 1 +free'
  wait_until shows '^ready> *$'
  keys "TERM=nothing-known gpurota top" Enter
  wait_until shows "does not know the terminal that TERM names"
}

@test "top is readable without UTF-8 and without colours" {
  reserve --gpu-ids 0 --for 1h
  open_terminal 100 30 NO_COLOR=1 LC_ALL=C
  open_top
  wait_until shows '^GPU 0 +in use +\[-+\]'
  lacks '\x1b\[([0-9]+;)*[34][0-7][;m]' <(terminal capture-pane -p -e)
  quit_top
}
