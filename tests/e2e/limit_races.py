"""Leases of users and pods are made, changed and ended, processes move between control groups,
others set limits of their own, and the daemon is killed and restarted, all at random; then the
driver's limits must be right.

    limit_races.py SECONDS SEED PROGRAM DAEMON…

Runs in the folder of a test case, on a simulated machine with simulated control groups
($GPUROTA_SIM_DIR/cgroup). DAEMON is the command that starts gpurotad. Checks that

- a limit that somebody else has set never changes,
- a slice has exactly one limit, on its control group: its own and the allowance,
- a pod has one limit on each GPU for all its slices there,
- no limit of gpurota's stays after its lease.

The last three are checked when nothing has been under way for a moment. Prints the counts.
"""
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from driver_limits import Driver

TREE = os.environ["GPUROTA_SIM_DIR"] + "/cgroup"
PATIENCE = float(os.environ.get("E2E_PATIENCE", "30"))
GPUS = (0, 1)
GPU_MEMORY = 8192
MOST_LEASES = 5
PODS = {"1b-2": TREE + "/kubepods/burstable/pod1b-2",
        "3c-4": TREE + "/site.slice/site-kubepods.slice/site-kubepods-pod3c_4.slice"}
USER_GROUPS = (TREE + "/user0", TREE + "/user1")
# Limits of others are odd, limits of gpurota are even.
ALLOWANCE = 512


def gpurota(*arguments):
    return subprocess.run(["gpurota", *arguments], capture_output=True, text=True, timeout=PATIENCE)


def move(pid, group):
    """As a write to cgroup.procs. The group may be gone."""
    try:
        file = os.open(group + "/cgroup.procs", os.O_WRONLY | os.O_APPEND)
    except OSError:
        return
    os.write(file, b"%d\n" % pid)
    os.close(file)


def end(process):
    if process.poll() is None:
        process.kill()
    process.wait()


class Races:
    def __init__(self, seed, program, daemon):
        self.chance = random.Random(seed)
        self.program, self.command = program, daemon
        self.driver = Driver()
        self.log = open("gpurotad.log", "ab")
        self.others = {}    # (group, GPU): MiB that somebody else has set
        self.asked = []     # commands of gpurota that may not have ended
        self.runs = []      # `gpurota run`, and processes that entered a group
        self.pod_leases = 0  # that were asked for
        self.enforcement = "auto"
        self.counts = {}
        for group in (*USER_GROUPS, TREE + "/alone"):
            os.mkdir(group)
            open(group + "/cgroup.procs", "w").close()
        self.configure()
        self.start_daemon()

    # The daemon.

    def configure(self):
        with open("gpurota.toml.new", "w") as file:
            file.write(f'enforcement = "{self.enforcement}"\n[watch]\nnot_limited = "report"\n')
        os.rename("gpurota.toml.new", "gpurota.toml")

    def start_daemon(self):
        self.daemon = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)

    def wait_for_daemon(self):
        give_up = time.monotonic() + PATIENCE
        while gpurota("status").returncode != 0:
            assert self.daemon.poll() is None, "the daemon has ended by itself"
            assert time.monotonic() < give_up, "the daemon does not answer"
            time.sleep(0.02)

    def status(self):
        return json.loads(gpurota("status", "--json").stdout)

    def active(self):
        try:
            leases = self.status()["leases"]
        except ValueError:  # there is no daemon now
            return []
        return [lease for lease in leases if lease["state"] == "active"]

    def leases(self):
        """The leases whose commands have started and that are not ending."""
        return [lease for lease in self.active() if lease.get("pid")]

    def a_lease(self):
        leases = self.leases()
        return self.chance.choice(leases) if leases else None

    @staticmethod
    def group_of(lease):
        found = glob.glob(f"{TREE}/**/gpurota-{lease['lease_id']}-{lease['pid']}", recursive=True)
        return found[0] if found else None

    # The steps.

    def ask(self, *arguments):
        self.asked.append(subprocess.Popen(["gpurota", *arguments], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL))

    def memory(self):
        return f"{2 * self.chance.randrange(150, 600)}M"

    def begin(self):
        self.runs = [run for run in self.runs if run.poll() is None]
        if len(self.runs) >= MOST_LEASES:
            return self.finish()
        kind = ["--swap", "--memory", "300M"] if self.chance.random() < 0.15 else [
            "--memory", self.memory()]
        command = self.chance.choice((["sleep", "100"], [self.program, "hold", "20"], [
            "sh", "-c", f"'{self.program}' hold 20 & env -u LD_PRELOAD sleep 100"]))
        group = self.chance.choice((None, *USER_GROUPS))
        self.runs.append(subprocess.Popen(
            ["gpurota", "run", "--gpu-ids", str(self.chance.choice(GPUS)), *kind, "--", *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: group and move(os.getpid(), group)))

    def change(self):
        if lease := self.a_lease():
            self.ask("update", lease["lease_id"], "--memory", self.memory())

    def finish(self):
        lease = self.a_lease()
        if not lease:
            return
        how = self.chance.randrange(3)
        if how == 0:
            self.ask("release", lease["lease_id"])
        elif how == 1 and self.runs:
            self.chance.choice(self.runs).kill()
        else:
            try:
                os.kill(lease["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass

    def begin_pod(self):
        if sum(lease["kind"] == "pod" for lease in self.active()) >= MOST_LEASES:
            return
        self.pod_leases += 1
        uid = self.chance.choice(list(PODS))
        script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "pod_lease.py")
        self.asked.append(subprocess.Popen(
            [sys.executable, "-B", script, "run/control.sock", f"{uid}.{self.pod_leases}", uid,
             str(self.chance.choice(GPUS)), str(2 * self.chance.randrange(150, 600)),
             "swap" if self.chance.random() < 0.15 else "slice"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def finish_pod(self):
        if pods := [lease for lease in self.active() if lease["kind"] == "pod"]:
            self.ask("release", self.chance.choice(pods)["lease_id"])

    def switch_pod(self):
        """Kubelet makes the group of a pod, or removes it."""
        group = self.chance.choice(list(PODS.values()))
        if os.path.isdir(group):
            os.rmdir(group)
        else:
            os.makedirs(group)

    def crash(self):
        time.sleep(self.chance.random() * 0.05)
        self.daemon.send_signal(self.chance.choice((signal.SIGKILL, signal.SIGKILL,
                                                    signal.SIGTERM)))
        self.daemon.wait(PATIENCE)
        time.sleep(self.chance.random() * 0.05)
        self.start_daemon()
        self.wait_for_daemon()

    def leave(self):
        """A process of a lease moves to a group of somebody else's."""
        if lease := self.a_lease():
            children = subprocess.run(["pgrep", "-P", str(lease["pid"])], capture_output=True,
                                      text=True).stdout.split()
            if children:
                move(int(self.chance.choice(children)), TREE + "/alone")

    def enter(self):
        """A process from elsewhere moves to the group of a lease."""
        lease = self.a_lease()
        group = lease and self.group_of(lease)
        if group:
            self.runs.append(subprocess.Popen(
                [self.program, "hold", "10"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                preexec_fn=lambda: move(os.getpid(), group)))

    def set_others(self):
        group = self.chance.choice((*USER_GROUPS, TREE + "/alone"))
        self.set_limit(group, self.chance.choice(GPUS))

    def set_limit(self, group, gpu):
        mib = None if self.chance.random() < 0.4 else 1 + 2 * self.chance.randrange(100, 1500)
        if self.driver.set(group, mib, gpu) != 0:
            return
        self.others.pop((group, gpu), None)
        if mib is not None:
            self.others[group, gpu] = mib

    def switch(self):
        self.enforcement = self.chance.choice(("auto", "auto", "driver", "library"))
        self.configure()
        self.ask("reload")

    def set_on_lease(self):
        """Somebody else sets a limit on the group of a lease. The driver cannot compare and set, so
        this is done only while gpurota sets nothing."""
        self.settle()
        lease = self.a_lease()
        group = lease and self.group_of(lease)
        if not group:
            return
        gpu = lease["gpus"][0]["index"]
        dead = self.chance.random() < 0.5
        if dead:
            self.daemon.kill()
            self.daemon.wait()
        if (group, gpu) in self.others or self.chance.random() < 0.7:
            self.set_limit(group, gpu)
        if dead:
            self.start_daemon()
            self.wait_for_daemon()
        self.settle()

    STEPS = {"begin": 6, "change": 5, "finish": 4, "begin_pod": 3, "finish_pod": 2, "switch_pod": 1,
             "crash": 2, "leave": 1, "enter": 1, "set_others": 2, "switch": 0.5, "set_on_lease": 1}

    def step(self):
        name = self.chance.choices(list(self.STEPS), list(self.STEPS.values()))[0]
        self.counts[name] = self.counts.get(name, 0) + 1
        getattr(self, name)()
        self.check_others()
        if self.chance.random() < 0.1:
            self.settle()

    # The checks.

    def check_others(self):
        for (group, gpu), mib in list(self.others.items()):
            error, found = self.driver.get(group, gpu)
            if error or not os.path.isdir(group):
                del self.others[group, gpu]  # the limit of a lease's group ends with the group
                continue
            assert found == mib or not os.path.isdir(group), (
                f"somebody else's limit of {group} on GPU {gpu} was {mib} and is {found} MiB")

    def expected(self):
        """The limits that there must be, and those of them that are gpurota's."""
        limits, own = dict(self.others), set()
        if self.enforcement == "library":
            return limits, own
        active = self.active()
        for uid, group in PODS.items():
            limits_of_pod, own_of_pod = self.expected_of_pod(uid, group, active)
            limits.update(limits_of_pod)
            own |= own_of_pod
        for lease in active:
            if not lease.get("pid"):
                continue
            group, gpu = self.group_of(lease), lease["gpus"][0]
            place = (group, gpu["index"])
            if lease["share"] != "slice" or place in self.others:
                continue
            assert group, f"{lease['lease_id']} has no control group"
            wanted = (gpu["limit_bytes"] >> 20) + ALLOWANCE
            above = [mib for (other, on), mib in self.others.items()
                     if on == gpu["index"] and group.startswith(other + "/")]
            if not above or min(above) > wanted:
                limits[place] = wanted
                own.add(place)
        return limits, own

    @staticmethod
    def expected_of_pod(uid, group, active):
        limits = {}
        for gpu in GPUS if os.path.isdir(group) else ():
            leases = [lease for lease in active if lease["gpus"][0]["index"] == gpu
                      and (lease.get("allocation") or "").startswith(uid + ".")]
            if leases and all(lease["share"] == "slice" for lease in leases):
                limits[group, gpu] = min(GPU_MEMORY, sum(
                    (lease["gpus"][0]["limit_bytes"] >> 20) + ALLOWANCE for lease in leases))
        return limits, set(limits)

    def found(self):
        limits = {}
        for group in glob.glob(TREE + "/**/", recursive=True):
            for gpu in GPUS:
                error, mib = self.driver.get(group.rstrip("/"), gpu)
                if not error and mib is not None:
                    limits[group.rstrip("/"), gpu] = mib
        return limits

    @staticmethod
    def stored():
        """The limits that gpurotad has stored, without the GPU."""
        try:
            with open("run/driver-limits") as file:
                return sorted(line.rstrip("\n").split(" ", 2)[2] for line in file.readlines()[1:])
        except FileNotFoundError:
            return []

    def complaint(self):
        self.check_others()
        try:
            expected, own = self.expected()
        except AssertionError as error:
            return str(error)
        found = self.found()
        if found != expected:
            return (f"under {self.enforcement}, without limits that are right: there are"
                    f" {dict(found.items() - expected.items())},"
                    f" there should be {dict(expected.items() - found.items())}")
        if self.stored() != sorted(group for group, _ in own):
            return f"stored are {self.stored()}, not {own}"
        return ""

    def settle(self):
        self.wait_for_daemon()
        for asked in self.asked:
            asked.wait(PATIENCE)
        self.asked.clear()
        gpurota("reload")
        # Limits that others set are seen within 10 seconds.
        give_up = time.monotonic() + 15 + PATIENCE
        while complaint := self.complaint():
            assert self.daemon.poll() is None, "the daemon has ended by itself"
            assert time.monotonic() < give_up, complaint
            time.sleep(0.05)
        self.check_others()

    def stop(self):
        self.settle()
        if self.daemon.poll() is None and self.chance.random() < 0.5:
            self.crash()
        gpurota("release", "--all")
        self.settle()
        assert not self.stored(), f"without leases gpurotad has stored {self.stored()}"

    def clean(self):
        for process in (*self.asked, *self.runs, self.daemon):
            end(process)


def main():
    seconds, seed, program, *daemon = sys.argv[1:]
    assert shutil.which("gpurota"), "no gpurota"
    races = Races(int(seed), program, daemon)
    stop_at = time.monotonic() + float(seconds)
    try:
        races.wait_for_daemon()
        while time.monotonic() < stop_at:
            races.step()
        races.stop()
    finally:
        races.clean()
        print(", ".join(f"{count} {name}" for name, count in sorted(races.counts.items())))


main()
