# Helpers of the tests of fillers; load helpers first.
#
# shellcheck shell=bash disable=SC2034 # `machine` and STRANGER are used by the tests

remove_fillers() {
  local name
  for name in $(gpurota filler list --json |
    python3 -c 'import json,sys; [print(f["name"]) for f in json.load(sys.stdin)["fillers"]]'); do
    gpurota filler remove "$name"
  done
  wait_until is_off
}

# The variables that a program needs on a simulated machine.
machine=(--env LD_LIBRARY_PATH --env GPUROTA_SIM_DIR --env E2E_DIR)
# add_filler NAME [OPTION…] -- COMMAND…: adds a filler on GPU 0 that starts as soon as it may.
add_filler() { gpurota filler add "$1" --gpu-ids 0 --idle-after 1s "${machine[@]}" "${@:2}"; }

# filler_is NAME EXPRESSION: whether the expression is true of the filler's JSON, f, and its first
# GPU, p.
filler_is() {
  gpurota filler list "$1" --json | python3 -c '
import json, sys
f = json.load(sys.stdin)["fillers"][0]
sys.exit(0 if eval(sys.argv[1], {"f": f, "p": f["places"][0]}) else 1)' "$2"
}
is_on() { filler_is "$1" 'p["state"] == "on" and p["lease_id"]'; }
is_off() { holds 'not any(l["kind"] == "filler" for l in leases)'; }
count_of() { gpurota events --json | grep -c "\"$1\"" || true; }
event_is() { gpurota events | grep -q -- "$1"; }

# stranger FILE MIB: runs a program on GPU 0 without telling the daemon.
stranger() {
  CUDA_VISIBLE_DEVICES=0 in_background "$1" env -u GPUROTA_RUNTIME_DIR "$PROGRAM" hold "$2"
  STRANGER=$BACKGROUND_PID
  wait_until says "$1" holding
}
