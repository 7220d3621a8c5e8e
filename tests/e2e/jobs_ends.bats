#!/usr/bin/env bats
# Jobs: waiting, ends of all kinds, and reboots.

# shellcheck disable=SC2154 # machine is of job_helpers
load helpers
load job_helpers

fill_gpus() {
  in_background holder gpurota run --gpus "$(value 'len(gpus)')" -- sleep 600
  HOLDER=$BACKGROUND_PID
  wait_until holds 'leases'
}

@test "the lease of a job is marked in status, in the queue, in events and in reports" {
  add web --memory 1G "${machine[@]}" -- "$PROGRAM" hold 100
  wait_until logged web holding
  holds '[l["kind"] for l in leases] == ["job"]'
  job_is web 'j["lease_id"] and j["state"] == "running"'
  gpurota status | grep -q job
  gpurota ps | grep -q "$PROGRAM"
  gpurota job remove --force web
  wait_until no_leases
  gpurota report --by kind --json | python3 -c '
import json, sys
sys.exit(0 if any(r["key"] == "job" for r in json.load(sys.stdin)["rows"]) else 1)'
}

@test "a client that claims to be a job gets no lease of a job" {
  run python3 - "$E2E_DIR/run/control.sock" <<'PYTHON'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(json.dumps({"method": "dev.gpurota.Acquire",
                      "parameters": {"request": {"kind": "job"}}}).encode() + b"\0")
print(s.recv(65536).decode())
PYTHON
  [[ "$output" == *InvalidRequest* ]]
}

@test "a job waits in the queue, and shows its position and reason" {
  fill_gpus
  add first --memory 1G -- sleep 600
  wait_until in_state first waiting
  add second --memory 1G -- sleep 600
  wait_until job_is second "j['position'] == 2 and j['request_id'] and j['detail']"
  gpurota job show second | grep -q 'waiting as R[0-9]*, position 2: '
  gpurota job list | grep -q 'waiting (1)'
  gpurota queue --json | grep -q '"kind": "job"'
  kill "$HOLDER"
  wait_until in_state first running
  wait_until in_state second running
  # The run does not begin before the job has its lease.
  job_is second "j['lease_id'] and not j['request_id']"
}

@test "a job stopped while it waits leaves the queue" {
  fill_gpus
  add waits --memory 1G -- sleep 600
  wait_until in_state waits waiting
  gpurota job stop waits
  wait_until in_state waits stopped
  job_is waits 'j["runs"][-1]["reason"] == "stopped"'
  [ "$(gpurota queue --json | grep -c request_id)" = 0 ]
}

@test "a job whose request is cancelled is stopped, and shows who cancelled it" {
  fill_gpus
  add waits --memory 1G --restart always -- sleep 600
  wait_until job_is waits 'j["request_id"]'
  gpurota cancel "$(gpurota job show waits --json | grep -oE '"R[0-9]+"' | tr -d '"')"
  wait_until in_state waits stopped
  gpurota job show waits | grep -q 'cancelled by '
}

@test "show says that a job's request can never be filled" {
  add much --memory 1G -- true
  wait_until in_state much finished
  gpurota set --gpu-ids 0,1 --capacity 500M
  gpurota job start much
  wait_until in_state much failed
  gpurota set --gpu-ids 0,1 --reset
  job_is much 'j["runs"][-1]["reason"] == "cannot-start" and j["runs"][-1]["detail"]'
  cp /bin/true there
  add none --memory 1G -- ./there
  wait_until in_state none finished
  rm there
  gpurota job start none
  wait_until in_state none failed
  gpurota job show none | grep -q 'cannot-start: .*\./there'
  fill_gpus
  run -1 add now --nonblock -- true
  wait_until in_state now failed
  gpurota job show now | grep -q 'cannot-start: '
}

@test "a killed job shows its signal" {
  add crash --memory 1G "${machine[@]}" -- sh -c 'kill -SEGV $$'
  wait_until in_state crash failed
  job_is crash 'j["runs"][-1]["reason"] == "signalled" and j["runs"][-1]["code"] == 11'
  gpurota job show crash | grep -q 'killed by signal 11'
}

@test "a job's time limit ends the whole process tree, and the reason is kept" {
  echo 'grace = "300ms"' >>gpurota.toml
  gpurota reload
  local script='(trap "" TERM; echo "pid $$"; while :; do sleep 0.1; done) & trap "" TERM; '
  script+='while :; do sleep 0.1; done'
  add timed --memory 1G --timeout 1s "${machine[@]}" -- sh -c "$script"
  wait_until in_state timed failed
  job_is timed 'j["runs"][-1]["reason"] == "timeout"'
  wait_until no_leases
  run pgrep -f "while :; do sleep 0.1; done"
  wait_until gone "$(pid_of timed)"
}

@test "a job that bypasses the library and exceeds its limit is stopped, and shows it" {
  add greedy --memory 1G "${machine[@]}" -- sh \
    -c "echo \"pid \$\$\"; exec env -u LD_PRELOAD '$PROGRAM' hold 3000"
  wait_until in_state greedy failed
  job_is greedy 'j["runs"][-1]["reason"] == "over-limit" and "limit" in j["runs"][-1]["detail"]'
  gpurota job show greedy | grep -q 'over-limit: '
  wait_until gone "$(pid_of greedy)"
  wait_until no_leases
}

@test "a job whose lease is released is stopped and not started again" {
  add web --memory 1G --restart always -- sleep 600
  wait_until job_is web 'j["lease_id"]'
  gpurota release "$(value 'leases[0]["lease_id"]')"
  wait_until in_state web stopped
  job_is web '(j["runs"][-1]["reason"] == "lease-lost" and
    "released by '"$(id -un)"'" in j["runs"][-1]["detail"])'
}

@test "under a reservation the job's time and the reservation's end are shown, also by the next daemon" {
  gpurota reserve --memory 2G
  add web --lease L1 --restart always -- sleep 600
  add timed --lease L1 --timeout 3s -- sleep 600
  wait_until job_is web 'j["lease_id"] == "L1"'
  wait_until in_state timed failed
  job_is timed 'j["runs"][-1]["reason"] == "timeout"'
  kill_daemon
  start_daemon
  job_is web 'j["lease_id"] == "L1" and j["state"] == "running"'
  gpurota release L1
  wait_until in_state web stopped
  job_is web '[r["reason"] for r in j["runs"]] == ["lease-lost"]'
}

@test "after a reboot running jobs are started again in their order, and no others" {
  add once --memory 1G -- sh -c 'echo ran once'
  wait_until in_state once finished
  add off --memory 1G -- sleep 600
  wait_until in_state off running
  gpurota job stop off
  wait_until in_state off stopped
  # Each job writes its name when it starts; the jobs are added in the order c, a, b.
  local order=$E2E_DIR/order name
  for name in c a b; do
    add "$name" --memory 1G --env E2E_DIR -- sh -c "echo $name >>'$order'; exec sleep 600"
    wait_until says order "$name"
  done
  gpurota job update c --boot-after b
  reboot_machine
  rm -f "$order"
  start_daemon
  for name in a b c; do wait_until in_state "$name" running; done
  wait_until test -s "$order"
  job_is a 'j["runs"][-1]["reason"] == "reboot"'
  job_is off 'j["state"] == "stopped"'
  job_is once 'j["state"] == "finished" and len(j["runs"]) == 1'
  # The jobs start in the order in which they were added, each after those of its --boot-after.
  python3 - "$E2E_DIR/gpurotad.log" <<'PYTHON'
import re, sys
text = open(sys.argv[1]).read()
started = re.findall(r"job started.*?job=(\S+)", text)[-3:]
sys.exit(0 if started == ["b", "c", "a"] else f"started {started}")
PYTHON
}

@test "killing a job's keeper ends the run, and the end is shown" {
  add web --memory 1G "${machine[@]}" -- sh -c 'echo "pid $$"; exec sleep 600'
  wait_until logged web 'pid '
  kill -KILL "$(keepers)"
  wait_until in_state web failed
  wait_until gone "$(pid_of web)"
  wait_until no_leases
}

# Starts the daemon as if systemd had started it.
as_service() {
  mkdir -p bin
  ln -sf "$BATS_TEST_DIRNAME/systemd_run_stand_in.py" bin/systemd-run
  export STAND_IN_LOG=$E2E_DIR/asked
  as_daemon() { PATH=$E2E_DIR/bin:$PATH SYSTEMD_EXEC_PID=$BASHPID exec "$@"; }
}

@test "where systemd started the daemon it is asked for keepers, and they are stopped and taken up" {
  if [ "$(id -u)" != 0 ]; then skip "only root asks systemd for units"; fi
  stop_daemon
  as_service
  start_daemon
  add web --memory 1G "${machine[@]}" -- sh -c 'echo "pid $$"; exec sleep 600'
  wait_until logged web 'pid '
  grep -q -- '--slice=gpurota-jobs.slice' asked
  lacks sleep asked
  # The keeper is not a child of the daemon, but its lease is still one of a job.
  [ "$(ps -o ppid= -p "$(keepers)" | tr -d ' ')" != "$DAEMON_PID" ]
  wait_until holds '[l["kind"] for l in leases] == ["job"]'
  kill_daemon
  start_daemon
  in_state web running
  gpurota job stop web
  wait_until in_state web stopped
  job_is web '[r["reason"] for r in j["runs"]] == ["stopped"]'
  wait_until gone "$(pid_of web)"
}

@test "no answer shows the value of a job's variable" {
  printf 'FROM_FILE=very-secret-file\n' >vars
  TOKEN=very-secret-token gpurota job add secret --memory 1G --env TOKEN --env-file vars -- \
    sh -c 'echo "has ${#TOKEN} ${#FROM_FILE}"; exec sleep 600'
  wait_until logged secret 'has 17 16'
  OTHER=very-secret-other gpurota job update secret --env OTHER
  gpurota job export >exported
  run gpurota job apply exported
  gpurota job restart secret
  wait_until job_is secret 'len(j["runs"]) == 1 and j["state"] == "running"'
  run gpurota job stop secret --user nobody-at-all
  {
    gpurota job show secret
    gpurota job show secret --json
    gpurota job list
    gpurota events
    gpurota events --json
    gpurota status --json
    gpurota ps --json
    gpurota queue --json
    gpurota report --by note
    gpurota doctor || true
    gpurota job logs secret
  } >shown
  find "$E2E_DIR/state/audit" -type f -exec cat {} + >>shown
  cat gpurotad.log >>shown
  cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' >>shown || true
  lacks 'very-secret' shown
  lacks 'very-secret' exported
  grep -q TOKEN shown
  grep -q UpdateJob shown
  # Only the daemon can read the files with these values.
  [ -z "$(find "$E2E_DIR/state" -perm /077 -type f)" ]
  gpurota job export --with-secrets | grep -q 'very-secret-other'
}

@test "a job has a control group of its own, which goes with it" {
  local point group
  point=$(sed -n 's|^[^ ]* \([^ ]*\) cgroup2 .*|\1|p' /proc/mounts | head -n 1)
  group=$point$(sed -n 's/^0:://p' /proc/self/cgroup)/gpurota-e2e-$$
  if [ -z "$point" ] || ! mkdir "$group" 2>/dev/null; then
    skip "no control group can be written"
  fi
  rmdir "$group"
  gpurota job add own --gpu-ids 0 --memory 1G -- sh -c 'grep ^0:: /proc/self/cgroup; exec sleep 600'
  wait_until eval \
    'gpurota job logs own | grep -q "/gpurota-keeper-job-[0-9]*-[0-9]*/gpurota-L[0-9]*"'
  group=$point$(gpurota job logs own | sed -n 's/^0:://p' |
    sed 's|\(.*/gpurota-keeper-job-[0-9]*-[0-9]*\)/.*|\1|')
  [ -d "$group" ]
  gpurota job remove --force own
  wait_until eval '[ ! -d "$group" ]'
}

@test "a change that cannot be stored is reported, and stored when there is space again" {
  add stopped --memory 1G --restart always -- sleep 600
  add removed --memory 1G --restart always -- sleep 600
  gpurota filler add paused --memory 1G -- sleep 600
  gpurota filler add dropped --memory 1G -- sleep 600
  gpurota reserve --memory 1G --short
  wait_until job_is stopped 'j["lease_id"]'
  wait_until job_is removed 'j["lease_id"]'
  fill_disk
  run -1 gpurota job stop stopped
  [[ $output == *"stopped: the change is in effect, but not stored: cannot "* ]]
  run -1 gpurota job remove --force removed
  run -1 gpurota filler pause paused
  [[ $output == *"paused: the change is in effect, but not stored: cannot "* ]]
  run -1 gpurota filler remove dropped
  run -1 gpurota release
  [[ $output == *"the change is in effect, but not stored: cannot "* ]]
  run -1 gpurota job add more --memory 1G -- true
  wait_until in_state stopped stopped
  wait_until lacks_job removed
  wait_until store_is error
  make_room
  wait_until store_is ok
  wait_until reports 3
  kill_daemon
  start_daemon
  in_state stopped stopped
  lacks_job removed
  lacks_job more
  holds 'not any(l["kind"] == "reservation" for l in leases)'
  [ "$(gpurota filler list --json | grep -c '"name"')" = 1 ]
  gpurota filler list paused --json | grep -q '"state": "paused"'
  gpurota filler remove paused
}

lacks_job() { [[ $(gpurota job list) != *"$1"* ]]; }
# reports N: the report, which comes from the store, counts N leases.
reports() { gpurota report --json | python3 -c '
import json, sys
sys.exit(0 if sum(row["leases"]
                  for row in json.load(sys.stdin)["rows"]) == int(sys.argv[1]) else 1)' "$1"; }

@test "the reason of a refused run is known even if its keeper could write no report" {
  add silent --memory 1G -- true
  wait_until in_state silent finished
  gpurota set --gpu-ids 0,1 --capacity 500M
  mkdir "$(echo "$E2E_DIR"/state/jobs/*)/report.new"
  gpurota job start silent
  wait_until in_state silent failed
  gpurota job show silent | grep 'cannot-start: 1 GiB is more than'
  rmdir "$E2E_DIR"/state/jobs/*/report.new
}
