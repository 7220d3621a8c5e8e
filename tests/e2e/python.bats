#!/usr/bin/env bats
# Leases of the Python module behave as those of `gpurota run`.

load helpers
load python_helpers

setup() { start_python_case; }
teardown() { end_test; }

queue_is() {
  [ "$(gpurota queue --json |
    python3 -c 'import json, sys; print(len(json.load(sys.stdin)["requests"]))')" = "$1" ]
}

@test "the limit of a lease holds for its commands, and for what they start" {
  python one <<'END'
import gpurota, os, subprocess
with gpurota.lease(memory="1G", note="from python") as lease:
    with lease.popen(["sh", "-c", '"$PROGRAM" greedy 32; true'], stdout=subprocess.PIPE,
                     text=True) as process:
        print(process.stdout.readline(), process.stdout.readline())
        assert lease.refresh().gpus[0].used_bytes <= 1 << 30
        input_ = open("go").read()
END
  mkfifo go
  wait_until says one 'goes on with'
  grep -E '^refused at (8|9)[0-9]+ MiB: CUDA_ERROR_OUT_OF_MEMORY' one
  holds "leases[0]['kind'] == 'run' and leases[0]['note'] == 'from python' and \
    leases[0]['gpus'][0]['limit_bytes'] == 2**30"
  gpurota ps L1 | grep -q 'greedy 32'
  gpurota release L1
  echo >go
  wait "$BACKGROUND_PID"
  wait_until memory_is_back
}

@test "kill -9 of the program ends the lease and its commands" {
  python one <<'END'
import gpurota, os, time
lease = gpurota.lease(memory="1G")
process = lease.popen([os.environ["PROGRAM"], "hold", "100"])
print("command", process.pid)
time.sleep(600)
END
  wait_until says one holding
  local command
  command=$(sed -n 's/^command //p' one)
  kill -KILL "$BACKGROUND_PID"
  wait_until gone "$command"
  wait_until no_leases
  wait_until memory_is_back
}

@test "the block is left when the memory is back, and processes that a command left behind have ended" {
  python one <<'END'
import gpurota, os, subprocess
with gpurota.lease(memory="1G") as lease:
    lease.run('setsid "$PROGRAM" hold 100 >stray 2>&1 & echo $! >pid', shell=True)
    while not os.path.exists("stray") or "holding" not in open("stray").read(): pass
    assert len(gpurota.processes(lease.id)) == 1
stray = int(open("pid").read())
assert not os.path.exists("/proc/%d" % stray)
assert gpurota.status().leases == []
print("done")
END
  wait "$BACKGROUND_PID" || { cat one && false; }
}

@test "map runs commands as an array, says how each ended, and leaves nothing behind" {
  cat >one.py <<'END'
import gpurota
script = "echo index $GPUROTA_ARRAY_INDEX; exit %d"
commands = [["sh", "-c", script % code] for code in (0, 3, 0)] + [["./none"]]
results = gpurota.map(commands, memory="1G", at_once=2)
print([(each.index, each.state, each.exit_code, each.output.strip()) for each in results[:3]])
print(results[3].state, results[3].exit_code, results[3].reason)
print([each.name for each in gpurota.jobs()])
try: gpurota.map(commands[:2], memory="1G", name="sweep", check=True)
except gpurota.ItemsFailed as error: print(error)
print([(each.name, each.array, each.items.done, each.items.failed) for each in gpurota.jobs()])
print([(each.index, each.state) for each in gpurota.job_items("sweep")])
try: gpurota.map(commands, memory="1G", name="sweep")
except gpurota.Refused as error: print(error)
try: gpurota.map(commands, memory="1G", at_once=1000)
except gpurota.InvalidRequest as error: print(error)
try: gpurota.map(commands, memory="1000G")
except gpurota.Refused as error: print(error)
END
  run -0 python3 one.py
  echo "$output"
  [[ ${lines[0]} == "[(1, 'done', 0, 'index 1'), (2, 'failed', 3, 'index 2'), (3, 'done', 0, "* ]]
  [[ ${lines[1]} == 'failed None cannot-start: '*none* ]]
  [ "${lines[2]}" = '[]' ]
  [ "${lines[3]}" = '1 of 2 commands did not end well: 2 (exited 3)' ]
  [ "${lines[4]}" = "[('sweep', '1-2', 1, 1)]" ]
  [ "${lines[5]}" = "[(1, 'done'), (2, 'failed')]" ]
  [[ ${lines[6]} == *sweep* ]]
  [[ ${lines[7]} == *'from 1 to 256 items of an array can run at once, not 1000'* ]]
  [[ ${lines[8]} == *'1000 GiB is more than'* ]]
  gpurota job remove sweep
}

@test "control-c of map stops the commands and removes the array; one with a name goes on" {
  python one <<'END'
import gpurota, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
def show(job): print("running", job.items.running)
gpurota.map([["sleep", "600"]] * 3, memory="1G", at_once=2, on_change=show)
END
  wait_until says one 'running 2'
  kill -INT "$BACKGROUND_PID"
  wait_until gone "$BACKGROUND_PID"
  says one KeyboardInterrupt
  no_jobs() { [ "$(gpurota job list)" = 'no jobs' ]; }
  wait_until no_jobs
  wait_until no_leases
  python two <<'END'
import gpurota
def show(job): print("running", job.items.running)
gpurota.map([["sleep", "600"]] * 3, memory="1G", at_once=2, name="sweep", on_change=show)
END
  wait_until says two 'running 2'
  # A restart of the daemon does not end the waiting.
  kill_daemon
  start_daemon
  kill -0 "$BACKGROUND_PID"
  gpurota job stop sweep
  wait_until says two 'gpurota.errors.Cancelled: job sweep was stopped: 3 wait'
  gpurota job remove sweep
}

@test "two programs wait in the order of their coming" {
  gpurota reserve --gpus "$(value 'len(gpus)')" --for 1h >taken
  local first second
  python first <<'END'
import gpurota
with gpurota.lease(
        gpus=1,
        on_wait=lambda request: print("position", request.position, request.reason)) as lease:
    print("first", lease.id)
END
  first=$BACKGROUND_PID
  wait_until queue_is 1
  python second <<'END'
import gpurota
with gpurota.lease(gpus=2, on_wait=lambda request: print("position", request.position)) as lease:
    print("second", lease.id)
END
  second=$BACKGROUND_PID
  wait_until queue_is 2
  wait_until says second 'position 2'
  says first 'position 1 waits for GPU [01]: .* reservation (L1) ends at '
  gpurota release
  wait "$first" "$second"
  says first 'first L2'
  says second 'second L3'
  wait_until no_leases
}

@test "control-C leaves the queue, a wait is not exceeded, and a cancelled request says so" {
  gpurota reserve --gpus "$(value 'len(gpus)')" --for 1h >taken
  python one <<'END'
import gpurota, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
try: gpurota.lease(gpus=1)
except KeyboardInterrupt: print("interrupted")
try: gpurota.lease(gpus=1, wait="1s")
except gpurota.NoGpu as error: print(error)
try: gpurota.lease(gpus=1, wait=0)
except gpurota.NoGpu as error: print(error.free, "of", error.total)
try: gpurota.lease(gpus=1)
except gpurota.Cancelled as error: print(error)
END
  wait_until queue_is 1
  kill -INT "$BACKGROUND_PID"
  wait_until says one interrupted
  wait_until says one 'gave up after 1 s: waits for GPU [01]: .* reservation (L1) ends at '
  wait_until says one '^0 of '
  wait_until queue_is 1
  gpurota cancel "$(gpurota queue --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["requests"][0]["request_id"])')"
  wait "$BACKGROUND_PID"
  says one 'it was cancelled by'
}

@test "a lease survives a restart of the daemon, and starts commands after it" {
  python one <<'END'
import gpurota, os
with gpurota.lease(memory="1G") as lease:
    print("has", lease.id)
    open("go").read()
    lease.run([os.environ["PROGRAM"], "info"], check=True)
    print("still", lease.refresh().state)
END
  mkfifo go
  wait_until says one 'has L1'
  kill_daemon
  start_daemon
  holds "leases[0]['state'] == 'active'"
  echo >go
  wait "$BACKGROUND_PID" || { cat one && false; }
  says one 'total=1073741824'
  says one 'still active'
  no_leases
}

@test "gpurota release ends the commands, and the program gets the reason" {
  python one <<'END'
import gpurota, os
with gpurota.lease(memory="1G") as lease:
    try: lease.run([os.environ["PROGRAM"], "hold", "100"])
    except gpurota.LeaseEnded as error: print(error)
    try: lease.run(["true"])
    except gpurota.LeaseEnded as error: print("again:", error)
END
  wait_until says one holding
  gpurota release L1
  wait "$BACKGROUND_PID" || { cat one && false; }
  says one "L1 has ended: it was released by $(id -un)"
  says one 'again: L1 has ended'
}

@test "a time limit ends the commands" {
  run -0 python3 -c '
import gpurota
with gpurota.lease(memory="1G", timeout="1s") as lease:
    try: lease.run(["sleep", "600"])
    except gpurota.LeaseEnded as error: print(error)'
  [[ $output == *'L1 has ended: its time limit is over'* ]]
}

@test "a forked child does not end its parent's lease" {
  run -0 python3 -c '
import gpurota, os, sys
with gpurota.lease(memory="1G") as lease:
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    lease.run(["true"], check=True)
    assert gpurota.status().leases[0].state == "active"
assert gpurota.status().leases == []'
}

@test "a command of a lease on a whole GPU is the lease's, and needs no library" {
  python one <<'END'
import gpurota, os
with gpurota.lease(gpu_ids=[1]) as lease:
    assert "LD_PRELOAD" not in lease.environ and lease.environ["CUDA_VISIBLE_DEVICES"] == "1"
    lease.run([os.environ["PROGRAM"], "hold", "200"])
END
  wait_until says one holding
  wait_until holds "leases[0]['gpus'][0]['used_bytes'] >= 200 * 2**20"
  holds "s['findings'] == [] and gpus[1]['state'] == 'in_use'"
}

@test "a subprocess with the lease's environment is limited, and ends with the lease" {
  python one <<'END'
import gpurota, os, subprocess
with gpurota.lease(memory="1G") as lease:
    process = subprocess.Popen([os.environ["PROGRAM"], "greedy", "32"], env=lease.environ,
                               stdout=subprocess.PIPE, text=True)
    print(process.stdout.readline(), process.stdout.readline())
    assert [each.pid for each in gpurota.processes(lease.id)] == [process.pid]
print("ended with", process.wait())
END
  wait "$BACKGROUND_PID" || { cat one && false; }
  says one 'refused at [89][0-9]* MiB'
  says one 'ended with -15'
}

@test "two leases in turns may have more together than the GPU has" {
  python one <<'END'
import gpurota, os
with gpurota.lease(memory="6G", gpu_ids="0", swap=True) as one, \
        gpurota.lease(memory="6G", gpu_ids="0", swap=True) as two:
    commands = [lease.popen([os.environ["PROGRAM"], "compute", "500", "1"]) for lease in (one, two)]
    print([command.wait() for command in commands], one.info.share)
END
  wait "$BACKGROUND_PID" || { cat one && false; }
  says one '\[0, 0\] swap'
}
