#!/usr/bin/env bats
# The order of the queue by what users have used.

load helpers

setup() { make_folders; }
teardown() { end_test; }

in_order() { # the users who wait
  local IFS=' '
  [ "$(gpurota queue --json | python3 -c '
import json, sys
print(*[each["user"] for each in json.load(sys.stdin)["requests"]])')" = "$*" ]
}

# Reserves all GPUs, and waits until fair share counts their use.
take_all() {
  gpurota reserve --gpus "$(value 'len(gpus)')" --for 1h --quiet >taken
  wait_until has_used
}
has_used() { gpurota limits | grep -q '^fair share: root has used [1-9]'; }

@test "the user who has used less goes first, and sees why, even after a kill of the daemon" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  printf '[fair_share]\nenabled = true\nhalf_life = "1h"\n' >gpurota.toml
  start_daemon
  chmod 755 . run
  take_all
  in_background rich gpurota run -- sh -c 'date +%s.%N >rich.at'
  wait_until in_order root
  local rich=$BACKGROUND_PID
  in_background poor as_nobody gpurota run -- sh -c 'echo poor runs; sleep 0.3'
  wait_until in_order nobody root
  gpurota queue >said
  grep -q 'behind R2 of nobody, who has used less$' said
  gpurota explain R1 >said
  local half='what is 1 h old counts half'
  grep -Eq \
    "^  behind R2 of nobody, who has used less GPU time: nobody 0 s, you [0-9]+ s; $half$" said
  gpurota explain R1 --json | python3 -c 'import json, sys
request = json.load(sys.stdin)["requests"][0]
assert request["fair_share"]["used_seconds"] > 0 and request["overdue"] is False, request
assert (request["passed_by"]["request_id"] == "R2"
        and request["passed_by"]["fair_share"]["used_seconds"] == 0), request'
  gpurota limits | grep -Eq \
    "^fair share: root has used [0-9]+ s of GPU time; $half, and whoever has used less goes first$"
  kill_daemon
  start_daemon
  wait_until in_order nobody root
  gpurota release L1
  wait "$rich" "$BACKGROUND_PID"
  says poor '^poor runs'
}

@test "switched off, the order is that of coming again, and nothing of it is shown" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  printf '[fair_share]\nenabled = true\nhalf_life = "1h"\n' >gpurota.toml
  start_daemon
  chmod 755 . run
  take_all
  in_background rich gpurota run -- true
  wait_until in_order root
  in_background poor as_nobody gpurota run -- true
  wait_until in_order nobody root
  : >gpurota.toml
  gpurota reload | grep -qx 'fair_share.enabled: true → false'
  wait_until in_order root nobody
  gpurota queue | lacks 'behind' /dev/stdin
  gpurota limits | lacks 'fair share' /dev/stdin
}

@test "half_life, longest_wait and weights are checked" {
  printf '%s\n' '[fair_share]' 'enabled = 1' 'half_live = "7d"' '[fair_share.user.root]' \
    'weight = 0' '[fair_share.group.no-such]' 'weight = 2' >bad.toml
  run -1 gpurota config check bad.toml
  [[ $output == *"fair_share.enabled: 1 is not a switch"* ]]
  [[ $output == *"did you mean fair_share.half_life?"* ]]
  [[ $output == \
    *"fair_share.user.root.weight: 0 is out of range: write a whole number from 1 to 10000"* ]]
  printf '[fair_share.group.no-such]\nweight = 2\n' >bad.toml
  run gpurota config check bad.toml
  [[ $output == *"fair_share.group.no-such"*"no such group"* ]]
}
