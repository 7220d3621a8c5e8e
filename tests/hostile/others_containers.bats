#!/usr/bin/env bats
# Tests what another user's container can use, see or end of a user's lease. The container is made
# as engines make one from the kernel's parts: a user namespace in which the attacker is root, a pid
# namespace, and a control group with a name like those that engines give.

load ../e2e/helpers

setup() {
  [ "$(id -u)" = 0 ] || skip "needs root: it switches users"
  make_folders
  attacker true 2>/dev/null || skip "no user namespace can be made here"
  CGROUPS=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
  chmod 755 . run "$GPUROTA_SIM_DIR"
  # Only the user of the simulated driver may access its files by default.
  chmod 666 "$GPUROTA_SIM_DIR"/{state,locks,pids}
  start_daemon
}
teardown() {
  end_test
  if [ -n "${OURS:-}" ]; then rmdir "$OURS"/* "$OURS" 2>/dev/null || true; fi
}

VICTIM=(setpriv --reuid 65534 --regid 65534 --clear-groups)
# attacker COMMAND…: runs as root of a user namespace, with process numbers of its own.
attacker() {
  setpriv --reuid 65533 --regid 65533 --clear-groups unshare --user --map-root-user --fork --pid \
    --mount-proc "$@"
}
library() { sed -n 1p run/container/ld.so.preload; }
# claims TOKEN COMMAND…: the attacker's command claims to be in the lease L1, with this token.
claims() {
  attacker env GPUROTA_LEASE=L1 GPUROTA_TOKEN="$1" \
    GPUROTA_SOCKET="$GPUROTA_RUNTIME_DIR/container/tenant.sock" LD_PRELOAD="$(library)" "${@:2}"
}
has_processes() { [ "$(counted_processes)" = "$1" ]; }
# victim_holds: starts a program of the victim's under the reservation L1, in a control group with
# an engine's name. VICTIM_PID is the program.
victim_holds() {
  ID=$(printf 'a%.0s' {1..64})
  OURS=$CGROUPS/gpurota-hostile-$BASHPID
  mkdir "$OURS" "$OURS/libpod-$ID" 2>/dev/null || skip "no control group can be made here"
  "${VICTIM[@]}" gpurota reserve --memory 1G --for 1h --note private --name web >/dev/null
  "${VICTIM[@]}" gpurota container-args web --env-file "$(mktemp -u -p "$(victims_folder)")" \
    >/dev/null
  TOKEN=$(sed -n 's/^GPUROTA_TOKEN=//p' victims/*)
  [ "${#TOKEN}" = 32 ]
  # shellcheck disable=SC2016
  in_background holder sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$OURS/libpod-$ID" \
    "${VICTIM[@]}" \
    env GPUROTA_LEASE=L1 GPUROTA_TOKEN="$TOKEN" \
    GPUROTA_SOCKET="$GPUROTA_RUNTIME_DIR/container/tenant.sock" LD_PRELOAD="$(library)" "$PROGRAM" \
    hold 100
  VICTIM_PID=$BACKGROUND_PID
  wait_until says holder holding
  wait_until has_processes 1
}
victims_folder() { mkdir -p victims && chown 65534 victims && echo "$E2E_DIR/victims"; }

@test "the token cannot be read where it is, and a wrong or an old one is worth nothing" {
  victim_holds
  run ! attacker cat "/proc/$VICTIM_PID/environ"
  run ! setpriv --reuid 65533 --regid 65533 --clear-groups cat "/proc/$VICTIM_PID/environ" victims/*
  run ! grep -rqs "$TOKEN" /proc/[0-9]*/cmdline
  run ! claims "${TOKEN//[0-9]/a}" "$PROGRAM" info
  [[ $output = *"another user's"* ]]
  run ! claims "" "$PROGRAM" info
  # The daemon does not count the victim's program any more, because the attacker's programs ran the
  # simulated driver in a pid namespace of their own. There, the simulated driver regards every
  # process outside of the namespace as ended.
  kill -0 "$VICTIM_PID"
  holds 'len(leases) == 1'
  "${VICTIM[@]}" gpurota release web
  wait_until no_leases
  run ! claims "$TOKEN" "$PROGRAM" info
  # The next lease has another token.
  "${VICTIM[@]}" gpurota reserve --memory 1G --for 1h
  run ! claims "$TOKEN" "$PROGRAM" info
  run ! attacker env GPUROTA_LEASE=L2 GPUROTA_TOKEN="$TOKEN" \
    GPUROTA_SOCKET="$GPUROTA_RUNTIME_DIR/container/tenant.sock" LD_PRELOAD="$(library)" "$PROGRAM" \
    info
}

@test "root of a container neither sees nor ends leases outside" {
  victim_holds
  run ! attacker gpurota release web
  run ! attacker gpurota release L1
  run ! attacker gpurota release --all-users --yes
  run ! attacker gpurota update L1 --memory 512M
  run ! attacker gpurota container-args L1 --env-file mine.env
  run ! attacker kill "$VICTIM_PID"
  attacker gpurota status --json >seen
  run ! grep -q -e private -e "$TOKEN" seen
  kill -0 "$VICTIM_PID"
  wait_until has_processes 1
}

@test "a control group with the same name elsewhere is not the victim's container" {
  victim_holds
  mkdir "$OURS/other" "$OURS/other/libpod-$ID"
  # shellcheck disable=SC2016
  in_background other sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh \
    "$OURS/other/libpod-$ID" \
    setpriv --reuid 65534 --regid 65534 --clear-groups "$PROGRAM" hold 200
  wait_until says other holding
  local other=$BACKGROUND_PID
  # shellcheck disable=SC2016
  in_background beside sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$OURS/libpod-$ID" \
    setpriv --reuid 65533 --regid 65533 --clear-groups "$PROGRAM" hold 300
  wait_until says beside holding
  wait_until knows "$other"
  wait_until knows "$BACKGROUND_PID"
  # The attacker in the victim's own group is not in the lease, and neither is another user's
  # process in a group of the same name.
  gpurota ps L1 >members
  run ! grep -qw -e "$BACKGROUND_PID" members
  kill "$other" "$BACKGROUND_PID"
  wait_until gone "$other"
  rmdir "$OURS/other/libpod-$ID" "$OURS/other"
}
knows() { gpurota ps | grep -qw "$1"; }

# asks USER GROUP: a program of this user's, in this control group, asks for an automatic lease.
# Prints the status, and the token if there is one.
asks() {
  # shellcheck disable=SC2016
  exec sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$2" env \
    PYTHONPATH="$BATS_TEST_DIRNAME" python3 -B -c '
import signal, sys, users, wire
users.as_user(int(sys.argv[1]))
tenant = wire.Tenant()
tenant.connect()
print(*tenant.automatic(), flush=True)
signal.pause()' "$1"
}

@test "a control group of one's own with an engine's name is no container of root's engine" {
  OURS=$CGROUPS/gpurota-hostile-$BASHPID
  ID=$(printf 'a%.0s' {1..64})
  mkdir "$OURS" "$OURS/users" "$OURS/users/libpod-$ID.scope" "$OURS/libpod-$ID.scope" 2>/dev/null ||
    skip "no control group can be made here"
  # systemd likewise leaves a part of the tree to each user.
  chown 65533 "$OURS/users" "$OURS/users/cgroup.procs"
  chown -R 65533 "$OURS/users/libpod-$ID.scope"
  printf '%s\n' '[automatic]' 'enabled = true' 'memory = "1G"' '[containers]' 'owner = "nobody"' \
    >gpurota.toml
  gpurota reload
  in_background mine asks 65533 "$OURS/users/libpod-$ID.scope"
  wait_until says mine '^0 '
  holds 'len(leases) == 1 and leases[0]["uid"] == 65533'
  # A container of root's engine belongs to the named account, and a program of another user inside
  # does not get that account's token.
  in_background theirs asks 65533 "$OURS/libpod-$ID.scope"
  wait_until says theirs '^0 '
  holds '[lease["uid"] for lease in leases] == [65533, 65534]'
  kill_background
  # A process that was killed leaves its group a moment later.
  wait_until rmdir "$OURS/users/libpod-$ID.scope"
  rmdir "$OURS/users"
}

@test "process numbers of another namespace match no process here" {
  victim_holds
  # The attacker's program gets, in its own namespace, the process number that the victim's program
  # has outside.
  # shellcheck disable=SC2016
  run ! attacker sh -c 'echo "$1" >/proc/sys/kernel/ns_last_pid 2>/dev/null; shift; exec "$@"' sh \
    $((VICTIM_PID - 1)) \
    env GPUROTA_LEASE=L1 GPUROTA_SOCKET="$GPUROTA_RUNTIME_DIR/container/tenant.sock" \
    LD_PRELOAD="$(library)" "$PROGRAM" info
  # The attacker's program is not counted in the lease. After the next sample the victim's program
  # is not counted either, for the reason that the first case names.
  (($(counted_processes) <= 1))
  sleep 1
  (($(counted_processes) <= 1))
  # The attacker's kill ends process 1 of its own namespace, and no other process.
  run ! attacker sh -c 'kill -KILL -1; kill -KILL 1; exit 3'
  kill -0 "$VICTIM_PID"
}
