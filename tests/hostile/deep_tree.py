"""Tenants ask about processes below a deep tree, several at once, and get right answers.

    deep_tree.py

Runs as the user of the lease in $GPUROTA_LEASE, as a process of that lease. The tenants ask about
processes of the lease, which are below this process and 240 others, and about some that belong to
no lease: the daemon, init, and a process number that is not in use.
"""
import os
import signal
import struct

from users import deep_tree
from wire import Control, Tenant, processes_question

MEMBERS, TENANTS = 21, 8


def no_process():
    """A process number that is not in use, and will not be used soon."""
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
        return int(file.read()) - 1


def answers(tenant, count):
    """By sequence number, the processes that belong to the lease, in the order in which the answers
    came."""
    found = {}
    for _ in range(count):
        kind, _, sequence, number, _ = struct.unpack_from("<HHIII",
                                                          answer := tenant.socket.recv(1024))
        assert kind == MEMBERS, kind
        found[sequence] = list(struct.unpack_from(f"<{number}i", answer, 16))
    return found


def main():
    lease = int(os.environ["GPUROTA_LEASE"][1:])
    control = Control()
    control.connect()
    others = [control.call("GetInfo")["parameters"]["pid"], no_process(), 1]
    group, mine = deep_tree(30)
    asked = [pid for pair in zip(mine, others * 10) for pid in pair]
    tenants = []
    for _ in range(TENANTS):
        tenants.append(Tenant())
        tenants[-1].connect()
        assert tenants[-1].hello(lease) == 0
    for tenant in tenants:
        for sequence, pids in ((1, asked), (2, others), (3, mine)):
            tenant.socket.send(processes_question(pids, sequence))
    if "DEEP_TREE_LEAVES" in os.environ:
        os.killpg(group, signal.SIGKILL)
        return  # nobody reads the answers
    for tenant in tenants:
        told = answers(tenant, 3)
        assert list(told) == [1, 2, 3] and told == {1: mine, 2: [], 3: mine}, told
    os.killpg(group, signal.SIGKILL)


main()
