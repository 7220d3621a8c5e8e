#!/bin/bash
# Shows what gpurota does, in under a minute: two programs on one GPU, each held to its memory.
#
#   demo/demo.sh PREFIX PROGRAM     PREFIX: an installed gpurota; PROGRAM: the built gpu_program
#
# Uses folders of its own, which are removed at the end, and never speaks to a gpurotad that runs
# already. A real GPU is used only if nothing else uses it, and then at most 2 GiB of its memory;
# otherwise the demo runs on a simulated GPU.
set -euo pipefail

prefix=$(realpath "$1") program=./$(basename "$2")
script=$(realpath "$0")
cd "$(dirname "$2")"
PATH=$prefix/bin:$prefix/sbin:$PATH
unset GPUROTA_RUNTIME_DIR GPUROTA_LEASE GPUROTA_TOKEN GPUROTA_SOCKET LD_PRELOAD CUDA_VISIBLE_DEVICES

# Prints the index of a GPU that nobody uses, or nothing if there is none. Such a GPU has no
# process, no display, no MIG instances and no gpurotad. Its used memory is checked too, because
# nvidia-smi may not list the processes of other users.
idle_gpu() {
  if ! command -v nvidia-smi >/dev/null || grep -qsx gpurotad /proc/[0-9]*/comm ||
    [ -S /run/gpurota/control.sock ]; then
    return
  fi
  local index used busy display mig mode
  timeout 10 nvidia-smi --format=csv,noheader,nounits \
    --query-gpu=index,memory.used,utilization.gpu,display_active,mig.mode.current,compute_mode \
    2>/dev/null |
    while IFS=', ' read -r index used busy display mig mode; do
      if [[ $used =~ ^[0-9]+$ ]] && ((used < 100)) && [ "$busy" = 0 ] &&
        [ "$display" = Disabled ] &&
        [ "$mig" != Enabled ] && [ "$mode" = Default ] &&
         [ -z "$(timeout 10 nvidia-smi -i "$index" --query-compute-apps=pid \
           --format=csv,noheader 2>/dev/null)" ]; then
        echo "$index" && break
      fi
    done
}

# In a simulated machine this script runs again, inside it.
if [ -z "${GPUROTA_DEMO_GPU:-}" ]; then
  GPUROTA_DEMO_GPU=$(idle_gpu || true)
  export GPUROTA_DEMO_GPU
  if [ -z "$GPUROTA_DEMO_GPU" ]; then
    export GPUROTA_DEMO_GPU=simulated
    exec gpurota-sim demo -- "$script" "$prefix" "$program"
  fi
fi
if [ "$GPUROTA_DEMO_GPU" = simulated ]; then gpu=0; else gpu=$GPUROTA_DEMO_GPU; fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/gpurota-demo.XXXXXX")
mkdir -m 700 "$folder/run" "$folder/state"
: >"$folder/gpurota.toml"
export GPUROTA_RUNTIME_DIR=$folder/run
children=()
daemon=

clean_up() {
  local pid
  for pid in "${children[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid in "${children[@]}"; do wait "$pid" 2>/dev/null || true; done
  if [ -n "$daemon" ]; then kill -TERM "$daemon" 2>/dev/null || true; fi
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT

bold='' blue='' plain=''
if [ -t 1 ]; then bold=$'\033[1m' blue=$'\033[36m' plain=$'\033[0m'; fi
heading() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$blue" "$*" "$plain"; }
fail() {
  echo "demo: $*; the daemon said:" >&2
  tail -n 20 "$folder/gpurotad.log" >&2
  exit 1
}

# until_true SECONDS COMMAND…
until_true() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS > deadline)); then return 1; fi
    sleep 0.05
  done
}

# start NAME COMMAND…: shows the command and runs it in the background; `quote NAME` prints its
# output, each line after NAME.
start() {
  local name=$1
  shift
  show "$*" "&"
  "$@" >"$folder/$name" 2>&1 </dev/null &
  children+=("$!")
}
said() { grep -q "$2" "$folder/$1"; }
quote() { sed "s/^/    [$1] /" "$folder/$1"; }
last_line() { quote "$1" | tail -n 1; }
lines() { wc -l <"$folder/$1"; }
# one_more NAME LINES: the program has printed more than LINES lines.
one_more() { [ "$(lines "$1")" -gt "$2" ]; }
# holds NAME BYTES: the lease with this note uses at least BYTES, as the driver counts.
holds() {
  gpurota status --json | python3 -c '
import json, sys
leases = [lease for lease in json.load(sys.stdin)["leases"] if lease["note"] == sys.argv[1]]
sys.exit(0 if leases and leases[0]["gpus"][0]["used_bytes"] >= int(sys.argv[2]) else 1)' "$@"
}
gone() { ! gpurota status --json | grep -q "\"$1\""; }

if [ "$GPUROTA_DEMO_GPU" = simulated ]; then
  heading "A simulated GPU (no real one here is wholly idle)"
else
  heading "A real GPU: number $gpu, which nobody uses; at most 2 GiB of it"
fi
gpurotad --runtime-dir "$folder/run" --state-dir "$folder/state" --config "$folder/gpurota.toml" \
  >"$folder/gpurotad.log" 2>&1 &
daemon=$!
until_true 20 gpurota status || fail "the daemon does not answer"

heading "1. A program computes, with 1 GiB of the GPU to itself"
start computing gpurota run --gpu-ids "$gpu" --memory 1G \
  --note "computes" -- "$program" compute 64 20
until_true 20 said computing round ||
  fail "the first program did not start: $(cat "$folder/computing")"
quote computing

heading "2. Another wants all it can get, and has 900 MiB"
start greedy gpurota run --gpu-ids "$gpu" --memory 900M --note "greedy" -- "$program" greedy 32
until_true 20 said greedy 'goes on' ||
  fail "the second program did not start: $(cat "$folder/greedy")"
quote greedy
echo "It was told \"out of memory\" at its own limit, as on a smaller GPU, and goes on." \
  "The first never noticed:"
until_true 20 one_more computing 1 || fail "the first program stands still"
last_line computing

heading "3. Who has what"
# The table shows the daemon's last sample.
until_true 5 holds greedy $((200 << 20)) || fail "the second program's memory is not seen"
show gpurota status
gpurota status

heading "4. The greedy one dies of kill -9: its memory comes back"
read -r lease pid < <(gpurota status --json | python3 -c '
import json, sys
lease = [lease for lease in json.load(sys.stdin)["leases"] if lease["note"] == "greedy"][0]
print(lease["lease_id"], lease["pid"])')
show kill -9 "$pid"
before=$(lines computing)
kill -KILL "$pid"
# The shell's own message about the killed program is not part of the demo.
wait "${children[-1]}" 2>/dev/null || true
until_true 20 gone "$lease" || fail "the lease $lease is still there"
show gpurota status
gpurota status

heading "5. And the first?"
until_true 20 one_more computing "$before" || fail "the first program stands still"
last_line computing
if grep -v ' 0 wrong' "$folder/computing"; then fail "a result was wrong"; fi
gpurota release --all >/dev/null
# Each of these commands works as printed, from any folder; tests/e2e/demo.bats runs all of them.
dev=$(dirname "$(dirname "$script")")/dev
heading "Nobody disturbed anybody. To go on:"
printf '    %q run --help  # what else a program can get\n' "$prefix/bin/gpurota"
printf '    %q list  # other machines that can be simulated\n' "$prefix/bin/gpurota-sim"
printf '    %q package  # Debian packages of gpurota, for all users of a machine\n' "$dev"
