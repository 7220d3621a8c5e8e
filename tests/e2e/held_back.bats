#!/usr/bin/env bats
# Work of a lease is held back while an interactive lease on the same GPU has work. The server of
# these cases has work for 30 of 32 ms.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

serve() {
  in_background server gpurota run --gpu-ids 0 --memory 1G --latency "${1:-interactive}" -- \
    "$E2E_LATENCY_PROGRAM" serve "${2:-stream}"
  SERVER=$BACKGROUND_PID
  wait_until says server ready
}
server_pid() { pgrep -f "^$E2E_LATENCY_PROGRAM serve" | head -n 1; }

# The longest time that one of 200 submissions took, in milliseconds.
longest_of() {
  gpurota run --gpu-ids "${1:-0}" --memory 1G -- "$E2E_LATENCY_PROGRAM" work 200 | tail -n 1
}
# Until the daemon has connected the two sides, nothing is held back.
is_held_back() { (($(longest_of) >= 10)); }
is_free() { (($(longest_of "${1:-0}") < 10)); }

worker_key() {
  gpurota ps --json | python3 -c '
import json, sys
processes = json.load(sys.stdin)["processes"]
print([p[sys.argv[1]] for p in processes if "work" in (p["command"] or [])][0])' "$1"
}
# worker_was_held SECONDS: for at least that long.
worker_was_held() {
  local seconds
  seconds=$(worker_key held_seconds 2>/dev/null) || return 1
  ((seconds >= $1))
}

@test "a slice beside a busy interactive slice waits for it, and not beside a normal one" {
  serve normal
  wait_until is_free
  gpurota update L1 --latency interactive
  wait_until is_held_back
  gpurota update L1 --latency normal
  wait_until is_free
}

@test "ps says for how long a program was held back, and how many bursts there were" {
  serve
  in_background worker gpurota run --gpu-ids 0 --memory 1G -- "$E2E_LATENCY_PROGRAM" work 100000
  wait_until worker_was_held 1
  gpurota ps | grep -q 'has held back work for .* for interactive leases'
  gpurota explain L2 | grep -q 'its programs hold back work while programs of L1 have work'
  gpurota explain L2 | grep -q 'its programs have held back work for'
  gpurota explain L2 | grep -q 'its work was held back for .* %.*, for L1 (interactive)'
  gpurota explain L1 | grep -q 'is interactive'
  gpurota ps --json | python3 -c '
import json, sys
processes = json.load(sys.stdin)["processes"]
server = [p for p in processes if "serve" in p["command"]]
assert server[0]["bursts"] > 0 and server[0]["held_seconds"] == 0, processes'
}

# server_had_bursts COUNT: at least that many.
server_had_bursts() {
  gpurota ps --json | python3 -c '
import json, sys
processes = json.load(sys.stdin)["processes"]
sys.exit(not any("serve" in (p["command"] or []) and p["bursts"] >= int(sys.argv[1])
                 for p in processes))' "$1"
}

# A server whose work never seemed to end would have one burst.
@test "a server that waits by a copy to the host has one burst for each request" {
  serve interactive copy
  in_background worker gpurota run --gpu-ids 0 --memory 1G -- "$E2E_LATENCY_PROGRAM" work 100000
  wait_until server_had_bursts 20
}

@test "a server that waits in another stream has one burst for each request" {
  serve interactive event
  in_background worker gpurota run --gpu-ids 0 --memory 1G -- "$E2E_LATENCY_PROGRAM" work 100000
  wait_until server_had_bursts 20
}

# longest_of() of a swap lease, which begins on its GPU without waiting for a turn.
longest_with_swap() {
  gpurota run --gpu-ids 0 --swap --memory 1G -- "$E2E_LATENCY_PROGRAM" work 200 | tail -n 1
}
is_held_back_with_swap() { (($(longest_with_swap) >= 10)); }
is_free_with_swap() { (($(longest_with_swap) < 10)); }

@test "a swap lease beside a busy interactive swap lease waits, beside a normal one not" {
  in_background server gpurota run --gpu-ids 0 --swap --memory 1G -- \
    "$E2E_LATENCY_PROGRAM" serve stream
  wait_until says server ready
  wait_until is_free_with_swap
  gpurota update L1 --latency interactive
  wait_until is_held_back_with_swap
  wait_until is_held_back
  gpurota update L1 --latency normal
  wait_until is_free
}

@test "leases that take turns work on beside each other if one of them is interactive" {
  gpurota set --gpu-ids 0 --capacity 2G --quantum 100ms
  in_background server gpurota run --gpu-ids 0 --swap --latency interactive -- \
    "$E2E_LATENCY_PROGRAM" serve stream 1000
  wait_until says server ready
  gpurota run --gpu-ids 0 --swap -- "$E2E_LATENCY_PROGRAM" work 200 1000
  gpurota turns --json | python3 -c '
import json, sys
assert len(json.load(sys.stdin)["gpus"][0]["switches"]) > 2'
}

@test "a slice on another GPU is not held back" {
  serve
  wait_until is_held_back
  wait_until is_free 1
}

@test "an interactive program that is stopped or killed holds nobody back for long" {
  serve
  wait_until is_held_back
  stop_process "$(server_pid)"
  # A word that does not change counts for 50 ms, so 200 submissions wait for it once at most.
  local longest
  longest=$(longest_of)
  ((longest <= 1000))
  kill -KILL "$(server_pid)"
  wait_until gone "$SERVER"
  wait_until is_free
}

@test "work is held back while the daemon is killed, and after it has come back" {
  serve
  in_background worker gpurota run --gpu-ids 0 --memory 1G -- "$E2E_LATENCY_PROGRAM" work 100000
  wait_until worker_was_held 1
  kill_daemon
  sleep 2.5
  start_daemon
  # The process counts for itself, so its report shows what happened meanwhile.
  wait_until worker_was_held 3
  wait_until is_held_back
}
