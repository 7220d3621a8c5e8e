#!/usr/bin/env bats
# Figures over time: what `gpurota history` shows, which figures outlive a daemon, and what happens
# to a file that cannot be used.

load helpers

# All cases share one machine, so its settings are reset.
setup() {
  gpurota-sim set gpu0.utilisation=0
  start_daemon
}
teardown() { end_test; }

FILE=state/history.db

# history_holds EXPRESSION [ARGUMENT…]: whether the expression is true of `gpurota history --json`:
# h is the whole answer, gpus has its GPUs, and points has the points of the first GPU.
history_holds() {
  local expression=$1
  shift
  gpurota history --json "$@" | python3 -c '
import json, sys
h = json.load(sys.stdin)
names = {"h": h, "gpus": h["gpus"], "leases": h["leases"],
         "points": h["gpus"][0]["points"] if h["gpus"] else []}
sys.exit(0 if eval(sys.argv[1], names) else 1)' "$expression"
}

check_of() { gpurota doctor --json | grep -A3 '"history"' | grep -q "\"$1\""; }

@test "a GPU's load, memory, power and temperature are recorded each second" {
  in_background holder gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until history_holds 'any(p["utilisation_percent"] == 0 for p in points)'
  gpurota-sim set gpu0.utilisation=80
  wait_until history_holds \
    'any(p["max_used_bytes"] >= 100 << 20 and p["utilisation_percent"] == 80 for p in points)'
  history_holds 'h["step_seconds"] == 2 and len(gpus) >= 1'
  wait_until history_holds 'points[-1]["power_mw"] > points[0]["power_mw"]'
  wait_until history_holds 'points[-1]["temperature_celsius"] > points[0]["temperature_celsius"]'
  run -0 gpurota history
  [[ "$output" == *'80 %'* ]]
  holds 'gpus[0]["power_mw"] > 0 and gpus[0]["power_limit_mw"] > gpus[0]["power_mw"]'
  holds 'gpus[0]["temperature_celsius"] < gpus[0]["slowdown_celsius"]'
}

@test "history that is two flushes old is there after a kill -9, and all of it after a stop" {
  gpurota-sim set gpu0.utilisation=30
  wait_until history_holds 'sum(p["seconds"] for p in points) >= 11' --since 10m
  wait_until history_holds 'sum(p["seconds"] for p in points) >= 22' --since 10m
  local before
  before=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  kill_daemon
  start_daemon
  # At most ten seconds of figures are lost, besides the time without a daemon.
  wait_until history_holds "sum(p['seconds'] for p in points if p['time'] < '$before') >= 11" \
    --since 10m
  local known
  known=$(gpurota history --json --since 10m |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["gpus"][0]["points"][-1]["time"])')
  stop_daemon
  start_daemon
  wait_until history_holds "any(p['time'] == '$known' for p in points)" --since 10m
}

@test "a damaged file is renamed and a new one begun, and doctor reports it" {
  stop_daemon
  head -c 20000 /dev/urandom >"$FILE"
  start_daemon
  wait_until test -e "$FILE.damaged"
  wait_until check_of warning
  gpurota reserve --memory 1G --short
  wait_until history_holds 'len(points) >= 1'
  grep -q 'the history begins anew' gpurotad.log
}

@test "a history that cannot be stored loses only history, and is reported once" {
  # Only the file of the history cannot be written, as on a full disk.
  gpurota reserve --memory 1G --short
  stop_daemon
  rm -f "$FILE"
  mkdir "$FILE"
  start_daemon
  wait_until check_of warning
  wait_until history_holds 'len(points) >= 3'
  holds 'len(leases) == 1'
  [ "$(grep -c 'the history cannot be stored' gpurotad.log)" = 1 ]
}

@test "a lease keeps its own history after its end, and everybody sees it without private text" {
  in_background holder gpurota run --gpu-ids 0 --memory 2G --note secret -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until history_holds 'any(p["max_used_bytes"] >= 100 << 20 for p in leases[0]["points"])' \
    --lease L1
  gpurota release --all
  wait_until no_leases
  history_holds 'leases[0]["lease_id"] == "L1" and leases[0]["points"]' --lease L1
  run -0 gpurota history --lease L1
  [[ "$output" == *L1* && "$output" != *secret* ]]
}

# drawn WIDTH [VARIABLE=VALUE]… COMMAND…: the output of the command on a terminal of this width.
drawn() { script -qfec "stty cols $1; TERM=xterm ${*:2}" /dev/null </dev/null | tr -d '\r'; }
widest() { wc -L <"$1"; }

@test "a terminal gets graphs in its width, characters and colours; a pipe a row for each GPU" {
  in_background holder gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 1000
  wait_until says holder holding
  gpurota-sim set gpu0.utilisation=80
  wait_until history_holds 'any(p["utilisation_percent"] == 80 and p["used_bytes"] for p in points)'
  drawn 70 gpurota history --gpu-ids 0 >picture
  grep -q '^from 20..-..-.. ..:..:.. to ' picture
  grep -q 'GPU 0: load .* %, max 80 %; memory ' picture
  grep -Eq '^load .*100 %.*│' picture
  grep -Eq '│.*[▁▂▃▄▅▆▇█]' picture
  grep -Eq 'memory .* GiB.* .*│' picture
  grep -Eq '└.*┬' picture
  grep -Eq '[0-2][0-9]:[0-5][0-9]' picture
  grep -q $'\033\\[32m' picture
  # Without colour, and in ASCII, the output is exactly as wide as the terminal.
  local width
  for width in 38 57 140; do
    drawn "$width" NO_COLOR=1 gpurota history >plain
    lacks $'\033' plain
    [ "$(widest plain)" = "$width" ]
    drawn "$width" NO_COLOR=1 LC_ALL=C gpurota history >plain
    LC_ALL=C lacks '[^ -~]' plain
    [ "$(widest plain)" = "$width" ]
  done
  drawn 60 NO_COLOR=1 TERM=linux gpurota history >plain
  LC_ALL=C lacks '[^ -~]' plain
  # A terminal that is too narrow for graphs gets the same table as a pipe: a row for each GPU.
  drawn 37 NO_COLOR=1 gpurota history --gpu-ids 0 >narrow
  gpurota history --gpu-ids 0 >piped
  grep -q '^GPU  *LOAD  *MAX  *MEMORY' narrow
  grep -q '^GPU  *LOAD  *MAX  *MEMORY' piped
  [ "$(grep -c '^0 ' piped)" = 1 ]
  lacks $'[│█]|\033' piped
  # A lease has graphs of its own.
  drawn 60 NO_COLOR=1 gpurota history --lease L1 >lease
  grep -q '^L1: load ' lease
  grep -q '^memory .* MiB │' lease || grep -q '^memory .* GiB │' lease
}

@test "--steps prints a row for each step, all with the same number of fields" {
  gpurota-sim set gpu0.utilisation=80
  wait_until history_holds 'sum(p["utilisation_percent"] == 80 for p in points) >= 2'
  gpurota history --gpu-ids 0 --steps >rows
  head -n 1 rows | grep -q '^TIME  *GPU  *LOAD %  *USED GiB  *MAX  *WATT'
  [ "$(awk 'NR > 1 { print NF }' rows | sort -u)" = 11 ]
  [ "$(wc -l <rows)" -ge 3 ]
  awk '$4 == 80' rows | grep -q .
  run -2 gpurota history --steps --json
  [[ "$output" == *"leave --steps out"* ]]
}

@test "an unknown lease or GPU is an error that says what to do" {
  local form
  for form in '' --steps --json; do
    # shellcheck disable=SC2086 # none, or one
    run -1 gpurota history --lease L99 $form
    [[ "$output" == *"there are no figures of a lease L99: 'gpurota status' lists"* ]]
  done
  run -1 gpurota history --gpu-ids 99
  [[ "$output" == *'there is no GPU "99"'* ]]
  run -1 gpurota history --lease nobodys
  [[ "$output" == *"no lease is called 'nobodys'"* ]]
  # An ended lease keeps its figures. If there are none for the time asked for, the command says
  # when they begin.
  in_background holder gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until history_holds 'leases[0]["points"]' --lease L1
  gpurota release --all
  wait_until no_leases
  wait_until has_none_of_late
  grep -q 'the first figures of L1 are of 20' said
  history_holds 'leases[0]["points"] == []' --lease L1 --since 1s
}
has_none_of_late() {
  gpurota history --lease L1 --since 1s >said
  grep -q '^nothing was sampled' said
}

@test "Xid and ECC errors, and what limits the clocks" {
  wait_until history_holds 'points and points[-1]["xid_errors"] == 0'
  gpurota-sim set gpu0.xid=79
  wait_until history_holds 'sum(p["xid_errors"] or 0 for p in points) == 1'
  gpurota-sim set gpu0.utilisation=100
  wait_until history_holds '"power" in (points[-1]["clock_limits"] or [])'
  wait_until holds 'gpus[0]["xid_errors"] == 1 and "power" in gpus[0]["clock_limits"]'
  run -0 gpurota history
  [[ "$output" == *'1 Xid'* && "$output" == *power* ]]
}

@test "the report says what of the hours held was used, and what was idle" {
  in_background holder gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder holding
  hours() {
    gpurota report --json | python3 -c '
import json, sys
r = json.load(sys.stdin)["rows"][0]
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1"
  }
  wait_until hours 'r["idle_gpu_seconds"] >= 1 and r["used_gpu_seconds"] == 0'
  gpurota-sim set gpu0.utilisation=100
  wait_until hours 'r["used_gpu_seconds"] >= 2'
  run -0 gpurota report
  [[ "$output" == *USED*IDLE* ]]
}
