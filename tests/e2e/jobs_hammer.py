#!/usr/bin/env python3
"""Makes random requests about six jobs while the daemon is killed and started again, and compares
the jobs with what was requested: jobs_hammer.py SEED ROUNDS DAEMON ARGUMENT...

Each job is a `sleep` of its own length, so that its processes are known. After each round, a job
that should run must run exactly once, and a job that was stopped or removed must not run. If a
request got no answer because the daemon was killed, both results are correct.
"""
import json
import os
import random
import signal
import subprocess
import sys
import time

PATIENCE = 30
NAMES = [f"job{i}" for i in range(6)]
AS_ASKED = {"add": "on", "start": "on", "restart": "on", "stop": "off", "remove": "gone"}


def command(name):
    return ["sleep", f"86400.{os.getpid()}{name[3:]}"]


def gpurota(*words):
    return subprocess.run(["gpurota", *words], capture_output=True, text=True, check=False)


def wait_for(what, problem):
    deadline = time.monotonic() + PATIENCE
    while (found := problem()) and time.monotonic() < deadline:
        time.sleep(0.05)
    if found:
        sys.exit(f"{what}: {found}")


def start_daemon(argv):
    with open(os.environ["E2E_DIR"] + "/gpurotad.log", "a", encoding="utf-8") as log:
        daemon = subprocess.Popen(argv, stdout=log, stderr=log)
    wait_for("the daemon does not answer", lambda: gpurota("status").returncode)
    return daemon


def jobs():
    return {job["name"]: job for job in json.loads(gpurota("job", "list", "--json").stdout)["jobs"]}


def processes(name):
    words = b"".join(word.encode() + b"\0" for word in command(name))
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read() == words:
                    found.append(int(pid))
        except OSError:
            pass
    return found


def ask(action, name, chance):
    words = [action, name]
    if action == "add":
        words += ["--memory", "100M", "--restart", chance.choice(["no", "always"]), "--",
                  *command(name)]
    elif action == "remove":
        words = ["remove", "--force", name]
    elif action == "update":
        words += ["--memory", chance.choice(["100M", "200M"])]
    return subprocess.Popen(["gpurota", "job", *words], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def problems(wanted):
    there = jobs()
    for name in NAMES:
        state = there[name]["state"] if name in there else "gone"
        pids, wish = processes(name), wanted[name]
        says = f"{name} is {state} with processes {pids}, was to be {wish}"
        if state not in ("running", "stopped", "gone"):
            return says
        if len(pids) != (1 if state == "running" else 0):
            return says
        if wish and wish != {"running": "on", "stopped": "off", "gone": "gone"}[state]:
            return says
    return None


def main():
    seed, rounds, argv = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    chance = random.Random(seed)
    wanted = {name: "gone" for name in NAMES}  # None: either state is correct
    daemon = start_daemon(argv)
    for number in range(rounds):
        asked = []
        for name in chance.sample(NAMES, 3):
            action = chance.choice([*AS_ASKED, "update"])
            asked.append((action, name, ask(action, name, chance)))
        killed = chance.random() < 0.7
        if killed:
            time.sleep(chance.random() * 0.15)
            daemon.send_signal(signal.SIGKILL)
            daemon.wait()
        for action, name, process in asked:
            if process.wait() == 0:
                wanted[name] = AS_ASKED.get(action, wanted[name])
            elif killed:
                wanted[name] = None
        if killed:
            daemon = start_daemon(argv)
        wait_for(f"seed {seed}, round {number}, {[each[:2] for each in asked]}",
                 lambda: problems(wanted))
        there = jobs()
        for name in NAMES:
            state = there[name]["state"] if name in there else "gone"
            wanted[name] = {"running": "on", "stopped": "off"}.get(state, state)
    for name in NAMES:
        gpurota("job", "remove", "--force", name)
    wait_for("jobs stay", lambda: jobs())
    daemon.terminate()
    sys.exit(daemon.wait())


main()
