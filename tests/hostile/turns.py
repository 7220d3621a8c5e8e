"""A tenant of a swap lease that has no memory in the driver, and lies or keeps its grant.

turns.py here LEASE MIB WHERE   reports MIB of memory (WHERE: out, in host memory; or resident, with
                                an open gate), prints "said", and stays connected
turns.py keep LEASE MIB HOW     requests MIB, prints "granted", and then keeps its turn:
    silent    answers no order                  busy      answers each, and reports unfinished work
    fails     reports each eviction as failed   returns   gives each eviction back as not done
"""
import socket
import struct
import sys

import wire

WELCOME_STATUS = 12
HERE, TERMS, GROW, GROWN, GATE, STATUS, MOVE, MOVED = 30, 31, 32, 33, 35, 36, 37, 38
FEATURE_SWAP = 2
OPEN, EVICT = 0, 0
SLOTS = 16


class SwapTenant:
    """A tenant that speaks the messages of src/abi/wire_swap.h, for one GPU."""

    def __init__(self, lease):
        call = wire.Tenant()
        call.connect()
        body = struct.pack("<IIQQ", wire.MAGIC, 1, FEATURE_SWAP,
                           lease) + bytes(32) + struct.pack("<II", 0, 0)
        answer, descriptors = call.ask(wire.HELLO, body.ljust(1016, b"\0"))
        status = struct.unpack_from("<I", answer, WELCOME_STATUS)[0]
        if status != 0:
            sys.exit(f"not welcome: {status}")
        self.call = call
        self.event = socket.socket(fileno=descriptors[1])
        self.event.setblocking(True)  # the daemon made it non-blocking
        self.gate = 0

    def say(self, kind, body, sequence=1):
        self.event.send(struct.pack("<HHI", kind, 0, sequence) + body)

    def here(self, movable, resident, gate_open):
        first = struct.pack("<QQQ", movable, resident, 0)
        self.say(HERE, struct.pack("<II", gate_open, 1) + first.ljust(24 * SLOTS, b"\0")
                 + bytes(8 * SLOTS + 16))

    def status(self, busy, waiting):
        self.say(STATUS, struct.pack("<IIII", self.gate, busy, waiting, 0))

    def moved(self, direction, failed, returned):
        self.say(MOVED, struct.pack("<IIIIQQ", 0, direction, failed, 0, 0, returned))

    def messages(self):
        while message := self.event.recv(1024):
            yield struct.unpack_from("<H",
                                     message)[0], struct.unpack_from("<I", message, 4)[0], message


def lie(tenant, size, where):
    tenant.here(size, size if where == "resident" else 0, 1 if where == "resident" else 0)
    tenant.status(1, 0)
    for kind, _, _ in tenant.messages():
        if kind == TERMS:  # the daemon has accepted the report
            print("said", flush=True)


def keep(tenant, size, how):
    tenant.here(0, 0, 0)
    tenant.status(0, 1)
    tenant.say(GROW, struct.pack("<IIQ", 0, 0, size), 10)
    for kind, sequence, message in tenant.messages():
        if kind == GROWN:
            granted = struct.unpack_from("<I", message, 12)[0] == 0
            print("granted" if granted else "refused", flush=True)
            tenant.status(1, 0)
        elif kind == GATE:
            is_open = struct.unpack_from("<I", message, 8)[0] == OPEN
            if how == "silent" and not is_open:
                continue
            tenant.gate = sequence
            works = is_open or how == "busy"
            tenant.status(1 if works else 0, 0 if is_open else 1)
        elif kind == MOVE and how != "silent":
            _, direction, size_ordered = struct.unpack_from("<IIQ", message, 8)
            if direction == EVICT:
                tenant.moved(EVICT, 1 if how == "fails" else 0, size_ordered)
    print("hung up", flush=True)


def main():
    what, lease, size, how = sys.argv[1], int(sys.argv[2].lstrip("L")), int(
        sys.argv[3]) << 20, sys.argv[4]
    (lie if what == "here" else keep)(SwapTenant(lease), size, how)


if __name__ == "__main__":
    main()
