#!/usr/bin/env bats
# Answers of CUDA, NVML and gpurota agree, inside a lease and about the lease.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

@test "NVML inside a lease shows its memory and its processes, and agrees with CUDA" {
  run "${BATS_TEST_DIRNAME}/../gpu/nvml_views.sh" "$(command -v gpurota)"
  echo "$output"
  [ "$status" -eq 0 ]
  [[ "$output" == *"total 4096 MiB, free "* ]]
}

@test "a child of the command is a tenant of the lease, and calls no unhooked function" {
  in_background holder gpurota run --memory 1G -- sh -c '"$0" compute 64 1000000 & wait' "$PROGRAM"
  wait_until says holder 'round'
  run -0 gpurota ps --json
  echo "$output"
  python3 - "$output" <<'END'
import json, sys
processes = json.loads(sys.argv[1])["processes"]
assert (len(processes) == 1 and processes[0]["tenant"]
        and processes[0]["lease_id"] == "L1"), processes
assert processes[0]["unhooked"] == 0 and processes[0]["unhooked_names"] == [], processes
END
}
