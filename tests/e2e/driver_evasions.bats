#!/usr/bin/env bats
# Programs that evade the library, each in its way. Where the driver limits control groups and
# gpurota may use that, the driver refuses them memory beyond the limit and its allowance; otherwise
# they are seen, and not refused. The control groups are simulated (cgroup_tree.c).
#
# machine: demo-r615

load helpers
load watch_helpers
load driver_limits_helpers

PAST=$E2E_PAST_LIBRARY

setup() {
  make_groups
  WAYS=(unloaded emptied loader child deepbind namespace setuid static musl)
}
teardown() {
  end_test
  remove_groups
}

# make_musl: a program of musl that passes on all variables but LD_PRELOAD.
make_musl() {
  if [ -e by_musl ]; then return 0; fi
  command -v musl-gcc >/dev/null || return 1
  printf '%s\n' '#include <stdlib.h>' '#include <unistd.h>' 'int main(int argc, char** argv) {' \
    'unsetenv("LD_PRELOAD"); return argc < 2 || execv(argv[1], argv + 1); }' >musl.c
  musl-gcc -o by_musl musl.c
}

# make_setuid: setpriv, with the rights of another group; so the loader drops LD_PRELOAD.
make_setuid() {
  if [ -e by_setuid ]; then return 0; fi
  [ "$(id -u)" = 0 ] || return 1
  cp "$(command -v setpriv)" by_setuid
  chgrp 65534 by_setuid
  chmod 2755 by_setuid
}

# evade HOW MIB: sets EVASION to a command that allocates MIB and that the library does not limit.
# Fails where this way cannot be had.
evade() {
  case $1 in
  unloaded) EVASION=(env -u LD_PRELOAD "$PROGRAM" hold "$2") ;;
  emptied) EVASION=(env -i "GPUROTA_SIM_DIR=$GPUROTA_SIM_DIR" "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" \
    "E2E_DIR=$E2E_DIR" "$PROGRAM" hold "$2") ;;
  # past_library reads the symbols of the driver's file itself.
  loader) EVASION=("$PAST" "$2") ;;
  child) EVASION=(sh -c "env -u LD_PRELOAD setsid '$PROGRAM' hold $2 & wait \$!") ;;
  deepbind | namespace) EVASION=("$E2E_BOUND_PROGRAM" "$1" "$E2E_BOUND_PLUGIN" "$2") ;;
  setuid)
    make_setuid || return 1
    EVASION=("$E2E_DIR/by_setuid" --regid 65534 --keep-groups env \
      "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" "$PROGRAM" hold "$2")
    ;;
  static)
    [ -x "$E2E_DIRECT_PROGRAM" ] || return 1
    EVASION=("$E2E_DIRECT_PROGRAM" "$2")
    ;;
  musl)
    make_musl || return 1
    EVASION=("$E2E_DIR/by_musl" "$PROGRAM" hold "$2")
    ;;
  esac
}

# can_evade HOW MIB: as evade; reports a way that cannot be had.
can_evade() { evade "$@" || { echo "# $1 cannot be had here" >&3 && return 1; }; }

# hold_in_lease HOW: starts $EVASION in a lease of 1 GiB; returns when it holds its memory.
hold_in_lease() {
  in_background "$1" gpurota run --gpu-ids 0 --memory 1G -- "${EVASION[@]}"
  wait_until says "$1" holding
}
uses_too_much() {
  lease 'l["gpus"][0]["used_bytes"] > 2000 << 20' && finding 'f["kind"] == "over_limit"'
}

@test "by default programs that evade the library are seen, and not refused" {
  printf '[watch]\nnot_limited = "report"\n' >gpurota.toml
  start_daemon
  for how in "${WAYS[@]}"; do
    can_evade "$how" 2000 || continue
    hold_in_lease "$how"
    wait_until uses_too_much
    lease 'l["enforced_by"] == "library" and not l.get("not_by_driver")'
    [ "$(limit)" = none ]
    gpurota release --all
    wait_until no_leases
  done
  lacks 'driver limits' <(gpurota doctor || true)
}

evasions_are_refused() {
  local code
  for how in "${WAYS[@]}"; do
    # The driver does not know that these programs evade the library, and serves them up to the
    # limit.
    can_evade "$how" 700 || continue
    hold_in_lease "$how"
    wait_until by_driver
    lease 'l["gpus"][0]["driver_limit_bytes"] == 1536 << 20'
    gpurota release --all
    wait_until no_leases
    evade "$how" 2000
    code=0
    gpurota run --gpu-ids 0 --memory 1G -- "${EVASION[@]}" >"$how" 2>&1 || code=$?
    [ "$code" != 0 ]
    grep -e 'out of memory' -e OUT_OF_MEMORY "$how"
    lacks holding "$how"
    wait_until no_leases
  done
  wait_until no_group
}

@test "under auto, programs that evade the library are refused by the driver" {
  enforce auto
  evasions_are_refused
}

@test "under driver, programs that evade the library are refused by the driver" {
  enforce driver
  evasions_are_refused
}
