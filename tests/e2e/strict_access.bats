#!/usr/bin/env bats
# machine: h100-mig
# Strict access: which user can open which device file in which state. Plain files in a folder of
# the case stand for the device files, because the kernel checks modes and access lists of both in
# the same way. tests/gpu/strict_access.sh does the same with a driver's files.

load helpers

# GPU 0 is divided by MIG: its instance 0:1 has the capabilities 30 and 31. GPU 1 is whole.
setup() {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  make_folders
  chmod 755 . run
  mkdir -p machine/dev/nvidia-caps machine/proc/driver/nvidia machine/proc/driver/nvidia-caps
  local file
  for file in nvidia0 nvidia1 nvidiactl nvidia-uvm nvidia-caps/nvidia-cap{1,30,31,33}; do
    install -m 666 /dev/null "machine/dev/$file"
  done
  printf '%s\n' 'config 1' 'monitor 2' 'gpu0/gi2/access 30' 'gpu0/gi2/ci0/access 31' \
    'gpu0/gi3/access 33' >machine/proc/driver/nvidia-caps/mig-minors
  DAEMON+=(--driver-root "$E2E_DIR/machine")
  as_somebody true || skip "setpriv cannot switch users"
  setfacl -m u:1:rw gpurota.toml 2>/dev/null ||
    skip "setfacl is not there, or the file system has no access lists"
  setfacl -b gpurota.toml
}
teardown() {
  if [ -n "${DAEMON_PID:-}" ]; then as_nobody gpurota release --all >/dev/null 2>&1 || true; fi
  end_test
}

NOBODY=(setpriv --reuid 65534 --regid 65534 --clear-groups)

as_somebody() { setpriv --reuid 65533 --regid 65533 --clear-groups "$@"; }
strict() { printf '%s\n' '[access]' "strict = ${1:-true}" "${@:2}" >gpurota.toml; }
# can USER FILE…: lists the files that this user can open for reading and writing, in one line.
can() {
  local user=$1 file can=()
  for file in nvidia0 nvidia1 nvidiactl; do
    if "$user" sh -c 'exec 3<>"$1"' sh "machine/dev/$file" 2>/dev/null; then can+=("$file"); fi
  done
  echo "${can[*]}"
}
# who: prints a row of the table: the files that root, nobody and another user can open.
who() { echo "root: $(can env) | nobody: $(can as_nobody) | other: $(can as_somebody)"; }
rights() {
  stat -c '%n %a %U:%G' machine/dev/nvidia* machine/dev/nvidia-caps/*; getfacl -nR machine/dev
}
is_now() { [ "$(who)" = "$1" ]; }
closed='root: nvidia0 nvidia1 nvidiactl | nobody: nvidiactl | other: nvidiactl'
opened='root: nvidia0 nvidia1 nvidiactl | nobody: nvidia1 nvidiactl | other: nvidiactl'
all='root: nvidia0 nvidia1 nvidiactl | nobody: nvidia0 nvidia1 nvidiactl | '
all+='other: nvidia0 nvidia1 nvidiactl'

@test "off, no device file is touched" {
  rights >before
  start_daemon
  as_nobody gpurota reserve --gpu-ids 1 --for 1h
  gpurota reload
  [ "$(who)" = "$all" ]
  rights | diff before -
  [ ! -e state/device-files ]
  gpurota doctor >said || true
  lacks 'strict access' said
}

@test "a lease opens the files of its GPUs to its user, until it ends" {
  strict
  start_daemon
  [ "$(who)" = "$closed" ]
  # The command can open the file as soon as the command starts.
  as_nobody gpurota run --gpu-ids 1 -- sh \
    -c 'exec 3<>machine/dev/nvidia1; ! (exec 3<>machine/dev/nvidia0) 2>/dev/null'
  wait_until is_now "$closed"
  as_nobody gpurota reserve --gpu-ids 1 --for 1h
  [ "$(who)" = "$opened" ]
  as_nobody gpurota release --all
  wait_until is_now "$closed"
  run -2 as_nobody sh -c 'exec 3<>machine/dev/nvidia1'
  [[ $output == *"Permission denied"* ]]
  gpurota doctor >said || true
  grep -Eq 'strict access +[0-9]+ device files are open to holders of leases only' said
}

@test "a lease that ended without a daemon loses its files; a killed daemon leaves all as it was" {
  strict
  start_daemon
  in_background holder "${NOBODY[@]}" gpurota run --gpu-ids 1 --quiet -- sleep 600
  wait_until is_now "$opened"
  kill_daemon
  [ "$(who)" = "$opened" ]
  kill -KILL "$BACKGROUND_PID"
  start_daemon
  wait_until is_now "$closed"
}

@test "a restart takes over, and turned off meanwhile it restores" {
  setfacl -m u:33:r,m::rw machine/dev/nvidia0
  chmod 640 machine/dev/nvidia1
  rights >before
  strict
  start_daemon
  as_nobody gpurota reserve --gpu-ids 1 --for 1h
  stop_daemon
  [ "$(who)" = "$opened" ]
  start_daemon
  [ "$(who)" = "$opened" ]
  strict false
  kill_daemon
  start_daemon
  rights | diff before -
  gpurota events | grep -q 'access_set.*off'
  wait_until test ! -e state/device-files
}

@test "reload turns it on and off, and mode and access lists are exactly as before" {
  setfacl -m u:33:r,g:44:rw,m::rw machine/dev/nvidia0
  chmod 604 machine/dev/nvidia1
  rights >before
  start_daemon
  strict
  gpurota reload | grep -q access.strict
  wait_until is_now "$closed"
  strict false
  gpurota reload
  rights | diff before -
}

@test "without a daemon the files can be restored, and not while one runs" {
  rights >before
  strict
  start_daemon
  run -1 "${DAEMON[@]}" --restore-device-files
  [[ $output == *"a gpurotad runs"* ]]
  [ "$(who)" = "$closed" ]
  kill_daemon
  "${DAEMON[@]}" --restore-device-files
  rights | diff before -
  [ ! -e state/device-files ]
  "${DAEMON[@]}" --restore-device-files
}

@test "killed at any moment of turning on and off, it opens nothing, and all can be restored" {
  chmod 660 machine/dev/nvidia0
  setfacl -m u:33:r machine/dev/nvidia1
  chmod o= machine/dev/nvidia1
  rights >before
  local i
  for i in {00..95..5}; do
    strict
    as_daemon "${DAEMON[@]}" >"$i.log" 2>&1 3>&- &
    DAEMON_PID=$!
    # Every second daemon is killed before it serves, or soon after. The others are killed soon
    # after they were told to turn strict access off again.
    if ((10#$i % 2)); then
      wait_until says "$i.log" 'gpurotad serves'
      strict false
      kill -HUP "$DAEMON_PID"
      sleep "0.0$i"
    else
      sleep "0.$((RANDOM % 3))$i"
    fi
    kill_daemon
    [ "$(can as_somebody)" = nvidiactl ]
  done
  "${DAEMON[@]}" --restore-device-files
  rights | diff before -
}

@test "the configuration names users and groups who need no lease" {
  strict true 'users = ["65533"]' 'groups = ["65534"]'
  start_daemon
  [ "$(who)" = "$all" ]
  strict true 'users = ["nobdy"]'
  run -0 gpurota config check gpurota.toml
  [[ $output == *"access.users: no such user 'nobdy'; did you mean nobody?"* ]]
  strict perhaps
  run -1 gpurota config check gpurota.toml
  [[ $output == *access.strict* ]]
}

# opener NAME COMMAND…: acts like a vendor's daemon: keeps all GPUs' files open, and reopens each
# all the time. NAME gets a line for each round, and one for each file that was refused.
opener() {
  in_background "$1" "${@:2}" sh -c 'exec 3<>machine/dev/nvidia0 4<>machine/dev/nvidia1
    while :; do for file in nvidia0 nvidia1; do
        (: <>"machine/dev/$file") 2>/dev/null || echo "refused $file"; done;
      echo round; sleep 0.01; done'
}
rounds() { grep -c round "$1"; }
# more_rounds NAME: waits until the opener has done more rounds.
more_rounds() {
  local before
  before=$(rounds "$1")
  is_further() { [ "$(rounds "$1")" -gt "$((before + 5))" ]; }
  wait_until is_further "$1"
}

@test "a daemon whose user is named works whenever it was started, over restarts and reloads; root's does, too" {
  strict true 'users = ["65533"]'
  # as nvidia-persistenced --user
  opener persistence setpriv --reuid 65533 --regid 65533 --clear-groups
  opener hostengine env                                                 # as nv-hostengine
  start_daemon
  [ "$(who)" = \
    'root: nvidia0 nvidia1 nvidiactl | nobody: nvidiactl | other: nvidia0 nvidia1 nvidiactl' ]
  opener later setpriv --reuid 65533 --regid 65533 --clear-groups
  as_nobody gpurota reserve --gpu-ids 1 --for 1h
  kill_daemon
  start_daemon
  gpurota reload
  as_nobody gpurota release --all
  local name
  for name in persistence hostengine later; do
    more_rounds "$name"
    lacks refused "$name"
  done
  # A daemon whose user is not named any more keeps its open files, and can open no others.
  strict
  gpurota reload
  wait_until says persistence 'refused nvidia1'
  more_rounds persistence
  lacks refused hostengine
  # doctor counts the two openers that began before strict access was in force, and the subshells
  # that the openers have just forked.
  names_both() {
    gpurota doctor | grep -q '[2-6] processes without a lease had device files open before'
  }
  wait_until names_both
}

@test "a server of MPS is its client's user: it opens the GPUs of that user's leases" {
  strict
  start_daemon
  # mps USER: opens a GPU as the server that root's MPS control daemon starts for a client.
  mps() {
    env setpriv --reuid "$1" --regid "$1" --clear-groups sh -c 'exec 3<>machine/dev/nvidia1'
  }
  run -2 mps 65534
  as_nobody gpurota reserve --gpu-ids 1 --for 1h
  mps 65534
  run -2 mps 65533
}

@test "a device file that others change is set right, reported, and in doctor with what to do" {
  strict
  printf '%s\n' 'ModifyDeviceFiles: 1' 'DeviceFileUID: 0' 'DeviceFileMode: 438' \
    >machine/proc/driver/nvidia/params
  start_daemon
  chmod 666 machine/dev/nvidia1 # as nvidia-modprobe does
  wait_until is_now "$closed"
  gpurota events | grep -q 'access_mended.*nvidia1'
  gpurota doctor >said || true
  grep -q 'set the device files to mode 0666' said
  grep -q NVreg_DeviceFileMode=0660 said
  grep -q 'changed device files 1 time; the last: .*nvidia1' said
}

@test "with the mode that the driver shall have, its helper finds nothing to change" {
  strict
  printf '%s\n' 'ModifyDeviceFiles: 1' 'DeviceFileMode: 432' >machine/proc/driver/nvidia/params
  start_daemon
  [ "$(stat -c %a machine/dev/nvidia0 machine/dev/nvidia1 | sort -u)" = 660 ]
  chmod 660 machine/dev/nvidia1 # as if nvidia-modprobe changed the mode in spite of the parameters
  [ "$(who)" = "$closed" ]
  gpurota doctor >said || true
  lacks 'set the device files to mode' said
}

@test "a process that has a device file open already is reported" {
  in_background holder "${NOBODY[@]}" sh \
    -c 'exec 3<>machine/dev/nvidia1; echo opened; exec sleep 600'
  wait_until says holder opened
  strict
  start_daemon
  gpurota events --json | grep -q '1 process without a lease had some open before'
  gpurota doctor >said || true
  grep -q "1 process without a lease had device files open before: $BACKGROUND_PID" said
  as_somebody gpurota doctor >said || true
  grep -q '1 process without a lease had device files open before' said
  lacks "$BACKGROUND_PID" said
}

@test "an instance of a GPU in MIG mode has its capability files, and no other instance's" {
  strict
  start_daemon
  as_nobody gpurota reserve --gpu-ids 0:1 --memory 1G --for 1h
  getfacl -pn machine/dev/nvidia-caps/* machine/dev/nvidia0 >said
  python3 - said <<'EOF'
import sys
lists = {each.splitlines()[0].split("/")[-1]: each
         for each in open(sys.argv[1]).read().split("\n\n") if each.strip()}
assert ("user:65534:r--" in lists["nvidia-cap30"]
        and "user:65534:r--" in lists["nvidia-cap31"]), lists
assert "65534" not in lists["nvidia-cap33"] and "other::---" in lists["nvidia-cap33"], lists
assert "other::rw-" in lists["nvidia-cap1"], lists
assert "user:65534:rw-" in lists["nvidia0"], lists
EOF
}

# with_devices: uses real device files instead of plain ones, with numbers that no driver here has,
# so a permitted open fails with ENXIO.
with_devices() {
  local file
  for file in nvidia0:0 nvidia1:1 nvidiactl:255; do
    rm "machine/dev/${file%:*}"
    mknod -m 666 "machine/dev/${file%:*}" c 195 "${file#*:}" 2>/dev/null ||
      skip "no device files can be made here"
  done
  [ ! -e /proc/driver/nvidia/version ] || skip "there is a driver here"
  hears 'No such device' env nvidia0 || skip "no device files can be opened here"
}
# hears ANSWER USER FILE: opening FILE as USER gives an error that matches ANSWER.
hears() { { "$2" sh -c ': <"$1"' sh "$E2E_DIR/machine/dev/$3" 2>&1 || true; } | grep -q "$1"; }
# in_lease GPU FILE: the error of opening FILE in a program in a lease of that GPU.
in_lease() {
  as_nobody gpurota run --quiet --gpu-ids "$1" --memory 64M -- sh \
    -c ': <"$1"' sh "$E2E_DIR/machine/dev/$2" 2>&1 || true
}
fences_hold() {
  gpurota doctor >said || true
  if grep -q "can open all GPUs of their user" said; then
    skip "$(grep -m 1 'all GPUs of their user' said)"
  fi
}

@test "a lease's programs open the files of its GPUs only, whatever else their user has" {
  with_devices
  strict
  start_daemon
  as_nobody gpurota reserve --gpu-ids 1 --memory 64M --for 1h
  hears 'No such device' as_nobody nvidia1
  in_lease 0:1 nvidia1 >heard
  fences_hold
  grep -q 'not permitted' heard
  in_lease 0:1 nvidia0 | grep -q 'No such device'
  in_lease 0:1 nvidiactl | grep -q 'No such device'
  # The same holds under a reservation, and a lease inside of a lease has its own files.
  as_nobody gpurota run --quiet --lease L1 -- sh -c ': <machine/dev/nvidia1' 2>&1 |
    grep -q 'No such device'
  as_nobody gpurota run --quiet --gpu-ids 0:1 --memory 64M -- gpurota run --quiet --gpu-ids 1 \
    --memory 64M -- \
    sh -c 'true <machine/dev/nvidia1; true <machine/dev/nvidia0' >heard 2>&1 || true
  [ "$(grep -c 'No such device' heard),$(grep -c 'not permitted' heard)" = 1,1 ]
}

@test "fences outlive the daemon, follow the next one's leases, and go with strict access" {
  with_devices
  strict
  start_daemon
  as_nobody gpurota reserve --gpu-ids 1 --memory 64M --for 1h
  # shellcheck disable=SC2016 # the inner shell's
  in_background asker "${NOBODY[@]}" gpurota run --quiet --gpu-ids 0:1 --memory 64M -- sh -c '
    while sleep 0.05; do { : <"$1"; } 2>&1 | sed "s/.*: //" >heard.new; mv heard.new heard; done' \
    sh "$E2E_DIR/machine/dev/nvidia1"
  chmod 777 .
  wait_until says heard .
  fences_hold
  wait_until says heard 'not permitted'
  kill_daemon
  rm heard
  wait_until says heard 'not permitted'
  start_daemon
  rm heard
  wait_until says heard 'not permitted'
  strict false
  gpurota reload
  wait_until says heard 'No such device'
}
