#!/usr/bin/env bats
# The rules for Prometheus and the dashboard for Grafana query metrics that gpurota-web exports.

load helpers

MONITORING=$BATS_TEST_DIRNAME/../../packaging/monitoring

needs_prometheus() { command -v prometheus >/dev/null || skip "prometheus is not installed"; }
teardown() { end_test; }

@test "promtool finds nothing wrong with the rules, and each alert fires when it should and not before" {
  needs_prometheus
  promtool check rules "$MONITORING/gpurota.rules.yml"
  (cd "$MONITORING" && promtool test rules gpurota.rules_test.yml)
}

@test "each alert has a test and is in the manual, and the manual names no other" {
  local alerts tested told
  alerts=$(grep -o 'alert: [A-Za-z]*' "$MONITORING/gpurota.rules.yml" | cut -d' ' -f2 | sort)
  # The alerts that fire in at least one test.
  tested=$(grep -A 3 'alertname: ' "$MONITORING/gpurota.rules_test.yml" |
    grep -B 2 -A 1 'exp_alerts:$' | grep -o 'alertname: [A-Za-z]*' |
    cut -d' ' -f2 | sort -u)
  told=$(grep -o '^| `Gpurota[A-Za-z]*`' "$BATS_TEST_DIRNAME/../../docs/operate/metrics.md" |
    grep -o 'Gpurota[A-Za-z]*' | sort)
  diff <(echo "$alerts") <(echo "$tested")
  diff <(echo "$alerts") <(echo "$told")
}

@test "a Prometheus with the rules, which has scraped this machine, answers every query of the dashboard" {
  needs_prometheus
  start_daemon
  in_background web gpurota-web --listen 127.0.0.1:0
  wait_until says web 'listens on'
  in_background holder gpurota run --gpu-ids 0 --memory 2G -- "$PROGRAM" hold 100
  wait_until says holder holding
  local port
  port=$(python3 -c '
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
  cat >prometheus.yml <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$(realpath "$MONITORING/gpurota.rules.yml")"]
scrape_configs:
  - job_name: gpurota
    static_configs: [{targets: ["$(sed -n 's/.*listens on http:..//p' web)"]}]
END
  in_background prometheus prometheus --config.file=prometheus.yml \
    --storage.tsdb.path="$E2E_DIR/tsdb" \
    --web.listen-address="127.0.0.1:$port"
  wait_until dashboard_is_answered "$port"
}
# Sends each query as Grafana does. Each must have an answer, and figures in it, except for queries
# that may have none.
dashboard_is_answered() {
  gpurota run --gpu-ids 1 -- true # an event, lately
  python3 - "$MONITORING/gpurota-dashboard.json" "http://127.0.0.1:$1" <<'END'
import json, sys, urllib.parse, urllib.request
dashboard, prometheus = sys.argv[1:]
may_be_empty = ("gpurota:queue_waited_seconds",)  # nobody has waited within the hour
panels = json.load(open(dashboard))["panels"]
queries = [target["expr"] for panel in panels for target in panel["targets"]]
assert len(queries) > 15
silent = []
for query in queries:
    asked = query.replace("$instance", ".*").replace("$__rate_interval", "4s")
    url = prometheus + "/api/v1/query?" + urllib.parse.urlencode({"query": asked})
    answer = json.load(urllib.request.urlopen(url, timeout=10))
    assert answer["status"] == "success", (query, answer)
    if not answer["data"]["result"] and not query.startswith(may_be_empty):
        silent.append(query)
print("no figures for", silent)
sys.exit(bool(silent))
END
}
