#!/usr/bin/env bats
# Rights of users and their limits, administrators, and reloads of the configuration.

load helpers

setup() { make_folders; }
teardown() { end_test; }

@test "a request beyond the user's limit is refused with limit, held and asked" {
  printf '[limits.user.%s]\ngpus = 1\n' "$(id -u)" >gpurota.toml
  start_daemon
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder holding
  run -125 gpurota run --memory 1G -- true
  [[ $output == *"allows you 1 GPU; you have 1 and ask for 1"* ]]
}

@test "SIGHUP takes a new configuration over, and the program that runs does not notice" {
  start_daemon
  in_background holder gpurota run --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder holding
  printf '[limits]\ngpus = 1\n' >gpurota.toml
  kill -HUP "$DAEMON_PID"
  wait_until says gpurotad.log "configuration has been read again"
  wait_until refused_for_the_limit
  holds 'len(leases) == 1 and leases[0]["state"] == "active"'
}

@test "limits shows allowance, use and the source of the rule; those of others to administrators only" {
  printf '%s\n' '[limits]' 'gpus = 3' 'hours = 100' 'duration = "12h"' '[limits.user.65534]' \
    'memory = "5G"' "[limits.group.$(id -gn)]" 'gpus = 4' >gpurota.toml
  start_daemon
  gpurota reserve --gpu-ids 0 --memory 1G --for 30m
  gpurota limits >said
  grep -Eq "^$(id -un) +USED +LIMIT +FROM$" said
  grep -Eq "^GPUs +1 +4 +group $(id -gn)$" said
  grep -Eq '^GPU memory +1 GiB +none$' said
  grep -Eq '^time of a lease +- +12 h +everyone$' said
  grep -Eq '^leases and requests +1 +64 +max_leases_per_user$' said
  gpurota limits --user 65534 >said
  grep -Eq '^GPU memory +0 B +5 GiB +user ' said
  grep -Eq '^GPUs +0 +3 +everyone$' said
  gpurota limits --json --user nobody | python3 -c 'import json, sys
limits = {each["name"]: each for each in json.load(sys.stdin)["limits"]}
assert (limits["memory"]["most"] == 5 << 30 and limits["memory"]["used"] == 0
        and limits["hours"]["most"] == 360000), limits'
  run -1 gpurota limits --user no-such-user
  [[ $output == *"there is no user \"no-such-user\""* ]]
  if [ "$(id -u)" = 0 ]; then
    chmod 755 . run
    run -1 as_nobody gpurota limits --user 0
    [[ $output == *"only administrators can query other users' limits"* ]]
    as_nobody gpurota limits | grep -Eq '^GPU memory +0 B +5 GiB'
  fi
}

refused_for_the_limit() { gpurota run --memory 1G -- true 2>&1 | grep -q 'allows you 1 GPU'; }

@test "a bad file is refused as a whole, with line and key, and the old one stays in effect" {
  printf '[limits]\ngpus = 0\n' >gpurota.toml
  start_daemon
  printf '[limits]\ngpus = 8\n\nmemry = "1G"\n' >gpurota.toml
  run -1 gpurota reload
  [[ $output == *"gpurota.toml:4: limits.memry: no such setting; did you mean limits.memory?"* ]]
  kill -HUP "$DAEMON_PID"
  wait_until says gpurotad.log "has a mistake and is refused, the old one"
  run -125 gpurota run --memory 1G -- true
  [[ $output == *"allows you 0 GPUs"* ]]
}

@test "a change of the group that needs a restart is reported" {
  start_daemon
  printf 'group = "%s"\n' "$(id -gn)" >gpurota.toml
  gpurota reload
  says gpurotad.log 'group: .* takes effect at the next restart'
}

# as USER-ID GROUP-ID GROUPS COMMAND…
as() {
  local uid=$1 gid=$2 groups=$3
  shift 3
  setpriv --reuid "$uid" --regid "$gid" --groups "$groups" "$@"
}

@test "a user outside the group is refused with its name; its members are served" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  printf 'group = "54321"\n' >gpurota.toml
  chmod 755 . run
  start_daemon
  gpurota doctor | grep -E '^ok +daemon .*group 54321'
  run -125 as 54001 54001 54001 gpurota run --memory 1G -- true
  [[ $output == *"54321"*usermod* ]]
  run -1 as 54001 54001 54001 gpurota doctor
  [[ $output == *"54321"* ]]
  as 54002 54002 54002,54321 gpurota run --memory 1G -- true
}

@test "administrators by group see and end everybody's leases; others do not" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  printf 'admin_group = "54321"\n' >gpurota.toml
  chmod 755 . run
  start_daemon
  in_background holder gpurota run --memory 2G --note secret -- "$PROGRAM" hold 100
  wait_until says holder holding
  as 54001 54001 54001 gpurota status --json >other.json
  lacks secret other.json
  run -1 as 54001 54001 54001 gpurota release L1
  [[ $output == *"somebody else's lease"* ]]
  run -1 as 54001 54001 54001 gpurota reload
  [[ $output == *"only administrators"* ]]
  as 54002 54002 54002,54321 gpurota status --json >admin.json
  grep -q secret admin.json
  as 54002 54002 54002,54321 gpurota reload
  [ "$(as 54002 54002 54002,54321 gpurota release L1)" = \
    "released L1 of $(id -un) (GPU 0, \"secret\")" ]
  wait_until no_leases
  wait_until says holder 'L1 was released by .*54002.* (administrator); ending your program'
}

@test "more time or memory than others wait for is for administrators to give" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  start_daemon
  as 54001 54001 54001 gpurota reserve --gpu-ids 0 --memory 2G --for 1h --short
  as 54001 54001 54001 gpurota update L1 --for 2h
  as 54001 54001 54001 gpurota update L1 --memory 3G
  in_background waiter as 54002 54002 54002 gpurota run --gpu-ids 0 -- true
  wait_until says waiter waiting
  run -1 as 54001 54001 54001 gpurota update L1 --for 5h
  [[ $output == *"R1 waits for a GPU of L1"* ]]
  run -1 as 54001 54001 54001 gpurota update L1 --memory 4G
  [[ $output == *"R1 waits for a GPU of L1"* ]]
  # A user may shorten a lease that another user waits for, and change its note.
  as 54001 54001 54001 gpurota update L1 --for 30m --note shorter
  run -1 as 54002 54002 54002 gpurota update L1 --for 1m
  [[ $output == *"somebody else's lease"* ]]
  gpurota update L1 --for 5h
  gpurota cancel R1
  as 54001 54001 54001 gpurota update L1 --for 6h
  gpurota release --all-users --yes
}
