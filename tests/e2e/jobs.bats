#!/usr/bin/env bats
# `gpurota job`: programs that the daemon starts, restarts and keeps the output of.

# shellcheck disable=SC2154 # machine is of job_helpers
load helpers
load job_helpers

@test "a job runs as its owner under a lease, and how it ended and what it printed are kept" {
  add hello --memory 1G "${machine[@]}" -- sh -c 'id -u; pwd; echo "lease $GPUROTA_LEASE"; exit 3'
  wait_until in_state hello failed
  job_is hello \
    'j["runs"][0]["reason"] == "exited" and j["runs"][0]["code"] == 3 and j["runs"][0]["started"]'
  gpurota job show hello | grep 'exited 3'
  [ "$(gpurota job logs hello | head -n 1)" = "$(id -u)" ]
  logged hello "$PWD"
  logged hello 'lease L'
  [ "$(gpurota job logs hello -n 1 | cut -c1-6)" = 'lease ' ]
}

@test "a job has its limit" {
  add info --memory 2G "${machine[@]}" -- "$PROGRAM" info
  wait_until in_state info finished
  logged info "size=$((2 << 30))"
}

@test "a failing job is restarted, with pauses, until it succeeds" {
  add stubborn --memory 1G --restart on-failure -- sh \
    -c 'echo run; [ "$(ls | grep -c mark)" = 2 ] || { touch "mark$$"; exit 1; }'
  wait_until in_state stubborn finished
  [ "$(gpurota job logs stubborn | grep -c run)" = 3 ]
  job_is stubborn '[r["code"] for r in j["runs"]] == [1, 1, 0]'
}

@test "a job survives a kill -9 of the daemon: the next one supervises and stops the same process" {
  add long --memory 1G "${machine[@]}" -- sh -c 'echo "pid $$"; exec sleep 600'
  wait_until logged long 'pid '
  local pid
  pid=$(gpurota job logs long | sed -n 's/^pid //p')
  kill_daemon
  kill -0 "$pid"
  start_daemon
  in_state long running
  kill -0 "$pid"
  [ "$(gpurota job logs long | grep -c pid)" = 1 ]
  gpurota job stop long
  wait_until in_state long stopped
  wait_until gone "$pid"
  job_is long 'j["runs"][-1]["reason"] == "stopped" and len(j["runs"]) == 1'
}

@test "a job that ends while there is no daemon has its exit code" {
  add away --memory 1G "${machine[@]}" -- sh \
    -c 'echo ready; while [ ! -e go ]; do sleep 0.05; done; exit 5'
  wait_until logged away ready
  local keeper
  keeper=$(keepers)
  kill_daemon
  touch go
  wait_until gone "$keeper"
  start_daemon
  wait_until in_state away failed
  job_is away 'j["runs"][0]["code"] == 5'
}

@test "a stop survives a restart of the daemon, and a finished job is not run again" {
  add once --memory 1G -- sh -c 'echo ran'
  add stopped --memory 1G --restart always -- sleep 600
  wait_until in_state once finished
  wait_until in_state stopped running
  gpurota job stop stopped
  wait_until in_state stopped stopped
  stop_daemon
  start_daemon
  in_state once finished
  in_state stopped stopped
  [ "$(gpurota job logs once | grep -c ran)" = 1 ]
  gpurota job start once
  wait_until job_is once 'len(j["runs"]) == 2'
}

@test "a job that ignores TERM is killed" {
  echo 'grace = "200ms"' >>gpurota.toml
  stop_daemon
  start_daemon
  add deaf --memory 1G "${machine[@]}" -- sh \
    -c 'trap "" TERM; echo "pid $$"; while :; do sleep 0.1; done'
  wait_until logged deaf 'pid '
  local pid
  pid=$(gpurota job logs deaf | sed -n 's/^pid //p')
  gpurota job stop deaf
  wait_until in_state deaf stopped
  wait_until gone "$pid"
}

@test "restart starts a job again, and removing a running job needs --force" {
  add web --memory 1G -- sh -c 'echo start; exec sleep 600'
  wait_until logged web start
  gpurota job restart web
  wait_until job_is web 'j["state"] == "running" and len(j["runs"]) == 1'
  wait_until logged_twice
  run -1 gpurota job remove web
  [[ "$output" == *--force* ]]
  gpurota job remove --force web
  wait_until no_jobs
  wait_until no_leases
  [ -z "$(ls "$E2E_DIR/state/jobs")" ]
}
logged_twice() { [ "$(gpurota job logs web | grep -c start)" = 2 ]; }

@test "the values of a job's variables are shown nowhere" {
  TOKEN=hush-hush gpurota job add secret --memory 1G --env TOKEN -- sh \
    -c 'echo "has ${#TOKEN}"; exec sleep 600'
  wait_until logged secret 'has 9'
  gpurota job show secret --json >shown
  gpurota job list >listed
  cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' >argv || true
  lacks hush shown
  lacks hush listed
  lacks hush-hush argv
  lacks hush gpurotad.log
  grep -q TOKEN shown
}

@test "show prints in how many seconds a job starts again" {
  add crash --memory 1G --restart always -- false
  backs_off() {
    gpurota job show crash | grep -qE '^state +backing-off: starts again in [0-9]+ s$'
  }
  wait_until backs_off
}

@test "an invalid job is refused with the reason" {
  add a --memory 1G -- sleep 600
  run -1 gpurota job add a -- true
  [[ "$output" == *'there is a job a already'* ]]
  run -1 gpurota job add ../x -- true
  [[ "$output" == *'is not a name for a job'* ]]
  run -1 gpurota job add "$(printf 'x%.0s' {1..65})" -- true
  [[ "$output" == *'is not a name for a job'*'at most 64'* ]]
  head -c 70000 /dev/zero | tr '\0' x | sed 's/^/BIG=/' >big
  run -1 gpurota job add x --env-file big -- true
  [[ "$output" == *'too long to be sent'* ]]
  mkdir gone
  cd gone
  rmdir ../gone
  run -1 gpurota job add x -- true
  [[ "$output" == *'--workdir'* ]]
  gpurota job add elsewhere --workdir / --memory 1G -- true
  cd "$E2E_DIR"
  run -2 gpurota job add x --memory nonsense -- true
  [[ "$output" == *--memory* ]]
  run -1 gpurota job add x --boot-after x -- true
  [[ "$output" == *'wait for each other'* ]]
  run -1 gpurota job add x --filler -- true
  [[ "$output" == *"'gpurota filler add'"* ]]
  run -1 gpurota job show nobody
  [[ "$output" == *'no job nobody'* ]]
  mkdir place
  add lost --memory 1G --workdir place -- true
  wait_until in_state lost finished
  rmdir place
  gpurota job start lost
  wait_until in_state lost failed
  gpurota job show lost | grep 'entering its working directory .*/place failed: .*--workdir'
  run --separate-stderr gpurota job logs lost
  [ -z "$output" ]
  [[ "$stderr" == *"no output yet: 'gpurota job show lost'"* ]]
}


@test "a job that could never start is refused when it is added, with the remedy" {
  mkdir venv
  printf '#!/bin/sh\nsleep 600\n' > venv/serve
  chmod +x venv/serve
  PATH=$PWD/venv:$PATH run -1 gpurota job add web --memory 1G -- serve
  local own="on yours it is $PWD/venv/serve: write that, or add --env PATH"
  [[ "$output" == *"no command 'serve' on the job's PATH (/usr/local/bin:/usr/bin:/bin); $own"* ]]
  run -1 gpurota job add web --memory 1G -- srve
  [[ "$output" == *"write its whole path, or set PATH and add --env PATH"* ]]
  run -1 gpurota job add web --memory 1G -- ./serve
  run -1 gpurota job add web --memory 1G --workdir nowhere -- true
  local missing="No such file or directory; name another folder with --workdir"
  [[ "$output" == *"cannot start in $PWD/nowhere: $missing"* ]]
  run -1 gpurota filler add web -- srve
  [[ "$output" == *"on the filler's PATH"* ]]
  gpurota job list | grep -x 'no jobs'
  PATH=$PWD/venv:$PATH add ours --memory 1G --env PATH -- serve
  add relative --memory 1G --workdir venv -- ./serve
  wait_until in_state ours running
  wait_until in_state relative running
  cp venv/serve venv/sleep
  PATH=$PWD/venv:$PATH run gpurota job add other --memory 1G -- sleep 600
  local own="on your PATH 'sleep' is $PWD/venv/sleep: write that if you mean it"
  [[ "$output" == *"the job runs "*"/bin/sleep; $own"* ]]
}

@test "job add prints the state of the new job" {
  run -0 gpurota job add web --memory 1G -- sleep 600
  [[ "$output" == 'added job web: runs as L1 on GPU '[01] ]]
  gpurota reserve --gpus 1 --for 1h > /dev/null
  run -0 gpurota job add whole --gpus 2 -- sleep 600
  [[ "$output" == 'added job whole: in the queue, position 1: 0 of 2 GPUs are free for it; '* ]]
  # With --boot-after, the command is not checked beforehand, because the other job may make the
  # program. The message must not say that the job runs.
  run -1 gpurota job add later --memory 1G --boot-after web -- ./made-by-web
  [[ "$output" == \
    *'added job later, which cannot start: '*'./made-by-web'*'(gpurota job show later)' ]]
}

@test "another user's job is reported as not found; administrators see and stop it" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  as_nobody gpurota job add theirs --workdir / --memory 1G -- sh -c 'id -u; exec sleep 600'
  wait_until theirs_runs
  [ "$(gpurota job logs theirs --user nobody | head -n 1)" = 65534 ]
  add mine --memory 1G -- sleep 600
  [ "$(as_nobody gpurota job list | grep -c mine)" = 0 ]
  run -1 as_nobody gpurota job stop mine --user root
  [[ "$output" == *'only administrators'* ]]
  run -1 as_nobody gpurota job logs mine --user root
  [[ "$output" == *'only administrators'* ]]
  run -1 gpurota job stop theirs
  gpurota job remove --force theirs --user nobody
  wait_until theirs_gone
}
theirs_runs() { gpurota job logs theirs --user nobody | grep -q 65534; }
theirs_gone() { ! gpurota job list | grep -q theirs; }

@test "output to the journal is refused where there is none; where there is one, its command is shown" {
  run -2 gpurota job add x --output mail -- true
  [[ "$output" == *"is not file or journal"* ]]
  if [ -e /run/systemd/journal/stdout ]; then
    gpurota job add x --output journal -- true
    run -1 gpurota job logs x
    [[ "$output" == *"journalctl -t gpurota-job-x _UID=$(id -u)"* ]]
  else
    run -1 gpurota job add x --output journal -- true
    [[ "$output" == *'there is no journal here'* ]]
  fi
}
