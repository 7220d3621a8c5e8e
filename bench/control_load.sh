#!/bin/bash
# Measures the daemon's cost and the load that it can handle, on a simulated machine with 8 GPUs:
#
#   bench/control_load.sh BUILD     (a build with the daemon, the CLI, gpurota-sim and control_load)
#
# Measures `gpurota status` from start to end with 64 leases, 1000 connections with 10000 calls a
# second, and the share of a core that an idle daemon takes, which only samples every 500 ms.
set -euo pipefail
build=$(realpath "$1")
if [ -z "${GPUROTA_BENCH_INSIDE:-}" ]; then
  GPUROTA_BENCH_INSIDE=1 exec "$build/sim/gpurota-sim" h100x8 -- "$0" "$build"
fi
ulimit -n 4096
dir=$(mktemp -d)
export GPUROTA_RUNTIME_DIR=$dir/run PATH=$build/bin:$PATH
mkdir -m 700 "$dir/run" "$dir/state"
printf 'watch_period = "500ms"\nmax_connections_per_user = 2000\n[watch]\nidle_period = "500ms"\n' \
  >"$dir/gpurota.toml"
gpurotad --runtime-dir "$dir/run" --state-dir "$dir/state" --config "$dir/gpurota.toml" \
  --preload "$build/lib/libgpurota.so" --log-level error &
daemon=$!
holders=()
cleanup() {
  kill "${holders[@]}" 2>/dev/null || true
  wait "${holders[@]}" 2>/dev/null || true
  kill "$daemon" 2>/dev/null || true
  wait "$daemon" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT
until gpurota status >/dev/null 2>&1; do sleep 0.05; done

# The processor time that the daemon has used, in ticks of 10 ms.
ticks() { awk '{print $14 + $15}' "/proc/$daemon/stat"; }
resident() { awk '/^VmRSS/ {print $2}' "/proc/$daemon/status"; }

echo "load of the machine: $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) cores"
before=$(ticks)
sleep 30
awk -v t=$(($(ticks) - before)) \
  'BEGIN {printf "idle, 8 GPUs every 500 ms: %.2f %% of a core\n", t / 30}'

for i in $(seq 64); do
  gpurota run --gpu-ids $((i % 8)) --memory 1G -- sleep 600 &
  holders+=($!)
done
until [ "$(gpurota status --json | grep -c '"lease_id"')" = 64 ]; do sleep 0.1; done
python3 - <<'END'
import subprocess, time
took = []
for _ in range(100):
    begin = time.perf_counter()
    subprocess.run(["gpurota", "status"], stdout=subprocess.DEVNULL, check=True)
    took.append((time.perf_counter() - begin) * 1000)
took.sort()
print("gpurota status, 8 GPUs, 64 leases: p50 %.1f ms, p90 %.1f, least %.1f" % (took[50], took[90], took[0]))
END
# Uses real-time priority where that is allowed; otherwise the figures of a busy machine say more
# about its scheduler than about the daemon.
first=()
if chrt -a -r -p 1 "$daemon" 2>/dev/null; then first=(chrt -r 1); fi
control_load=$build/bench/control_load
rss=$(resident)
"${first[@]}" "$control_load" "$dir/run/control.sock" 1000 10000 10
echo "resident: $rss KiB before, $(resident) KiB after"
