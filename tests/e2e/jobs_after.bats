#!/usr/bin/env bats
# Jobs: the order in which they are started at boot (--boot-after).

# shellcheck disable=SC2154 # machine is of job_helpers
load helpers
load job_helpers

# after NAME: prints, as a Python list, the jobs after which the job NAME starts.
after() {
  gpurota job show "$1" --json |
    python3 -c 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["after"])'
}
no_job() { ! gpurota job show "$1" >/dev/null 2>&1; }

@test "a name in --boot-after must be that of a job of one's own, also in update" {
  run -1 gpurota job add web --memory 1G --boot-after db -- true
  [[ "$output" == *'job web is to be started after db (--boot-after), but there is no such job'* ]]
  no_job web
  add db --memory 1G -- sleep 600
  add web --memory 1G --boot-after db -- sleep 600
  [ "$(after web)" = "['db']" ]
  run -1 gpurota job update web --boot-after cache
  [[ "$output" == *'there is no such job'* ]]
  run -1 gpurota job update db --boot-after web
  [[ "$output" == *'wait for each other'* ]]
  [ "$(after db)" = "[]" ]
  gpurota job update web --boot-after ''
  [ "$(after web)" = "[]" ]
}

@test "a job of another user is no dependency" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  add db --memory 1G -- sleep 600
  run -1 as_nobody gpurota job add web --workdir / --memory 1G --boot-after db -- true
  [[ "$output" == *'there is no such job'* ]]
}

@test "a job that others depend on is removed with --force, and their dependency too, also for the next daemon" {
  add db --memory 1G -- true
  add cache --memory 1G -- true
  add web --memory 1G --boot-after db --boot-after cache -- sleep 600
  add api --memory 1G --boot-after db -- sleep 600
  wait_until in_state db finished
  run -1 gpurota job remove db
  [[ "$output" == *'other jobs start after db: web, api.'*'remove --force db'* ]]
  in_state db finished
  gpurota job remove --force db
  wait_until no_job db
  kill_daemon
  start_daemon
  [ "$(after web)" = "['cache']" ]
  [ "$(after api)" = "[]" ]
  gpurota job update web --memory 2G
  gpurota job remove --force web
  gpurota job remove cache
}

@test "in a file the order does not matter; what it adds starts in the order of the names" {
  cat >jobs.toml <<'TOML'
[[job]]
name = "web"
command = ["sleep", "600"]
options = ["--memory", "1G"]
boot_after = ["db"]

[[job]]
name = "db"
command = ["sleep", "600"]
options = ["--memory", "1G"]
TOML
  run -0 gpurota job apply jobs.toml
  [ "$output" = $'added web\nadded db' ]
  [ "$(grep -o 'job started.*job=[a-z]*' gpurotad.log | sed 's/.*job=//' | tr '\n' ' ')" = \
    'db web ' ]
  run -0 gpurota job apply jobs.toml
  [ "$output" = $'unchanged web\nunchanged db' ]
  sed -i 's/"db"\]/"db", "nothing"]/' jobs.toml
  run -1 gpurota job apply jobs.toml
  [[ "$output" == *'after nothing (--boot-after), but there is no such job'* ]]
  [ "$(after web)" = "['db']" ]
}
