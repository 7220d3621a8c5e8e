# Helpers of the tests of the watch; load helpers first.
#
# shellcheck shell=bash

configure() { printf '%s\n' "$@" >gpurota.toml; }

# finding EXPRESSION: whether a Python expression is true of some finding f in the status.
finding() {
  status_json | python3 -c '
import json, sys
sys.exit(0 if any(eval(sys.argv[1], {"f": f})
                  for f in json.load(sys.stdin)["findings"]) else 1)' "$1"
}
no_findings() { holds 's["findings"] == []'; }
event_is() { gpurota events | grep -q -- "$1"; }
