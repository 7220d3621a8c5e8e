"""A day in a lab: what a hostile user does all day, and a user who measures what that costs others.

    day.py mallory SECONDS SEED    does at random all that these tests know; prints the counts
    day.py alice SECONDS           asks for the status, grows and shrinks; prints how long that took

Runs as root, with a daemon of root's. Each of the two becomes its user. The second user is nobody,
who has an account, and so can have jobs.
"""
import os
import random
import signal
import struct
import subprocess
import sys
import time
import traceback

import turns
from turns import SwapTenant
from users import MALLORY, as_user, deep_tree
from wire import AUTOMATIC, MAGIC, Control, Tenant, processes_question

NOBODY = 65534
GROW, QUERY = 3, 7
MIB = 1 << 20
LEAST = 160 * MIB  # a context takes 128
SUCCEEDED = 3  # the exit code of an attack that got something of another user
NOTE = "\x1b[2J\u202e" + "n" * 1000
# Reservations are on the first GPU, because the other user measures turns on the second one.
RESERVATION = {"kind": "reservation", "memory": {"bytes": LEAST}, "gpu_ids": ["0"], "seconds": 60,
               "note": NOTE}


def control():
    connection = Control()
    connection.connect()
    return connection


def pipelined(method, count, **parameters):
    """A connection with up to `count` pipelined questions, as many as fit. No answer is read."""
    connection = control()
    connection.socket.setblocking(False)
    try:
        for _ in range(count):
            connection.ask_for_stream(method, **parameters)
    except (BlockingIOError, ConnectionError):
        pass
    return connection


def reservation(connection):
    return connection.call("Acquire", request=RESERVATION)


def send(tenant, kind, body):
    tenant.socket.send(struct.pack("<HHI", kind, 0, 7) + body)


# The actions of a hostile user. Each runs for about a second, in a process group of its own.

def connections(chance):
    kept = []
    for _ in range(400):
        kept.append(chance.choice((Control, Tenant))())
        kept[-1].connect()
    time.sleep(chance.random())


def unread(chance):
    kept = [pipelined("Status", 300) for _ in range(20)]
    time.sleep(chance.random())
    return kept


def garbage(chance):
    for _ in range(200):
        tenant, client = Tenant(), control()
        tenant.connect()
        tenant.socket.send(struct.pack("<HHI", chance.randrange(30), chance.randrange(2000), 1)
                           + chance.randbytes(chance.randrange(900)))
        text = b'{"method":"dev.gpurota.' + chance.choice((b"Acquire", b"Update", b"Events",
                                                           b"X")) + b'","parameters":'
        client.socket.sendall(text
                              + chance.choice((b"[" * 300, chance.randbytes(300),
                                               b'{"memory":{"bytes":-1}}}')) + b"\0")


def leases(chance):
    while True:
        connection = control()
        for _ in range(20):
            reply = reservation(connection)
            if reply is None or "error" in reply:
                time.sleep(0.05)
            elif chance.random() < 0.8:
                connection.call("Release", lease_id=reply["parameters"]["lease"]["lease_id"])


def reports(chance):
    while True:
        kept = [pipelined("Report", 50, by=chance.choice(("user", "note", "gpu", "kind")))
                for _ in range(10)]
        kept += [pipelined("Events", 20, follow=chance.random() < 0.5) for _ in range(10)]
        time.sleep(chance.random() / 4)


def examinations(chance):
    """Sends calls that the daemon takes long to answer, as fast as possible."""
    while True:
        kept = [pipelined("Doctor", 50) for _ in range(10)]
        kept += [pipelined("History", 20, points=1000) for _ in range(10)]
        time.sleep(chance.random() / 4)


def strangers(chance):
    """Programs without a lease, at the end of a deep tree of processes, ask for a lease and
    leave."""
    for _ in range(chance.randrange(200)):
        if os.fork():
            time.sleep(3600)
    while True:
        tenant = Tenant()
        tenant.connect()
        tenant.socket.send(struct.pack("<HHI", AUTOMATIC, 0, 7) + struct.pack("<IIQ", MAGIC, 1, 0))
        if chance.random() < 0.5:
            tenant.socket.recv(1024)


def deep(chance):
    """Asks about processes at the end of a deep tree."""
    _, pids = deep_tree(60, depth=chance.randrange(1, 200), own_group=False)
    lease = int(reservation(control())["parameters"]["lease"]["lease_id"][1:])
    tenant = Tenant()
    tenant.connect()
    tenant.hello(lease)
    while True:
        tenant.socket.send(processes_question(pids))
        tenant.socket.recv(1024)


def holders(chance):
    asker = control()
    lease = reservation(asker)["parameters"]["lease"]["lease_id"]
    kept = [pipelined("Hold", 1, lease_id=lease) for _ in range(50)]
    for holder in kept:
        holder.socket.setblocking(False)
        try:
            holder.socket.send(b" " * 100000)  # after a call that is not complete
        except OSError:
            pass
    for i in range(300):
        asker.call("Update", lease_id=lease, note=f"{i}" + "\x01" * 1000)
    if chance.random() < 0.5:
        asker.call("Release", lease_id=lease)


def messages(chance):
    """Many programs ask at full speed; some read no answer."""
    lease = int(reservation(control())["parameters"]["lease"]["lease_id"][1:])
    for _ in range(6):
        if os.fork() == 0:
            tenant = Tenant()
            tenant.connect()
            tenant.hello(lease)
            reads = chance.random() < 0.7
            while True:
                send(tenant, *chance.choice(((QUERY, struct.pack("<II", 0, 0)),
                                             (GROW, struct.pack("<IIQQQ", 0, 0, 0, MIB, MIB)))))
                if reads:
                    tenant.socket.recv(1024)
    time.sleep(1)


def run(*command, size="160M"):
    return subprocess.Popen(["gpurota", "run", "--nonblock", "--gpu-ids", "0", "--memory", size,
                             "--note", NOTE[:200], "--", *command],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            stdin=subprocess.DEVNULL)


def killed(chance):
    programs = [run("sleep", "30") for _ in range(4)]
    time.sleep(chance.random())
    for program in programs:
        program.send_signal(chance.choice((signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)))


def tree(chance):
    run("sh", "-c", "t() { if [ $1 -gt 0 ]; then t $(($1 - 1)) & sleep 30 & fi; wait; }; t 60")
    time.sleep(0.5 + chance.random())


def page(chance):
    run(os.environ["E2E_PAGE_WRITER"], chance.choice(("255", "127", "random")), size="300M")
    time.sleep(1 + chance.random())


def queue(chance):
    kept = [pipelined("Enqueue", 1, ticket=os.urandom(16).hex(),
                      request=dict(kind="run", memory={"bytes": 400 * MIB}, gpu_ids=["0"]))
            for _ in range(80)]
    time.sleep(chance.random())
    return kept


def takes_turns():
    """Makes a tenant of a new lease that takes turns on the first GPU."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")
    reply = control().call("Acquire", request=dict(RESERVATION, swap=True))
    return SwapTenant(int(reply["parameters"]["lease"]["lease_id"][1:]))


def lies(chance):
    """A new tenant claims to have far more memory on the GPU or in host memory than there is."""
    turns.lie(takes_turns(), chance.choice((75 << 30, 1 << 62, 300 * MIB)),
              chance.choice(("out", "resident")))


def silent(chance):
    """Programs keep their turn, each in another way."""
    how = chance.choice(("silent", "busy", "fails", "returns"))
    if os.fork() == 0:
        turns.keep(takes_turns(), 100 * MIB, how)
    turns.keep(takes_turns(), 100 * MIB, how)


def bookings(chance):
    """Books slices for soon and for much later, and claims each as soon as possible."""
    asker = control()
    while True:
        times = [time.gmtime(time.time() + chance.choice((1, 2, 3600, 86400 * 6)))
                 for _ in range(chance.choice((1, 2, 4, 60)))]
        asker.call("Book", begins=[time.strftime("%Y-%m-%dT%H:%M:%SZ", each) for each in times],
                   request=RESERVATION)
        for each in asker.call("ListBookings")["parameters"]["bookings"]:
            asker.call(chance.choice(("Claim", "Cancel")), request_id=each["request_id"])
        time.sleep(chance.random() / 4)


def lists(chance):
    """Asks for every list there is, on many connections that read little of the answers."""
    request = dict(memory={"bytes": LEAST}, gpus=2)
    plain = ("ListTurns", "ListRequests", "ListBookings", "ListJobs", "ListFillers", "GetLimits",
             "ShowConfig",
             "ListProcesses", "ExportJobs", "ListWebSessions", "MakeWebLink", "Status")
    about_request = ("CheckRequest", "FindAlternatives")
    while True:
        kept = [pipelined(chance.choice(plain), 50) for _ in range(8)]
        kept += [pipelined(chance.choice(about_request), 50, request=request) for _ in range(2)]
        time.sleep(chance.random() / 4)


def others(chance):
    """Tries to end, change, cancel or take over what belongs to another user."""
    asker = control()
    pod = {"namespace": "x", "name": "x", "container": "x"}
    deeds = (("Release", {}), ("Update", {"seconds": 1}), ("Update", {"pod": pod}),
             ("Start", {"pid": os.getpid()}), ("GetEnvironment", {}))
    while True:
        for lease in asker.call("Status")["parameters"]["leases"]:
            if lease["uid"] == MALLORY:
                continue
            for method, parameters in deeds:
                reply = asker.call(method, lease_id=lease["lease_id"], **parameters)
                assert reply is None or "error" in reply, (method, reply)
        for each in asker.call("ListRequests")["parameters"]["requests"]:
            if each["uid"] != MALLORY:
                assert "error" in asker.call("Cancel", request_id=each["request_id"])
        time.sleep(chance.random() / 4)


ATTACKS = (connections, unread, garbage, leases, reports, examinations, strangers, deep, holders,
           messages, killed, tree, page, queue,
           lies, silent, bookings, lists, others)


def attack(which, seed):
    """Runs one attack in a process group of its own, which is killed after a while in the middle of
    anything."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        try:
            which(random.Random(seed))
        except (OSError, TypeError, KeyError, SystemExit):
            pass  # the daemon refused the attack, or closed its connection
        except AssertionError:
            traceback.print_exc()
            os._exit(SUCCEEDED)
        time.sleep(0.1)
        os._exit(0)
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass  # the child has set its group itself, or has ended
    return pid


def end(pid):
    """Ends an attack. Returns whether the attack got something of another user."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    _, status = os.waitpid(pid, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == SUCCEEDED


def mallory(seconds, seed):
    chance = random.Random(seed)
    counts = {each.__name__: 0 for each in ATTACKS}
    deadline = time.monotonic() + seconds
    going_on, succeeded = [], 0
    while time.monotonic() < deadline:
        which = chance.choice(ATTACKS)
        counts[which.__name__] += 1
        going_on.append(attack(which, chance.random()))
        time.sleep(chance.random() * 0.8)
        while len(going_on) > 4:
            succeeded += end(going_on.pop(0))
    for pid in going_on:
        succeeded += end(pid)
    print(" ".join(f"{name} {count}" for name, count in counts.items()))
    assert succeeded == 0, f"{succeeded} attacks were given what is another's"


class Times:
    def __init__(self, what):
        self.what, self.all = what, []

    def measure(self, function):
        begun = time.monotonic()
        result = function()
        self.all.append(time.monotonic() - begun)
        return result

    def __str__(self):
        all_ms = [1000 * each for each in sorted(self.all)]
        return (f"{self.what} median {all_ms[len(all_ms) // 2]:.1f} ms, longest {all_ms[-1]:.1f} "
                f"ms of {len(all_ms)}")


def grow(tenant, returned):
    """Requests 1 MiB in exchange for the memory of the last request; there must be an answer."""
    answer = tenant.ask(GROW, struct.pack("<IIQQQ", 0, 0, returned, MIB, MIB))
    assert answer is not None, "the connection of a program has ended"
    kind, _, _, _, status, granted = struct.unpack_from("<HHIIIQ", answer[0])
    assert (kind, status) == (GROW + 1, 0) and granted >= MIB, (kind, status, granted)
    return granted


def alice(seconds):
    statuses, growths = Times("status"), Times("growth")
    asker = control()
    reply = asker.call("Acquire", request=dict(kind="reservation", memory={"bytes": 256 * MIB},
                                               gpu_ids=["0"], seconds=int(seconds) + 600))
    lease = reply["parameters"]["lease"]["lease_id"]
    tenant = Tenant()
    tenant.connect()
    assert tenant.hello(int(lease[1:])) == 0
    deadline, granted = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        status = statuses.measure(lambda: asker.call("Status"))
        assert lease in str(status["parameters"]["leases"]), "the lease is lost"
        granted = growths.measure(lambda: grow(tenant, granted))
        time.sleep(0.02)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end of the lease also ends this program
    assert "error" not in asker.call("Release", lease_id=lease)
    print(f"{statuses}; {growths}")


if __name__ == "__main__":
    if sys.argv[1] == "mallory":
        as_user(MALLORY)
        mallory(float(sys.argv[2]), int(sys.argv[3]))
    else:
        as_user(NOBODY)
        alice(float(sys.argv[2]))
