"""What an array of 10,000 items costs: gpurota-sim demo -- job_arrays.py STAGE [ITEMS]

STAGE is an installation of the project. Prints how long the commands take, the daemon's memory, and
how long GetInfo takes while items of `true` start one after the other, and while nothing happens.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

CALL = json.dumps({"method": "dev.gpurota.GetInfo", "parameters": {}}).encode() + b"\0"


class Daemon:
    def __init__(self, stage):
        self.folder = tempfile.TemporaryDirectory()
        self.run, state = (os.path.join(self.folder.name, each) for each in ("run", "state"))
        os.makedirs(self.run)
        os.environ["GPUROTA_RUNTIME_DIR"] = self.run
        self.gpurota = os.path.join(stage, "bin", "gpurota")
        self.log = open(os.path.join(self.folder.name, "log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [os.path.join(stage, "sbin", "gpurotad"), "--runtime-dir", self.run, "--state-dir",
             state], stderr=self.log)
        while self.process.poll() is None and not self.answers():
            time.sleep(0.05)

    def answers(self):
        return subprocess.run([self.gpurota, "status"], capture_output=True).returncode == 0

    def memory(self):
        with open("/proc/%d/status" % self.process.pid, encoding="utf-8") as file:
            kib = next(line.split()[1] for line in file if line.startswith("VmRSS"))
        return "%.1f MiB" % (int(kib) / 1024)

    def took(self, *words):
        begun = time.monotonic()
        subprocess.run([self.gpurota, *words], check=True, stdout=subprocess.DEVNULL)
        print("%-40s %6.0f ms" % (" ".join(words[:3]), (time.monotonic() - begun) * 1000))

    def latency(self, name, seconds):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.path.join(self.run, "control.sock"))
            times, end = [], time.monotonic() + seconds
            while time.monotonic() < end:
                begun = time.monotonic()
                connection.sendall(CALL)
                while not connection.recv(1 << 16).endswith(b"\0"):
                    pass
                times.append((time.monotonic() - begun) * 1000)
                time.sleep(0.005)
        times.sort()
        print("GetInfo, %-31s p50 %.2f, p99 %.2f, most %.2f ms of %d" % (
            name, times[len(times) // 2], times[len(times) * 99 // 100], times[-1], len(times)))


def main(stage, items="10000"):
    daemon = Daemon(stage)
    print("memory of the daemon, no job:", daemon.memory())
    daemon.took("job", "list")
    daemon.latency("no job", 3)
    daemon.took("job", "add", "sweep", "--array", "1-%s%%4" % items, "--memory", "1G", "--", "true")
    print("memory, added:", daemon.memory())
    daemon.latency("items start and end", 5)
    daemon.took("job", "stop", "sweep")
    daemon.took("job", "list")
    daemon.took("job", "show", "sweep", "--items", "--json")
    daemon.took("job", "list", "--items")
    print("memory, some of them ended:", daemon.memory())
    daemon.took("job", "remove", "--force", "sweep")
    daemon.process.terminate()
    daemon.process.wait()


main(*sys.argv[1:])
