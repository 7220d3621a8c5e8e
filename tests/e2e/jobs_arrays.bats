#!/usr/bin/env bats
# Arrays: jobs of many items (--array, add-each), and commands for their items.

# shellcheck disable=SC2154 # machine is of job_helpers
# shellcheck disable=SC2016 # for the shell of the job
load helpers
load job_helpers

no_job() { ! gpurota job show "$1" >/dev/null 2>&1; }
# counts NAME EXPRESSION: whether the expression is true of the counts of the job's items, i.
counts() { job_is "$1" "(lambda i: $2)(j['items'])"; }
# item_is NAME INDEX EXPRESSION: whether the expression is true of the item, j.
item_is() {
  gpurota job show "$1" --items --json | python3 -c '
import json, sys
item = [each for each in json.load(sys.stdin)["items"] if each["index"] == int(sys.argv[1])][0]
sys.exit(0 if eval(sys.argv[2], {"j": item}) else 1)' "$2" "$3"
}
no_files() { [ -z "$(ls "$E2E_DIR/state/jobs")" ]; }
lines_in() { [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]; }
# Each item runs this script, which appends its index to `ran`, and waits for the file go-INDEX with
# its exit status.
until_told='i=$GPUROTA_ARRAY_INDEX; echo $i >>ran
while [ ! -e go-$i ]; do sleep 0.05; done; exit "$(cat go-$i)"'
# told CODE INDEX…: ends these items with the exit status CODE.
told() {
  local code=$1 index
  shift
  for index in "$@"; do echo "$code" >"go-$index.new" && mv "go-$index.new" "go-$index"; done
}

@test "items run with their indices, at most so many at once, and end one by one" {
  run -0 gpurota job add sweep --array 1-5%2 --memory 1G -- \
    sh -c "echo item \$GPUROTA_ARRAY_INDEX; $until_told"
  [[ "$output" == 'added job sweep: '* ]]
  wait_until counts sweep 'i["running"] == 2'
  wait_until lines_in ran 2
  [ "$(sort ran)" = $'1\n2' ]
  counts sweep 'i["waiting"] == 3'
  gpurota job list | grep -E '^sweep .* running .*2 running, 3 wait'
  run -0 gpurota job list --items
  [[ "$output" == *'sweep[1] '*'sweep[2] '* ]]
  # Items that wait inside of their array are not requests.
  gpurota queue --json | python3 -c 'import json, sys; assert not json.load(sys.stdin)["requests"]'
  told 0 2
  wait_until lines_in ran 3
  [ "$(sort ran)" = $'1\n2\n3' ]
  told 3 1
  told 0 3 4 5
  wait_until in_state sweep failed
  counts sweep '[i[k] for k in ("running", "done", "failed", "waiting")] == [0, 4, 1, 0]'
  [ "$(sort ran)" = $'1\n2\n3\n4\n5' ]
  gpurota job show sweep | grep -E '^array +1-5, at most 2 at once$'
  gpurota job show sweep | grep -E '^item +1 failed: .* to .*: exited 3$'
  gpurota job show sweep | grep -E '^item +4 done: .* to .*: exited 0$'
  [ "$(gpurota job logs 'sweep[4]')" = 'item 4' ]
  run -1 gpurota job logs sweep
  [[ "$output" == *"each item of an array has a log of its own: 'gpurota job logs sweep[1]'"* ]]
  run -1 gpurota job logs 'sweep[6]'
  [[ "$output" == *'job sweep has no item 6: its items are 1-5'* ]]
  run -3 gpurota job wait sweep
  [[ "$output" == *'1 of 5 items did not end well: 1 failed'* ]]
  job_is sweep 'j["runs"][-1]["code"] == 3'
}

@test "only failed items start again; then the array has succeeded" {
  add sweep --array 1,3,7-8 --memory 1G -- sh -c "$until_told"
  told 0 1 3
  told 5 7 8
  wait_until in_state sweep failed
  counts sweep 'i["failed"] == 2'
  told 0 7 8
  [ "$(gpurota job restart sweep --failed)" = 'restarted items of job sweep' ]
  wait_until in_state sweep finished
  counts sweep 'i["done"] == 4'
  [ "$(sort ran | tr '\n' ' ')" = '1 3 7 7 8 8 ' ]
  item_is sweep 7 '[r["code"] for r in j["runs"]] == [5, 0]'
  run -1 gpurota job restart sweep --failed
  [[ "$output" == *'no item of sweep has failed: 4 done'* ]]
  gpurota job restart 'sweep[3]'
  wait_until lines_in ran 7
  wait_until in_state sweep finished
  # All items start again.
  gpurota job restart sweep
  wait_until lines_in ran 11
  wait_until in_state sweep finished
}

@test "the exit status of an array, and of several jobs, is the worst one" {
  add sweep --array 1-4 --memory 1G -- sh -c "$until_told"
  add one --memory 1G -- sh -c 'exit 9'
  told 0 1
  told 4 2
  told 7 3
  wait_until lines_in ran 4
  gpurota job stop 'sweep[4]'
  run -7 gpurota job wait sweep
  run -9 gpurota job wait sweep one
  told 0 2 3
  told 200 4
  gpurota job restart sweep --failed
  run -200 gpurota job wait sweep
  # One item is ended by a signal, and the other is stopped before it runs.
  add killed --array 1-2%1 --memory 1G -- sh -c 'until [ -e go ]; do sleep 0.05; done; kill -9 $$'
  gpurota job stop 'killed[2]'
  touch go
  run -137 gpurota job wait killed
  add stopped --array 1-2%1 --memory 1G -- sleep 600
  gpurota job stop stopped
  run -1 gpurota job wait stopped
}

@test "wrong ranges and numbers are refused with what to write, and nothing is added" {
  local wrong
  for wrong in 5-1 1-1000000000 1-5%0 1-5%1000 a 1- 1,1; do
    run -1 gpurota job add sweep --array "$wrong" --memory 1G -- true
    echo "$wrong: $output"
  done
  run -1 gpurota job add sweep --array 5-1 --memory 1G -- true
  [[ "$output" == *'write the smaller index first, 1-5'* ]]
  run -1 gpurota job add sweep --array 1-1000000000 --memory 1G -- true
  [[ "$output" == *'an array has at most 10000 items'* ]]
  run -1 gpurota job add sweep --array 1-5%0 --memory 1G -- true
  [[ "$output" == *'from 1 to 256 items of an array can run at once, not 0'* ]]
  run -1 gpurota job add sweep --array 1-5 --restart always --memory 1G -- true
  [[ "$output" == *'never ends'* ]]
  run -1 gpurota job add sweep --at-once 3 --memory 1G -- true
  [[ "$output" == *'only the items of an array run so many at once'* ]]
  no_job sweep
  add one --memory 1G -- true
  run -1 gpurota job stop 'one[1]'
  [[ "$output" == *'job one has no items: it is no array'* ]]
  run -2 gpurota job stop 'one[x]'
  run -2 gpurota job wait 'one[1]'
  [[ "$output" == *"is for whole jobs: leave out [1]"* ]]
}

@test "no more than 20000 items of one user" {
  add a --array 1-10000%1 --memory 1G -- sleep 600
  add b --array 1-10000%1 --memory 1G -- sleep 600
  run -1 gpurota job add c --array 1-2 --memory 1G -- sleep 600
  [[ "$output" == *'your arrays can have 20000 items together, these would be 20002'* ]]
  no_job c
}

@test "add-each runs the lines of a file; a line that cannot be read refuses them all" {
  cat >lines <<'LINES'
# A comment.
echo one 'two  three'

sh -c 'echo "index $GPUROTA_ARRAY_INDEX"; exit 4'
LINES
  add-each() { gpurota job add-each "$@"; }
  add-each list lines --at-once 1 --memory 1G
  wait_until in_state list failed
  [ "$(gpurota job logs 'list[1]')" = 'one two  three' ]
  [ "$(gpurota job logs 'list[2]')" = 'index 2' ]
  item_is list 2 'j["command"][0] == "sh" and j["runs"][0]["code"] == 4'
  gpurota job list | grep -E '^list .* 2 commands'
  printf 'true\necho "open\n' >wrong
  run -1 gpurota job add-each more wrong --memory 1G
  [[ "$output" == *'wrong:2: a " is not closed on this line'* ]]
  run -1 gpurota job add-each more --memory 1G - <<<'true > x'
  [[ "$output" == *"standard input:1: '>' means something to a shell"* ]]
  no_job more
  printf 'true\nfalse\n' | gpurota job add-each more - --memory 1G
  wait_until in_state more failed
  counts more 'i["done"] == 1 and i["failed"] == 1'
}

@test "an array is stopped and started; single items are stopped before and while they run" {
  add sweep --array 1-6%2 --memory 1G -- sh -c "$until_told"
  wait_until lines_in ran 2
  gpurota job cancel 'sweep[5]'
  item_is sweep 5 'j["state"] == "cancelled" and not j["runs"]'
  gpurota job stop 'sweep[1]'
  wait_until counts sweep 'i["cancelled"] == 2'
  item_is sweep 1 'j["state"] == "cancelled" and j["runs"][0]["reason"] == "stopped"'
  wait_until lines_in ran 3
  gpurota job stop sweep
  wait_until in_state sweep stopped
  counts sweep 'i["running"] == 0 and i["waiting"] == 4 and i["cancelled"] == 2'
  run -1 gpurota job start 'sweep[5]'
  [[ "$output" == *"job sweep is stopped: 'gpurota job start sweep' goes on"* ]]
  told 0 1 2 3 4 5 6
  gpurota job start sweep
  wait_until in_state sweep failed
  counts sweep 'i["done"] == 4 and i["cancelled"] == 2'
  gpurota job start 'sweep[5]'
  wait_until counts sweep 'i["done"] == 5'
  gpurota job remove --force sweep
  no_job sweep
  wait_until no_files
}

@test "only one item of an array waits in the queue, and the rest when it has its lease" {
  gpurota reserve --gpu-ids all --for 1h >/dev/null
  add sweep --array 1-50 --gpus 1 -- sleep 600
  in_queue() {
    gpurota queue --json | python3 -c '
import json, sys
sys.exit(len(json.load(sys.stdin)["requests"]) != 1)'
  }
  wait_until in_queue
  wait_until job_is sweep 'j["state"] == "waiting" and j["position"] == 1'
  counts sweep 'i["waiting"] == 50'
  sleep 1
  in_queue
  gpurota release --all
  wait_until counts sweep 'i["running"] >= 2'
  in_queue
  gpurota job remove --force sweep
}

@test "a chain waits for the whole array, and for the success of every item" {
  add sweep --array 1-3 --memory 1G -- sh -c "$until_told"
  add good --memory 1G --after-success sweep -- true
  add after --memory 1G --after-end sweep -- true
  told 0 1 2
  wait_until counts sweep 'i["done"] == 2'
  job_is after 'j["state"] == "waiting"'
  told 1 3
  wait_until in_state after finished
  in_state good cancelled
  gpurota job show good | grep -F ': 1 of 3 items did not end well: 1 failed'
}

@test "each item runs once, however often the daemon is killed" {
  add sweep --array 1-12%3 --memory 1G -- sh -c 'echo $GPUROTA_ARRAY_INDEX >>ran; sleep 0.3'
  local i
  for i in {1..12}; do
    sleep "0.$((i * 37 % 90 + 10))"
    kill_daemon
    start_daemon
  done
  wait_until in_state sweep finished
  counts sweep 'i["done"] == 12'
  [ "$(sort -n ran | tr '\n' ' ')" = '1 2 3 4 5 6 7 8 9 10 11 12 ' ]
}

# all_failed NAME ITEMS: changes the store as if each item had run and failed; for use without a
# daemon.
all_failed() {
  python3 - "$E2E_DIR/state/gpurota.db" "$@" <<'PYTHON'
import sqlite3, sys
pairs = {"phase": "failed", "failures": "1", "end_detail": "", "start_again": "0",
         "end": "1764000000000 1764000001000 exited 3 "}
state = b"".join(key.encode() + b"\0" + value.encode() + b"\0" for key, value in pairs.items())
with sqlite3.connect(sys.argv[1]) as store:
    for job, boot, spec in store.execute("SELECT id, boot_id, spec FROM job").fetchall():
        if b"name\0" + sys.argv[2].encode() + b"\0" in spec:
            store.executemany("INSERT OR REPLACE INTO job_item VALUES (?, ?, ?, ?)",
                              [(job, item, state, boot) for item in range(1, int(sys.argv[3]) + 1)])
PYTHON
}

@test "after a kill -9 the next daemon goes on with restart --failed, and begins nothing before" {
  add sweep --array 1-5000%1 --memory 1G -- sleep 600
  wait_until counts sweep 'i["running"] == 1'
  gpurota job stop sweep
  wait_until in_state sweep stopped
  local pause
  for pause in 0 0.01 0.03 0.1; do
    kill_daemon
    all_failed sweep 5000
    start_daemon
    counts sweep 'i["failed"] == 5000'
    gpurota job restart sweep --failed
    sleep "$pause"
    kill_daemon
    start_daemon
    wait_until counts sweep 'i["failed"] == 0 and i["running"] == 1 and i["waiting"] == 4999'
    gpurota job stop sweep
    wait_until in_state sweep stopped
  done
  # The array is stopped and started in between, and continues instead of beginning again.
  kill_daemon
  all_failed sweep 4999
  start_daemon
  gpurota job restart sweep --failed
  gpurota job stop sweep
  gpurota job start sweep
  wait_until counts sweep 'i["failed"] == 0 and i["running"] == 1'
  item_is sweep 2 'len(j["runs"]) == 1'
}

@test "an array that is stopped or removed when the daemon is killed is stopped, and gone" {
  add sweep --array 1-40%24 --memory 64M -- sleep 600
  wait_until counts sweep 'i["running"] == 24'
  gpurota job stop sweep
  kill_daemon
  start_daemon
  wait_until in_state sweep stopped
  counts sweep 'i["running"] == 0 and i["waiting"] == 40'
  gpurota job start sweep
  wait_until counts sweep 'i["running"] == 24'
  gpurota job remove --force sweep
  kill_daemon
  start_daemon
  wait_until no_jobs
  wait_until no_keepers
  kill_daemon
  start_daemon
  wait_until no_files
}

@test "how items ended while the disk was full is stored when there is room; others wait for room" {
  add sweep --array 1-4%2 --memory 1G -- sh -c "$until_told"
  wait_until lines_in ran 2
  fill_disk
  told 0 1 2
  wait_until counts sweep 'i["done"] == 2 and i["waiting"] == 2'
  wait_until job_is sweep '"the next item waits: cannot write" in j["detail"]'
  run -1 gpurota job add more --array 1-3 --memory 1G -- true
  no_job more
  make_room
  wait_until store_is ok
  told 0 3 4
  wait_until in_state sweep finished
  kill_daemon
  start_daemon
  counts sweep 'i["done"] == 4'
  item_is sweep 3 '[r["code"] for r in j["runs"]] == [0]'
  [ "$(sort -n ran | tr '\n' ' ')" = '1 2 3 4 ' ]
}

@test "items beyond the limit of their owner wait for the others; none fails" {
  stop_daemon
  printf '%s\n' "[limits.user.$(id -un)]" 'memory = "2G"' >gpurota.toml
  start_daemon
  add sweep --array 1-4 --memory 1G -- sh -c "$until_told"
  wait_until lines_in ran 2
  wait_until job_is sweep \
    '"2 running, 2 wait: the next item waits: the site allows you" in j["detail"]'
  [ "$(sort ran)" = $'1\n2' ]
  # The end of an item makes room for the next item at once. New limits make room for all items.
  told 0 2
  wait_until lines_in ran 3
  wait_until job_is sweep '"the next item waits" in j["detail"]'
  printf 'grace = "2s"\n' >gpurota.toml
  gpurota reload
  gpurota job update sweep --memory 512M
  wait_until lines_in ran 4
  told 0 1 3 4
  wait_until in_state sweep finished
  item_is sweep 4 '[r["code"] for r in j["runs"]] == [0]'
  gpurota job remove sweep
  # An item fails if it is refused while its owner has no other lease.
  rm -f ran go-*
  add late --array 1-2%1 --memory 1G -- sh -c "$until_told"
  wait_until lines_in ran 1
  printf '%s\n' "[limits.user.$(id -un)]" 'memory = "512M"' >gpurota.toml
  gpurota reload
  told 0 1
  wait_until in_state late failed
  item_is late 2 '"the site allows you" in j["runs"][0]["detail"]'
}

@test "an item whose end was not observed is unknown, and no success" {
  add sweep --array 1-2 --memory 1G -- sh -c "$until_told"
  add good --memory 1G --after-success sweep -- true
  wait_until lines_in ran 2
  local keepers keeper
  keepers=$(keepers)
  kill_daemon
  for keeper in $keepers; do
    # Finds the keeper of the first item of the first job.
    tr '\0' ' ' <"/proc/$keeper/cmdline" | grep -q "/jobs/$(((1 << 24) + 2)) " || continue
    kill -KILL "$keeper"
  done
  one_keeper() { [ "$(keepers | wc -l)" -le 1 ]; }
  wait_until one_keeper
  told 0 2
  start_daemon
  wait_until in_state sweep failed
  counts sweep 'i["unknown"] == 1 and i["done"] == 1'
  job_is good 'j["state"] == "cancelled"'
}

@test "after a reboot an array continues: running items start again, ended ones do not" {
  add sweep --array 1-4%2 --memory 1G -- sh -c "$until_told"
  told 0 1
  wait_until lines_in ran 3
  reboot_machine
  start_daemon
  wait_until lines_in ran 5
  told 0 2 3 4
  wait_until in_state sweep finished
  item_is sweep 1 'len(j["runs"]) == 1'
  item_is sweep 2 '[r["reason"] for r in j["runs"]] == ["reboot", "exited"]'
}

@test "an array is exported and applied; changes of fixed fields are refused" {
  add sweep --array 1-3%2 --memory 1G -- true
  printf 'true a\ntrue "b c"\n' | gpurota job add-each list - --memory 1G
  wait_until in_state list finished
  gpurota job export >jobs.toml
  grep -E '^array = "1-3"$' jobs.toml
  grep -E '^at_once = 2$' jobs.toml
  grep -F '["true", "b c"]' jobs.toml
  [ "$(gpurota job apply jobs.toml | sort)" = $'unchanged list\nunchanged sweep' ]
  sed -i 's/1-3/1-4/' jobs.toml
  run -1 gpurota job apply jobs.toml
  [[ "$output" == *'the items of job sweep cannot be changed: remove it first'* ]]
  gpurota job update sweep --at-once 3
  job_is sweep 'j["at_once"] == 3'
  gpurota job remove list sweep
  sed -i 's/^start = false//' jobs.toml
  gpurota job apply jobs.toml
  wait_until in_state sweep finished
  counts sweep 'i["done"] == 4'
}
