#!/usr/bin/env bats
# Jobs that start when others have ended (--after-success, --after-end), and waiting for jobs.

# shellcheck disable=SC2154 # machine is of job_helpers
load helpers
load job_helpers

# until_told FILE: a script that runs until the file exists, and ends with the number in the file.
# shellcheck disable=SC2016 # for the shell of the job
until_told() { printf 'while [ ! -e %s ]; do sleep 0.05; done; exit "$(cat %s)"' "$1" "$1"; }
# told FILE CODE: ends such a job with CODE. The file gets its content and its name in one step.
told() { echo "$2" >"$1.new" && mv "$1.new" "$1"; }
no_job() { ! gpurota job show "$1" >/dev/null 2>&1; }

@test "a chain starts one after the other, the last one although its predecessor failed" {
  add a --memory 1G -- sh -c "$(until_told go-a)"
  run -0 gpurota job add b --memory 1G --after-success a -- sh -c 'exit 4'
  [ "$output" = 'added job b: it starts when a has ended well' ]
  add c --memory 1G --after-end b,a -- sh -c 'echo ran'
  gpurota job show b | grep -E '^state +waiting: it starts when a has ended well$'
  gpurota job list | grep -E '^c .*it starts when b has ended and a has ended'
  job_is c 'j["state"] == "waiting" and j["after_end"] == ["b", "a"] and not j["request_id"]'
  gpurota queue >requests
  lacks waits requests
  told go-a 0
  wait_until in_state c finished
  in_state a finished
  in_state b failed
  logged c ran
}

@test "a job that can never run is cancelled with all that depend on it, and cannot be started" {
  add a --memory 1G -- sh -c "$(until_told go-a)"
  add b --memory 1G --after-success a -- true
  add c --memory 1G --after-success b -- true
  add d --memory 1G --after-end c -- true
  told go-a 3
  wait_until in_state d finished
  in_state b cancelled
  job_is b 'j["detail"] == "a has not ended well: exit status 3" and j["runs"] == []'
  job_is c 'j["state"] == "cancelled" and j["detail"] == "b was cancelled"'
  run -1 gpurota job start b
  [[ "$output" == *'job b cannot start: a has not ended well: exit status 3. Start that job'* ]]
  run -1 gpurota job add e --memory 1G --after-success a -- true
  [[ "$output" == *'job e cannot start: a has not ended well'* ]]
  no_job e
  rm go-a
  told go-a 0
  gpurota job start a
  wait_until in_state a finished
  gpurota job start b
  wait_until in_state b finished
}

@test "a chain survives a kill -9 of the daemon; an unobserved end is no success" {
  add a --memory 1G "${machine[@]}" -- sh -c "$(until_told go-a)"
  add b --memory 1G --after-success a -- true
  add u --memory 1G "${machine[@]}" -- sh -c 'sleep 600'
  add c --memory 1G --after-success u -- true
  add d --memory 1G --after-end u -- true
  wait_until in_state a running
  wait_until in_state u running
  local keeper keepers
  keepers=$(keepers)
  kill_daemon
  told go-a 0
  # The keeper is killed, so it can write no report.
  for keeper in $keepers; do
    if tr '\0' ' ' <"/proc/$keeper/cmdline" | grep -q '/jobs/3 '; then kill -KILL "$keeper"; fi
  done
  keeper_of_a_gone() { [ -z "$(keepers)" ]; }
  wait_until keeper_of_a_gone
  start_daemon
  wait_until in_state b finished
  wait_until in_state d finished
  job_is u 'j["state"] == "failed" and j["runs"][-1]["reason"] == "unknown"'
  job_is c 'j["state"] == "cancelled" and j["detail"] == "u has not ended well: unknown"'
}

@test "circles, unknown names and endless waits are refused, and nothing is added" {
  run -1 gpurota job add b --memory 1G --after-success a -- true
  [[ "$output" == *'job b is to be started after a (--after-success), but there is no such job'* ]]
  add a --memory 1G -- true
  add b --memory 1G --after-end a -- true
  run -1 gpurota job update a --after-success b
  [[ "$output" == *'for each other for ever: '*' after a'*'one --after-success or --after-end'* ]]
  run -1 gpurota job add c --memory 1G --after-success a,a -- true
  [[ "$output" == *'names a twice'* ]]
  run -1 gpurota job add c --memory 1G --after-end c -- true
  [[ "$output" == *'wait for each other'* ]]
  add always --memory 1G --restart always -- sleep 600
  run -1 gpurota job add c --memory 1G --after-success always -- true
  [[ "$output" == *'job c would wait for ever: always is always started again'* ]]
  run -1 gpurota job update a --restart on-failure --after-end nobody
  [[ "$output" == *'(--after-end), but there is no such job'* ]]
  no_job c
  job_is a 'j["restart"] == "no"'
}

@test "a job that others depend on is removed with --force; the result of an ended job stays" {
  add a --memory 1G -- sleep 600
  add b --memory 1G --after-success a -- true
  add c --memory 1G --after-end a -- true
  add first --memory 1G -- true
  wait_until in_state first finished
  add d --memory 1G --after-success first --after-end a -- true
  # A predecessor that has succeeded is not needed any more.
  gpurota job remove first
  wait_until in_state a running
  run -1 gpurota job remove a
  [[ "$output" == *'remove --force a'* ]]
  in_state b waiting
  gpurota job remove --force a
  wait_until in_state c finished
  wait_until in_state d finished
  job_is b 'j["state"] == "cancelled" and j["detail"] == "a was removed" and not j["after_success"]'
}

@test "several are removed at once: all or none, even those that start after each other" {
  add a --memory 1G -- true
  add b --memory 1G --boot-after a -- true
  add c --memory 1G -- true
  wait_until in_state c finished
  run -0 gpurota job wait a b c
  run -1 gpurota job remove a b nobody
  [[ "$output" == *'no job nobody'* ]]
  run -1 gpurota job remove c a
  [[ "$output" == *'other jobs start after a: b.'* ]]
  in_state c finished
  run -0 gpurota job remove a b
  [ "$output" = $'removed job a\nremoved job b' ]
  no_job a
  no_job b
  run -2 gpurota job stop a b
}

@test "wait ends with the worst exit status, or when its time is over; unknown names are refused" {
  add good --memory 1G -- true
  add bad --memory 1G -- sh -c 'exit 5'
  add killed --memory 1G -- sh -c 'kill -KILL $$'
  run -0 gpurota job wait good
  [ "$output" = 'good: finished' ]
  run -5 gpurota job wait good bad
  [[ "$output" == *'bad: failed: exited 5'* ]]
  run -137 gpurota job wait bad killed good
  run -1 gpurota job wait good nobody
  [[ "$output" == *'no job nobody'* ]]
  add long --memory 1G -- sh -c "$(until_told go)"
  run -124 gpurota job wait good long --timeout 1s
  [[ "$output" == *'not ended after 1 s: long'* ]]
  wait_until in_state long running
  # Ctrl-C ends only the command that waits.
  run -124 timeout -s INT 1 gpurota job wait long
  in_state long running
  in_background waiter gpurota job wait long good
  local waiter=$BACKGROUND_PID
  wait_until says waiter 'good: finished'
  kill_daemon
  wait_until says waiter 'gone away'
  start_daemon
  told go 7
  local code=0
  wait "$waiter" || code=$?
  [ "$code" = 7 ]
}

@test "export and apply know chains and terminals; the old word is taken with a warning" {
  cat >jobs.toml <<'TOML'
[[job]]
name = "train"
command = ["sh", "-c", "test -t 1 && echo terminal"]
options = ["--memory", "1G"]
after_success = ["prepare"]
tty = true

[[job]]
name = "prepare"
command = ["true"]
options = ["--memory", "1G"]

[[job]]
name = "web"
command = ["true"]
options = ["--memory", "1G"]
after = ["prepare"]
TOML
  run -0 gpurota job apply jobs.toml
  [[ "$output" == *'jobs.toml:17: after is called boot_after now'*'added train'*'added web'* ]]
  wait_until in_state train finished
  gpurota job logs train | tee logged
  grep -qx terminal logged
  gpurota job export train >exported
  grep -qx 'after_success = \["prepare"\]' exported
  grep -qx 'tty = true' exported
  gpurota job export web | grep -x 'boot_after = \["prepare"\]'
  gpurota job update train --no-tty
  gpurota job start train
  run -1 gpurota job wait train
  run -0 --separate-stderr gpurota job update web --after prepare
  [[ "$stderr" == *'--after is called --boot-after now'* ]]
}

@test "output of Python is shown at once; logs says when there is none yet" {
  add quiet --memory 1G -- sleep 600
  run -0 --separate-stderr gpurota job logs quiet
  [ -z "$output" ]
  [[ "$stderr" == *"no output yet: 'gpurota job show quiet'"* ]]
  add py --memory 1G -- python3 -c 'import time; print("here"); time.sleep(600)'
  wait_until logged py here
  run -1 gpurota job add x --tty --output journal -- true
  [[ "$output" == *journal* ]]
}

@test "show says how long a run took and the most GPU memory that it used" {
  add uses --memory 2G "${machine[@]}" -- "$PROGRAM" hold 1000
  wait_until job_is uses 'j["max_used_bytes"] and j["max_used_bytes"] >= 1000 << 20'
  gpurota job show uses | grep -E '^used +at most 1(\.[0-9])? GiB so far'
  gpurota job stop uses
  wait_until in_state uses stopped
  job_is uses 'j["runs"][0]["max_used_bytes"] >= 1000 << 20'
  gpurota job show uses | grep -E '^run .*\([0-9].*, at most 1(\.[0-9])? GiB\): stopped$'
}

@test "a chain waits for the run that a reboot starts again" {
  add a --memory 1G "${machine[@]}" -- sh -c "$(until_told go-a)"
  add b --memory 1G --after-success a -- true
  add bad --memory 1G -- false
  wait_until in_state bad failed
  add c --memory 1G --after-end bad -- sh -c 'echo ran'
  wait_until in_state c finished
  wait_until in_state a running
  reboot_machine
  start_daemon
  wait_until in_state a running
  job_is b 'j["state"] == "waiting" and j["detail"] == "it starts when a has ended well"'
  told go-a 0
  wait_until in_state b finished
  [ "$(gpurota job logs c | grep -c ran)" = 1 ]
}
