# The tests of upgrade.sh, which machine.sh sources when the machine has booted with the older
# packages.
# shellcheck shell=bash disable=SC2154 # machine.sh sets `where`, `sim` and `dir`

# The load must last as long as the whole test takes on a busy machine of two processors.
readonly SECONDS_OF_LOAD=150
version() { in_there dpkg-query -W -f '${Version}' gpurotad; }
status() {
  in_there gpurota status --json |
    python3 -c "import json, sys; d = json.load(sys.stdin); print($1)"
}
kinds() { status '",".join(sorted(each["kind"] for each in d["leases"]))'; }
switches() {
  in_there gpurota turns --gpu-ids 0 --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["gpus"][0]["evictions"])'
}
refuses_to_start() { daemon_says 'was written by a newer gpurota'; }
install_from() {
  in_there sh -c "dpkg -i $1/*.deb </dev/null" >"$dir/install" 2>&1 ||
    fail "dpkg: $(tail -n 5 "$dir/install")"
}

machine=(--env GPUROTA_SIM_DIR --env LD_LIBRARY_PATH)
in_there gpurota set --gpu-ids 0 --capacity 1G --quantum 100ms >/dev/null
loads=()
trap 'code=$?; [ $code = 0 ] || tail -n 4 "$dir"/load.* || true; (exit $code); finish' EXIT
# load NAME USER COMMAND…: starts a program of the load; its exit status is checked later.
load() {
  as "$2" "${@:3}" >"$dir/load.$1" 2>&1 </dev/null &
  loads+=("$1:$!")
}
for i in 1 2; do
  # The second program starts when the cost of a context is known, because estimates for two
  # contexts may exceed the memory.
  wait_until has_leases "$((2 * i - 2))"
  sleep 2
  load "swap$i" alice gpurota run --gpu-ids 0 \
    --swap --memory 600M -- swap_probe torture "$SECONDS_OF_LOAD" "$i"
  load "slice$i" bob gpurota run --gpu-ids 1 --memory 900M -- hammer 2 2 "$SECONDS_OF_LOAD" 900
done
as alice gpurota reserve --gpu-ids 1 --memory 256M --for 1h >/dev/null
as alice gpurota job add web --gpu-ids 1 \
  --memory 300M "${machine[@]}" -- "$where/bin/gpu_program" hold 101 >/dev/null
as bob gpurota filler add fold --gpu-ids 2 --memory 50% \
  --idle-after 1s "${machine[@]}" -- "$where/bin/gpu_program" hold 102 >/dev/null
wait_until is_running 101
wait_until is_running 102
wait_until has_leases 7
load queued bob gpurota run --gpu-ids 0 -- true
wait_until in_there sh -c 'gpurota queue --json | grep -q request_id'
for i in 1 2 3 4; do
  load "ask$i" bob ask_always.py /run/gpurota/control.sock /tmp/asked-enough
done
began=$(kinds) job=$(running 101) filler=$(running 102) first=$(version)
[ "$began" = filler,job,reservation,run,run,run,run ] || fail "the load is $began"

# all_as_before WHEN: all leases, programs and requests are still there, and turns are taken.
all_as_before() {
  local before_switches
  wait_until has_leases 7
  [ "$(kinds)" = "$began" ] || fail "$1: leases are $(kinds)"
  [ "$(running 101)/$(running 102)" = "$job/$filler" ] ||
    fail "$1: the job or the filler was started again"
  in_there gpurota queue --json | grep -q request_id || fail "$1: the request has left the queue"
  before_switches=$(switches)
  more_switches() { [ "$(switches)" -gt "$before_switches" ]; }
  wait_until more_switches
}
all_as_before "under load"

before=$(main_pid)
install_from /var/packages/newer
wait_until other_than "$before"
all_as_before "after the upgrade"
! daemon_says 'turns are in trouble' || fail "after the upgrade: an honest program is doubted"
newer=$(version)
in_there gpurota config check >/dev/null ||
  fail "the configuration of $first has mistakes for $newer: $(in_there gpurota config check 2>&1)"
in_there sh -c 'mkdir -p /etc/gpurota/gpurota.toml.d;
  printf "%s\n" "[fair_share]" "enabled = true" >/etc/gpurota/gpurota.toml.d/new.toml'
in_there systemctl reload gpurotad.service || fail "a new setting is refused"
echo "ok $first -> $newer: seven leases, a job, a filler, a request and turns go on," \
  "and a new setting holds"

before=$(main_pid)
in_there touch /tmp/asked-enough # on the way back there may be no daemon for a while
in_there rm /etc/gpurota/gpurota.toml.d/new.toml
# An older daemon that cannot read the newer database does not start; dpkg may report that.
in_there sh -c "dpkg -i /var/packages/*.deb </dev/null" >"$dir/install" 2>&1 || refuses_to_start ||
  fail "dpkg: $(tail -n 20 "$dir/install")"
is_decided() { refuses_to_start || other_than "$before"; }
wait_until is_decided
if refuses_to_start; then
  # As the manual says (back-up-and-recover.md). A client that asks meanwhile is told that no daemon
  # is there.
  in_there sh -c 'systemctl stop gpurotad.socket gpurotad; cd /var/lib/gpurota && mkdir newer &&
    mv gpurota.db* store.mark newer/ && mv newer/gpurota.db.version-* gpurota.db &&
    systemctl reset-failed gpurotad.socket gpurotad; systemctl start gpurotad &&
    dpkg --configure -a' \
    >"$dir/install" 2>&1 || fail "going back as the manual says: $(tail -n 5 "$dir/install")"
fi
wait_until other_than "$before"
all_as_before "back at the older version"
echo "ok $newer -> $(version): the same, back at the older one"

install_from /var/packages/newer
all_as_before "after the second upgrade"
failed=0
for each in "${loads[@]}"; do
  code=0
  [ "${each%%:*}" != queued ] || continue
  wait "${each#*:}" || code=$?
  [ "$code" = 0 ] || { failed=$((failed + 1)) &&
    echo "FAIL: ${each%%:*} ended with $code: $(tail -n 3 "$dir/load.${each%%:*}")"; }
  echo "  ${each%%:*}: $(grep -E 'checks|asked|longest_ms' "$dir/load.${each%%:*}" | tail -n 1)"
done
as alice gpurota release --all >/dev/null
for each in "${loads[@]}"; do
  [ "${each%%:*}" = queued ] || continue
  wait "${each#*:}" || fail "the request that waited ends with $?: $(cat "$dir/load.queued")"
done
[ "$failed" = 0 ] || fail "$failed of ${#loads[@]} programs were harmed"
echo "ok no program was refused or has found a wrong byte, and the request was served in the end"
power_off
