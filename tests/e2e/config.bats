#!/usr/bin/env bats
# The configuration: its mistakes, the sources of its values, and the effects of a reload.

load helpers

setup() { make_folders; }
teardown() { end_test; }

# as USER-ID COMMAND…
as() {
  local uid=$1
  shift
  setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

drop_in() { mkdir -p gpurota.toml.d && cat >"gpurota.toml.d/$1"; }

# json EXPRESSION: whether the expression is true of the JSON on standard input, `d`.
json() {
  python3 -c '
import json, sys
d = json.load(sys.stdin)
sys.exit(0 if eval(sys.argv[1], {"d": d}) else 1)' "$1"
}

@test "reload prints each change with both values, and the log has the same lines" {
  printf 'grace = "1s"\n[limits.user.root]\nmemory = "8G"\n' >gpurota.toml
  start_daemon
  printf 'grace = "1s"\n[limits.user.root]\nmemory = "16G"\ngpus = 2\n' >gpurota.toml
  run -0 gpurota reload
  [ "${lines[0]}" = "the daemon has read its configuration again:" ]
  [ "${lines[1]}" = "limits.user.root.gpus: not set → 2" ]
  [ "${lines[2]}" = "limits.user.root.memory: 8G → 16G" ]
  [ "${#lines[@]}" = 3 ]
  says gpurotad.log 'limits.user.root.memory: 8G → 16G'
  run -0 gpurota reload
  [ "$output" = "the daemon has read its configuration again: nothing has changed" ]
  printf 'grace = "2s"\n' >gpurota.toml
  kill -HUP "$DAEMON_PID"
  wait_until says gpurotad.log 'grace: 1s → 2s'
  printf 'grace = "3s"\n' >gpurota.toml
  gpurota reload --json |
    json 'd["changes"] == [{"key": "grace", "before": "2s", "after": "3s",
      "takes_restart": False}] and d["warnings"] == []'
  gpurota reload --json | json 'd["changes"] == []'
  printf 'grace = "4s"\n' >gpurota.toml
  [ -z "$(gpurota reload --quiet)" ]
}

@test "reload reports every mistake, and the old settings stay in effect" {
  printf '[limits]\ngpus = 0\n' >gpurota.toml
  start_daemon
  printf 'privacy = "opn"\n\n[limits]\ngpus = "8"\nmemry = "1G"\nmemory = "8"\n' >gpurota.toml
  echo 'grace = 5s' | drop_in 10-grace.toml
  run -1 gpurota reload
  [ "${lines[0]}" = \
    "gpurota: the configuration has 5 mistakes, and the old settings stay in effect:" ]
  [[ ${lines[1]} == \
    "$E2E_DIR/gpurota.toml:1: privacy: 'opn' is not known here: "*'did you mean "open"?' ]]
  [[ ${lines[2]} == \
    "$E2E_DIR/gpurota.toml:4: limits.gpus: '8' is not a number: "*"without quotes"* ]]
  [ "${lines[3]}" = \
    "$E2E_DIR/gpurota.toml:5: limits.memry: no such setting; did you mean limits.memory?" ]
  [ "${lines[4]}" = "$E2E_DIR/gpurota.toml:6: limits.memory: '8' is 8 bytes; did you mean 8G?" ]
  [ "${lines[5]}" = "$E2E_DIR/gpurota.toml.d/10-grace.toml:1: grace: text needs quotes: \"5s\"" ]
  says gpurotad.log 'limits.memry: no such setting; did you mean limits.memory?'
  says gpurotad.log 'has 5 mistakes and is refused, the old one stays in effect'
  run -1 gpurota reload --json
  [[ $output == *'5 mistakes'* ]]
  run -125 gpurota run --memory 1G -- true
  [[ $output == *"allows you 0 GPUs"* ]]
  rm gpurota.toml.d/10-grace.toml
  : >gpurota.toml
  gpurota reload
  gpurota run --memory 1G -- true
}

@test "a change that needs a restart is reported until then, and is in effect afterwards" {
  start_daemon
  printf 'group = "%s"\n' "$(id -gn)" >gpurota.toml
  run -0 gpurota reload
  [ "${lines[1]}" = "group: \"\" → $(id -gn): takes effect at the next restart" ]
  run -0 gpurota reload
  [[ $output == *"takes effect at the next restart"* ]]
  gpurota config show |
    grep -E "^group +\"\" +$E2E_DIR/gpurota.toml:1, $(id -gn) at the next restart"
  gpurota doctor | grep -E '^warning +configuration +group: .*takes effect at the next restart'
  stop_daemon
  start_daemon
  gpurota config show | grep -E "^group +$(id -gn) +$E2E_DIR/gpurota.toml:1$"
  gpurota doctor | grep -E "^ok +configuration +$E2E_DIR/gpurota.toml$"
}

@test "unknown users and groups are reported at start, by reload, check and doctor" {
  printf '[limits.user.rooot]\ngpus = 1\n' >gpurota.toml
  start_daemon
  local told="$E2E_DIR/gpurota.toml:1: limits.user.rooot: no such user; did you mean root?"
  says gpurotad.log "$told"
  gpurota doctor | grep -F "limits.user.rooot: no such user; did you mean root?"
  run -0 gpurota config check
  [ "${lines[0]}" = "$told" ]
  [ "${lines[1]}" = "$E2E_DIR/gpurota.toml: ok (1 warning)" ]
  printf '[automatic]\nusers = ["root", "@no-such-group"]\n' >gpurota.toml
  run -0 gpurota reload
  [ "${lines[0]}" = "$E2E_DIR/gpurota.toml:2: automatic.users: no such group 'no-such-group'" ]
  gpurota reload --json 2>/dev/null |
    json 'd["warnings"][0]["line"] == 2 and d["warnings"][0]["key"] == "automatic.users"'
  run -0 gpurotad --check-config --config "$E2E_DIR/gpurota.toml"
  [[ $output == *"no such group 'no-such-group'"*": ok" ]]
}

@test "drop-ins count in the order of their names, and each value remembers its file" {
  printf 'grace = "1s"\nprivacy = "open"\n' >gpurota.toml
  printf 'grace = "3s"\n' | drop_in 20-b.toml
  printf '# first\ngrace = "2s"\nreconnect_grace = "1s"\n' | drop_in 10-a.toml
  printf 'not read' | drop_in ignored.conf
  start_daemon
  run -0 gpurota config show --changed
  [ "${#lines[@]}" = 4 ]
  [[ ${lines[1]} =~ ^grace\ +3s\ +$E2E_DIR/gpurota.toml.d/20-b.toml:1$ ]]
  [[ ${lines[2]} =~ ^privacy\ +open\ +$E2E_DIR/gpurota.toml:2$ ]]
  [[ ${lines[3]} =~ ^reconnect_grace\ +1s\ +$E2E_DIR/gpurota.toml.d/10-a.toml:3$ ]]
  rm gpurota.toml.d/20-b.toml
  run -0 gpurota reload
  [ "${lines[1]}" = "grace: 3s → 2s" ]
  run -0 gpurota config check
  [ "$output" = "$E2E_DIR/gpurota.toml: ok, 1 drop-in in $E2E_DIR/gpurota.toml.d" ]
  for i in {1..65}; do : >"gpurota.toml.d/$i.toml"; done
  run -1 gpurota reload
  [[ $output == *"gpurota.toml.d: it has more than 64 files"* ]]
}

@test "check needs no daemon, and reports all mistakes with file and line on standard error" {
  printf 'grace = 5\n[limits]\nmemory = "8"\n' >mine.toml
  run -1 --separate-stderr gpurota config check mine.toml
  [ -z "$output" ]
  # shellcheck disable=SC2154 # bats sets stderr_lines
  [ "${stderr_lines[0]}" = 'mine.toml:1: grace: 5 has no unit: write a time such as "5s" or "5m"' ]
  [ "${stderr_lines[1]}" = "mine.toml:3: limits.memory: '8' is 8 bytes; did you mean 8G?" ]
  printf 'admin_group = gu_admins\n' >mine.toml
  run -1 gpurota config check mine.toml
  [ "$output" = 'mine.toml:1: admin_group: text needs quotes: "gu_admins"' ]
  printf 'grace = "5s"\n' >mine.toml
  run -0 gpurota config check mine.toml
  [ "$output" = "mine.toml: ok" ]
  run -1 gpurota config check nowhere.toml
  [ "$output" = "nowhere.toml: cannot open it: No such file or directory" ]
  run -2 gpurota config check ''
  run -1 gpurota config check "$E2E_DIR"
  [[ $output == *"cannot read it: Is a directory"* ]]
  run -2 gpurota config check a b
  run -2 gpurota config edit
  [[ $output == *"use check, show or diff"* ]]
  run -1 gpurota config show
  [[ $output == *"no gpurotad is running"* ]]
}

@test "show prints settings made by gpurota set, and all settings as JSON" {
  printf '[turns.gpu.0]\nquantum = "5s"\n' >gpurota.toml
  start_daemon
  gpurota set --gpu-ids 0 --quantum 7s
  gpurota config show | grep -E '^turns.gpu.0.quantum +7s +gpurota set$'
  gpurota config show | grep -E '^limits.gpus +unlimited +default$'
  gpurota config show --json |
    json 'd["file"].endswith("gpurota.toml") and any(s["key"] == "grace" and
      s["value"] == s["default_value"] == "5s" and s["source"] == "default" for s in d["settings"])'
  gpurota config show --changed --json |
    json '[s["key"] for s in d["settings"]] == ["turns.gpu.0.quantum"]'
  gpurota set --gpu-ids all --reset
  gpurota config show | grep -E "^turns.gpu.0.quantum +5s +$E2E_DIR/gpurota.toml:2$"
}

@test "diff says in the words of reload what a reload would change" {
  printf 'grace = "1s"\n' >gpurota.toml
  start_daemon
  run -0 gpurota config diff
  [ "$output" = "nothing would change" ]
  printf 'grace = "2s"\n[limits]\ngpus = 1\n' >gpurota.toml
  run -0 gpurota config diff
  [ "${lines[0]}" = "grace: 1s → 2s" ]
  [ "${lines[1]}" = "limits.gpus: unlimited → 1" ]
  printf 'privacy = "open"\n' >other.toml
  run -0 gpurota config diff other.toml
  [ "${lines[0]}" = "grace: 1s → 5s" ]
  [ "${lines[1]}" = "privacy: owner → open" ]
  gpurota config diff --json | json 'len(d["changes"]) == 2'
  printf 'privacy = open\n' >other.toml
  run -1 gpurota config diff other.toml
  [[ $output == *'other.toml:1: privacy: text needs quotes: "open"'*"a reload would be refused"* ]]
  gpurota config show | grep -E '^grace +1s'
}

@test "an ordinary user sees the settings but not those of others, and which files are unreadable" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  printf '[limits.user.54001]\ngpus = 1\n[limits.user.54002]\ngpus = 2\n' >gpurota.toml
  chmod 755 . run
  start_daemon
  run -0 as 54001 gpurota config show
  [[ $output == *"limits.user.54001.gpus"* ]]
  [[ $output != *"limits.user.54002.gpus"* ]]
  [[ $output == *"1 setting about other users is not shown" ]]
  run -0 as 54001 gpurota config diff
  [[ $output == *"only administrators see them"*"nothing would change" ]]
  chmod 600 gpurota.toml
  run -1 as 54001 gpurota config check
  local denied="Permission denied: only its owner and administrators"
  [[ $output == "$E2E_DIR/gpurota.toml: cannot open it: $denied"* ]]
  run -1 as 54001 gpurota config diff
  [[ $output == *"Permission denied"* ]]
  run -1 as 54001 gpurota reload
  [[ $output == *"only administrators"* ]]
}

@test "setup writes its options, keeps the rest, and the daemon takes them over" {
  printf 'grace = "1s"\n' >gpurota.toml
  start_daemon
  local own=gpurota.toml.d/50-setup.toml
  run -0 gpurota setup --yes --user-gpus 1 --automatic 2G
  [[ $output == *"limits.gpus: unlimited → 1"* ]]
  [ "$(gpurota config show --json | python3 -c 'import json, sys; print({
    s["key"]: s["value"] for s in json.load(sys.stdin)["settings"]}["automatic.memory"])')" = 2G ]
  gpurota setup --yes --longest 3d
  grep -q '^gpus = 1$' "$own"
  grep -q '^duration = "3d"$' "$own"
  grep -q '^grace = "1s"$' gpurota.toml
  cp "$own" before
  [ "$(gpurota setup --yes --user-gpus 1 | head -n 1)" = "the configuration stays as it is" ]
  run -1 gpurota setup --yes --group no-such-group
  [[ $output == *"nothing is written"*"no such group"* ]]
  run -1 gpurota setup --yes --longest soon
  [[ $output == *"limits.duration"* ]]
  run -2 gpurota setup --user-gpus 2 </dev/null
  [[ $output == *"--yes"* ]]
  if [ "$UID" = 0 ]; then
    chmod 755 . gpurota.toml.d
    run -1 as 65534 env XDG_CONFIG_HOME="$E2E_DIR" gpurota setup --yes --user-gpus 2
    [[ $output == *"cannot write"* ]]
  fi
  cmp before "$own"
  sed -i '1i privacy = "open"' "$own"
  run -1 gpurota setup --yes --user-gpus 2
  [[ $output == *"50-setup.toml:"*"move it to another file"* ]]
}

@test "setup reports a file that overrides it, and writes nothing into a broken configuration" {
  printf '[limits]\ngpus = 4\n' >gpurota.toml
  start_daemon
  printf '[limits]\ngpus = 8\n' | drop_in 60-site.toml
  run -0 gpurota setup --yes --user-gpus 2 --no-start
  [[ $output == *"60-site.toml:2"*"change it there"* ]]
  rm gpurota.toml.d/50-setup.toml
  echo 'gpus = ' | drop_in 60-site.toml
  run -1 gpurota setup --yes --user-gpus 2
  [[ $output == *"60-site.toml:1"* ]]
  [ ! -e gpurota.toml.d/50-setup.toml ]
}

@test "setup asks at a terminal for missing options, and an empty answer changes nothing" {
  : >gpurota.toml
  start_daemon
  cat >ask.py <<'END'
import os, pty, re, sys
answers = sys.argv[1].split(",")
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("gpurota", ["gpurota", "setup", "--group", "everybody"])
seen, at = "", 0
while True:
    try:
        chunk = os.read(terminal, 4096).decode()
    except OSError:
        break
    if not chunk:
        break
    seen += chunk
    while len(re.findall(r"gpurota: .*\]\r\n", seen)) > at:
        at += 1
        os.write(terminal, (answers.pop(0) + "\n").encode())
print(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
  run -1 python3 ask.py ",3,,,,no"
  [[ $output == *"nothing is written"* ]]
  [ ! -e gpurota.toml.d ]
  run -0 python3 ask.py ",3,,,,yes"
  [[ $output == *"Which group may look after gpurota, besides root? [none]"* ]]
  grep -q '^gpus = 3$' gpurota.toml.d/50-setup.toml
  [ "$(wc -l <gpurota.toml.d/50-setup.toml)" = 5 ]
}
