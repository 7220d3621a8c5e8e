#!/bin/bash
# watch.sh DIST: tests the watch on a real GPU. A program without a lease is found with owner and
# pid; under the policy "stop" that program is stopped and nothing else is; a lease's program that
# avoids the library is charged, found and stopped. Starts daemons of its own; takes at most 8 GiB
# of device memory. Needs PyTorch. Exits with the number of steps that failed.
# shellcheck disable=SC2317  # functions are called by name
set -uo pipefail
dist=$(readlink -f "${1:?usage: watch.sh DIST}")
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$(readlink -f "$0")")/steps.bash"
work=$(mktemp -d)
export GPUROTA_RUNTIME_DIR=$work/run
daemon='' background=()

gpurota() { "$dist/bin/gpurota" "$@"; }
events() { gpurota events; }
found() { # some finding f fulfils the expression
  gpurota status --json |
    python3 -c "import json,sys; sys.exit(not any($1 for f in json.load(sys.stdin)['findings']))"
}
start() { # start CONFIG_LINE…
  printf '%s\n' "$@" > "$work/gpurota.toml"
  "$dist/bin/gpurotad" --runtime-dir "$work/run" --state-dir "$work/state" \
    --config "$work/gpurota.toml" \
    --preload "$dist/lib/libgpurota.so" >> "$work/gpurotad.log" 2>&1 &
  daemon=$!
  within 20 gpurota status ||
    { say FAILED "the daemon does not start: $(tail -n 2 "$work/gpurotad.log")" && exit 99; }
}
stop() {
  kill "$daemon" 2> /dev/null
  wait "$daemon" 2> /dev/null
}
cleanup() {
  for pid in "${background[@]}"; do kill -9 "$pid" 2> /dev/null; done
  stop
  if ((failed)); then tail -n 30 "$work/gpurotad.log"; fi
  rm -rf "$work"
}
trap cleanup EXIT
hold='import sys, time, torch
x = torch.zeros(int(sys.argv[1]) << 20, dtype=torch.uint8, device="cuda"); torch.cuda.synchronize()
print("holding", flush=True)
while True: x += 1; torch.cuda.synchronize(); time.sleep(0.05)'
quoted=$(printf %q "$hold")
stranger() { # stranger FILE MIB: a program that knows nothing of gpurota
  env -u GPUROTA_RUNTIME_DIR python3 -c "$hold" "$2" > "$work/$1" 2>&1 &
  background+=("$!")
  stranger=$!
  within 60 grep -q holding "$work/$1"
}

start '[watch]' 'foreign_use = "notify"'
step "a program without a lease runs" stranger unreserved 3000
begun=$(date +%s%N)
step "it is found with its owner, its pid and its memory" within 5 found \
  "f['kind'] == 'unreserved_use' and f['uid'] == $UID and \
  f['processes'][0]['pid'] == $stranger and f['used_bytes'] >= 3000 << 20"
say "" "found $((($(date +%s%N) - begun) / 1000000)) ms after it said that it holds the memory"
gpurota status
# The daemon reports the event when it knows the process's command line.
step "it is told as an event" within 5 sh -c "'$dist/bin/gpurota' events | grep -q finding_begun"
step "and once" test "$(events | grep -c finding_begun)" = 1
step "and by default left alone" kill -0 "$stranger"
kill -9 "$stranger"
step "the finding ends with it" within 20 sh -c "'$dist/bin/gpurota' events | grep -q finding_ended"
stop

start '[watch]' 'foreign_use = "stop"' 'unreserved_use = "stop"' 'over_limit = "stop"' \
  'stop_grace = "3s"'
"$dist/bin/gpurota" run -- python3 -c "$hold" 2000 > "$work/owner" 2>&1 &
owner=$!
background+=("$owner")
step "a lease has the GPU whole" within 60 grep -q holding "$work/owner"
env -u GPUROTA_RUNTIME_DIR python3 -c "$hold" 1000 > "$work/foreign" 2>&1 &
foreign=$!
background+=("$foreign")
sleep 3600 &
bystander=$!
background+=("$bystander")
within 60 grep -q holding "$work/foreign"
# All programs of one user may use the whole GPU of that user's lease.
step "another program of the same user may use it too" sh \
  -c "sleep 3; kill -0 $foreign && kill -0 $owner"
kill -9 "$foreign" 2> /dev/null
kill "$owner"
wait "$owner" 2> /dev/null
within 30 sh -c "! '$dist/bin/gpurota' status --json | grep -q lease_id"

"$dist/bin/gpurota" run --memory 4G -- python3 -c "$hold" 1000 > "$work/innocent" 2>&1 &
innocent=$!
background+=("$innocent")
step "a lease of 4 GiB holds 1 GiB" within 60 grep -q holding "$work/innocent"
env -u GPUROTA_RUNTIME_DIR python3 -c "$hold" 3000 > "$work/stolen" 2>&1 &
stranger=$!
background+=("$stranger")
step "beside it a program without a lease is stopped" within 60 sh -c "! kill -0 $stranger"
events | grep process_stopped
step "and nothing else: the lease's program goes on" sh \
  -c "sleep 2; kill -0 $innocent && kill -0 $bystander"
step "who was stopped is in the audit log" grep \
  -q "\"pid\":$stranger,.*\"operation\":\"terminated\"" "$work/state/audit/$UID.jsonl"

"$dist/bin/gpurota" run --memory 2G -- bash -c "python3 -c $quoted 500 & \
  until grep -q holding '$work/escape'; do sleep 0.05; done; \
  env -u LD_PRELOAD python3 -c $quoted 3000 & wait" > "$work/escape" 2>&1 &
escape=$!
background+=("$escape")
step "a program that dodges the library is over the limit of its lease and is stopped" within 60 \
  sh -c \
  "'$dist/bin/gpurota' events | grep process_stopped | grep -q 'its limit is 2 GiB'"
step "what is held to the limit goes on" sh -c "sleep 2; kill -0 $escape && kill -0 $innocent"
kill "$escape" "$innocent"
wait "$escape" "$innocent" 2> /dev/null
gpurota report --by note
echo "$failed steps failed"
exit "$failed"
