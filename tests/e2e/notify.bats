#!/usr/bin/env bats
# Owners are notified of what happens to their leases: on the terminal of their gpurota run, and by
# the channels of [notify].

load helpers
load watch_helpers

setup() { make_folders; }
teardown() { end_test; }

# notifier SCRIPT: makes the site's notifier program, which runs SCRIPT with /bin/sh. Files that the
# script writes in "$out" are in the folder out.
notifier() {
  # The notifier runs as a user of its own if the daemon runs as root.
  chmod 755 .
  mkdir -p -m 777 out
  printf '#!/bin/sh\nout=%s/out\n%s\n' "$E2E_DIR" "$1" >notifier
  chmod 755 notifier
}
# notify_by LINE…: writes the section [notify], with an existing user and these lines.
notify_by() { configure '[notify]' 'user = "nobody"' "$@"; }
with_program() { notify_by "command = [\"$E2E_DIR/notifier\"]" "$@"; }

# told EXPRESSION: whether a Python expression is true of some notice, n, that the notifier got.
told() {
  python3 -c '
import json, sys
try: lines = open("out/told").readlines()
except OSError: lines = []
sys.exit(0 if any(eval(sys.argv[1], {"n": json.loads(line)}) for line in lines
                  if line.endswith("\n")) else 1)' "$1"
}
lines_of() { [ -e "out/$1" ] && [ "$(wc -l <"out/$1")" = "$2" ]; }

needs_root() { if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi; }
# as UID COMMAND…
as() {
  local uid=$1
  shift
  setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}
# on_terminal FILE COMMAND: runs the command on a terminal of its own, and writes its output to
# FILE.
on_terminal() { in_background "$1" script -qfec "$2" /dev/null; }

@test "a lease that ends by time is announced on the terminal, each time that the site has chosen" {
  configure '[notify]' 'before_end = ["4s", "1s"]'
  start_daemon
  on_terminal tty "gpurota run --memory 1G --timeout 6s -- sleep 100"
  wait_until says tty 'gpurota: L1 ends in 4 seconds; to keep it: gpurota update L1 --for 2h'
  wait_until says tty 'gpurota: L1 ends in 1 second;'
  wait_until says tty 'L1 has ended: its time limit is over'
}

@test "a user who takes the advice keeps the lease, and is notified of its new end" {
  configure '[notify]' 'before_end = ["3s"]'
  start_daemon
  on_terminal tty "gpurota run --memory 1G --timeout 5s -- sleep 100"
  wait_until says tty 'L1 ends in 3 seconds'
  gpurota update L1 --for 6s
  wait_until twice
  lacks 'now ends at' tty
}
twice() { [ "$(grep -c 'L1 ends in 3 seconds' tty)" = 2 ]; }

@test "an act of an administrator is reported at once, with who, what and why" {
  needs_root
  chmod 755 . run
  start_daemon
  on_terminal tty \
    "setpriv --reuid 54001 --regid 54001 --clear-groups gpurota run --memory 2G -- sleep 100"
  wait_until holds 'len(leases) == 1 and leases[0]["state"] == "active"'
  gpurota update L1 --for 1h --memory 1G --reason $'main\ttenance'
  local change='L1 now ends at [0-9 :-]* and has at most 1 GiB of its GPU: root (administrator) '
  change+='changed its timeout and memory limit ("main.*tenance")'
  wait_until says tty "gpurota: $change"
  as 54001 gpurota update L1 --for 2h --note mine --reason 'of my own'
  gpurota release L1 --reason 'new fan'
  wait_until says tty \
    'gpurota: L1 was released by root (administrator): "new fan"; ending your program'
  lacks 'of my own' tty
  lacks '\t' tty
}

@test "a shell under a reservation is notified of the end of the reservation" {
  configure '[notify]' 'before_end = ["3s"]'
  start_daemon
  gpurota reserve --memory 1G --for 6s --short
  on_terminal tty "gpurota run --lease L1 -- sh -c 'sleep 100'"
  wait_until says tty 'gpurota: L1 ends in 3 seconds'
}

@test "the program of the site gets JSON on its standard input, as another user, without our environment" {
  needs_root
  # shellcheck disable=SC2016
  notifier 'read -r line; echo "$line" >>"$out/told"; { id -u; env; } >"$out/about"'
  chmod 755 run
  with_program
  GPUROTA_SECRET=1 start_daemon
  in_background holder as 54001 gpurota run --gpus 2 -- sleep 100
  wait_until holds 'len(leases) == 1 and leases[0]["state"] == "active"'
  gpurota update L1 --for 1h --reason maintenance
  wait_until told '(n["what"] == "changed" and n["lease"] == "L1" and n["uid"] == 54001 and
    n["gpus"] == ["0", "1"])'
  told '(n["by"] == "root" and n["reason"] == "maintenance" and
    "changed its timeout" in n["text"] and n["at"].endswith("Z"))'
  grep -qx 65534 out/about
  lacks 'GPUROTA' out/about
  gpurota release L1
  wait_until told '(n["what"] == "released" and
    n["text"] == "L1 was released by root (administrator)" and n["reason"] is None)'
  lines_of told 2
}

@test "a request that an administrator cancels and a job that fails cause a notice" {
  needs_root
  # shellcheck disable=SC2016
  notifier 'cat >>"$out/told"'
  chmod 755 run
  with_program
  start_daemon
  in_background holder gpurota run --gpus 2 -- sleep 100
  wait_until holds 'len(leases) == 1'
  in_background waiter as 54001 gpurota run -- true
  wait_until says waiter waiting
  gpurota cancel R1 --reason 'not today'
  wait_until says waiter 'cancelled by root (administrator): "not today"'
  wait_until told '(n["what"] == "request_cancelled" and n["uid"] == 54001 and
    "R1 was cancelled by root" in n["text"])'
  gpurota release L1
  gpurota job add web -- sh -c 'exit 3'
  wait_until told '(n["what"] == "job_failed" and n["uid"] == 0 and
    "your job web has failed: exit status 3" in n["text"])'
  gpurota job add first -- sh -c 'while [ ! -e go ]; do sleep 0.05; done'
  gpurota job add second --after-success first -- sh -c 'exit 4'
  gpurota job add third --after-success second -- true
  touch go
  wait_until told 'n["what"] == "job_finished" and n["text"] == "your job first has finished"'
  wait_until told 'n["what"] == "job_cancelled" and "cancelled: second has not" in n["text"]'
  gpurota job remove web first second third
}

@test "owners of jobs and fillers are notified who stopped, changed, paused or removed them, and why" {
  needs_root
  # shellcheck disable=SC2016
  notifier 'cat >>"$out/told"'
  chmod 755 run
  with_program
  start_daemon
  as_nobody gpurota job add web --memory 1G -- sleep 600
  wait_until holds 'len(leases) == 1 and leases[0]["kind"] == "job"'
  gpurota job update web --user nobody --restart always --reason 'as agreed'
  wait_until told '(n["what"] == "changed" and n["uid"] == 65534 and n["text"] ==
    "root (administrator) changed the restart policy of your job web: \"as agreed\"")'
  gpurota job update web --user nobody --memory 2G --reason grown
  wait_until told 'n["lease"] == "L1" and "changed its memory limit (\"grown\")" in n["text"]'
  gpurota job stop web --user nobody --reason 'new fan'
  wait_until told '(n["what"] == "released" and n["by"] == "root" and n["reason"] == "new fan" and
    n["text"] == "root (administrator) stopped your job web: \"new fan\"")'
  wait_until no_leases
  local change='root (administrator) stopped a job of nobody: "new fan"'
  event_is "job_changed .*nobody .*$change | web: sleep 600"
  event_is 'lease_ending .*L1 ends: its job was stopped by root (administrator): "new fan"'
  wait_until shows_of_web '^state *stopped: by root (administrator): "new fan"'
  shows_of_web '^run .*: stopped: by root (administrator): "new fan"'
  gpurota job remove web --user nobody
  wait_until told 'n["text"] == "root (administrator) removed your job web" and n["reason"] is None'
  as_nobody gpurota filler add fold --memory 1G -- sleep 600
  gpurota filler pause fold --user nobody --reason noise
  wait_until told '(n["what"] == "changed" and
    n["text"] == "root (administrator) paused your filler fold: \"noise\"")'
  # The reason stays when the filler is paused again, and after a restart of the daemon.
  as_nobody gpurota filler pause fold
  stop_daemon
  start_daemon
  as_nobody gpurota filler list | grep 'paused: by root (administrator): "noise"'
  gpurota filler remove fold --user nobody
  wait_until told \
    'n["what"] == "released" and n["text"] == "root (administrator) removed your filler fold"'
}

shows_of_web() { as_nobody gpurota job show web | grep -q "$1"; }

@test "owners get no notice of what they do to their own jobs, and the events are true" {
  # shellcheck disable=SC2016
  notifier 'cat >>"$out/told"'
  with_program
  start_daemon
  gpurota job add web --memory 1G -- sleep 600
  wait_until holds 'len(leases) == 1 and leases[0]["pid"]'
  gpurota job stop web --reason idle
  wait_until event_is "L1 ends: its job was stopped by $(id -un)"
  wait_until no_leases
  in_background holder gpurota run --gpus 2 -- sleep 100
  wait_until holds 'len(leases) == 1'
  gpurota job start web
  wait_until queued
  gpurota job remove --force web
  wait_until event_is "left the queue: its job was removed by $(id -un)"
  gpurota run --memory 1G --nonblock -- true || true
  gpurota notify --test
  lines_of told 1
  if event_is job_changed; then false; fi
}
queued() { [ "$(gpurota queue --json | grep -c request_id)" -gt 0 ]; }

@test "a finding is reported to each user it concerns, in a sentence of their own" {
  needs_root
  # shellcheck disable=SC2016
  notifier 'cat >>"$out/told"'
  chmod 755 run
  with_program '[watch]' 'foreign_use = "notify"'
  start_daemon
  in_background holder as 54001 gpurota run --gpu-ids 0 -- sleep 100
  wait_until holds 'len(leases) == 1'
  in_background stranger env -u GPUROTA_RUNTIME_DIR "$PROGRAM" hold 1500
  STRANGER=$BACKGROUND_PID
  wait_until told "n['uid'] == 0 and n['text'].startswith(
    'your process $STRANGER uses GPU 0, which 54001 has (L1): please stop it')"
  wait_until told "n['uid'] == 54001 and n['lease'] == 'L1' and n['text'].startswith(
    'root uses GPU 0, which is yours (L1)')"
  wait_until says holder 'root uses GPU 0, which is yours (L1)'
  lacks "$STRANGER" holder
  gpurota release --all-users --yes
}

@test "a program that hangs is killed, and nobody waits for it" {
  # shellcheck disable=SC2016
  notifier 'echo >>"$out/begun"; sleep 1000'
  with_program 'time_limit = "500ms"'
  start_daemon
  run -1 gpurota notify --test
  [[ $output == "command: not sent (killed when its time was over) after "* ]]
  in_background first gpurota notify --test
  wait_until lines_of begun 2
  gpurota run --memory 1G -- true
  wait_until says first 'not sent'
  wait_until no_process_of notifier
}
no_process_of() { ! pgrep -f "$E2E_DIR/$1" >/dev/null; }

@test "a failing program is logged once, and a missing one is reported" {
  notifier 'echo "no such mailbox" >&2; exit 3'
  with_program
  start_daemon
  run -1 gpurota notify --test
  [[ $output == "command: not sent (exit status 3: no such mailbox) after "*" ms" ]]
  local i
  for i in 1 2 3; do
    gpurota job add "job$i" -- false
  done
  wait_until says gpurotad.log 'a notice cannot be sent.*exit status 3: no such mailbox'
  gpurota run --memory 1G -- true
  [ "$(grep -c 'a notice cannot be sent' gpurotad.log)" = 1 ]
  notify_by 'command = ["/no/such/program"]'
  gpurota reload
  run -1 gpurota notify --test
  [[ $output == "command: not sent ("*"there is no such file) after "* ]]
  for i in 1 2 3; do gpurota job remove --force "job$i"; done
}

@test "a user without an account, and nothing to send by, are errors that say what to do" {
  needs_root
  notifier 'true'
  configure '[notify]' "command = [\"$E2E_DIR/notifier\"]" 'user = "gu-no-such-user"'
  start_daemon
  run -1 gpurota notify --test
  [[ $output == *"there is no user \"gu-no-such-user\""* ]]
  configure ''
  gpurota reload
  run -1 gpurota notify --test
  [[ $output == *"set command, mail or webhook in the section [notify]"* ]]
  run -2 gpurota notify
  [[ $output == *"gpurota notify --test"* ]]
}

@test "users test for themselves, administrators for anybody, and not without end" {
  needs_root
  # shellcheck disable=SC2016
  notifier 'cat >>"$out/told"'
  chmod 755 run
  with_program 'most_per_hour = 2'
  start_daemon
  run -0 as 54001 gpurota notify --test
  [[ $output == "command: sent in "*" ms" ]]
  wait_until told 'n["what"] == "test" and n["uid"] == 54001'
  run -1 as 54001 gpurota notify --test root
  [[ $output == *"only administrators may send a test to somebody else"* ]]
  gpurota notify --test 54001
  run -1 as 54001 gpurota notify --test
  [[ $output == *"has been sent 2 tests in an hour"* ]]
  run -1 gpurota notify --test gu-no-such-user
  [[ $output == *"there is no user \"gu-no-such-user\""* ]]
}

@test "a user whose leases end a hundred times gets a few letters" {
  needs_root
  # shellcheck disable=SC2016
  notifier 'cat >>"$out/told"'
  chmod 755 run
  with_program 'most_per_hour = 3'
  start_daemon
  local i
  for ((i = 1; i <= 20; i++)); do
    as 54001 gpurota reserve --memory 64M --for 1h --short >/dev/null
    gpurota release "L$i" >/dev/null
  done
  # The limit of one user's notices does not affect notices to another user.
  as 54002 gpurota reserve --memory 64M --for 1h --short
  gpurota release L21
  wait_until told 'n["uid"] == 54002'
  lines_of told 4
}

@test "mail goes through sendmail, to the user or at the site's domain" {
  # shellcheck disable=SC2016
  notifier 'echo "$@" >"$out/words"; cat >"$out/mail"'
  notify_by 'mail = true' "sendmail = \"$E2E_DIR/notifier\"" 'mail_domain = "example.org"'
  start_daemon
  gpurota notify --test
  [ "$(cat out/words)" = "-i $(id -un)@example.org" ]
  grep -qx "To: $(id -un)@example.org" out/mail
  grep -qx 'Auto-Submitted: auto-generated' out/mail
}

@test "a webhook gets the JSON, and no argument shows its secret" {
  if [ ! -x /usr/bin/curl ]; then skip "curl is not installed"; fi
  cat >server.py <<'END'
import http.server, os, sys

class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        words = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words.append(open("/proc/%s/cmdline" % pid, "rb").read())
            except OSError:
                pass
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print(self.path, self.headers["Authorization"], body.decode(), flush=True)
        print("shown" if any(b"s3cret" in each and b"curl" in each for each in words) else "hidden",
              flush=True)
        self.send_response(500 if "broken" in self.path else 200)
        self.end_headers()

    def log_message(self, *words):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
print("port", server.server_port, flush=True)
server.serve_forever()
END
  in_background hook python3 server.py
  wait_until says hook port
  port=$(sed -n 's/^port //p' hook)
  notify_by "webhook = \"http://127.0.0.1:$port/hook?key=s3cret\"" \
    'webhook_headers = ["Authorization: Bearer t0ken"]'
  start_daemon
  gpurota notify --test
  wait_until says hook '^/hook?key=s3cret Bearer t0ken {"what":"test"'
  wait_until says hook '^hidden'
  notify_by "webhook = \"http://127.0.0.1:$port/broken\""
  gpurota reload
  run -1 gpurota notify --test
  [[ $output == "webhook: not sent (exit status 22: curl: "*"500"* ]]
}

@test "a mistake in the section is refused with what to write" {
  start_daemon
  configure '[notify]' 'command = ["notify-user"]'
  run -1 gpurota reload
  local wrong='a list is not a command: write a program by its absolute path'
  [[ $output == *"gpurota.toml:2: notify.command: $wrong"* ]]
  configure '[notify]' 'events = ["nonsense"]'
  run -1 gpurota reload
  [[ $output == *"there is no event 'nonsense': write some of"* ]]
}
