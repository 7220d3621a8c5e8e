#!/bin/bash
# run.sh DIST [ROUNDS]: measures what gpurota costs on a real GPU. The bare driver is measured in
# the same run, alternately. DIST is what tests/gpu/pack.sh made. Prints a Markdown table for
# bench/RESULTS.md.
set -euo pipefail
dist=$(readlink -f "${1:?usage: run.sh DIST [ROUNDS]}")
rounds=${2:-12}
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
export GPUROTA_RUNTIME_DIR=$work/run
"$dist/bin/gpurotad" --runtime-dir "$work/run" --state-dir "$work/state" --config /dev/null \
  --preload "$dist/lib/libgpurota.so" 2> "$work/log" &
daemon=$!
trap 'kill $daemon; wait $daemon 2> /dev/null; rm -rf "$work"' EXIT
until [ -S "$work/run/control.sock" ]; do sleep 0.05; done
sleep 0.5
under() { # under KIND COMMAND…
  case $1 in
    bare) "${@:2}" ;;
    gpurota) "$dist/bin/gpurota" run --memory 16G -- "${@:2}" ;;
    exclusive) "$dist/bin/gpurota" run -- "${@:2}" ;;
  esac
}
# The order changes from round to round, so that drift affects all kinds alike.
kinds=(bare gpurota exclusive)
for round in $(seq "$rounds"); do
  for i in 0 1 2; do
    kind=${kinds[(round + i) % 3]}
    under "$kind" "$dist/tests/overhead" 7 > "$work/overhead.$kind.$round"
    [ "$round" -gt 3 ] || under "$kind" python3 "$here/train.py" > "$work/train.$kind.$round"
  done
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
python3 "$here/table.py" "$work"
echo
"$dist/bin/gpurota" run --memory 4G -- python3 "$here/../interposer/startup.py" \
  "$dist/tests/start_probe" 100
