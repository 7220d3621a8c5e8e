#!/usr/bin/env python3
"""A booked slice moves a swap lease to host memory, and gives its GPU back when it is over.

    swap_booked.py DIST [--gib 30]

A PyTorch program holds GIB in a swap lease of 60 % of GPU 0 and checks it without pause. Another
user uses a booking of 60 %: the program's memory leaves the GPU, and a program without a lease can
have all of the slice. When the booking is released, the program continues; all sums that it has
computed are the same. Prints how long moving took. Starts a daemon of its own; needs root.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

TRAINING = """
import sys, time, torch
gib = int(sys.argv[1])
torch.manual_seed(1)
make = lambda: torch.randint(0, 1 << 30, (1 << 28,), dtype=torch.int32, device="cuda")
parts = [make() for _ in range(gib)]
def check():
    return sum(int(part.sum(dtype=torch.int64)) for part in parts)
expected = check()
print("ready", flush=True)
count, longest, before = 0, 0.0, time.monotonic()
while True:
    if check() != expected:
        sys.exit("a sum is wrong")
    now = time.monotonic()
    count, longest, before = count + 1, max(longest, now - before), now
    print(f"{count} checks, the longest took {longest:.2f} s", flush=True)
"""
OTHERS = """
import sys, torch
torch.empty(int(sys.argv[1]), dtype=torch.uint8, device="cuda").fill_(1)
torch.cuda.synchronize()
"""


def used_mib():
    query = ["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return int(subprocess.check_output(query, text=True))


def wait_until(holds, what, seconds=90.0):
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > seconds:
            sys.exit(f"waited in vain until {what}")
        time.sleep(0.05)
    return time.monotonic() - begun


class Site:
    """A daemon that allows bookings to begin soon, and the command line, for root and for another
    user."""

    def __init__(self, dist, folder):
        os.chmod(folder, 0o755)
        self.env = dict(os.environ, GPUROTA_RUNTIME_DIR=f"{folder}/run")
        dist = shutil.copytree(dist, f"{folder}/dist")  # where everybody can read it
        self.command = f"{dist}/bin/gpurota"
        with open(f"{folder}/gpurota.toml", "w", encoding="utf-8") as file:
            file.write('[bookings]\nmin_unbooked = "1s"\n')
        folders = ["--runtime-dir", f"{folder}/run", "--state-dir", f"{folder}/state"]
        files = ["--config", f"{folder}/gpurota.toml", "--preload", f"{dist}/lib/libgpurota.so"]
        with open(f"{folder}/daemon.log", "w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen([f"{dist}/bin/gpurotad", *folders, *files], stderr=log)
        wait_until(lambda: self.call("status").returncode == 0, "the daemon answers")

    def call(self, *words, other=False):
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        command = [*(nobody if other else []), self.command, *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)

    def must(self, *words, other=False):
        done = self.call(*words, other=other)
        if done.returncode != 0:
            sys.exit(f"gpurota {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def status(self):
        return json.loads(self.must("status", "--json"))

    def kinds(self):
        return sorted(lease["kind"] for lease in self.status()["leases"])

    def can_use_booking(self):
        return json.loads(self.must("calendar", "--json"))["bookings"][0].get("waits_for_use")


def checks(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return int(lines[-1].split()[0]) if lines and lines[-1].endswith(" s") else 0


def try_it(site, folder, gib):
    said = f"{folder}/said"
    with open(said, "w", encoding="utf-8") as out:
        share = ["--gpu-ids", "0", "--memory", "60%"]
        site.must("reserve", *share, "--at", "+5s", "--for", "30m", other=True)
        program = [sys.executable, "-c", TRAINING, str(gib)]
        run = [site.command, "run", *share, "--swap", "--", *program]
        with subprocess.Popen(run, env=site.env, stdout=out) as training:
            wait_until(lambda: checks(said) > 0, "the program checks")
            wait_until(site.can_use_booking, "the booking can be used")
            before = used_mib()
            claimed = time.monotonic()
            site.must("claim", "R1", other=True)
            wait_until(lambda: site.kinds() == ["reservation", "run"], "the booking begins")
            away = time.monotonic() - claimed
            left = used_mib()
            booked = next(each for each in site.status()["leases"] if each["kind"] == "reservation")
            size = str(booked["gpus"][0]["limit_bytes"])
            subprocess.run([sys.executable, "-c", OTHERS, size], check=True)
            waiting = checks(said)
            time.sleep(3)
            if checks(said) != waiting:
                sys.exit("the program went on while it was to be in host memory")
            site.must("release", booked["lease_id"])
            back = wait_until(lambda: checks(said) > waiting + 2, "the program goes on")
            training.terminate()
    with open(said, encoding="utf-8") as file:
        last = file.read().splitlines()[-1]
    print(f"{gib} GiB: away in {away:.2f} s ({before} MiB were used, {left} stayed), checked again "
          f"{back:.2f} s after the end; {last}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dist")
    parser.add_argument("--gib", type=int, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(os.path.abspath(arguments.dist), folder)
        try:
            try_it(site, folder, arguments.gib)
        finally:
            site.daemon.terminate()
            site.daemon.wait()
            with open(f"{folder}/daemon.log", encoding="utf-8") as log:
                print(log.read(), file=sys.stderr)


main()
