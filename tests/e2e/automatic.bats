#!/usr/bin/env bats
# Programs without a lease that preload libgpurota.so, as with /etc/ld.so.preload: the daemon gives
# each of them a lease automatically.

load helpers

setup() { make_folders; }
teardown() { end_test; }

automatic() {
  printf '[automatic]\nenabled = true\nmemory = "1G"\n' >"$E2E_DIR/gpurota.toml"
  printf '%s\n' "$@" >>"$E2E_DIR/gpurota.toml"
  start_daemon
}

# plain COMMAND…: runs with the library preloaded, as all programs would with /etc/ld.so.preload.
plain() { LD_PRELOAD=$(find "$E2E_PREFIX" -name libgpurota.so) "$@"; }

seen() { grep -o "$1=[0-9]*" "$2" | head -n 1 | cut -d= -f2; }

@test "off, the library changes nothing" {
  start_daemon
  plain "$PROGRAM" info >out
  [ "$(seen size out)" -gt $((1 << 30)) ]
  [ ! -e "$E2E_DIR/run/automatic" ]
  no_leases
}

@test "a program gets a lease, sees its GPU and its limit, and the lease ends with it" {
  automatic
  plain "$PROGRAM" info >out
  [ "$(seen gpus out)" = 1 ]
  [ "$(seen size out)" = $((1 << 30)) ]
  wait_until no_leases
  in_background holder plain "$PROGRAM" hold 100
  wait_until says holder 'holding'
  holds 'len(leases) == 1'
  holds 'leases[0]["gpus"][0]["limit_bytes"] == 2**30'
  kill -KILL "$(value 'leases[0]["pid"]')"
  wait_until no_leases
  wait_until memory_is_back
}

@test "a program is held to the lease it was given" {
  automatic
  in_background greedy plain "$PROGRAM" greedy 64
  wait_until says greedy 'goes on with'
  grep 'refused at .*CUDA_ERROR_OUT_OF_MEMORY' "$E2E_DIR/greedy"
  wait_until holds 'leases[0]["gpus"][0]["used_bytes"] >= 0.8 * 2**30'
  holds 'leases[0]["gpus"][0]["used_bytes"] <= 2**30'
}

@test "programs below one that has a lease are of that lease" {
  automatic
  in_background below gpurota run --memory 2G -- sh \
    -c "env -u GPUROTA_LEASE -u GPUROTA_SOCKET -u GPUROTA_TOKEN '$PROGRAM' hold 100"
  wait_until says below 'holding'
  holds 'len(leases) == 1 and leases[0]["gpus"][0]["limit_bytes"] == 2 * 2**30'
  wait_until holds 'leases[0]["gpus"][0]["granted_bytes"] >= 100 * 2**20'
}

@test "programs that use no CUDA get nothing" {
  automatic
  plain sh -c 'true; ls / >/dev/null; gpurota status >/dev/null'
  no_leases
  grep -c 'lease made' "$E2E_DIR/gpurotad.log" && return 1
  true
}

@test "without room for its lease a program sees no GPU, or has no lease if so configured" {
  automatic
  in_background holder gpurota run --gpus "$(value 'len(gpus)')" -- "$PROGRAM" hold 10
  wait_until says holder 'holding'
  run plain "$PROGRAM" info
  [ "$status" != 0 ]
  grep -q 'NO_DEVICE\|no CUDA-capable\|no GPU' <<<"$output"
  grep 'it gets no GPU' "$E2E_DIR/gpurotad.log"
  stop_daemon
  automatic 'when_full = "unmanaged"'
  plain "$PROGRAM" info >out
  [ "$(seen size out)" -gt $((1 << 30)) ]
}

@test "a lease without a command outlives the daemon" {
  automatic
  in_background holder plain "$PROGRAM" hold 100
  wait_until says holder 'holding'
  local id
  id=$(value 'leases[0]["lease_id"]')
  kill_daemon
  start_daemon
  holds "leases[0]['lease_id'] == '$id'"
  gpurota release "$id"
  wait_until gone "$BACKGROUND_PID"
  wait_until no_leases
}

@test "switched on and off while the daemon runs" {
  start_daemon
  printf '[automatic]\nenabled = true\nmemory = "1G"\n' >"$E2E_DIR/gpurota.toml"
  kill -HUP "$DAEMON_PID"
  wait_until test -e "$E2E_DIR/run/automatic"
  [ "$(plain "$PROGRAM" info | grep -o 'size=[0-9]*')" = size=$((1 << 30)) ]
  : >"$E2E_DIR/gpurota.toml"
  kill -HUP "$DAEMON_PID"
  wait_until test ! -e "$E2E_DIR/run/automatic"
}

@test "a subordinate user's lease is that of the user who made the namespace" {
  [ "$(id -u)" = 0 ] || skip "needs root: it switches users"
  automatic
  chmod 755 . run "$GPUROTA_SIM_DIR"
  chmod 666 "$GPUROTA_SIM_DIR"/{state,locks,pids}
  python3 -B "$BATS_TEST_DIRNAME/subordinate.py" 65534 true ||
    skip "no user namespace can be made here"
  in_background holder plain python3 -B "$BATS_TEST_DIRNAME/subordinate.py" 65534 "$PROGRAM" hold \
    100
  wait_until says holder holding
  holds 'len(leases) == 1 and leases[0]["uid"] == 65534'
  as_nobody gpurota release --all
  wait_until no_leases
}

@test "a program asks for memory within the site's limits, and gets the reason of a refusal" {
  automatic 'max_memory = "2G"' 'max_gpus = 2' 'swap = true'
  plain env GPUROTA_MEMORY=2G GPUROTA_GPUS=2 "$PROGRAM" info >out
  [ "$(seen gpus out)" = 2 ]
  [ "$(seen size out)" = $((2 << 30)) ]
  wait_until no_leases
  in_background holder plain env GPUROTA_SWAP=1 GPUROTA_MEMORY=2G "$PROGRAM" hold 100
  wait_until says holder holding
  holds 'leases[0]["share"] == "swap"'
  gpurota release --all
  wait_until no_leases
  run ! plain env GPUROTA_MEMORY=3G "$PROGRAM" info
  [[ $output = *"no lease, so this program has no GPU: GPUROTA_MEMORY=3G is more than the 2 GiB"* ]]
  run ! plain env GPUROTA_MEMORY=lots "$PROGRAM" info
  [[ $output = *"GPUROTA_MEMORY=lots: write a size"* ]]
  printf 'program_notices = false\n' | cat - gpurota.toml >other && mv other gpurota.toml
  gpurota reload
  run ! plain env GPUROTA_MEMORY=3G "$PROGRAM" info
  [[ $output != *"no lease"* ]]
}
