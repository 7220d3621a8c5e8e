#!/usr/bin/env bats
# The Python module: the program itself under a lease, views of the machine, notebooks, and the
# guide's examples as they are written.

load helpers
load python_helpers

setup() { start_python_case; }
teardown() { end_test; }

# A program that uses CUDA in the interpreter itself, and allocates until it is refused.
greedy_module() {
  cat >train.py <<'END'
import ctypes

def main():
    driver = ctypes.CDLL("libcuda.so.1")
    context, pieces, piece = ctypes.c_void_p(), 0, ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert (driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
            and driver.cuCtxSetCurrent(context) == 0)
    while driver.cuMemAlloc_v2(ctypes.byref(piece), ctypes.c_size_t(64 << 20)) == 0:
        pieces += 1
    print("refused at", pieces * 64, "MiB", flush=True)
END
}

@test "adopt puts the program itself, and its children, under the limit" {
  greedy_module
  cat >main.py <<'END'
import gpurota, os, subprocess, sys
print("begins", os.getpid())
lease = gpurota.adopt(memory="1G", note="adopted")
print("under", lease.lease_id, sys.argv[1:])
subprocess.run([os.environ["PROGRAM"], "info"])
import train
train.main()
sys.exit(7)
END
  run -7 python3 main.py --steps 'two words'
  [ "$(grep -c '^begins' <<<"$output")" = 2 ]
  [[ $output == *"under L1 ['--steps', 'two words']"* ]]
  grep -E 'refused at (8|9)[0-9]+ MiB' <<<"$output"
  [[ $output == *"total=1073741824"* ]]
  wait_until no_leases
  # A program that already has a lease keeps that lease.
  run -7 gpurota run --memory 2G -- python3 main.py
  [ "$(grep -c '^begins' <<<"$output")" = 1 ]
  [[ $output == *"total=2147483648"* ]]
}

@test "a program that is adopted is ended as one of gpurota run" {
  python one <<'END'
import gpurota, time
gpurota.adopt(memory="1G")
print("adopted")
time.sleep(600)
END
  wait_until says one adopted
  gpurota release L1
  ends_with 123 "$BACKGROUND_PID"
  wait_until no_leases
}

@test "adopt refuses a process in which CUDA is initialised, and nothing is asked for" {
  run -1 python3 -c '
import ctypes, gpurota
driver = ctypes.CDLL("libcuda.so.1")
assert not gpurota.adoption.cuda_is_initialised()
driver.cuInit(0)
gpurota.adopt(memory="1G")'
  [[ $output == *'CannotAdopt: CUDA is initialised in this process already'*'first lines'* ]]
  no_leases
}

@test "events are followed over a restart of the daemon, and none is missed" {
  python one <<'END'
import gpurota
for event in gpurota.events(follow=True):
    print(event.event_id, event.type)
END
  wait_until says one daemon_started
  gpurota run --memory 1G -- true
  wait_until says one lease_gone
  kill_daemon
  start_daemon
  gpurota run --memory 1G -- true
  wait_until eval '[ "$(grep -c lease_gone one)" = 2 ]'
  awk '$1 != NR { exit 1 }' one
}

@test "without a daemon the error has the remedy" {
  stop_daemon
  run -1 python3 -c 'import gpurota; gpurota.lease(memory="1G")'
  local missing="no gpurotad is running at $E2E_DIR/run/control.sock"
  [[ $output == *"NoDaemon: $missing: start 'gpurotad --runtime-dir"* ]]
}

@test "another user's lease cannot be ended or changed" {
  if [ "$(id -u)" != 0 ]; then skip "needs root: it switches users"; fi
  chmod 755 . run
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 100
  wait_until says holder holding
  cat >try.py <<'END'
import gpurota
for call in (lambda: gpurota.release("L1"), lambda: gpurota.update("L1", memory="2G")):
    try: call()
    except gpurota.Denied as error: print(error)
lease = gpurota.status().leases[0]
print(lease.lease_id, lease.command)
END
  mkdir "$E2E_DIR/module"
  cp -r "${PYTHONPATH##*:}/gpurota" "$E2E_DIR/module/"
  chmod -R a+rX "$E2E_DIR/module"
  PYTHONPATH=$E2E_DIR/module run -0 setpriv --reuid 54001 --regid 54001 \
    --clear-groups /usr/bin/python3 try.py
  [ "$(grep -c "L1 is somebody else's lease" <<<"$output")" = 2 ]
  [[ $output == *"L1 None"* ]]
}

@test "a kernel that was installed starts under its lease" {
  cat >ipykernel_launcher.py <<'END'
import gpurota, sys
print(gpurota.current().gpus[0].limit_bytes, sys.argv[1:])
END
  export PYTHONPATH=$E2E_DIR:$PYTHONPATH
  python3 -c 'import gpurota.jupyter; print(gpurota.jupyter.install_kernel(memory="1G"))' >folder
  run -0 python3 -c '
import json, subprocess, sys
words = json.load(open(sys.argv[1] + "/kernel.json"))["argv"]
subprocess.run([word.replace("{connection_file}", "c.json") for word in words],
               check=True)' "$(cat folder)"
  [[ $output == *"1073741824 ['-f', 'c.json']"* ]]
}

@test "the examples of the guide run as they are written" {
  greedy_module
  # shellcheck disable=SC2016 # for the script
  printf '#!/bin/sh\nexec "$PROGRAM" compute 64 1\n' >simulate
  chmod +x simulate
  awk '/^```python$/ { file = "example" ++n ".py"; next } /^```$/ { file = ""; next }
    file { print >file }' \
    "$BATS_TEST_DIRNAME/../../docs/python.md"
  local example count=0
  for example in example*.py; do
    run python3 "$example"
    echo "$example: $output"
    [ "$status" = 0 ]
    count=$((count + 1))
  done
  [ "$count" = 6 ]
  [ -e jupyter/kernels/gpurota-4g-gpu/kernel.json ]
}
