#!/usr/bin/env bats
# The output of gpurota container-args, which scripts and compose files pass to a container.
# tests/e2e/podman.bats uses it with a container.

load helpers

setup() {
  start_daemon
  gpurota reserve --memory 1G --for 1h --name web >/dev/null
}
teardown() { end_test; }

token() { sed -n 's/^GPUROTA_TOKEN=//p' "$1"; }

@test "the options name the lease's files, and the token is in a file of the user's alone" {
  umask 022
  gpurota container-args web --env-file web.env >options
  [ "$(wc -l <options)" = 1 ]
  local folder=$GPUROTA_RUNTIME_DIR/container
  grep -qF -- "--env-file $PWD/web.env --volume $folder:$folder:ro" options
  grep -q '/etc/ld.so.preload:ro' options
  [ "$(stat -c %a web.env)" = 600 ]
  [ "$(token web.env | wc -c)" = 33 ]
  run ! grep -q "$(token web.env)" options
  grep -qx GPUROTA_LEASE=L1 web.env
  # A second call, by the lease's number, writes the same file with the same content.
  cp web.env before
  gpurota container-args 1 --env-file web.env --format podman >/dev/null
  cmp before web.env
}

@test "the output for apptainer is for eval" {
  gpurota container-args web --format apptainer >variables
  (
    eval "$(cat variables)"
    [ "$APPTAINERENV_GPUROTA_LEASE" = L1 ]
    [ "${#SINGULARITYENV_GPUROTA_TOKEN}" = 32 ]
    [[ $APPTAINER_BIND = *"$GPUROTA_RUNTIME_DIR/container:"*ro* ]]
  )
}

@test "the file for compose is YAML with the service" {
  gpurota container-args web --env-file web.env --format compose --service api >gpu.yaml
  head -n 4 gpu.yaml | diff - <(printf "services:\n  'api':\n    env_file:\n      - '%s'\n" \
    "$PWD/web.env")
  grep -qE "^      - '.*:/etc/ld.so.preload:ro'$" gpu.yaml
}

@test "a container-args call that fails says why, and writes no file" {
  run -2 gpurota container-args
  run -2 gpurota container-args web
  [[ $output = *"--env-file FILE"* ]]
  run -1 gpurota container-args L99 --env-file e
  [[ $output = *L99* ]]
  run -1 gpurota container-args web --env-file /nowhere/e
  [[ $output = *"/nowhere/e"* ]]
  run -1 gpurota container-args web --env-file "with space"
  [[ $output = *quotes* ]]
  gpurota release web
  wait_until no_leases
  run -1 gpurota container-args L1 --env-file e
  [ ! -e e ] && [ ! -e "with space" ]
}
