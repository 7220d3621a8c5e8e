"""A daemon whose address space may not grow refuses requests, says why, and keeps all leases. When
its address space may grow again, the daemon serves again.

Runs as root, or as the user who has started the daemon.
"""
import resource

from wire import Control

MOST_CALLS = 2000
FREE = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def ask(method, **parameters):
    """The reply or the error; None if there is neither."""
    connection = Control()
    try:
        connection.connect()
        return connection.call(method, **parameters)
    except OSError:
        return None


def size_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmSize")) * 1024


def reserve():
    return ask("Acquire", request=dict(kind="reservation", gpu_ids=["1"], memory={"bytes": 1 << 28},
                                       seconds=600, note="x" * 1000, command=["y" * 8000]))


def main():
    daemon = ask("GetInfo")["parameters"]["pid"]
    resource.prlimit(daemon, resource.RLIMIT_AS, (size_of(daemon), resource.RLIM_INFINITY))
    try:
        told = any("short of memory" in str(reply) for _ in range(MOST_CALLS)
                   for reply in (ask("Status"), reserve()))
        refused = [reply for reply in (ask("Status") for _ in range(100)) if reply is None
                   or "error" in reply]
    finally:
        resource.prlimit(daemon, resource.RLIMIT_AS, FREE)
    assert told, "it never ran short"
    print(f"{len(refused)} of 100 calls were refused then")
    assert ask("GetInfo")["parameters"]["pid"] == daemon, "it was another daemon"
    leases = ask("Status")["parameters"]["leases"]
    assert any(lease["kind"] == "run" and lease["state"] == "active" for lease in leases), leases


main()
