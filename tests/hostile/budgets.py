"""One user takes as much as possible of the daemon's resources; others must be served all the same.

    budgets.py CASE

Runs as root, with a daemon of root's whose limits the case of budgets.bats has set.
"""
import ast
import json
import os
import signal
import sys
import time

from users import ALICE, MALLORY, Doing
from wire import Control, Tenant

ADMITTED, BUSY = 0, 4


def control():
    connection = Control()
    connection.connect()
    return connection


def reserve(count=1):
    """Makes leases of the calling user; returns them, and the connection."""
    connection = control()
    leases = []
    for _ in range(count):
        reply = connection.call("Acquire",
                                request=dict(kind="reservation", memory={"bytes": 1 << 20},
                                             seconds=600))
        assert "error" not in reply, reply
        leases.append(int(reply["parameters"]["lease"]["lease_id"][1:]))
    return leases


def greet(lease, kept):
    """The status that the daemon sends to a new tenant, or None if it closes the connection. The
    connection is added to `kept`."""
    tenant = Tenant()
    tenant.connect()
    answer = tenant.hello(lease)
    kept.append(tenant)
    return answer


def is_served(lease):
    """Whether the user of the lease gets answers, and can have a program under the lease."""
    assert "error" not in control().call("Status")
    return greet(lease, []) == ADMITTED


def greetings(leases, processes, stay):
    """Starts this many processes, each a tenant of all the leases, and counts the answers. The
    processes live on; with `stay`, they also stay connected."""
    counts = {}
    for _ in range(processes):
        read, write = os.pipe()
        if os.fork() == 0:
            kept = []
            answers = [greet(lease, kept) for lease in leases]
            os.write(write, f"{answers!r}\n".encode())
            if not stay:
                kept.clear()
            signal.pause()
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as pipe:
            for answer in ast.literal_eval(pipe.readline()):
                counts[answer] = counts.get(answer, 0) + 1
    return counts


def descriptors():
    alices = Doing(ALICE, reserve).said[0]

    def fill():
        os.setpgid(0, 0)
        counts = greetings(reserve(10), 40, stay=False)
        connections = []
        for _ in range(200):
            connections.append(control())
            answer = connections[-1].call("GetInfo")
            if answer is None or "error" in answer:
                return counts, answer
        return counts, "was never refused"

    mallory = Doing(MALLORY, fill)
    try:
        counts, refusal = mallory.said
        assert 0 < counts.get(ADMITTED, 0) < 400, counts
        assert "descriptors" in str(refusal) and "hidepid" not in str(refusal), refusal
        assert Doing(ALICE, lambda: is_served(alices)).said, "a user with a lease is not served"
        assert "error" not in control().call("Status"), "root is not served"
    finally:
        os.killpg(mallory.pid, signal.SIGKILL)


def tenants():
    alices = Doing(ALICE, reserve).said[0]

    def many_tenants():
        os.setpgid(0, 0)
        return greetings(reserve(2), 8, stay=True)

    mallory = Doing(MALLORY, many_tenants)
    try:
        assert mallory.said == {ADMITTED: 10, BUSY: 6}, mallory.said
        assert Doing(ALICE, lambda: is_served(alices)).said, "another user pays for it"
    finally:
        os.killpg(mallory.pid, signal.SIGKILL)


def resident_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024


def last_note(holder):
    """The number in the last note that the daemon sends to a holder."""
    holder.socket.settimeout(0.5)
    text = b""
    try:
        while more := holder.socket.recv(1 << 20):
            text += more
    except TimeoutError:
        pass
    note = json.loads(text.split(b"\0")[-2])["parameters"]["lease"]["note"]
    return int(note.split("\x01")[0])


def unread():
    daemon = control().call("GetInfo")["parameters"]["pid"]
    before = resident_mib(daemon)

    def hold_and_change():
        asker = control()
        reply = asker.call("Acquire", request=dict(kind="reservation", memory={"bytes": 1 << 20},
                                                   seconds=600, command=["x" * 8000]))
        lease = reply["parameters"]["lease"]["lease_id"]
        holders = []
        for _ in range(80):
            holders.append(control())
            holders[-1].ask_for_stream("Hold", lease_id=lease)
        for i in range(200):
            reply = asker.call("Update", lease_id=lease, note=f"{i}" + "\x01" * 1000)
            assert "error" not in reply, reply
        return resident_mib(daemon), last_note(holders[0])

    took, note = (mallory := Doing(MALLORY, hold_and_change)).said
    try:
        assert took - before < 60, f"from {before} to {took} MiB"
        assert note == 199, f"a reader that was behind heard of note {note} last"
        assert "error" not in Doing(ALICE, lambda: control().call("Status")).said
    finally:
        mallory.end()


def flood():
    def connect_and_hang_up():
        count, end = 0, time.monotonic() + 3
        while time.monotonic() < end:
            tenant = Tenant()
            tenant.socket.setblocking(False)
            try:
                tenant.connect()
                tenant.socket.send(b"x" * 8)
                count += 1
            except OSError:
                pass
            tenant.socket.close()
        return count

    mallory = Doing(MALLORY, connect_and_hang_up)
    mallory.end()
    assert mallory.said > 300, mallory.said


def new_leases():
    def loop():
        connection, errors = control(), []
        for _ in range(25):
            reply = connection.call("Acquire",
                                    request=dict(kind="reservation", memory={"bytes": 1 << 20},
                                                 seconds=600))
            if "error" in reply:
                errors.append(reply)
            else:
                connection.call("Release", lease_id=reply["parameters"]["lease"]["lease_id"])
        return errors

    mallory = Doing(MALLORY, loop)
    mallory.end()
    assert len(mallory.said) == 5, mallory.said
    assert "max_new_leases_per_hour" in str(mallory.said[0]) and "gpurota reserve" in str(
        mallory.said[0]), mallory.said
    Doing(ALICE, lambda: reserve(5)).end()
    reserve(25)  # root's


CASES = {case.__name__: case for case in (descriptors, tenants, unread, flood, new_leases)}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
