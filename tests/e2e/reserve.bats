#!/usr/bin/env bats
# Reservations: their output, commands under them, and their ends.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

@test "reserve prints what to export, and --short just the ids" {
  gpurota reserve --gpu-ids 1 --for 1h --note mine >out 2>said
  grep -E '^gpurota: L1 on GPU 1 .*until ([A-Z][a-z]+ +[0-9]+ )?[0-9]+:' said
  # shellcheck disable=SC2016 # for the inner shell
  [ "$(sh -c '. ./out; echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER')" = "1 PCI_BUS_ID" ]
  [ "$(gpurota reserve --gpu-ids 0 --short)" = 0 ]
  holds "[l['kind'] for l in leases] == ['reservation'] * 2 and leases[0]['note'] == 'mine'"
}

@test "the output of reserve can be evaluated in one line, quoted or not, and by every shell" {
  gpurota reserve --gpu-ids 1 --memory 1G >out 2>/dev/null
  [ "$(wc -l <out)" = 1 ]
  lacks '#' out
  # shellcheck disable=SC2046,SC2086 # as people type it
  [ "$(eval $(cat out) && echo $CUDA_VISIBLE_DEVICES $GPUROTA_LEASE)" = "1 L1" ]
}

@test "a reservation without a time is over after half an hour" {
  gpurota reserve --short
  python3 - <<END
from datetime import datetime
import json, subprocess
lease = json.loads(subprocess.check_output(["gpurota", "status", "--json"]))["leases"][0]
read = lambda t: datetime.fromisoformat(t.replace("Z", "+00:00"))
assert (read(lease["ends"]) - read(lease["since"])).total_seconds() == 1800
END
}

@test "a reservation outlives the terminal and the daemon" {
  gpurota reserve --gpu-ids 0 --short
  kill_daemon
  start_daemon
  holds "len(leases) == 1 and leases[0]['state'] == 'active'"
  run -75 gpurota run --nonblock --gpu-ids 0 -- true
}

@test "commands run under a reservation, which outlives them, and ends those that are left" {
  gpurota reserve --gpu-ids 1 >out
  # shellcheck disable=SC2016 # for the command
  [ "$(gpurota run --lease L1 -- sh -c 'echo $CUDA_VISIBLE_DEVICES')" = 1 ]
  run -7 gpurota run --lease L1 -- sh -c 'exit 7'
  holds "leases[0]['state'] == 'active'"
  in_background holder gpurota run --lease L1 -- "$PROGRAM" hold 100
  wait_until says holder holding
  wait_until holds "leases[0]['gpus'][0]['used_bytes'] >= 100 * 2**20"
  gpurota release
  ends_with 123 "$BACKGROUND_PID"
  wait_until no_leases
}

@test "the death of a run under it ends that command only" {
  gpurota reserve --gpu-ids 0 >out
  in_background one gpurota run --lease L1 -- sh -c 'echo pid $$; sleep 600'
  in_background two gpurota run --lease L1 -- sh -c 'echo pid $$; sleep 600'
  wait_until says one pid
  wait_until says two pid
  local one two
  one=$(sed -n 's/^pid //p' one) two=$(sed -n 's/^pid //p' two)
  kill -KILL "${BACKGROUND[0]}"
  wait_until gone "$one"
  kill -0 "$two"
  holds "leases[0]['state'] == 'active'"
}

@test "a command under it has a time limit of its own" {
  gpurota reserve --gpu-ids 0 >out
  run -124 gpurota run --lease L1 --timeout 1s -- sleep 600
  holds "leases[0]['state'] == 'active'"
}

@test "a reservation ends at its time, and can be given more" {
  gpurota reserve --gpu-ids 0 --for 1h >out
  gpurota update L1 --for 2h
  gpurota explain L1 | grep 'ends at'
  gpurota update L1 --for 1s
  wait_until no_leases
}

@test "other programs of the user are covered by a reservation, and expired after its time" {
  gpurota reserve --gpu-ids 0 --for 1h >out
  # shellcheck disable=SC2016 # for the inner shell
  in_background covered sh -c '. ./out; exec "$0" hold 2000' "$PROGRAM"
  wait_until says covered holding
  local pid=$BACKGROUND_PID
  wait_until holds "gpus[0]['used_bytes'] >= 2000 * 2**20"
  holds "gpus[0]['state'] == 'in_use'"
  gpurota update L1 --for 1s
  wait_until holds "leases[0]['state'] == 'expired'"
  holds "gpus[0]['state'] == 'in_use'"
  gpurota status | grep '^  0 EXPIRED .* ended .* ago'
  gpurota status --summary | grep -E "^\S+ +$(value 'len(gpus)') +$(value 'len(gpus) - 1') +1 "
  kill -0 "$pid"
  gpurota explain L1 | grep 'its time is over'
  gpurota events --lease L1 >told
  grep -q 'lease_updated .*changed: .*, until ' told
  grep -q 'lease_updated .*is expired' told
  # The expired reservation yields to a waiting request.
  gpurota run --gpu-ids 0 -- true
  wait_until gone "$pid"
}

@test "where a reservation is kept after its time, a waiting user sees that its time is over" {
  printf '%s\n' 'expired_reservation = "keep"' >"$E2E_DIR/gpurota.toml"
  gpurota reload
  gpurota reserve --gpu-ids 0 --for 1h >out
  # shellcheck disable=SC2016 # for the inner shell
  in_background covered sh -c '. ./out; exec "$0" hold 2000' "$PROGRAM"
  wait_until says covered holding
  wait_until holds "gpus[0]['used_bytes'] >= 2000 * 2**20"
  gpurota update L1 --for 1s
  wait_until holds "leases[0]['state'] == 'expired'"
  in_background waits gpurota run --gpu-ids 0 -- true
  wait_until says waits 'reservation (L1) is over, but its programs still use it'
  kill "${BACKGROUND[0]}"
  ends_with 0 "$BACKGROUND_PID"
}

@test "--force takes over a GPU that one's own program uses already" {
  in_background unmanaged "$PROGRAM" hold 2000
  wait_until says unmanaged holding
  wait_until holds "any(g['state'] == 'unreserved_use' for g in gpus)"
  local gpu
  gpu=$(value "[g['index'] for g in gpus if g['state'] == 'unreserved_use'][0]")
  run -75 gpurota reserve --nonblock --gpu-ids "$gpu"
  gpurota reserve --nonblock --force --gpu-ids "$gpu" >out
  wait_until holds "gpus[$gpu]['state'] == 'in_use'"
  # The program and its memory now belong to the reservation.
  wait_until holds "leases[0]['gpus'][0]['used_bytes'] >= 2000 * 2**20"
  gpurota ps L1 | grep -q "hold 2000"
  gpurota release
  wait_until holds "gpus[$gpu]['state'] == 'unreserved_use'"
  kill -0 "$BACKGROUND_PID"
}

@test "release: bare ends the only reservation, and no other lease; --all-users asks first" {
  gpurota reserve --gpu-ids 0 --note 'for the demo' >out
  in_background holder gpurota run --memory 1G --gpu-ids 1 -- "$PROGRAM" hold 10
  wait_until says holder holding
  [ "$(gpurota release)" = 'released L1 (GPU 0, "for the demo")' ]
  wait_until holds "[l['kind'] for l in leases] == ['run']"
  run -1 gpurota release --all-users </dev/null
  grep -q -- '--yes' <<<"$output"
  holds "len(leases) == 1"
  gpurota release --all-users --yes
  wait_until no_leases
}

@test "release: of several reservations a bare one ends that of its shell, or none" {
  gpurota reserve --gpu-ids 0 >first
  gpurota reserve --gpu-ids 1 --note second >variables
  run -2 gpurota release
  [[ "$output" == \
    *'you have 2 reservations'*'gpurota release L1 '*'gpurota release L2 '*second*--all* ]]
  holds 'len(leases) == 2'
  # shellcheck source=/dev/null
  (. ./variables && [ "$(gpurota release)" = 'released L2 (GPU 1, "second")' ])
  wait_until holds "[l['lease_id'] for l in leases] == ['L1']"
  # The shell's reservation is over, so release must not end the other reservation.
  # shellcheck source=/dev/null
  (. ./variables && run -1 gpurota release &&
    [[ "$output" == *'L2, which this shell is under, has ended'* ]])
  holds 'len(leases) == 1'
  [ -z "$(gpurota release --quiet)" ]
  wait_until no_leases
}

@test "release: on a terminal it asks which of several reservations ends" {
  gpurota reserve --gpu-ids 0 >first
  gpurota reserve --gpu-ids 1 >second
  cat >ask.py <<'END'
import os, pty, sys
answer = sys.argv[1]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("gpurota", ["gpurota", "release"])
seen = b""
while b"'all' of these" not in seen:
    seen += os.read(terminal, 4096)
os.write(terminal, answer.encode() + b"\n")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
  run -1 timeout "$PATIENCE" python3 ask.py ''
  holds 'len(leases) == 2'
  timeout "$PATIENCE" python3 ask.py L2
  wait_until holds "[l['lease_id'] for l in leases] == ['L1']"
  gpurota reserve --gpu-ids 1 >second
  timeout "$PATIENCE" python3 ask.py all
  wait_until no_leases
}

@test "a slice can be reserved, and its programs are held to it" {
  gpurota reserve --gpu-ids 0 --memory 1G >out
  in_background greedy gpurota run --lease L1 -- "$PROGRAM" greedy 32
  wait_until says greedy 'goes on with'
  holds "leases[0]['gpus'][0]['used_bytes'] <= 2**30"
}
