"""A connection outlives the process that made it, and a new process gets the same process number:
the daemon must not take the new process for the peer.

    stale_peer.py CASE DAEMON…

Runs inside a pid namespace of its own, as root; DAEMON… is started there. Mallory parks connections
whose processes have ended. Then the counter of the namespace is reset, so that the next processes
of other users get the same numbers.
"""
import os
import subprocess
import sys
import time

from users import ALICE, MALLORY, as_user
from wire import Control, Tenant

PARKED = 40
ADMITTED = 0


def start(uid, *command):
    return subprocess.Popen(command, preexec_fn=lambda: as_user(uid), stdout=subprocess.DEVNULL,
                            cwd="/")


def park(kind, use):
    """Makes connections of MALLORY's processes that have ended: {pid: connection}. Each connection
    was passed to `use` while its process lived."""
    parked = {}
    for _ in range(PARKED):
        connection = kind()
        pid = os.fork()
        if pid == 0:
            try:
                as_user(MALLORY)
                connection.connect()
                use(connection)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        parked[pid] = connection
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as counter:
        counter.write(str(min(parked) - 1))
    return parked


def mallorys(work):
    """Runs `work` in a process of MALLORY's that lives on; returns its result, which the process
    writes to a pipe."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        as_user(MALLORY)
        os.write(write, str(work()).encode())
        time.sleep(600)
        os._exit(0)
    return os.read(read, 1000).decode()


def reserve():
    control = Control()
    control.connect()
    reply = control.call("Acquire",
                         request=dict(kind="reservation", memory={"bytes": 1 << 20}, seconds=600))
    return int(reply["parameters"]["lease"]["lease_id"][1:])


def no_stranger_is_killed():
    lease = int(mallorys(reserve))
    parked = park(Tenant, lambda connection: connection.hello(0))
    victims = [start(ALICE, "sleep", "600") for _ in range(PARKED)]
    hit = [v for v in victims if v.pid in parked]
    assert len(hit) > PARKED // 2, "the numbers were not had again"
    for victim in hit:
        status = parked[victim.pid].hello(lease)
        assert status != ADMITTED, f"a process that has ended is admitted as {victim.pid}"
    subprocess.run(["gpurota", "release", f"L{lease}"], check=True)
    deadline = time.monotonic() + 10
    while "L1" in subprocess.run(["gpurota", "status"], check=True, capture_output=True,
                                 text=True).stdout:
        assert time.monotonic() < deadline, "the lease does not end"
        time.sleep(0.05)
    assert all(v.poll() is None for v in hit), "a stranger was killed with the lease"


def owner_of(pid):
    """The uid of a process; None if the process has ended."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:
        return None


def no_token_is_given_away():
    parked = park(Tenant, lambda connection: connection.automatic())
    start(ALICE, "gpurota", "run", "--memory", "2G", "--", "sh", "-c",
          "while sleep 0.05; do :; done")
    deadline = time.monotonic() + 10
    tried = 0
    while tried < 200 or time.monotonic() < deadline - 8:
        for pid, connection in list(parked.items()):
            if owner_of(pid) != ALICE:
                continue
            tried += 1
            answer = connection.automatic()
            assert answer is None or (answer[0] != ADMITTED
                                      and not answer[1]), f"{answer} for {pid}"
            if answer is None:
                del parked[pid]
        if not parked:
            break
        assert time.monotonic() < deadline, f"only {tried} tries"
        time.sleep(0.001)
    assert tried > 0, "the numbers were not had again"


def nobody_asks_in_anothers_name():
    parked = park(Control, lambda connection: connection.call("GetInfo"))
    victims = [start(ALICE, "sleep", "600") for _ in range(PARKED)]
    hit = [v for v in victims if v.pid in parked]
    assert len(hit) > PARKED // 2, "the numbers were not had again"
    for victim in hit:
        answer = parked[victim.pid].call("Acquire", request=dict(memory={"bytes": 1 << 20}))
        assert answer is None or "error" in answer, f"a lease is held by {victim.pid}: {answer}"
        assert parked[victim.pid].call("GetInfo") is None or not any(
            v.poll() is not None for v in hit)
    leases = subprocess.run(["gpurota", "status", "--json"], check=True, capture_output=True,
                            text=True).stdout
    assert '"leases":[]' in leases.replace(" ", "").replace("\n", ""), leases


CASES = {case.__name__: case
         for case in (no_stranger_is_killed, no_token_is_given_away, nobody_asks_in_anothers_name)}


def main():
    case, daemon = CASES[sys.argv[1]], sys.argv[2:]
    with open("gpurotad.log", "ab") as log, subprocess.Popen(daemon, stdout=log,
                                                             stderr=log) as running:
        try:
            while subprocess.run(["gpurota", "status"], capture_output=True,
                                 check=False).returncode != 0:
                time.sleep(0.05)
            case()
        finally:
            running.terminate()


main()
