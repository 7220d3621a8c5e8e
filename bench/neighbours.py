#!/usr/bin/env python3
"""Measures what one user's load costs another: how long Alice's calls take while Mallory makes as
many calls as possible.

    neighbours.py PREFIX [PREFIX…] [--seconds 8] [--connections 250]

Starts, for each installed gpurota (PREFIX/bin, PREFIX/sbin), a daemon on a simulated machine with 8
GPUs. Then, for each kind of load, Alice asks for the status every 20 ms, and a tenant of hers asks
for 2 MiB more. Prints a table of milliseconds: median, 99th percentile, maximum. Needs root, to act
as two users (54001 and 54002, without accounts).
"""
import argparse
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests",
                                "hostile"))
from users import (  # noqa: E402  pylint: disable=wrong-import-position
    ALICE, MALLORY, as_user, deep_tree)
from wire import (  # noqa: E402  pylint: disable=wrong-import-position
    Control, Tenant, processes_question)

PIPELINED = 32
LOADS = ("nothing", "Status", "ListProcesses", "Report", "Update", "Doctor", "CheckRequest",
         "Acquire", "deep tree")
GROW = 3
ASKED, ASKERS = 60, 20


def child(uid, work):
    """Runs `work` as the user, in a process of its own. Returns the pid, and a pipe with the result
    of `work` as JSON."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            as_user(uid)
            os.write(write, json.dumps(work()).encode())
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    return pid, read


def result(running):
    pid, pipe = running
    with os.fdopen(pipe, "rb") as file:
        text = file.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def asking(**fields):
    """Parameters that ask for GPUs, for old and new daemons. Daemons before 2026-11-22 took the
    fields without `request`."""
    return {"request": fields, **fields}


def reservation(control, **more):
    for _ in range(100):  # the daemon answers before it has seen its GPUs
        reply = control.call("Acquire", **asking(kind="reservation", seconds=600, **more))
        if reply and "error" not in reply:
            return reply["parameters"]["lease"]["lease_id"]
        time.sleep(0.1)
    raise RuntimeError(f"no lease: {reply}")


def message(load, lease, number):
    parameters = {"Report": {"by": "note", "since": "2020-01-01T00:00:00Z"},
                  "Update": {"lease_id": lease, "note": f"n{number} " + "x" * 900},
                  "CheckRequest": asking(gpus=2, memory={"bytes": 1 << 30}),
                  "Acquire": asking(gpus=99)}.get(load, {})
    return json.dumps({"method": "dev.gpurota." + load, "parameters": parameters}).encode() + b"\0"


def flood(load, connections, seconds):
    """Makes calls as fast as answers come, on all connections at once; returns the number of
    calls."""
    control = Control()
    control.connect()
    lease = reservation(control, memory={"bytes": 1 << 20}) if load == "Update" else None
    watched = selectors.DefaultSelector()

    def connect():
        made = socket.socket(socket.AF_UNIX)
        made.connect(os.environ["GPUROTA_RUNTIME_DIR"] + "/control.sock")
        made.setblocking(False)
        watched.register(made, selectors.EVENT_READ | selectors.EVENT_WRITE, [b""])

    for _ in range(connections):
        connect()
    answered = number = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for key, events in watched.select(0.1):
            try:
                if events & selectors.EVENT_READ:
                    answered += key.fileobj.recv(1 << 18).count(b"\0")
                if events & selectors.EVENT_WRITE:
                    if not key.data[0]:
                        key.data[0] = b"".join(message(load, lease, number + i)
                                               for i in range(PIPELINED))
                        number += PIPELINED
                    key.data[0] = key.data[0][key.fileobj.send(key.data[0]):]
            except BlockingIOError:
                pass
            except ConnectionError:  # the daemon closed it: the user is above the budgets
                watched.unregister(key.fileobj)
                key.fileobj.close()
                connect()
    if lease:
        control.call("Release", lease_id=lease)
    return answered


def ask_about_strangers(seconds):
    """Asks as fast as answers come, from 20 tenants at once; returns the number of questions."""
    group, pids = deep_tree(ASKED)
    control = Control()
    control.connect()
    lease = reservation(control, memory={"bytes": 1 << 20})
    question = processes_question(pids)
    watched = selectors.DefaultSelector()
    for _ in range(ASKERS):
        tenant = Tenant()
        tenant.connect()
        if tenant.hello(int(lease[1:])) != 0:
            sys.exit("the tenant is not admitted")
        tenant.socket.setblocking(False)
        watched.register(tenant.socket, selectors.EVENT_READ, tenant)
        tenant.socket.send(question)
    answered = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for key, _ in watched.select(0.1):
            answered += len(key.fileobj.recv(1024)) > 0
            key.fileobj.send(question)
    os.killpg(group, signal.SIGKILL)
    return answered


def percentiles(took):
    took = sorted(took)
    return [round(1000 * took[min(len(took) - 1, int(len(took) * part))], 1)
            for part in (0.5, 0.99, 1)]


def ask(seconds):
    """Measures, as Alice, the time of a status and of a growth."""
    control = Control()
    control.connect()
    lease = reservation(control, memory={"bytes": 4 << 30})
    tenant = Tenant()
    tenant.connect()
    if tenant.hello(int(lease[1:])) != 0:
        sys.exit("the tenant is not admitted")
    status, growths = [], []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.monotonic()
        control.call("Status")
        status.append(time.monotonic() - begun)
        begun = time.monotonic()
        # The request also returns the memory of the last grant.
        tenant.ask(GROW, struct.pack("<IIQQQ", 0, 0, 2 << 20 if growths else 0, 2 << 20, 2 << 20))
        growths.append(time.monotonic() - begun)
        time.sleep(0.02)
    return percentiles(status) + percentiles(growths)


def load_of(name, options):
    seconds = options.seconds + 3
    return (ask_about_strangers(seconds) if name == "deep tree"
            else flood(name, options.connections, seconds))


def measure(prefix, load, options):
    flooding = child(MALLORY, lambda: load_of(load, options)) if load != "nothing" else None
    time.sleep(1.5)
    figures = result(child(ALICE, lambda: ask(options.seconds)))
    calls = result(flooding) / (options.seconds + 3) if flooding else 0
    print(f"| {prefix} | {load} | {calls:.0f} | " + " | ".join(str(figure) for figure in figures)
          + " |", flush=True)


def serve(prefix, options):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.environ["GPUROTA_RUNTIME_DIR"] = folder + "/run"
        os.environ["PATH"] = f"{prefix}/bin:{prefix}/sbin:" + os.environ["PATH"]
        os.mkdir(folder + "/run", 0o755)
        daemon = subprocess.Popen(["gpurotad", "--runtime-dir", folder + "/run", "--state-dir",
                                   folder + "/state",
                                   "--config", "/dev/null", "--log-level", "error"])
        try:
            while subprocess.run(["gpurota", "status"], capture_output=True,
                                 check=False).returncode:
                time.sleep(0.05)
            for load in options.loads.split(","):
                measure(os.path.basename(prefix), load, options)
        finally:
            daemon.terminate()
            daemon.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prefixes", nargs="+")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--connections", type=int, default=250)
    parser.add_argument("--loads", default=",".join(LOADS))
    options = parser.parse_args()
    if "GPUROTA_SIM" not in os.environ and not os.environ.get("GPUROTA_BENCH_INSIDE"):
        os.environ["GPUROTA_BENCH_INSIDE"] = "1"
        inside = os.path.abspath(options.prefixes[0]) + "/bin/gpurota-sim"
        os.execv(inside, [inside, "h100x8", "--", sys.executable, *sys.argv])
    print("| gpurota | Mallory's load | his calls/s | status p50 | p99 | most | growth p50 | p99 | "
          "most |\n|---|---|---|---|---|---|---|---|---|")
    for prefix in options.prefixes:
        serve(os.path.abspath(prefix), options)


main()
