#!/bin/bash
# run.sh DIST [ROUNDS]: what gpurota costs on a real GPU, beside the bare driver in the same run, the two
# interleaved. DIST is what tests/gpu/pack.sh made. Prints a Markdown table for bench/RESULTS.md.
set -euo pipefail
dist=$(readlink -f "${1:?usage: run.sh DIST [ROUNDS]}")
rounds=${2:-5}
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
export GPUROTA_RUNTIME_DIR=$work/run
"$dist/bin/gpurotad" --runtime-dir "$work/run" --state-dir "$work/state" --config /dev/null \
  --preload "$dist/lib/libgpurota.so" 2> "$work/log" &
daemon=$!
trap 'kill $daemon; wait $daemon 2> /dev/null; rm -rf "$work"' EXIT
until [ -S "$work/run/control.sock" ]; do sleep 0.05; done
sleep 0.5
for round in $(seq "$rounds"); do
  "$dist/tests/overhead" > "$work/overhead.bare.$round"
  "$dist/bin/gpurota" run --memory 16G -- "$dist/tests/overhead" > "$work/overhead.gpurota.$round"
  "$dist/bin/gpurota" run -- "$dist/tests/overhead" > "$work/overhead.exclusive.$round"
done
for round in 1 2 3; do
  python3 "$here/train.py" > "$work/train.bare.$round"
  "$dist/bin/gpurota" run --memory 16G -- python3 "$here/train.py" > "$work/train.gpurota.$round"
  "$dist/bin/gpurota" run -- python3 "$here/train.py" > "$work/train.exclusive.$round"
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
python3 "$here/table.py" "$work"
