#!/usr/bin/env bats
# Jobs: changing them, exporting them to a file, applying a file, and following their output.

# shellcheck disable=SC2154 # machine is of job_helpers
load helpers
load job_helpers

@test "a job's limits change while it runs, its command at the next start" {
  add web --memory 1G --note first "${machine[@]}" -- sh -c 'echo one; exec sleep 600'
  wait_until logged web one
  gpurota job update web --memory 2G --note second
  holds 'leases[0]["gpus"][0]["limit_bytes"] == 2 * 2**30 and leases[0]["note"] == "second"'
  job_is web 'j["options"] == ["--memory", "2G", "--note", "second"]'
  run -0 gpurota job update web -- sh -c 'echo two; exec sleep 600'
  [[ "$output" == *'next start'* ]]
  lacks two <(gpurota job logs web)
  gpurota job restart web
  wait_until logged web two
  holds 'leases[0]["gpus"][0]["limit_bytes"] == 2 * 2**30'
}

@test "a job's priority and quantum change while it runs" {
  add web --memory 1G --swap -- sleep 600
  wait_until job_is web 'j["lease_id"]'
  run -0 gpurota --verbose job update web --priority low --quantum 5s
  [[ "$output" == *'in effect'* ]]
  holds 'leases[0]["priority"] == -10 and leases[0]["quantum_ms"] == 5000'
  job_is web 'j["options"] == ["--memory", "1G", "--swap", "--priority", "low", "--quantum", "5s"]'
  run -1 gpurota job update web --priority 1
  [[ "$output" == *'priorities up to 0'* ]]
  holds 'leases[0]["priority"] == -10'
}

@test "a change that no GPU could fill is refused at once; one that can wait is not" {
  run -125 gpurota run --memory 1000T -- true
  local why=$output
  run -1 gpurota job add big --memory 1000T -- true
  [ "$output" = "$why" ]
  run -1 gpurota filler add big --memory 1000T -- true
  [ "$output" = "$why" ]
  printf '[[job]]\nname = "big"\ncommand = ["true"]\noptions = ["--memory", "1000T"]\n' >big.toml
  run -1 gpurota job apply big.toml
  [[ "$output" == *'job big: '*"${why#gpurota: }" ]]
  run -1 gpurota job add many --gpus 99 -- true
  gpurota drain 0 1
  add web --gpu-ids 0 --memory 1G --timeout 1h -- sleep 600
  wait_until in_state web waiting
  run -1 gpurota job update web --memory 1000T
  [ "$output" = "$why" ]
  gpurota undrain 0 1
  wait_until in_state web running
  [ "$(gpurota job list --json |
    python3 -c 'import json, sys; print(len(json.load(sys.stdin)["jobs"]))')" = 1 ]
}

@test "a change that is never allowed is refused at once; one above the current allowance is not" {
  add web --memory 2G --note one -- sleep 600
  wait_until in_state web running
  printf '[limits]\nmemory = "1GiB"\nduration = "1h"\n' >gpurota.toml
  gpurota reload
  run -1 gpurota job add more --memory 2G --timeout 1h -- true
  [[ "$output" == *'allows you 1 GiB of GPU memory; you have 2 GiB and ask for 2 GiB'* ]]
  run -1 gpurota job add endless --memory 1G -- true
  [[ "$output" == *'say how long it may last'* ]]
  run -1 add later --memory 1G --timeout 1h -- true
  [[ "$output" == *'added job later, which cannot start: the site allows you 1 GiB'* ]]
  run -1 gpurota job update web --timeout 2h
  gpurota job update web --note two
}

@test "a change of a job needs the allowance of its owner, not of its author" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  as_nobody gpurota job add theirs --workdir / --memory 1G -- true
  printf '[limits]\ngpus = 0\n[limits.user.nobody]\ngpus = 1\n' >gpurota.toml
  gpurota reload
  gpurota job update theirs --user nobody --gpu-ids 1
  run -1 gpurota job update theirs --user nobody --gpus 2
  [[ "$output" == *'allows you 1 GPU;'* ]]
  run -1 gpurota job add mine -- true
}

@test "an impossible change is refused as a whole" {
  add web --memory 1G -- sleep 600
  wait_until job_is web 'j["lease_id"]'
  run -1 gpurota job update web --memory 9000G --restart always
  job_is web 'j["restart"] == "no" and j["options"] == ["--memory", "1G"]'
  run -2 gpurota job update web --memory nonsense
  [[ "$output" == *--memory* ]]
  run -1 gpurota job update web --boot-after web
  [[ "$output" == *'wait for each other'* ]]
  run -2 gpurota job update web --restart daily
  run -2 gpurota job update web
  run -1 gpurota job update nobody --memory 2G
  [[ "$output" == *'no job nobody'* ]]
  holds 'leases[0]["gpus"][0]["limit_bytes"] == 2**30'
}

@test "a job's time limit changes while it runs" {
  add web --memory 1G --timeout 1h -- sleep 600
  wait_until job_is web 'j["lease_id"]'
  gpurota job update web --timeout 1s
  wait_until in_state web failed
  job_is web 'j["runs"][-1]["reason"] == "timeout"'
}

@test "apply restores what export has written" {
  printf 'A=x "y"\\z\n' >vars
  add db --memory 1G --restart on-failure --env-file vars -- sh -c 'echo "$A"; exec sleep 600'
  add web --memory 1G --boot-after db --workdir / -- sleep 600
  gpurota job stop web
  wait_until in_state web stopped
  gpurota job export --with-secrets >jobs.toml
  run -0 gpurota job apply jobs.toml
  [ "$output" = $'unchanged db\nunchanged web' ]
  gpurota job remove --force db
  gpurota job remove web
  wait_until no_jobs
  run -0 gpurota job apply jobs.toml
  [ "$output" = $'added db\nadded web' ]
  wait_until logged db 'x "y"\\z'
  in_state web stopped
  gpurota job export --with-secrets | diff jobs.toml -
  # Without secrets in the file, existing values stay as they are, and missing ones are asked for.
  gpurota job export >plain.toml
  lacks 'x .y' plain.toml
  run -0 gpurota job apply plain.toml
  [ "$output" = $'unchanged db\nunchanged web' ]
  sed -i 's/sleep 600/sleep 700/' plain.toml
  run -0 gpurota job apply - <plain.toml
  [ "$output" = $'changed db\nunchanged web' ]
  gpurota job remove --force db
  wait_until no_job db
  run -1 gpurota job apply plain.toml
  [[ "$output" == *'variable A has no value'* ]]
  A=new gpurota job apply plain.toml
  wait_until logged db new
}
no_job() { ! gpurota job list | grep -q "^$1 "; }

@test "a file with a mistake changes nothing, and line and key are named" {
  add web --memory 1G -- sleep 600
  gpurota job export >before
  cat >jobs.toml <<'TOML'
[[job]]
name = "new"
command = ["true"]

[[job]]
name = "web"
command = ["true"]
optoins = ["--memory", "8G"]
TOML
  run -1 gpurota job apply jobs.toml
  [[ "$output" == *'jobs.toml:8: optoins: '* ]]
  # A mistake that only the daemon can find.
  sed -i 's/optoins.*/boot_after = ["new"]/; 3a boot_after = ["web"]' jobs.toml
  run -1 gpurota job apply jobs.toml
  [[ "$output" == *'wait for each other'* ]]
  gpurota job export | diff before -
  run -1 gpurota job apply /there/is/none
}

@test "logs -f shows what comes, over restarts of the job and of the daemon, until Ctrl-C" {
  add web --memory 1G "${machine[@]}" -- sh \
    -c 'echo begin; while [ ! -e go ]; do sleep 0.05; done; rm go; echo end; exec sleep 600'
  wait_until logged web begin
  in_background followed env --default-signal=INT gpurota job logs -f web
  local follower=$BACKGROUND_PID
  wait_until says followed begin
  touch go
  wait_until says followed end
  gpurota job restart web
  wait_until has_lines followed begin 2
  kill_daemon
  touch go
  start_daemon
  wait_until has_lines followed end 2
  [ "$(grep -c begin followed)" = 2 ]
  kill -INT "$follower"
  ends_with 130 "$follower"
}
has_lines() { [ "$(grep -c "$2" "$E2E_DIR/$1")" = "$3" ]; }

@test "logs -f follows when the log is rotated, and ends with its job" {
  local script='echo begin; while [ ! -e go ]; do sleep 0.05; done; i=0; while [ $i -lt 12 ]; do '
  script+='yes "round $i 0123456789012345678901234567890123456789" | head -c 2000000; '
  script+='i=$((i + 1)); sleep 0.3; done; echo the-end; exec sleep 600'
  add loud --memory 1G "${machine[@]}" -- sh -c "$script"
  in_background followed gpurota job logs -f loud
  wait_until says followed begin
  touch go
  wait_until says followed the-end
  local i
  for i in 0 5 11; do grep -q "^round $i " followed; done
  [ "$(stat -c %s followed)" -gt $((20 << 20)) ]
  [ "$(du -cb "$E2E_DIR"/state/jobs/*/log.* | tail -n 1 | cut -f1)" -le $((16 << 20)) ]
  gpurota job remove --force loud
  wait_until says followed 'job loud has been removed'
}

@test "an administrator may change limits of others, but not what they execute; others nothing" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  as_nobody gpurota job add theirs --workdir / --memory 1G -- sh -c 'id -u; exec sleep 600'
  add mine --memory 1G -- sleep 600
  wait_until theirs_log 65534
  gpurota job update theirs --user nobody --memory 2G
  run -1 gpurota job update theirs --user nobody -- id
  [[ "$output" == *'only its owner can change'* ]]
  local action
  for action in 'show mine' 'logs mine' 'logs -f mine' 'stop mine' 'start mine' 'restart mine' \
    'remove --force mine' 'update mine --memory 2G' 'export mine'; do
    # shellcheck disable=SC2086 # words
    run -1 as_nobody gpurota job $action --user root
    [[ "$output" == *'only administrators'* ]]
  done
  run -1 as_nobody gpurota job export --user root
  [[ "$output" == *'only administrators'* ]]
  run -1 as_nobody gpurota job list --user root
  [[ "$output" == *'no jobs: only administrators'* ]]
  for action in 'job list' 'job export' 'job show theirs' 'filler list' 'filler pause fold'; do
    # shellcheck disable=SC2086 # words
    run -1 gpurota $action --user nobody-at-all
    [[ "$output" == *'there is no user "nobody-at-all": --user takes'* ]]
  done
  gpurota filler list --user nobody
  [ "$(as_nobody gpurota job export | grep -c mine)" = 0 ]
  in_state mine running
  gpurota job export --user nobody | grep -q theirs
  gpurota job stop theirs --user nobody
  gpurota job start theirs --user nobody
  gpurota job remove --force theirs --user nobody
  wait_until theirs_gone
}
theirs_log() { gpurota job logs theirs --user nobody | grep -q "$1"; }
theirs_gone() { ! gpurota job list | grep -q theirs; }

@test "an administrator gets no secrets of others, and cannot make a command of an option" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  printf 'admin_group = "54321"\n' >gpurota.toml
  gpurota reload
  administrator() { setpriv --reuid 54002 --regid 54002 --groups 54321 "$@"; }
  TOKEN=very-secret add mine --memory 1G --env TOKEN -- sleep 600
  administrator gpurota job export mine --user root | grep -q TOKEN
  run -1 administrator gpurota job export mine --user root --with-secrets
  [[ "$output" == *'only their owner and root'* ]]
  run -1 administrator gpurota job export --user root --with-secrets
  [[ "$output" != *very-secret* ]]
  gpurota job export mine --with-secrets | grep -q very-secret
  administrator gpurota job update mine --user root --memory 2G
  # Calls the daemon as a program would that speaks the protocol itself.
  local options
  for options in '["--", "touch", "taken"]' '["--runtime-dir", "/tmp"]' '["--runtime-dir=/tmp"]'; do
    run -0 python3 - "$E2E_DIR/run/control.sock" "$options" <<'PYTHON'
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
call = {"method": "dev.gpurota.UpdateJob",
        "parameters": {"name": "mine", "user": "root", "options": json.loads(sys.argv[2])}}
s.sendall(json.dumps(call).encode() + b"\0")
print(s.recv(65536).decode())
PYTHON
    [[ "$output" == *'is not a job option'* ]]
  done
  job_is mine 'j["options"] == ["--memory", "2G"]'
}
