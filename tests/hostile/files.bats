#!/usr/bin/env bats
# Commands write files into folders where another user prepares files of the same names: the other
# user may neither read a token in such a file nor replace the file.

load ../e2e/helpers

setup() {
  [ "$(id -u)" = 0 ] || skip "needs root: it switches users"
  start_daemon
  chmod 755 .
  gpurota reserve --memory 1G --for 1h --name web >/dev/null
}
teardown() { end_test; }

MALLORY=(setpriv --reuid 65533 --regid 65533 --clear-groups)
# waits FILE: makes the file as Mallory, keeps it open, and prints what is written into it.
waits() {
  PYTHONPATH=$BATS_TEST_DIRNAME python3 -B -c '
import os, sys, time, users
users.as_user(65533)
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o666)
print("waits", flush=True)
while True:
    text = os.pread(file, 4096, 0)
    if text: print(text.decode(), flush=True)
    time.sleep(0.01)' "$1"
}

@test "a token is written to no folder that others may write to" {
  mkdir -m 777 shared
  in_background mallory waits shared/x.env.new
  wait_until says mallory waits
  run -1 gpurota container-args web --env-file shared/x.env
  [[ $output = *"cannot write"*"others may write to"*"a folder of your own"* ]]
  [ ! -e shared/x.env ]
  # A token is also not written to a folder inside of Mallory's, because she could replace that
  # folder.
  mkdir -p hers/inner
  chown 65533 hers
  run -1 gpurota container-args web --env-file hers/inner/x.env
  [[ $output = *"is user 65533's"* ]]
  [ ! -e hers/inner/x.env ]
}

@test "in a folder for everybody a token goes to a new file that nobody else has open" {
  mkdir -m 1777 everybody
  in_background mallory waits everybody/x.env.new
  wait_until says mallory waits
  in_background link "${MALLORY[@]}" ln -s "$E2E_DIR/elsewhere" everybody/y.env.new
  wait_until test -L everybody/y.env.new
  gpurota container-args web --env-file everybody/x.env >/dev/null
  gpurota container-args web --env-file everybody/y.env >/dev/null
  [ ! -e elsewhere ]
  local token
  token=$(sed -n 's/^GPUROTA_TOKEN=//p' everybody/x.env)
  [ "${#token}" = 32 ]
  [ "$(stat -c '%a %u' everybody/x.env)" = "600 0" ]
  run ! "${MALLORY[@]}" cat everybody/x.env
  run ! grep -q "$token" mallory
}

@test "a daemon whose folders another user can replace reports it" {
  kill_daemon
  mkdir hers
  chown 65533 hers
  mv state hers/state
  start_daemon --state-dir "$E2E_DIR/hers/state"
  says gpurotad.log 'another user can replace a directory of this daemon .*hers/state'
}
