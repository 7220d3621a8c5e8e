#!/usr/bin/env bats
# The CLI's own functions: help, version, JSON, completion, doctor, scripts, job control.

load helpers

setup() { start_daemon; }
teardown() { end_test; }

SHARE=$E2E_PREFIX/share

@test "help teaches each command" {
  local command
  for command in run status ps release update doctor version; do
    gpurota "$command" --help | grep -q "^usage: gpurota $command"
    [ "$(gpurota help "$command")" = "$(gpurota "$command" --help)" ]
    gpurota --help | grep -q "^  $command"
    gpurota --help | awk 'length > 100 { exit 1 }'
  done
}

@test "version is that of program, daemon and driver, and does without a daemon" {
  gpurota version >out
  grep -E '^gpurota [0-9]+\.[0-9]+' out
  grep -E '^gpurotad [0-9]' out
  grep -E '^NVIDIA driver [0-9]' out
  stop_daemon
  gpurota version | grep 'no answer'
  gpurota --version | grep -E '^gpurota [0-9]'
}

@test "each program says the version of CMakeLists.txt" {
  local version each
  version=$(python3 -B "$BATS_TEST_DIRNAME/../../tools/version.py")
  gpurota version --json | grep -q "\"version\": \"$version\""
  for each in "$E2E_PREFIX"/bin/* "$E2E_PREFIX"/sbin/*; do
    case $each in
      # Started by other programs only, without --version.
      */gpurota-burn | */gpurota-keeper | */gpurota-park) ;;
      *) [ "$("$each" --version)" = "${each##*/} $version" ] ;;
    esac
  done
}

@test "gpurota runs where LD_LIBRARY_PATH has an older C++ library, as of a conda environment" {
  mkdir conda
  # A C++ library that has none of the newer functions.
  cp "$E2E_PREFIX/lib/gpurota/sim/libnvidia-ml.so.1" conda/libstdc++.so.6
  run -0 env "LD_LIBRARY_PATH=$PWD/conda:${LD_LIBRARY_PATH:-}" gpurota run --memory 1G -- sh \
    -c 'echo "$LD_LIBRARY_PATH"'
  [[ $output == "$PWD/conda:"* ]]
}

@test "a program without 'run' gets the corrected line" {
  run -2 gpurota python train.py
  grep -qF 'gpurota run -- python train.py' <<<"$output"
}

@test "JSON has every field that the man page names" {
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 1
  wait_until says holder holding
  gpurota status --json >status.json
  gpurota ps --json >ps.json
  gpurota doctor --json >doctor.json || true
  python3 - <<'END'
import json
status = json.load(open("status.json"))
lease = status["leases"][0]
wanted = {
    "gpus": (status["gpus"][0],
             "index label uuid name pci parent state memory_bytes used_bytes reserved_bytes "
             "leases unreserved_bytes available_bytes swap_available_bytes held_for idle_since "
             "utilisation_percent detail classes power_mw power_limit_mw temperature_celsius "
             "slowdown_celsius sm_clock_mhz clock_limits ecc_uncorrected xid_errors "
             "compute_capability nvlink_group hidden_bytes freeing unified"),
    "leases": (lease,
               "lease_id kind share state uid user as_name since ends gpus processes pid "
               "command note model priority quantum_ms name pod allocation warn_seconds "
               "warn_signal leaves enforced_by not_by_driver limited_group "
               "latency held_back_for held_seconds parked park_trouble compute_percent "
               "compute_max_percent park_wait last_minute"),
    "lease gpus": (lease["gpus"][0],
                   "index label uuid limit_bytes soft_limit_bytes used_bytes granted_bytes "
                   "processes unused_since oversize_bytes turn turn_position moved_out_bytes "
                   "driver_limit_bytes"),
    "processes": (json.load(open("ps.json"))["processes"][0],
                  "pid uid user gpu gpu_label gpu_uuid type used_bytes lease_id tenant command "
                  "container allocations refusals unhooked unhooked_names held_seconds bursts "
                  "share_wait_seconds library"),
    "checks": (json.load(open("doctor.json"))["checks"][0], "name status summary remedy"),
}
for name, (thing, fields) in wanted.items():
    assert list(thing) == fields.split(), (name, list(thing))
assert lease["lease_id"] == "L1" and lease["gpus"][0]["limit_bytes"] == 1 << 30
END
}

@test "the man page names every field that JSON has" {
  in_background holder gpurota run --gpu-ids 0 --memory 1G -- "$PROGRAM" hold 1
  wait_until says holder holding
  in_background waiter gpurota run --gpus 2 -- true
  wait_until says waiter waiting
  in_background stranger "$PROGRAM" hold 1200
  wait_until holds 's["findings"] != []'
  local command
  for command in status ps doctor queue turns report history explain limits version; do
    gpurota "$command" --json >"$command.json" || true
  done
  gpurota reserve --gpu-ids 0 --memory 1G --json --quiet >reserve.json
  gpurota events --json | tail -n 1 >events.json
  python3 - "$SHARE/man/man1/gpurota.1" <<'END'
import json, re, sys
page = re.sub(r"\\f[BIR]|\\", "", open(sys.argv[1]).read())
words = set(re.findall(r"\w+", page[page.index(".SH JSON"):page.index(".SH FILES")]))
def fields(thing):
    if isinstance(thing, dict):
        for name, value in thing.items():
            yield name
            yield from fields(value)
    elif isinstance(thing, list):
        for one in thing:
            yield from fields(one)
for command in "status ps doctor queue turns report history events explain limits version reserve".split():
    missing = set(fields(json.load(open(command + ".json")))) - words
    assert not missing, (command, missing)
END
}

@test "ps shows processes of leases and others" {
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 1
  in_background stranger "$PROGRAM" hold 1
  wait_until says holder holding
  wait_until says stranger holding
  both_shown() {
    gpurota ps >table && grep -qE ' L1 .*hold 1' table && grep -qE ' - .*hold 1' table
  }
  wait_until both_shown
  gpurota ps L1 >table
  [ "$(grep -c 'hold 1' table)" = 1 ]
}

@test "doctor finds nothing wrong here, and reports that there is no daemon" {
  gpurota doctor >out || { cat out && false; }
  grep -E '^ok +driver' out
  stop_daemon
  run -1 gpurota doctor
  grep -qE '^error +control socket' <<<"$output"
  grep -q 'gpurotad' <<<"$output"
}

@test "doctor says that LD_PRELOAD has been changed under a lease, and the line that mends it does" {
  run -1 gpurota run --memory 1G -- env LD_PRELOAD= gpurota doctor
  local line
  line=$(sed -n 's/.*\(export LD_PRELOAD=.*\)$/\1/p' <<<"$output")
  grep -qF 'libgpurota.so${LD_PRELOAD:+:$LD_PRELOAD}' <<<"$line"
  gpurota run --memory 1G -- env LD_PRELOAD= sh -c "$line; exec gpurota doctor" >mended ||
    { cat mended && false; }
}

@test "doctor names programs whose libgpurota.so has been replaced" {
  local library
  library=$(gpurota doctor --json | python3 -c 'import json, sys
print(next(c["summary"] for c in json.load(sys.stdin)["checks"] if c["name"] == "library"))')
  cp "$library" libgpurota.so
  stop_daemon
  start_daemon --preload "$E2E_DIR/libgpurota.so"
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 1
  wait_until says holder holding
  gpurota doctor >before
  lacks "replaced since: .*\b$(value 'leases[0]["pid"]')\b" before
  cp "$library" new.so && mv new.so libgpurota.so
  gpurota doctor >after
  grep -E "^warning +library in use .*replaced since: .*\b$(value 'leases[0]["pid"]')\b" after
}

@test "the Python of the protocol's page works" {
  local page=$BATS_TEST_DIRNAME/../../docs/design/control-protocol.md
  # The document has only this one code block in Python.
  # shellcheck disable=SC2016 # backquotes of Markdown
  sed -n '/^```python$/,/^```$/p' "$page" | sed '1d;$d' >example.py
  [ "$(wc -l <example.py)" -le 11 ]
  python3 example.py >out
  [ "$(wc -l <out)" = "$(value 'len(gpus)')" ]
  grep -q '^0 .* available' out
}

@test "release without a name says which leases there are" {
  run -1 gpurota release
  grep -q 'you have no lease' <<<"$output"
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 1
  wait_until says holder holding
  run -2 gpurota release
  grep -q 'gpurota release L1' <<<"$output"
  holds 'len(leases) == 1'
}

@test "events -n shows the last events, newest last, and with -f later ones" {
  gpurota run --memory 1G -- true
  wait_until no_leases
  gpurota events >all
  [ "$(gpurota events -n 2)" = "$(tail -n 2 all)" ]
  in_background followed gpurota events -f -n 1
  wait_until says followed "$(tail -n 1 all | cut -c 1-15)"
  gpurota run --memory 1G -- true
  wait_until says followed 'L2'
  [ "$(grep -c L1 followed)" = 1 ]
  # The event says in words which call was refused.
  run -1 gpurota release L99
  gpurota events -n 1 | grep 'the release of a lease was refused: what it names does not exist'
}

@test "a program whose lease is released is notified once, with a name" {
  in_background out gpurota run --memory 1G -- "$PROGRAM" hold 1
  wait_until says out holding
  gpurota release L1
  ends_with 123 "$BACKGROUND_PID"
  [ "$(grep -c "^gpurota: L1 was released by $(id -un); ending your program\$" out)" = 1 ]
  [ "$(grep -c '^gpurota: ' out)" = 1 ]
}

@test "-v prints each step" {
  run --separate-stderr -0 gpurota run -v --memory 1G -- true
  # shellcheck disable=SC2154 # `run --separate-stderr` sets it
  grep -q 'lease L1 on GPU' <<<"$stderr"
  run --separate-stderr -0 gpurota run --memory 1G -- true
  [ -z "$stderr" ]
}

@test "closed standard streams cost a message, not the run, and reach no socket" {
  local code=0
  gpurota run -v --memory 1G -- sh -c 'exit 7' 2>&- || code=$?
  [ "$code" = 7 ]
  gpurota run -v --memory 1G -- "$PROGRAM" info <&- 2>&- >out
  grep size=1073741824 out
  code=0
  gpurota run --memory 1G -- sh -c '[ -e /proc/$$/fd/0 ] || exit 3' <&- || code=$?
  [ "$code" = 3 ]
  code=0
  gpurota status >&- || code=$?
  [ "$code" = 1 ]
  lacks 'unknown method|malformed|not JSON' gpurotad.log
}

@test "a daemon without standard streams serves, and its log harms nothing" {
  stop_daemon
  "${DAEMON[@]}" --log-level debug <&- >&- 2>&- 3>&- &
  DAEMON_PID=$!
  wait_until daemon_answers
  local fd
  for fd in 0 1 2; do [ "$(readlink "/proc/$DAEMON_PID/fd/$fd")" = /dev/null ]; done
  gpurota run --memory 1G -- true
}

@test "a script without #! runs as in a shell" {
  # shellcheck disable=SC2016 # for the script
  printf 'echo "script $1"\n' >plain
  chmod +x plain
  [ "$(gpurota run --memory 1G -- ./plain one)" = "script one" ]
}

@test "bash completes commands, options, leases, GPUs and the command behind --" {
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 1
  wait_until says holder holding
  completed() {
    # shellcheck disable=SC2016 # for the inner shell
    bash --norc -c 'source "$0" && COMP_WORDS=("$@") && COMP_CWORD=$(($# - 1)) && _gpurota &&
      printf "%s\n" "${COMPREPLY[@]}"' \
      "$SHARE/bash-completion/completions/gpurota" "$@"
  }
  [ "$(completed gpurota relea)" = release ]
  [ "$(completed gpurota run --sof)" = --soft-limit ]
  [ "$(completed gpurota release L)" = L1 ]
  [ "$(completed gpurota reserve --sho)" = --short ]
  [ "$(completed gpurota queue --js)" = --json ]
  [ "$(completed gpurota drain 0,1)" = 0,1 ]
  in_background waiter gpurota run --gpus 2 -- true
  wait_until says waiter waiting
  [ "$(completed gpurota cancel R)" = R1 ]
  completed gpurota explain '' | grep -q '^L1$'
  [ "$(completed gpurota run --gpu-ids 0,1)" = 0,1 ]
  completed gpurota run --gpu-ids GPU | grep -q '^GPU-'
  [ "$(completed gpurota set -i al)" = all ]
  [ "$(completed gpurota run --memory 5)" = 50% ]
  completed gpurota run --gpu-type '' | grep -qxF "$(value 'gpus[0]["name"].split()[-1]')"
  if [ "$UID" = 0 ]; then [ "$(as_nobody gpurota __complete leases)" = "" ]; fi
  completed gpurota run -- prin | grep -q '^printf$'
  completed gpurota job add web --memory 1G -- prin | grep -q '^printf$'
  completed gpurota filler add fold -- prin | grep -q '^printf$'
  gpurota filler add folding --idle-after 1h -- true
  [ "$(completed gpurota filler pause fo)" = folding ]
  stop_daemon
  [ -z "$(completed gpurota release L 2>&1)" ]
}

@test "the installed documents cite nothing that is not installed" {
  [ -e "$SHARE/doc/gpurota/src/proto/dev.gpurota.varlink" ]
  [ -e "$SHARE/doc/gpurota/SECURITY.md" ]
  python3 -B "$BATS_TEST_DIRNAME/../../tools/check_docs.py" --installed "$SHARE/doc/gpurota"
}

@test "bash completes machines and what can be changed of them" {
  completed() {
    # shellcheck disable=SC2016 # for the inner shell
    bash --norc -c 'source "$0" && COMP_WORDS=("$@") && COMP_CWORD=$(($# - 1)) && _gpurota_sim &&
      printf "%s\n" "${COMPREPLY[@]}"' \
      "$SHARE/bash-completion/completions/gpurota-sim" "$@"
  }
  [ "$(completed gpurota-sim li)" = list ]
  [ "$(completed gpurota-sim h100-)" = h100-mig ]
  [ "$(completed gpurota-sim set gpu0.lo)" = gpu0.lost= ]
  [ "$(completed gpurota-sim demo --sh)" = --shared ]
  completed gpurota-sim demo -- prin | grep -q '^printf$'
}

@test "fish completes commands, leases and GPUs" {
  command -v fish >/dev/null || skip "fish is not installed"
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 1
  wait_until says holder holding
  completed() {
    XDG_CONFIG_HOME=$E2E_DIR XDG_DATA_HOME=$E2E_DIR fish --no-config -c \
      "source $SHARE/fish/vendor_completions.d/gpurota.fish; complete -C '$1'" | cut -f1
  }
  [ "$(completed 'gpurota rele')" = release ]
  [ "$(completed 'gpurota release L')" = L1 ]
  [ "$(completed 'gpurota run --sof')" = --soft-limit ]
  [ "$(completed 'gpurota reserve --sho')" = --short ]
  in_background waiter gpurota run --gpus 2 -- true
  wait_until says waiter waiting
  [ "$(completed 'gpurota cancel R')" = R1 ]
  [ "$(completed 'gpurota run --fil')" = --filler ]
  gpurota filler add folding --idle-after 1h -- true
  [ "$(completed 'gpurota filler pause fo')" = folding ]
  completed 'gpurota run --gpu-ids GPU' | grep -q '^GPU-'
  completed 'gpurota run -- prin' | grep -q '^printf$'
}

@test "zsh completes commands, leases and GPUs" {
  command -v zsh >/dev/null || skip "zsh is not installed"
  in_background holder gpurota run --memory 1G -- "$PROGRAM" hold 1
  wait_until says holder holding
  cat >complete.zsh <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; fpath=($1 \$fpath); autoload -U compinit; compinit -u -D; stty cols 200; echo re''ady"
zpty -r shell out '*ready*'
zpty -w -n shell "$2"$'\t'
zpty -r shell out "*$3*" && print -r -- "completed"
zpty -d shell
END
  local line uuid
  uuid=$(value 'gpus[0]["uuid"]')
  # The text after the bar is what zsh adds to the typed words.
  in_background waiter gpurota run --gpus 2 -- true
  wait_until says waiter waiting
  for line in 'gpurota rel|ease' 'gpurota release |L1' 'gpurota cancel |R1' \
    'gpurota reserve --sh|ort' 'gpurota run --mem|ory' \
    "gpurota run --gpu-ids 1,${uuid%????}|${uuid: -4}"; do
    timeout "$PATIENCE" zsh -f complete.zsh "$SHARE/zsh/vendor-completions" "${line%|*}" \
      "${line#*|}" | grep completed
  done
}

@test "a run stopped at the terminal is a stopped job of the shell, and continues" {
  cat >job.py <<'END'
# A shell with job control on a terminal of its own; prints what its job did.
import os, pty, re, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.environ["PS1"] = "prompt> "
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = ""
def until(pattern):
    global seen
    deadline = time.time() + 30
    while not re.search(pattern, seen):
        assert time.time() < deadline, (pattern, seen)
        seen += os.read(terminal, 4096).decode(errors="replace")
    seen = seen[re.search(pattern, seen).end():]
until("prompt> ")
os.write(terminal, b"gpurota run --memory 1G -- sh -c 'echo st''arted; read line; exit $line'\n")
until("started")
os.write(terminal, b"\x1a")
until(r"Stopped.*gpurota run")
until("prompt> ")
os.write(terminal, b"fg\n")
until("gpurota run")
os.write(terminal, b"7\n")
until("prompt> ")
os.write(terminal, b"echo code=$?\n")
until("code=7")
END
  timeout "$PATIENCE" python3 job.py
  wait_until no_leases
}

@test "Popen.terminate() of a script ends the command" {
  python3 - <<'END'
import os, subprocess
run = subprocess.Popen(["gpurota", "run", "--memory", "1G", "--", "sh", "-c",
                        "echo $$; exec sleep 1000"],
                       stdout=subprocess.PIPE, text=True)
pid = int(run.stdout.readline())
run.terminate()
assert run.wait(30) == -15, run.returncode
assert not os.path.exists("/proc/%d" % pid)
END
}

@test "a daemon's restart is not noticed by a running command" {
  in_background quiet gpurota run -v --memory 1G -- sh \
    -c 'echo ready; while [ ! -e go ]; do sleep 0.05; done; exit 3'
  local pid=$BACKGROUND_PID code=0
  wait_until says quiet ready
  kill_daemon
  start_daemon
  wait_until holds 'leases[0]["state"] == "active"'
  touch go
  wait "$pid" || code=$?
  [ "$code" = 3 ]
  lacks 'over|lost' quiet
  wait_until no_leases
}
