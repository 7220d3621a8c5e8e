"""A tenant reads none of its answers, and several are outstanding when its socket is full: the
daemon disconnects the tenant, once.

Runs as any user, with a running daemon. The pid in GetInfo shows that it is the same daemon.
"""
import struct
import time

from wire import Control, Tenant

QUERY, CONTEXTS = 7, 9
TRIES = 20


def send(tenant, kind, body):
    tenant.socket.send(struct.pack("<HHI", kind, 0, 7) + body)


def greet(lease):
    tenant = Tenant()
    tenant.connect()
    assert tenant.hello(lease) == 0
    return tenant


def is_closed(tenant):
    """Whether the daemon has closed the connection. Finds out by sending a query, and reads no
    answer."""
    try:
        send(tenant, QUERY, struct.pack("<II", 0, 0))
        time.sleep(0.001)
        return False
    except OSError:
        return True


def capacity(lease):
    """The number of answers that fit the socket of a tenant that does not read."""
    tenant = greet(lease)
    count = 0
    while not is_closed(tenant):
        count += 1
        assert count < 100000
    return count


def main():
    control = Control()
    control.connect()
    before = control.call("GetInfo")["parameters"]["pid"]
    reply = control.call("Acquire",
                         request=dict(kind="reservation", memory={"bytes": 1 << 30}, seconds=600))
    lease = int(reply["parameters"]["lease"]["lease_id"][1:])
    fits = capacity(lease)
    for left in range(TRIES):
        tenant = greet(lease)
        for _ in range(max(0, fits - left)):
            send(tenant, QUERY, struct.pack("<II", 0, 0))
        for count in (1, 2, 3):
            try:
                send(tenant, CONTEXTS, struct.pack("<II", 0, count))
            except OSError:
                break
        time.sleep(0.05)
    after = control.call("GetInfo")["parameters"]["pid"]
    assert before == after, "the daemon was another one"


main()
