#!/usr/bin/env bats
# Figures over time: `gpurota history`, what of them outlives a daemon, and what becomes of a file that cannot be used.

load helpers

# The machine is that of all cases.
setup() {
  gpurota-sim set gpu0.utilisation=0
  start_daemon
}
teardown() { end_test; }

FILE=state/history.db

# history EXPRESSION [ARGUMENT…]: whether it is true of `gpurota history --json`: h is all, gpus its GPUs, points those of the first.
history_holds() {
  local expression=$1
  shift
  gpurota history --json "$@" | python3 -c '
import json, sys
h = json.load(sys.stdin)
names = {"h": h, "gpus": h["gpus"], "leases": h["leases"], "points": h["gpus"][0]["points"] if h["gpus"] else []}
sys.exit(0 if eval(sys.argv[1], names) else 1)' "$expression"
}

check_of() { gpurota doctor --json | grep -A3 '"history"' | grep -q "\"$1\""; }

@test "a GPU's load, memory, power and temperature are recorded each second" {
  in_background holder gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until history_holds 'any(p["utilisation_percent"] == 0 for p in points)'
  gpurota-sim set gpu0.utilisation=80
  wait_until history_holds 'any(p["max_used_bytes"] >= 100 << 20 and p["utilisation_percent"] == 80 for p in points)'
  history_holds 'h["step_seconds"] == 2 and len(gpus) >= 1'
  wait_until history_holds 'points[-1]["power_mw"] > points[0]["power_mw"]'
  wait_until history_holds 'points[-1]["temperature_celsius"] > points[0]["temperature_celsius"]'
  run -0 gpurota history
  [[ "$output" == *'80 %'* ]]
  holds 'gpus[0]["power_mw"] > 0 and gpus[0]["power_limit_mw"] > gpus[0]["power_mw"]'
  holds 'gpus[0]["temperature_celsius"] < gpus[0]["slowdown_celsius"]'
}

@test "what is two flushes old is there after a kill -9, and all of it after a stop" {
  gpurota-sim set gpu0.utilisation=30
  wait_until history_holds 'sum(p["seconds"] for p in points) >= 11' --since 10m
  wait_until history_holds 'sum(p["seconds"] for p in points) >= 22' --since 10m
  local before
  before=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  kill_daemon
  start_daemon
  # At most ten seconds are lost, and those in which there was no daemon.
  wait_until history_holds "sum(p['seconds'] for p in points if p['time'] < '$before') >= 11" --since 10m
  local known
  known=$(gpurota history --json --since 10m | python3 -c 'import json, sys; print(json.load(sys.stdin)["gpus"][0]["points"][-1]["time"])')
  stop_daemon
  start_daemon
  wait_until history_holds "any(p['time'] == '$known' for p in points)" --since 10m
}

@test "a damaged file is put aside and a new one begun, and doctor says so" {
  stop_daemon
  head -c 20000 /dev/urandom >"$FILE"
  start_daemon
  wait_until test -e "$FILE.damaged"
  wait_until check_of warning
  gpurota reserve --memory 1G --short
  wait_until history_holds 'len(points) >= 1'
  grep -q 'the history begins anew' gpurotad.log
}

@test "a history that cannot be stored loses nothing but what is in the history, and is said once" {
  # As a full disk, but for the history alone.
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

@test "a lease has its own history, also when it has ended, and everybody may see it without what is private" {
  in_background holder gpurota run --gpu-ids 0 --memory 2G --note secret -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until history_holds 'any(p["max_used_bytes"] >= 100 << 20 for p in leases[0]["points"])' --lease L1
  gpurota release --all
  wait_until no_leases
  history_holds 'leases[0]["lease_id"] == "L1" and leases[0]["points"]' --lease L1
  run -0 gpurota history --lease L1
  [[ "$output" == *L1* && "$output" != *secret* ]]
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
  hours() { gpurota report --json | python3 -c 'import json, sys; r = json.load(sys.stdin)["rows"][0]; sys.exit(0 if eval(sys.argv[1]) else 1)' "$1"; }
  wait_until hours 'r["idle_gpu_seconds"] >= 1 and r["used_gpu_seconds"] == 0'
  gpurota-sim set gpu0.utilisation=100
  wait_until hours 'r["used_gpu_seconds"] >= 2'
  run -0 gpurota report
  [[ "$output" == *USED*IDLE* ]]
}
