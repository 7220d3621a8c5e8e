#!/bin/bash
# burn.sh DIST [RESULTS_DIR]: tests `gpurota burn` on a real GPU. DIST is what pack.sh made;
# GPUROTA_RUNTIME_DIR names the daemon for the tests that need a lease. Each test takes some
# seconds. Holds up to 88 % of the first GPU, in plain allocations. Prints figures; exits with the
# number of checks that failed.
set -uo pipefail
dist=$(readlink -f "${1:?usage: burn.sh DIST [RESULTS_DIR]}")
results=${2:-$(mktemp -d)}
burn=$dist/bin/gpurota-burn
failed=0

json() { python3 -c "
import json, sys
d = json.loads(open(sys.argv[1]).read().splitlines()[-1]); g = d['gpus'][0]
print(eval(sys.argv[2]))" "$results/$1.json" "$2"; }
verdict() { # checks the JSON of NAME
  local good
  good=$(json "$1" "$3" 2> /dev/null)
  if [ "$2" = 0 ] && [ "$good" = True ]; then
    echo "ok   burn_$1: $(json "$1" "$4")"
  else
    echo "FAIL burn_$1: exit $2, $(tail -n 1 "$results/$1.json" "$results/$1.err" |
      cut -c1-600 | tr '\n' ' ')"
    failed=$((failed + 1))
  fi
}
one() { # one NAME EXPRESSION FIGURES COMMAND…
  local name=$1 expression=$2 figures=$3 code=0
  shift 3
  "$@" > "$results/$name.json" 2> "$results/$name.err" < /dev/null || code=$?
  verdict "$name" "$code" "$expression" "$figures"
}
used_mib() { nvidia-smi -i 0 --query-gpu=memory.used --format=csv,noheader,nounits; }
seconds() { date +%s.%N; }
since() { awk "BEGIN {printf \"%.3f\", $(seconds) - $1}"; }
FIGURES="f\"{g['held_bytes'] / 2**30:.1f} GiB, "
FIGURES+="{g['checked_bytes_per_second'] / 2**30:.0f} GiB/s checked, "
FIGURES+="{g['flops'] / 1e12:.1f} TFLOP/s, {g['temperature_c']} C, {g['power_watts']} W\""

one selftest "g['self_test']" \
  "f\"{g['wrong_words']} word and {g['wrong_results']} results found\"" \
  "$burn" -i 0 --self-test --memory 8G --json
one compute "d['errors'] == 0 and g['flops'] > 1e12 and g['held_bytes'] == 16 << 30 and \
  g['checked_bytes'] > 32 << 30" "$FIGURES" \
  "$burn" -i 0 --memory 16G --for 15s --json
one full "d['errors'] == 0 and g['checked_bytes'] >= g['held_bytes'] >= 0.87 * g['target_bytes']" \
  "$FIGURES" \
  "$burn" -i 0 --for 15s --json
one lease "d['errors'] == 0 and 4 << 30 < g['held_bytes'] <= 8 << 30" "$FIGURES" \
  "$dist/bin/gpurota" run --gpu-ids 0 --memory 8G -- "$burn" --memory 80% --for 5s --json

# How soon burn releases the memory and the SMs after SIGTERM, while it computes and while it only
# holds.
for mode in --json --hold; do
  "$burn" -i 0 "$mode" --json > "$results/term.json" 2> "$results/term.err" < /dev/null &
  pid=$!
  for _ in $(seq 200); do [ "$(used_mib)" -gt 40000 ] && break; sleep 0.1; done
  sleep 2
  held=$(used_mib) begun=$(seconds) code=0
  kill -TERM "$pid"
  wait "$pid" || code=$?
  ended=$(since "$begun")
  for _ in $(seq 200); do [ "$(used_mib)" -lt 1000 ] && break; sleep 0.02; done
  echo "     burn_term ($mode): $held MiB held; ended ${ended} s after SIGTERM," \
    "memory back after $(since "$begun") s"
  verdict term "$code" "d['ended'] == 'signal' and d['errors'] == 0" "'ended cleanly'"
done

# A neighbour takes all free memory, and burn, which computes, returns some of its memory.
"$burn" -i 0 --json > "$results/short.json" 2> "$results/short.err" < /dev/null &
pid=$!
for _ in $(seq 200); do [ "$(used_mib)" -gt 60000 ] && break; sleep 0.1; done
python3 - << 'EOF_NEIGHBOUR' 2> "$results/neighbour_torch.err"
import torch, time
free = torch.cuda.mem_get_info()[0]
held = torch.empty(max(free - (64 << 20), 1 << 20), dtype=torch.uint8, device='cuda')
time.sleep(2)
print('     burn_short: after a neighbour took all but 64 MiB there were', torch.cuda.mem_get_info()[0] >> 20, 'MiB free again')
EOF_NEIGHBOUR
code=0
kill -TERM "$pid"
wait "$pid" || code=$?
verdict short "$code" "g['chunks_handed_back'] >= 1 and d['errors'] == 0" \
  "f\"{g['chunks_handed_back']} chunks handed back\""
exit "$failed"
