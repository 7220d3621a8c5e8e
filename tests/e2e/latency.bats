#!/usr/bin/env bats
# The latency class of a lease: who can have it, where it is shown, and what keeps it.

load helpers

setup() { make_folders; }
teardown() { end_test; }

@test "a slice is interactive, even for the next daemon, until it is changed" {
  start_daemon
  in_background server gpurota run --memory 1G --latency interactive -- "$PROGRAM" hold 100
  wait_until says server holding
  in_background plain gpurota run --memory 1G -- "$PROGRAM" hold 100
  wait_until says plain holding
  gpurota status >said
  grep -Eq ' L1 .* interactive' said
  run -1 grep -Eq ' L2 .* interactive' said
  holds '[l["latency"] for l in leases] == ["interactive", "normal"]'
  gpurota explain L1 | grep -q '^L1 on GPU 0 (1 GiB), interactive'
  run -0 gpurota explain L2
  [[ $output != *interactive* ]]
  kill_daemon
  start_daemon
  holds '[l["latency"] for l in leases] == ["interactive", "normal"]'
  run -0 gpurota update L1 --latency normal
  [[ $output != *interactive* ]]
  run -0 gpurota update L2 --latency interactive
  [[ $output == *"updated L2 on GPU 0 (1 GiB), interactive"* ]]
  holds '[l["latency"] for l in leases] == ["normal", "interactive"]'
  wait_until eval 'gpurota events | grep -q "L2 .*changed: 1 GiB of GPU 0, interactive"'
}

@test "a whole GPU is refused with what to write instead, and anything can be normal" {
  start_daemon
  run -2 gpurota run --latency interactive -- true
  [[ $output == *"a program with a whole GPU has no other beside it"*"add --memory 8G or --swap"* ]]
  gpurota run --memory 1G --swap --latency interactive -- true
  run -2 gpurota run --memory 1G --filler --latency interactive -- true
  [[ $output == *"a filler cannot be interactive"* ]]
  run -2 gpurota run --memory 1G --latency fast -- true
  [[ $output == *"--latency: 'fast' is not interactive or normal"* ]]
  run -2 gpurota job add server --latency interactive -- true
  [[ $output == *"add --memory 8G or --swap"* ]]
  gpurota run --latency normal -- true
  gpurota run --swap --latency normal -- true
  gpurota reserve --gpu-ids 0 --for 30m
  run -1 gpurota update L4 --latency interactive
  [[ $output == *"L4 cannot be interactive: only a lease that shares its GPUs can"* ]]
  gpurota update L4 --latency normal
}

@test "a request that waits, a booking and a job keep the class" {
  start_daemon
  gpurota reserve --gpu-ids all --for 30m
  in_background waiting gpurota run --memory 1G --latency interactive -- true
  wait_until eval 'gpurota queue | grep -q "1 x 1 GiB interactive"'
  gpurota queue --json | python3 -c 'import json, sys
assert json.load(sys.stdin)["requests"][0]["latency"] == "interactive"'
  gpurota explain R1 | grep -q '1 x 1 GiB interactive'
  gpurota cancel R1
  gpurota release --all
  gpurota reserve --memory 1G --latency interactive --at +2h --for 30m | grep -q 'interactive)'
  gpurota calendar --json | python3 -c 'import json, sys
assert json.load(sys.stdin)["bookings"][0]["latency"] == "interactive"'
  gpurota job add server --memory 1G --latency interactive -- sleep 600
  wait_until holds 'leases and leases[0]["latency"] == "interactive"'
  gpurota job update server --latency normal
  holds 'leases[0]["latency"] == "normal"'
  gpurota job remove --force server
}

@test "the site says who may have it, and the refusal names the setting" {
  printf '%s\n' '[limits]' 'interactive = false' >gpurota.toml
  start_daemon
  run -125 gpurota run --memory 1G --latency interactive -- true
  [[ $output == *"allows you no interactive leases ([limits] interactive)"* ]]
  gpurota run --memory 1G --latency normal -- true
  gpurota limits | grep -Eq '^interactive leases +- +no +everyone$'
  gpurota reserve --memory 1G --for 30m
  run -1 gpurota update L2 --latency interactive
  [[ $output == *"([limits] interactive)"* ]]
  printf '[limits.user.%s]\ninteractive = true\n' "$(id -u)" >>gpurota.toml
  gpurota reload
  gpurota update L2 --latency interactive
  gpurota limits | grep -Eq '^interactive leases +- +yes +user '
}
