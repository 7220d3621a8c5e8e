"""What an array of 10,000 items costs: gpurota-sim demo -- job_arrays.py STAGE [ITEMS]

STAGE is an installation of the project. Prints how long the commands take, the daemon's memory, and
how long GetInfo takes meanwhile. For comparison, a process that answers at once is measured too:
that process also waits for a processor when many programs start. `turn` is the longest turn of the
daemon's loop so far.
"""

import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time


def called(connection, method):
    connection.sendall(json.dumps({"method": "dev.gpurota." + method, "parameters": {}}).encode()
                       + b"\0")
    answer = b""
    while not answer.endswith(b"\0"):
        answer += connection.recv(1 << 16)
    return json.loads(answer[:-1])["parameters"]


def echo():
    """A socket to a process that answers each byte."""
    ours, theirs = socket.socketpair()
    subprocess.Popen(["cat"], stdin=theirs, stdout=theirs)
    theirs.close()
    return ours


class Latencies:
    """Calls GetInfo every 5 ms, in a thread, while something happens: `with Latencies(daemon,
    "what"):`."""

    def __init__(self, daemon, name):
        self.daemon, self.name = daemon, name
        self.times = {"GetInfo": [], "echo": []}
        self.over = threading.Event()
        self.peer = echo()
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        with socket.socket(socket.AF_UNIX) as connection, self.peer as peer:
            connection.connect(os.path.join(self.daemon.run, "control.sock"))
            while not self.over.wait(0.005):
                begun = time.monotonic()
                called(connection, "GetInfo")
                between = time.monotonic()
                peer.send(b"x")
                peer.recv(1)
                self.times["GetInfo"].append((between - begun) * 1000)
                self.times["echo"].append((time.monotonic() - between) * 1000)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for what, times in self.times.items():
            times.sort()
            print("  %-8s beside %-22s p50 %.2f, p99 %.2f, most %.2f ms of %d" % (
                what, self.name, times[len(times) // 2], times[len(times) * 99 // 100], times[-1],
                len(times)))
        print("  turn %.1f ms" % self.daemon.longest_turn())


class Daemon:
    def __init__(self, stage):
        self.folder = tempfile.TemporaryDirectory()
        self.state = os.path.join(self.folder.name, "state")
        # In memory, as /run is: creating a file on a disk takes longer.
        self.memory_folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.run = os.path.join(self.memory_folder.name, "run")
        os.makedirs(self.run)
        os.environ["GPUROTA_RUNTIME_DIR"] = self.run
        self.stage = stage
        self.gpurota = os.path.join(stage, "bin", "gpurota")
        self.log = open(os.path.join(self.folder.name, "log"), "w", encoding="utf-8")
        self.start()

    def start(self):
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [os.path.join(self.stage, "sbin", "gpurotad"), "--runtime-dir", self.run,
             "--state-dir", self.state], stderr=self.log)
        while self.process.poll() is None and not self.answers():
            time.sleep(0.01)
        return (time.monotonic() - begun) * 1000

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def answers(self):
        return subprocess.run([self.gpurota, "status"], capture_output=True).returncode == 0

    def memory(self):
        with open("/proc/%d/status" % self.process.pid, encoding="utf-8") as file:
            kib = next(line.split()[1] for line in file if line.startswith("VmRSS"))
        return "%.1f MiB" % (int(kib) / 1024)

    def longest_turn(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.path.join(self.run, "control.sock"))
            return called(connection, "Health")["loop_longest_us"] / 1000

    def took(self, *words):
        begun = time.monotonic()
        subprocess.run([self.gpurota, *words], check=True, stdout=subprocess.DEVNULL)
        print("%-40s %6.0f ms" % (" ".join(words[:3]), (time.monotonic() - begun) * 1000))

    def items(self):
        shown = subprocess.run([self.gpurota, "job", "show", "sweep", "--json"], check=True,
                               capture_output=True)
        return json.loads(shown.stdout)["jobs"][0]["items"]

    def fail_all(self, items):
        """Makes all items look as if each had run and failed, without running them. Returns how
        long the daemon takes to start."""
        subprocess.run([self.gpurota, "job", "stop", "sweep"], check=True, capture_output=True)
        while self.items()["running"]:
            time.sleep(0.1)
        self.stop()
        # The keys of a record as in src/jobs/record.h.
        pairs = {"phase": "failed", "failures": "1", "end_detail": "", "start_again": "0",
                 "asked_ms": "1764000000000", "end": "1764000000000 1764000001000 exited 3 "}
        state = b"".join(key.encode() + b"\0" + value.encode() + b"\0"
                         for key, value in pairs.items())
        with contextlib.closing(sqlite3.connect(os.path.join(self.state, "gpurota.db"))) as store:
            job, boot = store.execute("SELECT id, boot_id FROM job").fetchone()
            store.executemany("INSERT OR REPLACE INTO job_item VALUES (?, ?, ?, ?)",
                              [(job, item, state, boot) for item in range(1, items + 1)])
            store.commit()
        return self.start()


def main(stage, items="10000"):
    daemon = Daemon(stage)
    print("memory of the daemon, no job:", daemon.memory())
    daemon.took("job", "list")
    with Latencies(daemon, "no job"):
        time.sleep(3)
    daemon.took("job", "add", "sweep", "--array", "1-%s%%4" % items, "--memory", "1G", "--", "true")
    print("memory, added:", daemon.memory())
    with Latencies(daemon, "items that start"):
        time.sleep(10)
    print("items that have ended:", daemon.items()["done"])
    daemon.took("job", "stop", "sweep")
    daemon.took("job", "list")
    daemon.took("job", "show", "sweep", "--items", "--json")
    daemon.took("job", "list", "--items")
    daemon.took("job", "remove", "--force", "sweep")
    # The array runs 16 items at once, which are then stopped together.
    daemon.took("job", "add", "sweep", "--array", "1-%s%%16" % items, "--memory", "64M", "--",
                "sleep", "600")
    while daemon.items()["running"] < 12:
        time.sleep(0.1)
    print("  turn %.1f ms" % daemon.longest_turn())
    with Latencies(daemon, "job cancel"):
        daemon.took("job", "cancel", "sweep")
        time.sleep(1)
    print("restart of the daemon, all items failed: %.0f ms" % daemon.fail_all(int(items)))
    print("memory, all items failed:", daemon.memory(), daemon.items())
    with Latencies(daemon, "restart --failed"):
        daemon.took("job", "restart", "sweep", "--failed")
        time.sleep(1)
    daemon.took("job", "stop", "sweep")
    print("restart of the daemon, all items failed: %.0f ms" % daemon.fail_all(int(items)))
    with Latencies(daemon, "job remove"):
        daemon.took("job", "remove", "--force", "sweep")
        time.sleep(1)
    daemon.stop()


main(*sys.argv[1:])
