"""The n-th call of a kind fails in the daemon, for n = 1, 2, 3, … in each of some scenarios
("pieces"): only the request may fail, and nothing else.

    failing_calls.py KIND STRIDE [PIECE…]
    failing_calls.py KIND STRIDE begin DAEMON…

Runs as root, with a daemon that was started with failing_calls.c and the file $E2E_FAILING_CALLS.
For each piece and n: runs the piece with the failure, where every call may be refused; checks that
the bystanders have lost nothing; and runs the piece without a failure, which must work. A piece is
done when it needs fewer calls than n. Prints the tested values of n.

With `begin`, the start of a daemon is tested: the daemon is killed. The next daemon (DAEMON…), in
which a call fails, restores all leases, or ends and says why. The daemon after that restores all
leases.
"""
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import time

from users import ALICE, Doing
from wire import Control, Tenant

KINDS = {"memory": 1, "threads": 2, "descriptors": 3, "disk": 4}
ORDER = struct.Struct("iiiii")  # struct order of failing_calls.c
PATIENCE = 30
PROGRAM, PROBE = os.environ["E2E_PROGRAM"], os.environ["E2E_SWAP_PROBE"]
MIB = 1 << 20
QUERY = 7


class Refused(Exception):
    """The daemon did not carry out a call: it refused the call, or closed the connection."""


class Failing:
    """The file that tells the daemon which call fails."""

    def __init__(self, path):
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), ORDER.size)

    def arm(self, kind, left, times=1):
        self.memory[4:16] = struct.pack("iii", left, times, 0)
        self.memory[0:4] = struct.pack("i", KINDS[kind])

    def disarm(self):
        """Stops the failures. Returns how many calls have failed."""
        self.memory[0:4] = struct.pack("i", 0)
        return ORDER.unpack(self.memory[:])[3]

    def here(self):
        """The pid of the daemon whose calls fail."""
        return ORDER.unpack(self.memory[:])[4]


def control():
    connection = Control()
    try:
        connection.connect()
    except OSError as why:
        raise Refused(f"cannot connect: {why}") from None
    return connection


def ask(method, connection=None, **parameters):
    """The parameters of the reply."""
    reply = (connection or control()).call(method, **parameters)
    if reply is None:
        raise Refused(f"{method}: hung up on")
    if "error" in reply:
        raise Refused(f"{method}: {reply}")
    return reply["parameters"]


def ask_on(method, **parameters):
    """Retries while the old object of that name is not gone yet: its removal is stored only when
    the disk allows."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return ask(method, **parameters)
        except Refused as why:
            if "just being removed" not in str(why) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def tell(*arguments):
    """Runs a command of the CLI."""
    done = subprocess.run(["gpurota", *arguments], capture_output=True, text=True, check=False,
                          timeout=60)
    if done.returncode != 0:
        raise Refused(f"gpurota {arguments}: {done.stdout}{done.stderr}")
    return done.stdout


def until(what, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.005)


# The pieces.

def reserved(**more):
    return ask("Acquire",
               request=dict(kind="reservation", gpu_ids=["1"], memory={"bytes": 256 * MIB},
                            seconds=86400, **more))["lease"]["lease_id"]


def lease():
    """A lease is made, changed, queried and released."""
    mine = reserved(note="mine", command=["a", "b"])
    ask("Update", lease_id=mine, note="another", memory={"bytes": 320 * MIB}, seconds=900)
    ask("GetEnvironment", lease_id=mine)
    ask("Release", lease_id=mine)


def held():
    """A lease is held by its connection, and ends with it."""
    connection = control()
    mine = ask("Acquire", connection,
               request=dict(gpu_ids=["1"], memory={"bytes": 256 * MIB}))["lease"]["lease_id"]
    connection.ask_for_stream("Hold", lease_id=mine)
    if ask("Status") is None:
        raise Refused("Status")


def run():
    tell("run", "--gpu-ids", "1", "--memory", "1G", "--", PROGRAM, "info")


def in_child(work):
    """Runs work() in another process. Raises Refused, with the reason, if work() returned one."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            os.write(write, (work() or "").encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    if said:
        raise Refused(said)


def be_tenant(of):
    connection = Tenant()
    connection.connect()
    status = connection.hello(int(of[1:]))
    if status != 0:
        return f"hello: {status}"
    asked = [connection.ask(QUERY, struct.pack("<II", 0, 0)) for _ in range(3)]
    return None if all(asked) else "query: hung up on"


def tenant():
    """A program runs under a lease, as far as the daemon can tell."""
    mine = reserved()
    in_child(lambda: be_tenant(mine))
    ask("Release", lease_id=mine)


def queue():
    waits = control()
    waits.ask_for_stream("Enqueue", ticket=os.urandom(16).hex(), request=dict(gpu_ids=["0"]))
    first = waits.next_message()
    if first is None or "error" in first:
        raise Refused(f"Enqueue: {first}")
    request = ask("ListRequests")["requests"]
    if not request:
        raise Refused("nobody waits")
    ask("Cancel", request_id=request[0]["request_id"])
    waits.next_message()


def views():
    for method in ("GetInfo", "Status", "ListProcesses", "ListTurns", "ListRequests", "ListJobs",
                   "ListFillers", "Events", "Report",
                   "Doctor", "Health"):
        ask(method)
    ask("CheckRequest", request=dict(memory={"bytes": 256 * MIB}))


def rules():
    ask("SetGpus", gpu_ids=["1"], quantum="1s")
    ask("SetGpus", gpu_ids=["1"], reset=True)
    ask("Drain", gpu_ids=["1"], reason="for a while")
    ask("Undrain", gpu_ids=["1"])
    ask("Reload")


MACHINE = [{"name": name, "value": os.environ[name]}
           for name in ("LD_LIBRARY_PATH", "GPUROTA_SIM_DIR", "E2E_DIR", "PATH")
           if name in os.environ]


def state_of_job():
    jobs = ask("ListJobs", name="one")["jobs"]
    return jobs[0]["state"] if jobs else "gone"


def job():
    ask_on("AddJob", name="one", command=["sleep", "600"],
           options=["--gpu-ids", "1", "--memory", "256M"], environment=MACHINE)
    until("the job begins or fails", lambda: state_of_job() not in ("starting", "waiting"))
    if state_of_job() != "running":
        raise Refused("the job does not run")
    ask("UpdateJob", name="one", note="changed")
    ask("ReadJobLog", name="one")
    ask("ControlJob", name="one", action="stop")
    ask("ControlJob", name="one", action="remove", force=True)


def filler():
    ask_on("AddFiller", name="one", command=["sleep", "600"], environment=MACHINE, gpu_ids=["1"],
           idle_seconds=1)
    ask("ControlFiller", name="one", action="pause")
    ask("ControlFiller", name="one", action="resume")
    ask("ReadFillerLog", name="one")
    ask("ControlFiller", name="one", action="remove")


def be_automatic():
    connection = Tenant()
    connection.connect()
    answer = connection.automatic()
    return None if answer and answer[0] == 0 else f"automatic: {answer}"


def automatic():
    """A program without a lease is given one."""
    in_child(be_automatic)


def come():
    """Runs a program as a user whom the daemon has not seen before; returns false if it was
    refused."""
    return subprocess.run(["gpurota", "run", "--gpu-ids", "1", "--memory", "1G", "--", PROGRAM,
                           "info"], capture_output=True, check=False,
                          timeout=60, cwd="/").returncode == 0


def newcomer():
    """Runs as a new user each time, because reading a new user's processes needs a thread of its
    own."""
    newcomer.uid += 1
    somebody = Doing(newcomer.uid, come)
    somebody.end()
    if not somebody.said:
        raise Refused("the newcomer was refused")


newcomer.uid = 55000
PIECES = {piece.__name__: piece for piece in (lease, held, run, tenant, queue, views, rules, job,
                                              filler, automatic, newcomer)}


# Leases, programs and a job that exist all the time, and must not be affected.

class Bystanders:
    def __init__(self):
        self.daemon = ask("GetInfo")["pid"]
        ask("SetGpus", gpu_ids=["0"], capacity={"bytes": 1000 * MIB}, quantum="300ms")
        self.programs = [self.start("1", "hold", "--memory", "1G", "--", PROGRAM, "hold", "100")]
        self.programs += [self.start("0", f"swap{seed}", "--swap", "--memory", "700M", "--", PROBE,
                                     "torture", "90000", seed)
                          for seed in ("1", "2")]
        until("the programs have their memory",
              lambda: all(g["granted_bytes"] for l in ask("Status")["leases"] for g in l["gpus"])
              and len(ask("Status")["leases"]) == 3)
        self.reservation = reserved()
        self.greet()
        self.other = Doing(ALICE, reserved)
        ask("AddJob", name="stays", command=["sleep", "7000"],
            options=["--gpu-ids", "1", "--memory", "256M"], environment=MACHINE)
        until("the job has its lease", lambda: self.job()[1] and self.seen()[self.job()[1]][3])
        self.job_seen = self.job()
        self.leases = self.seen()
        assert len(self.leases) == 6, self.leases

    def greet(self):
        self.tenant = Tenant()
        self.tenant.connect()
        assert self.tenant.hello(int(self.reservation[1:])) == 0

    @staticmethod
    def start(gpu, name, *arguments):
        out = open(f"program.{name}", "wb")  # pylint: disable=consider-using-with
        environment = dict(os.environ, PROBE_BUFFERS="32")
        return subprocess.Popen(["nice", "-n", "10", "gpurota", "run", "--gpu-ids", gpu,
                                 *arguments], stdout=out, stderr=out, env=environment)

    @staticmethod
    def seen():
        """For each lease, the properties that do not change by themselves."""
        return {l["lease_id"]: (l["uid"], l["kind"], l["state"], l["pid"],
                                [(g["uuid"], g["limit_bytes"]) for g in l["gpus"]])
                for l in ask("Status")["leases"]}

    @staticmethod
    def job():
        job = next(j for j in ask("ListJobs")["jobs"] if j["name"] == "stays")
        return job["state"], job["lease_id"], len(job["runs"])

    def check(self):
        assert os.path.exists(f"/proc/{self.daemon}") and ask("GetInfo")[
            "pid"] == self.daemon, "the daemon has ended"
        for program in self.programs:
            assert program.poll() is None, f"a program has ended: {program.args}"
        for seed in ("1", "2"):
            with open(f"program.swap{seed}", encoding="utf-8", errors="replace") as out:
                assert not re.search("^line", text := out.read(),
                                     re.M), f"what was read is not what was written: {text}"
        seen = self.seen()
        assert {lease: seen.get(lease)
                for lease in self.leases} == self.leases, f"{seen} was {self.leases}"
        assert self.job() == self.job_seen, f"{self.job()} was {self.job_seen}"
        assert self.tenant.ask(QUERY,
                               struct.pack("<II", 0, 0)) is not None, "a tenant was hung up on"

    def alone(self):
        """Whether only the bystanders have leases, requests, jobs or fillers."""
        return set(self.seen()) == set(self.leases) and not ask("ListRequests")["requests"] and \
            len(ask("ListJobs")["jobs"]) == 1 and not ask("ListFillers")["fillers"]

    def clean_up(self):
        """Removes what an unfinished piece has left, with the calls that its owner would make."""
        for lease_id in set(self.seen()) - set(self.leases):
            tried("Release", lease_id=lease_id)
        for request in ask("ListRequests")["requests"]:
            tried("Cancel", request_id=request["request_id"])
        for each in ask("ListJobs")["jobs"]:
            if each["name"] != "stays":
                tried("ControlJob", name=each["name"], action="remove", force=True)
        for each in ask("ListFillers")["fillers"]:
            tried("ControlFiller", name=each["name"], action="remove")
        until("nobody else has anything", self.alone)

    def end(self):
        self.other.end()
        for program in self.programs:
            program.kill()


def tried(method, **parameters):
    """Makes a call whose object may be gone already."""
    try:
        ask(method, **parameters)
    except Refused as why:
        assert "NotFound" in str(why), why


def disturbed(failing, piece, kind, n, times):
    """Runs a piece while `times` calls of a kind fail in the daemon, from the n-th on. Returns
    whether a call failed."""
    failing.arm(kind, n, times)
    try:
        piece()
    except (Refused, OSError):
        pass
    return failing.disarm()


def rounds(failing, bystanders, kind, name, stride, first):
    """Tests a piece for all values of n. Returns these values."""
    piece, n, tried_n = PIECES[name], first, []
    while True:
        try:
            fired = disturbed(failing, piece, kind, n,
                              int(os.environ.get("E2E_FAILING_TIMES", "1")))
            bystanders.check()
            bystanders.clean_up()
            piece()
            until("a piece leaves nothing behind", bystanders.alone)
        except Exception:
            print(f"{kind} {name}: the {n}-th", flush=True)
            raise
        if not fired:
            return tried_n
        tried_n.append(n)
        n += stride


class Daemons:
    """Daemons one after the other; each is killed before the next one starts."""

    def __init__(self, command):
        self.command = command
        self.process = None

    def begin(self):
        """Starts the next daemon. Returns whether the daemon serves; if not, it has ended and said
        why."""
        if self.process:
            self.process.kill()
            self.process.wait()
        with open("gpurotad.log", "ab") as log:
            self.process = subprocess.Popen([*self.command, "--log-level", "debug"], stdout=log,
                                            stderr=log)
        until("the daemon begins", lambda: self.process.poll() is not None or self.serves())
        if self.process.poll() is None:
            return True
        assert self.process.returncode == 1, f"it ended with {self.process.returncode}"
        return False

    @staticmethod
    def serves():
        try:
            return ask("GetInfo")
        except Refused:
            return False


def beginnings(failing, bystanders, kind, stride, first, daemons):
    """Tests the start of a daemon for all values of n. Returns these values."""
    n, tried_n, refused = first, [], 0
    while True:
        try:
            failing.arm(kind, n)
            refused += not daemons.begin()
            fired = failing.disarm()
            assert daemons.begin(), "a daemon that nothing fails for does not begin"
            bystanders.daemon = daemons.process.pid
            bystanders.greet()
            bystanders.check()
            until("nobody else has anything", bystanders.alone)
        except Exception:
            print(f"{kind} begin: the {n}-th", flush=True)
            raise
        if not fired:
            print(f"{refused} of them did not begin")
            return tried_n
        tried_n.append(n)
        n += stride


def spans(numbers, stride):
    """A sorted list of numbers as text, such as "1-38, 40"."""
    found = []
    for n in numbers:
        if found and n - found[-1][1] == stride:
            found[-1][1] = n
        else:
            found.append([n, n])
    return ", ".join(f"{first}-{last}" if first != last else str(first) for first, last in found)


def open_machine():
    """Lets other users use the simulated machine too."""
    place = os.environ["GPUROTA_SIM_DIR"]
    os.chmod(place, 0o755)
    for name in os.listdir(place):
        os.chmod(os.path.join(place, name), 0o666)


def main():
    open_machine()
    kind, stride, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:] or list(PIECES)
    failing, bystanders = Failing(os.environ["E2E_FAILING_CALLS"]), Bystanders()
    first = int(os.environ.get("E2E_FAILING_FIRST", "1"))
    assert failing.here() == bystanders.daemon, (
        "the daemon was started without failing_calls.c: nothing would fail")
    try:
        if names[0] == "begin":
            os.kill(bystanders.daemon, signal.SIGKILL)
            report(kind, "begin", stride,
                   lambda: beginnings(failing, bystanders, kind, stride, first, Daemons(names[1:])))
            return
        for name in names:
            report(kind, name, stride,
                   lambda name=name: rounds(failing, bystanders, kind, name, stride, first))
    finally:
        failing.disarm()
        bystanders.end()


def report(kind, name, stride, work):
    begun = time.monotonic()
    tried_n = work()
    print(f"{kind} {name}: {len(tried_n)} calls failed, each {stride}th: {spans(tried_n, stride)} "
          f"({time.monotonic() - begun:.1f} s)",
          flush=True)


main()
