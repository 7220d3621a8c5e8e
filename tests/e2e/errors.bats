#!/usr/bin/env bats
# Errors of gpurota say what happened, why, and what to do.

load helpers

setup() { make_folders; }
teardown() { end_test; }

# refused CODE WORDS COMMAND…: the command fails with CODE, and standard error matches WORDS (a
# pattern).
refused() {
  local code=$1 words=$2
  shift 2
  run --separate-stderr -"$code" "$@"
  # shellcheck disable=SC2154 # `run --separate-stderr` sets it
  echo "said: $stderr"
  grep -qiE -- "$words" <<<"$stderr"
}

@test "no daemon: reported with the paths tried and the remedy" {
  refused 125 'gpurotad' gpurota run --memory 1G -- touch ran
  [ ! -e ran ]
  grep -qF "$E2E_DIR/run" <<<"$stderr"
  run -1 gpurota status
}

@test "wrong flags: nothing runs" {
  start_daemon
  refused 2 'frobnicate' gpurota run --frobnicate -- touch ran
  refused 2 'memory' gpurota run --memory -- touch ran
  refused 2 'gpus' gpurota run --gpus 0 -- touch ran
  refused 2 'gpus' gpurota run --gpus two -- touch ran
  refused 2 'gpu-ids' gpurota run --gpus 1 --gpu-ids 0 -- touch ran
  refused 2 'command' gpurota run --memory 1G
  refused 2 'command' gpurota run --memory 1G --
  [ ! -e ran ]
  no_leases
}

@test "an invalid size: reported with the value and a valid example" {
  start_daemon
  local size
  for size in 0 -1 8X eight 8.5 1e9 101% 0% 99999999999T ''; do
    refused 2 '8G' gpurota run --memory "$size" -- touch ran
  done
  [ ! -e ran ]
}

@test "every spelling of a size is the same size" {
  start_daemon
  local size
  for size in 2G 2g 2GB 2gb 2GiB 2048M 2048MiB 2147483648 2.0G 2097152k; do
    [ "$(gpurota run --memory "$size" -- "$PROGRAM" info | grep -o 'size=[0-9]*')" = \
      "size=$((2 << 30))" ]
  done
}

@test "a forgotten -- gets the corrected line" {
  start_daemon
  refused 2 'gpurota run --memory 1G -- touch ran' gpurota run --memory 1G touch ran
  [ ! -e ran ]
  no_leases
}

@test "a mistyped command holds nothing" {
  start_daemon
  refused 127 'no-such-program' gpurota run --memory 1G -- no-such-program --flag
  no_leases
  touch plain && chmod 644 plain
  refused 126 'plain' gpurota run --memory 1G -- ./plain
  refused 126 '.' gpurota run --memory 1G -- /
  no_leases
  lacks 'lease=L1' gpurotad.log
}

@test "an unknown GPU: says which there are" {
  start_daemon
  refused 125 '99' gpurota run --gpu-ids 99 --memory 1G -- true
  refused 125 'GPU-nonsense' gpurota run --gpu-ids GPU-nonsense --memory 1G -- true
}

@test "a GPU is found by index, UUID, prefix of it and PCI address" {
  start_daemon
  local uuid pci
  uuid=$(value 'gpus[0]["uuid"]')
  pci=$(value 'gpus[0]["pci"]')
  for id in 0 "$uuid" "${uuid:0:12}" "$pci"; do
    in_background "by-$id" gpurota run --gpu-ids "$id" --memory 1G -- "$PROGRAM" hold 1
    wait_until says "by-$id" holding
    holds "leases[0]['gpus'][0]['uuid'] == '$uuid'"
    gpurota release --all
    wait_until no_leases
  done
}

@test "a limit larger than the GPU fails at once and says how large the GPU is" {
  start_daemon
  refused 125 'GiB' gpurota run --memory 1000T -- touch ran
  [ ! -e ran ]
}

@test "a limit that a context alone would fill is refused with the figure" {
  start_daemon
  gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" info
  refused 125 'context takes' gpurota run --nonblock --gpu-ids 0 --memory 16M -- touch ran
  refused 125 'context takes' gpurota run --nonblock --gpu-ids 1 --memory 16M -- touch ran
  refused 125 'context takes' gpurota run --nonblock --memory 16M -- touch ran
  [ ! -e ran ]
}

@test "not enough memory left: reported with the remainder and its holders" {
  start_daemon
  in_background holder gpurota run --gpu-ids 0 --memory 75% -- "$PROGRAM" hold 1
  wait_until says holder holding
  refused 75 'GiB|MiB' gpurota run --nonblock --gpu-ids 0 --memory 50% -- touch ran
  grep -qE "L[0-9]|$(id -un)" <<<"$stderr"
  [ ! -e ran ]
}

@test "more GPUs than the machine has: fails at once, with how many there are" {
  start_daemon
  local count
  count=$(value "len(gpus)")
  refused 125 "$count" gpurota run --gpus $((count + 1)) -- touch ran
  [ ! -e ran ]
}

@test "a malformed configuration: file, line and key" {
  printf '# fine\nwatch_period = "soon"\n' >gpurota.toml
  run -1 gpurotad --check-config --config "$E2E_DIR/gpurota.toml"
  grep -F "gpurota.toml:2" <<<"$output"
  grep -F "watch_period" <<<"$output"
  printf 'privacy = "open"\nprivcay = "open"\n' >gpurota.toml
  run -1 gpurotad --check-config --config "$E2E_DIR/gpurota.toml"
  grep -F "gpurota.toml:2" <<<"$output"
  grep -F "privcay" <<<"$output"
  printf 'group = "no-such-group"\n' >gpurota.toml
  run -1 gpurotad --check-config --config "$E2E_DIR/gpurota.toml"
  grep -F 'there is no group "no-such-group"' <<<"$output"
  : >gpurota.toml
  gpurotad --check-config --config "$E2E_DIR/gpurota.toml"
}

@test "an unknown group: reported with the remedy before anybody is served" {
  printf 'group = "no-such-group"\n' >gpurota.toml
  refused 1 'no group "no-such-group": make it with groupadd' gpurotad --config gpurota.toml \
    --check-config
  in_background gpurotad.log "${DAEMON[@]}"
  local code=0
  wait "$BACKGROUND_PID" || code=$?
  [ "$code" = 1 ]
  says gpurotad.log 'no group "no-such-group": make it with groupadd'
  [ ! -e run/control.sock ]
}

@test "while the driver hangs at its start, the daemon ends at once on SIGTERM" {
  # Opening the pipe blocks, because there is no writer.
  mkdir driver
  mkfifo driver/libnvidia-ml.so.1
  in_background gpurotad.log env "LD_LIBRARY_PATH=$PWD/driver:$LD_LIBRARY_PATH" "${DAEMON[@]}"
  wait_until says gpurotad.log 'asking the driver'
  run -1 gpurota status
  kill -TERM "$BACKGROUND_PID"
  wait_until gone "$BACKGROUND_PID"
  wait "$BACKGROUND_PID"
  says gpurotad.log 'told to stop before it served'
}

@test "a second daemon in the same folder leaves the first one alone" {
  start_daemon
  run -1 "${DAEMON[@]}"
  daemon_answers
}

@test "someone else's lease, and one that is not there" {
  start_daemon
  refused 1 'L999' gpurota release L999
  refused 1 "no lease L999: 'gpurota status' lists" gpurota update L999 --memory 1G
  refused 1 "no lease L999: 'gpurota status' lists" gpurota explain L999
  refused 1 "no lease is called 'nonsense'" gpurota release nonsense
  refused 2 'non sense' gpurota release 'non sense'
}

@test "an inherited CUDA_VISIBLE_DEVICES is overridden, and -v reports it" {
  start_daemon
  export CUDA_VISIBLE_DEVICES=7
  run --separate-stderr -0 gpurota run -v --gpu-ids 0 --memory 1G -- sh \
    -c 'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"'
  [ "$output" = "0 PCI_BUS_ID" ]
  grep -q CUDA_VISIBLE_DEVICES <<<"$stderr"
}

@test "an inherited LD_PRELOAD is added to, not replaced" {
  start_daemon
  local inherited=libdl.so.2
  LD_PRELOAD=$inherited run -0 gpurota run --memory 1G -- sh -c 'echo "$LD_PRELOAD"'
  grep -q 'libgpurota.so.*libdl.so.2' <<<"$output"
}

@test "an exclusive lease preloads nothing" {
  start_daemon
  run -0 gpurota run -- sh -c 'echo "[${LD_PRELOAD:-}]"'
  [ "$output" = "[]" ]
}

@test "without a library that can be loaded nothing runs as if it were held" {
  run -1 gpurotad --runtime-dir "$E2E_DIR/run" --state-dir "$E2E_DIR/state" \
    --preload "$E2E_DIR/none.so"
  grep -qF "none.so" <<<"$output"
  local library
  library=$(find "$E2E_PREFIX" -name libgpurota.so)
  mkdir -m 755 'a b' && cp "$library" 'a b/lib.so' && cp "$library" gone.so
  start_daemon --preload "$E2E_DIR/a b/lib.so"
  refused 125 'space' gpurota run --memory 1G -- touch ran
  run -1 gpurota doctor
  grep -E '^error +library' <<<"$output"
  gpurota run -- true
  stop_daemon
  start_daemon --preload "$E2E_DIR/gone.so"
  gpurota run --memory 1G -- true
  rm gone.so
  refused 125 'gone.so' gpurota run --memory 1G -- touch ran
  run -1 gpurota doctor
  grep -E '^error +library' <<<"$output"
  [ ! -e ran ]
  wait_until no_leases
}

@test "a library that only root may read is reported by doctor, and others are refused" {
  [ "$(id -u)" = 0 ] || skip "needs root"
  mkdir -m 700 closed && cp "$(find "$E2E_PREFIX" -name libgpurota.so)" closed/
  chmod 755 "$E2E_DIR" run
  start_daemon --preload "$E2E_DIR/closed/libgpurota.so"
  gpurota run --memory 1G -- true
  run gpurota doctor
  grep -E '^warning +library .*closed' <<<"$output"
  refused 125 'closed/libgpurota.so' setpriv --reuid 65534 --regid 65534 --clear-groups \
    gpurota run --memory 1G -- true
  wait_until no_leases
}

@test "one process too many in a lease gets no memory at once, with the reason" {
  printf '%s\n' 'max_tenants_per_lease = 1' >"$E2E_DIR/gpurota.toml"
  start_daemon
  local share
  for share in '--memory 2G' '--swap'; do
    # shellcheck disable=SC2086 # two words
    gpurota reserve --gpu-ids 0 $share >/dev/null
    local lease
    lease=$(value 'leases[0]["lease_id"]')
    in_background holder gpurota run --lease "$lease" -- "$PROGRAM" hold 100
    wait_until says holder holding
    GPUROTA_WAIT_MS=3600000 GPUROTA_DEBUG="$E2E_DIR/debug" run -3 gpurota run \
      --lease "$lease" -- "$PROGRAM" hold 100
    grep -q 'as many processes as the site allows' debug
    gpurota events --lease "$lease" | grep -q 'grant_denied .*max_tenants_per_lease'
    grep -q "max_tenants_per_lease.*lease=$lease" gpurotad.log
    kill -TERM "$BACKGROUND_PID"
    wait_until gone "$BACKGROUND_PID"
    in_background next gpurota run --lease "$lease" -- "$PROGRAM" hold 100
    wait_until says next holding
    gpurota release
    wait_until no_leases
    rm debug holder next
  done
}

@test "an upgrade puts the library into its place by rename: a program keeps the one it has" {
  local script=${E2E_PREFIX%/stage}/src/interposer/cmake_install.cmake library
  [ -e "$script" ] || skip "there is no build folder here"
  cmake -DCMAKE_INSTALL_PREFIX="$E2E_DIR/prefix" -P "$script"
  library=$(find prefix -name libgpurota.so)
  ln "$library" mapped
  cmake -DCMAKE_INSTALL_PREFIX="$E2E_DIR/prefix" -P "$script"
  [ "$(stat -c %i mapped)" != "$(stat -c %i "$library")" ]
  cmp mapped "$library"
  [ "$(find prefix -type f)" = "$library" ]
}

@test "a missing program of gpurota is named, with the places that were searched" {
  mkdir alone
  cp "$E2E_PREFIX/bin/gpurota" alone
  refused 1 'gpurota-burn.*is not installed' env PATH=/usr/bin:/bin alone/gpurota burn
  grep -qF "$PWD/alone/gpurota-burn" <<<"$stderr"
  grep -qF 'install its package (gpurota-burn_*.deb' <<<"$stderr"
  run -1 env PATH=/usr/bin:/bin alone/gpurota --runtime-dir "$PWD/none" doctor
  [[ $output == *"gpurotad, the daemon, is not installed: install its package (gpurotad_*.deb"* ]]
}
