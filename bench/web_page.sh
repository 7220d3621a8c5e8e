#!/bin/bash
# Measures the cost of the web page and how soon it is painted, on a simulated machine with 8 GPUs,
# 64 leases and 90 days of history:
#
#   bench/web_page.sh BUILD [SECONDS]     (a build with the daemon, the CLI, gpurota-sim,
#                                         gpurota-web and history_days)
#
# Measures, with 0, 1 and 200 viewers for SECONDS (30) each, the share of a core that gpurota-web
# and gpurotad take; their memory; and the size of the history on the disk. With chromium and npm,
# also measures how soon views are painted (tests/web/browser.mjs). On a busy machine, only the
# shares are meaningful.
set -euo pipefail
build=$(realpath "$1") seconds=${2:-30}
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
if [ -z "${GPUROTA_BENCH_INSIDE:-}" ]; then
  GPUROTA_BENCH_INSIDE=1 exec "$build/sim/gpurota-sim" h100x8 -- "$0" "$@"
fi
dir=$(mktemp -d)
export GPUROTA_RUNTIME_DIR=$dir/run PATH=$build/bin:$PATH HOME=$dir
mkdir -m 700 "$dir/run" "$dir/state"
: >"$dir/gpurota.toml"
pids=()
cleanup() {
  kill "${pids[@]}" 2>/dev/null || true
  wait "${pids[@]}" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

# end PROCESS: ends the process and waits for it.
end() {
  kill "$1"
  wait "$1" || true
}
start_daemon() {
  gpurotad --runtime-dir "$dir/run" --state-dir "$dir/state" --config "$dir/gpurota.toml" \
    --preload "$build/lib/libgpurota.so" --log-level error &
  daemon=$!
  pids+=("$daemon")
  until gpurota status >/dev/null 2>&1; do sleep 0.05; done
}
# memory NAME PROCESS: the field NAME of the process's status, in KiB.
memory() { awk -v name="$1:" '$1 == name {print $2}' "/proc/$2/status"; }
# ticks PROCESS: the processor time that the process has used, in ticks of 10 ms.
ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }
load() { cut -d' ' -f1-3 /proc/loadavg; }

start_daemon
echo "load of the machine: $(load), $(nproc) cores"
echo "gpurotad without history: $(memory VmRSS "$daemon") KiB"
mapfile -t uuids < <(gpurota status --json | python3 -c 'import json, sys; print(
  *(each["uuid"] for each in json.load(sys.stdin)["gpus"]), sep="\n")')
end "$daemon"
rm -f "$dir"/state/history.db*
"$build/bench/history_days" 90 8 "$dir/state/history.db" "${uuids[@]}"
start_daemon
echo "90 days on the disk: $(du -kc "$dir"/state/history.db* | awk '/total/ {print $1}') KiB"
for i in $(seq 64); do
  gpurota run --gpu-ids $((i % 8)) --memory 1G -- sleep 1800 &
  pids+=($!)
done
until [ "$(gpurota status --json | grep -o '"lease_id"' | wc -l)" = 64 ]; do sleep 0.2; done
echo "gpurotad with 90 days of history and 64 leases: $(memory VmRSS "$daemon") KiB"
gpurota-web --listen 127.0.0.1:0 --page names >"$dir/web" &
web=$!
pids+=("$web")
until grep -q 'listens on' "$dir/web"; do sleep 0.05; done
url=$(sed -n 's/.*listens on //p' "$dir/web")

# watch_page N: reads the page's events as N viewers.
watch_page() {
  exec python3 - "${url#http://}" "$1" "$dir/viewers.$1" <<'END'
import selectors, socket, sys
host, port = sys.argv[1].split(":")
selector = selectors.DefaultSelector()
for _ in range(int(sys.argv[2])):
    each = socket.create_connection((host, int(port)))
    each.sendall(f"GET /api/live HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    selector.register(each, selectors.EVENT_READ)
served = set()
while True:
    for key, _ in selector.select():
        if not key.fileobj.recv(1 << 16):
            sys.exit("a viewer was dropped")
        if key.fd not in served and len(served) < int(sys.argv[2]):
            served.add(key.fd)
            if len(served) == int(sys.argv[2]):
                open(sys.argv[3], "w").close()
END
}
for viewers in 0 1 200; do
  if [ "$viewers" != 0 ]; then
    watch_page "$viewers" &
    watcher=$!
    pids+=("$watcher")
    until [ -e "$dir/viewers.$viewers" ]; do sleep 0.1; done
  fi
  before=$(ticks "$web") daemon_before=$(ticks "$daemon")
  sleep "$seconds"
  awk -v n="$viewers" -v w=$(($(ticks "$web") - before)) \
    -v d=$(($(ticks "$daemon") - daemon_before)) -v s="$seconds" -v m="$(memory VmRSS "$web")" \
    'BEGIN {printf "%d viewers: gpurota-web %.2f %% of a core (%d KiB), gpurotad %.2f %%\n",
       n, w / s, m, d / s}'
  if [ "$viewers" != 0 ]; then end "$watcher" && sleep 3; fi  # until gpurota-web sees it
done
for range in 15m 24h 90d; do
  python3 - "$url/api/history/$range" <<'END'
import sys, time, urllib.request
begin = time.perf_counter()
size = len(urllib.request.urlopen(sys.argv[1]).read())
print("%s: %d bytes in %.0f ms, first asked" % (sys.argv[1].rsplit("/", 1)[1], size, (time.perf_counter() - begin) * 1000))
END
done

if ! command -v chromium >/dev/null || ! command -v npm >/dev/null; then
  echo "without chromium and npm, nothing is painted" && exit
fi
cp "$here"/../tests/web/{package.json,package-lock.json,browser.mjs} "$dir"
(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1) ||
  { echo "the packages of tests/web are not to be had" && exit; }
echo "load of the machine: $(load)"
node "$dir/browser.mjs" "$url" "$dir" paint
