#!/usr/bin/env bats
# A limit that is not enforced, without a message: libgpurota is loaded in a program but never
# connects to the daemon. Such a program is found, stopped unless the site says otherwise, and
# reported; a program that keeps to the rules is never mistaken for one.

load helpers
load watch_helpers

teardown() { end_test; }

PAST=$E2E_PAST_LIBRARY

# past FILE MIB [OPTION…]: starts a program that bypasses the library, under a lease with these
# options; returns when the program holds its memory.
past() {
  in_background "$1" gpurota run "${@:3}" -- "$PAST" "$2"
  wait_until says "$1" holding
}

# is_loose PID: the watch has found that the process is not limited.
is_loose() { finding "f['kind'] == 'not_limited' and any(p['pid'] == $1 for p in f['processes'])"; }

# process EXPRESSION: whether a Python expression is true of some process p that ps shows.
process() {
  gpurota ps --json | python3 -c '
import json, sys
sys.exit(0 if any(eval(sys.argv[1], {"p": p})
                  for p in json.load(sys.stdin)["processes"]) else 1)' "$1"
}

# Starts a program that bypasses the library, and waits until the watch has stopped it. By then the
# watch has also found anything else that it will find.
one_is_found_and_stopped() {
  past clock 10 --gpu-ids 1 --memory 1G
  ends_with 143 "$BACKGROUND_PID"
}
found_so_far() { gpurota events --json | grep -c '"type":"finding_begun"' || true; }

@test "a program that bypasses the library is stopped by default, and its user is notified why" {
  make_folders
  start_daemon
  past loose 100 --gpu-ids 0 --memory 2G
  ends_with 143 "$BACKGROUND_PID"
  says loose \
    'gpurota: .*in use under L1 by 1 process .*libgpurota is loaded there but does not limit it'
  says loose 'GPUROTA_DEBUG=1.*(process [0-9]*); it is being stopped'
  event_is 'libgpurota is loaded there but does not limit it'
  gpurota events --json | grep '"type":"finding_begun"' | grep -q '"finding":"not_limited"'
  event_is 'process_stopped.*SIGTERM was sent to 1 process'
  grep -h '"operation":"terminated"' "state/audit/$UID.jsonl" | grep '"lease":"L1"'
  gpurota doctor | grep 'did not limit it'
  wait_until no_findings
}

@test "a program that bypasses the library in a swap lease is stopped, too" {
  make_folders
  start_daemon
  past loose 100 --gpu-ids 0 --swap --memory 2G
  ends_with 143 "$BACKGROUND_PID"
  says loose 'does not limit it'
}

@test "where the site chooses it a bypass is only reported: in status, in ps and to the next daemon" {
  make_folders
  configure '[watch]' 'not_limited = "report"'
  start_daemon
  past loose 100 --gpu-ids 0 --memory 2G
  wait_until process 'p["library"] == "silent" and not p["tenant"] and p["lease_id"] == "L1"'
  SILENT=$(pgrep -P "$BACKGROUND_PID" | head -n 1)
  gpurota ps | grep "libgpurota is loaded in process $SILENT but does not limit it"
  wait_until is_loose "$SILENT"
  gpurota status | grep 'NO LIMIT .*not enforced for'
  kill_daemon
  start_daemon
  wait_until is_loose "$SILENT"
  kill -0 "$SILENT"
  lacks process_stopped <(gpurota events)
}

@test "a job that is not limited ends with the reason" {
  make_folders
  start_daemon
  gpurota job add loose --env LD_LIBRARY_PATH --env GPUROTA_SIM_DIR --env E2E_DIR --gpu-ids 0 \
    --memory 1G -- "$PAST" 100
  wait_until sh -c "gpurota job show loose | grep -q 'over-limit: .*does not limit it'"
  gpurota job remove --force loose
}

@test "a program without libgpurota is shown, charged and left to the policy of the lease's limit" {
  make_folders
  start_daemon
  in_background static gpurota run --gpu-ids 0 --memory 1G -- env -u LD_PRELOAD "$PROGRAM" hold 100
  in_background emptied gpurota run --gpu-ids 0 --memory 1G -- env -u GPUROTA_LEASE \
    -u GPUROTA_SOCKET "$PROGRAM" hold 100
  wait_until says static holding
  wait_until says emptied holding
  wait_until process 'p["library"] == "absent" and p["lease_id"] == "L1"'
  wait_until process 'p["library"] == "absent" and p["lease_id"] == "L2"'
  gpurota ps | grep 'not loaded'
  one_is_found_and_stopped
  [ "$(found_so_far)" = 1 ]
  [ "$(value 'sorted(l["lease_id"] for l in leases)[:2]')" = "['L1', 'L2']" ]
}

@test "tenants, also stopped ones, are not found over a kill -9 of the daemon" {
  make_folders
  # Without a grace period, any tenant that reconnects is late.
  printf 'reconnect_grace = "0s"\n' >gpurota.toml
  start_daemon
  in_background tenant gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 100
  in_background frozen gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 100
  local holder=$BACKGROUND_PID
  in_background swap gpurota run --gpu-ids 1 --swap --memory 2G -- "$PROGRAM" hold 100
  wait_until says tenant holding
  wait_until says frozen holding
  wait_until says swap holding
  local frozen
  frozen=$(pgrep -P "$holder" | head -n 1)
  kill_daemon
  stop_process "$frozen"
  start_daemon
  wait_until process "p['pid'] == $frozen and p['library'] == 'away'"
  gpurota ps | grep away
  one_is_found_and_stopped
  [ "$(found_so_far)" = 1 ]
  kill -CONT "$frozen"
  wait_until process "p['pid'] == $frozen and p['tenant']"
  [ "$(value 'len(leases)')" = 3 ]
}

@test "programs that only read NVML, and those on a whole GPU, are not found" {
  make_folders
  start_daemon
  in_background reader gpurota run --gpu-ids 1 --memory 1G -- python3 -c '
import ctypes, time
nvml = ctypes.CDLL("libnvidia-ml.so.1")
assert nvml.nvmlInit_v2() == 0
print("reading", flush=True)
time.sleep(1000)'
  wait_until says reader reading
  past whole 100 --gpu-ids 0
  one_is_found_and_stopped
  [ "$(found_so_far)" = 1 ]
  holds '{l["lease_id"] for l in leases} >= {"L1", "L2"}'
}
