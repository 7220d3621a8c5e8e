#!/usr/bin/env bats
# Commands as users of other tools type them, and results for unusual users or machines.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

@test "GPUs are named by a range, also to drain them and to show turns" {
  last=$(($(value 'len(gpus)') - 1))
  [ "$(gpurota reserve --gpu-ids "0-$last" --short)" = "$(seq -s , 0 "$last")" ]
  gpurota release --all
  run -125 gpurota run --gpu-ids "0-$((last + 1))" -- true
  [[ $output == *"there is no GPU \"$((last + 1))\""* ]]
  run -125 gpurota run --gpu-ids 1-0 -- true
  [[ $output == *'"1-0" is not a range of GPUs: write 0-1'* ]]
}

@test "a lease is given an end by a time of day" {
  gpurota reserve --memory 1G --for 1h --short
  gpurota update L1 --until +3h >said
  grep -q '^updated L1 on GPU .*, until ' said
  local ends
  ends=$(value '(__import__("datetime").datetime.fromisoformat(
      leases[0]["ends"].replace("Z", "+00:00")) -
    __import__("datetime").datetime.now(__import__("datetime").timezone.utc)
    ).total_seconds() // 60')
  [ "${ends%.0}" -ge 178 ]
  run -2 gpurota update L1 --until soon
  [[ $output == *"--until: 'soon' is not a time to come"* ]]
}

@test "names of other tools' commands are answered with ours" {
  run -2 gpurota run -d -- true
  [[ $output == *"gpurota job add NAME"* ]]
  run -2 gpurota run --detach -- true
  [[ $output == *"gpurota job add NAME"* ]]
  run -2 gpurota run --gpus all -- true
  [[ $output == *"--gpu-ids all"* ]]
  run -2 gpurota stop L1
  [[ $output == *"'release'"*"'job stop'"* ]]
}

@test "a limit below the memory that a program holds is reported, with the way back" {
  in_background holder gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 1200
  wait_until holds 'leases and leases[0]["gpus"][0]["used_bytes"] > 1200 << 20'
  run -0 --separate-stderr gpurota update L1 --memory 1G
  [[ $output == "updated L1 on GPU 0 (1 GiB)"* ]]
  local stays="What it holds stays until it is freed"
  local back="; to go back: gpurota update L1 --memory 2G"
  # shellcheck disable=SC2154 # run sets it
  [[ $stderr == *"L1 holds 1."*" GiB of GPU 0, more than its new limit of 1 GiB. $stays"*"$back" ]]
  run -0 --separate-stderr gpurota update L1 --memory 2G
  [ -z "$stderr" ]
}

@test "a file of variables may begin with a byte order mark" {
  printf '\xef\xbb\xbfTOKEN=one\r\nOTHER=two\n' >variables
  gpurota job add web --env-file variables -- sh -c 'echo "$TOKEN $OTHER"'
  wait_until job_said 'one two'
  gpurota job remove --force web
}
job_said() { gpurota job logs web | grep -qx "$1"; }

@test "draining once more keeps the first reason, unless there is another" {
  gpurota drain 0 --reason 'new fan'
  gpurota drain 0
  gpurota status | grep -q 'DRAINING.*new fan'
  gpurota drain 0 --reason 'no fan'
  gpurota status | grep -q 'DRAINING.*no fan'
  gpurota undrain 0
  gpurota drain 0
  run gpurota status
  [[ $output != *fan* ]]
}

@test "only an administrator is asked whether everybody is meant" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  run -1 as_nobody gpurota release --all-users </dev/null
  [[ $output == *"only administrators can end everybody's leases"* ]]
  [[ $output != *--yes* ]]
  run -1 gpurota release --all-users </dev/null
  [[ $output == *"give --yes too"* ]]
}

@test "GPUs without a swap lease share a line of turns" {
  [ "$(gpurota turns | grep -c 'no swap lease')" = 1 ]
  gpurota turns | grep -Eq '^GPU 0(-|, )[0-9]+: no swap lease; 0 B of '
}

@test "where the locale has no UTF-8, status and events are ASCII" {
  gpurota reserve --memory 1G --note "größe → 漢字 $(printf 'x%.0s' {1..300})" --short
  LC_ALL=C gpurota status >shown
  LC_ALL=C gpurota events >>shown
  lacks '[^\x00-\x7f]' shown
  grep -q 'gr??e > ????' shown
  LC_ALL=C.UTF-8 gpurota status | grep -q 'größe → 漢字'
}

@test "top on a terminal that this machine does not know is one picture" {
  run -0 script -qfec 'TERM=nothing-known gpurota top' /dev/null
  [[ $output == *"does not know the terminal"* ]]
  [[ $output == *"gpurota top"*"GPU 0"* ]]
}

@test "doctor reports why the next start will fail, and settings not in effect" {
  gpurota doctor | grep -Eq '^ok +next start'
  echo 'grace = "3s"' >gpurota.toml
  gpurota doctor | grep -Eq '^warning +next start +1 setting in .*gpurota.toml is not in effect yet'
  gpurota reload
  echo 'grce = "3s"' >gpurota.toml
  run -1 gpurota doctor
  [[ $output == *"gpurotad will not start: "*"gpurota.toml:1: grce: no such setting"* ]]
  echo 'group = "gu-no-such-group"' >gpurota.toml
  run -1 gpurota doctor
  [[ $output == *"gpurotad will not start: group: there is no group 'gu-no-such-group'"* ]]
}

@test "an unknown user of [notify] is reported before a notice is lost" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: another user's daemon becomes nobody else"; fi
  printf '[notify]\ncommand = ["/bin/true"]\nuser = "gu-no-such-user"\n' >gpurota.toml
  gpurota reload 2>&1 | grep -q "notify.user: no such user 'gu-no-such-user'"
  gpurota doctor | grep -q "notify.user: no such user 'gu-no-such-user'"
}

@test "with umask 077 the daemon's folder is still open to the users it serves" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  stop_daemon
  chmod 755 .
  rm -rf run
  umask 077
  start_daemon
  as_nobody gpurota run --memory 1G -- true
  umask 022
}
