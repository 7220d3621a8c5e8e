"""Connections that send nothing, or nothing valid: the daemon closes each of them.

Runs as any user, with a running daemon. Prints how long the last connection lived.
"""
import time

from wire import Tenant

KINDS = {"silent": lambda connection: None, "refused": lambda connection: connection.hello(0),
         "asks": lambda connection: connection.automatic()}
MOST_SECONDS = 15  # the daemon waits for 10


def main():
    begun = time.monotonic()
    waiting = {}
    for name, use in KINDS.items():
        connection = Tenant()
        connection.connect()
        use(connection)
        waiting[name] = connection
    for name, connection in waiting.items():
        connection.socket.settimeout(max(0.1, begun + MOST_SECONDS - time.monotonic()))
        try:
            assert connection.socket.recv(1024) == b"", f"{name}: it is told something"
        except ConnectionError:
            pass
        except TimeoutError:
            raise AssertionError(f"{name}: it may stay") from None
    print(f"{time.monotonic() - begun:.1f} s")


main()
