#!/usr/bin/env bats
# gpurota-web: metrics for Prometheus, health, and no answers for other sites.

# Each case is a process of its own, and promtool reads its input.
# shellcheck disable=SC2030,SC2031,SC2094
load helpers

setup() {
  start_daemon
  in_background web gpurota-web --listen 127.0.0.1:0
  wait_until says web 'listens on'
  URL=$(sed -n 's/.*listens on //p' web)
}
teardown() {
  local state=$E2E_DIR/state
  end_test
  if mountpoint -q "$state"; then umount -l "$state" && rm -rf "${state%/state}"; fi
}

# get PATH [HEADER: VALUE]: prints the status, then the body.
get() {
  python3 - "$URL$1" "${2:-}" "${3:-GET}" <<'END'
import sys, urllib.error, urllib.request
url, header, method = sys.argv[1:]
request = urllib.request.Request(url, method=method)
if header:
    request.add_header(*header.split(": ", 1))
try:
    answer = urllib.request.urlopen(request, timeout=20)
except urllib.error.HTTPError as error:
    answer = error
print(answer.status)
sys.stdout.write(answer.read().decode())
END
}

@test "promtool finds nothing wrong with the metrics, and they tell of the leases" {
  in_background holder gpurota run --memory 2G --note secret -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until metrics_say 'gpurota_leases{kind="run"} 1'
  get /metrics | tail -n +2 >metrics
  grep -q '^gpurota_gpu_memory_reserved_bytes{gpu="0"} 2147483648$' metrics
  grep -q '^gpurota_gpu_evictions_total{gpu="0"} 0$' metrics
  lacks 'secret|root|alice' metrics
  command -v promtool >/dev/null || skip "prometheus is not installed"
  promtool check metrics <metrics
}
metrics_say() { get /metrics | grep -qF "$1"; }

@test "each refused allocation is counted once, even of programs that are gone and through a kill -9" {
  local i
  for i in 1 2; do
    in_background "greedy$i" gpurota run --memory 1G -- "$PROGRAM" greedy 32
    wait_until says "greedy$i" 'goes on'
  done
  wait_until metrics_say 'gpurota_allocations_refused_total 2'
  gpurota release --gpu-ids 0
  wait_until gone "$BACKGROUND_PID"
  in_background last gpurota run --memory 1G -- "$PROGRAM" greedy 32
  wait_until says last 'goes on'
  wait_until metrics_say 'gpurota_allocations_refused_total 3'
  # Each daemon counts only what happens under it, in all of its counters.
  kill_daemon
  start_daemon
  wait_until tenant_is_back
  wait_until metrics_say 'gpurota_allocations_refused_total 0'
}
tenant_is_back() { gpurota ps --json | grep -q '"tenant": *true'; }

@test "a real Prometheus scrapes them" {
  command -v prometheus >/dev/null || skip "prometheus is not installed"
  printf '%s\n' 'global: {scrape_interval: 1s}' 'scrape_configs:' '- job_name: gpurota' \
    "  static_configs: [{targets: [\"${URL#http://}\"]}]" >prometheus.yml
  local port
  port=$(python3 -c '
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
  in_background prometheus prometheus --config.file=prometheus.yml \
    --storage.tsdb.path="$E2E_DIR/tsdb" \
    --web.listen-address="127.0.0.1:$port"
  URL=http://127.0.0.1:$port
  wait_until scraped
}
scraped() {
  get '/api/v1/query?query=gpurota_gpus' 2>/dev/null | grep -q '"value":\[[0-9.]*,"[1-9]'
}

@test "healthz is this process, readyz is the daemon, the driver and the store" {
  [ "$(get /healthz)" = "$(printf '200\nok')" ]
  [ "$(get /readyz)" = "$(printf '200\nready')" ]
  kill_daemon
  wait_until not_ready
  [ "$(get /healthz | head -n 1)" = 200 ]
  metrics_say 'gpurota_up 0'
  start_daemon
  wait_until ready_again
}

@test "readyz fails while the daemon is blocked, and the time it took is reported afterwards" {
  [ "$(get /readyz)" = "$(printf '200\nready')" ]
  stop_process "$DAEMON_PID"
  wait_until no_longer_ready
  # `answer` has the first answer other than 200; every request gets an answer.
  grep '^503' answer
  grep 'the daemon does not answer' answer
  kill -CONT "$DAEMON_PID"
  wait_until ready_again
  metrics_say 'gpurota_loop_longest_seconds{window="start"}'
  metrics_say 'gpurota_loop_longest_seconds{window="minute"}'
}
no_longer_ready() { get /readyz >answer 2>&1 || true; if grep -q '^200' answer; then return 1; fi; }
not_ready() { get /readyz | grep -q '^503'; }
ready_again() { get /readyz | grep -q '^200'; }

@test "a name that is not ours, as after DNS rebinding, is refused; so is writing" {
  [ "$(get /metrics 'Host: evil.example' | head -n 1)" = 421 ]
  [ "$(get /metrics "Host: localhost:1" | head -n 1)" = 200 ]
  [ "$(get /metrics '' POST | head -n 1)" = 405 ]
  [ "$(get /metrics '' DELETE | head -n 1)" = 405 ]
  [ "$(get /../../etc/passwd | head -n 1)" = 404 ]
}

@test "a client that sends no request costs nobody else anything" {
  # Opens more connections than are served at once. Some send nothing, and some send without end.
  cat >clients.py <<'END'
import resource, socket, sys, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
host, port = sys.argv[1].removeprefix("http://").split(":")
clients = []
for i in range(2000 if hard < 0 or hard > 2100 else hard - 100):
    each = socket.create_connection((host, int(port)))
    if i % 2:
        each.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    clients.append(each)
print("all here", flush=True)
while True:
    for each in clients:
        try:
            each.sendall(b"a")
        except OSError:
            pass
    time.sleep(0.1)
END
  in_background clients python3 clients.py "$URL"
  wait_until says clients 'all here'
  for _ in 1 2 3; do
    [ "$(get /healthz | head -n 1)" = 200 ]
    metrics_say 'gpurota_up 1'
  done
}

@test "an address that cannot be listened on is reported" {
  run -2 gpurota-web --listen somewhere:1
  [[ $output == *"write 127.0.0.1:9836"* ]]
  run -1 gpurota-web --listen "${URL#http://}"
  [[ $output == *"cannot listen"* ]]
}

@test "readyz is false while nothing can be stored, and true again when it can" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it mounts a small disk"; fi
  stop_daemon
  mount -t tmpfs -o size=700k,mode=700 none state 2>/dev/null || skip "nothing can be mounted here"
  start_daemon
  head -c 2M /dev/zero >state/everything 2>/dev/null || true
  run -1 gpurota reserve --gpu-ids 0 --note "$(head -c 1000 /dev/zero | tr '\0' n)"
  wait_until not_ready
  get /readyz | grep -q 'store: '
  run -1 gpurota doctor
  grep -q '^error *store .*the disk is full' <<<"$output"
  rm state/everything
  wait_until ready_again
}
