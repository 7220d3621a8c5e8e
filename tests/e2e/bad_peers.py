#!/usr/bin/env python3
"""Peers of gpurota-web, most of which are hostile: bad_peers.py FILE

Listens at a port of 127.0.0.1 for each kind, until it is ended, and writes "KIND PORT" lines to
FILE when all ports are open. The kind "away" redirects to the kind "trap". If a client follows the
redirect, the file "seen.trap" has the request.
"""

import json
import os
import socket
import sys
import threading
import time

TOTALS = {"version": "1", "daemon_up": True, "gpus": 4, "free": 4, "shared": 0, "full": 0,
          "unavailable": 0, "leases": 0, "waiting": 0,
          "memory_bytes": 4 << 30, "used_bytes": 0, "available_bytes": 4 << 30,
          "utilisation_percent": 0,
          "models": [{"name": "H100", "gpus": 4, "free": 4}]}


def answer(body, status="200 OK", more=""):
    return (f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}"
            "Connection: close\r\n\r\n").encode() + body


def totals(**changes):
    return answer(json.dumps({**TOTALS, **changes}).encode())


def flood(connection, head):
    connection.sendall(head)
    piece = b"x" * (1 << 20)
    for _ in range(1024):
        connection.sendall(piece)


def drip(connection):
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000:
        connection.sendall(bytes([byte]))
        time.sleep(0.5)


PORTS = {}
KINDS = {
    "mute": lambda connection: connection.recv(1),  # until the peer closes the connection
    "drip": drip,
    "flood": lambda connection: flood(connection,
                                      b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"),
    "endless": lambda connection: flood(connection, b"HTTP/1.1 200 OK\r\n\r\n"),
    "head": lambda connection: flood(connection, b"HTTP/1.1 200 OK\r\nX: "),
    "noise": lambda connection: connection.sendall(os.urandom(4096)),
    "malformed": lambda connection: connection.sendall(answer(b'{"version": "1", "gpus": ')),
    "nested": lambda connection: connection.sendall(answer(b"[" * 60000)),
    "liar": lambda connection: connection.sendall(totals(free=4000)),
    "script": lambda connection: connection.sendall(totals(
        version="<script>alert(1)</script>",
        models=[{"name": "<img src=x onerror=alert(1)>", "gpus": 4, "free": 4}])),
    "away": lambda connection: connection.sendall(answer(
        b"", "302 Found", f"Location: http://127.0.0.1:{PORTS['trap']}/\r\n")),
    "trap": lambda connection: connection.sendall(totals()),
    "fair": lambda connection: connection.sendall(totals(gpus=8, free=5, shared=1, full=1,
                                                         unavailable=1, leases=4, waiting=1,
                                                         utilisation_percent=37,
                                                         memory_bytes=640 << 30,
        used_bytes=190 << 30, available_bytes=432 << 30, models=[{"name": "NVIDIA H100 80GB HBM3",
                                                                  "gpus": 8, "free": 5}],
                                                         users=["alice", "bob"])),
    "many": lambda connection: connection.sendall(totals(gpus=64, free=40, shared=4, full=18,
                                                         unavailable=2, leases=33, waiting=0,
                                                         utilisation_percent=22,
                                                         memory_bytes=64 * 80 << 30,
        used_bytes=1400 << 30, available_bytes=3300 << 30,
                                                         models=[{"name": "NVIDIA A100-SXM4-80GB",
                                                                  "gpus": 64, "free": 40}],
                                                         users=["carol", "dave", "erin"])),
    "zipped": lambda connection: connection.sendall(answer(b"\x1f\x8b\x08\0" * 100,
                                                           more="Content-Encoding: gzip\r\n")),
}


def serve(kind, listener):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=talk, args=(kind, connection), daemon=True).start()


def talk(kind, connection):
    try:
        asked = connection.recv(65536)
        if kind == "trap":
            with open("seen.trap", "wb") as file:
                file.write(asked)
        KINDS[kind](connection)
    except OSError:
        pass  # the peer has closed the connection
    finally:
        connection.close()


def main(path):
    listeners = {}
    for kind in KINDS:
        listeners[kind] = socket.create_server(("127.0.0.1", 0))
        PORTS[kind] = listeners[kind].getsockname()[1]
    for kind, listener in listeners.items():
        threading.Thread(target=serve, args=(kind, listener), daemon=True).start()
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.writelines(f"{kind} {port}\n" for kind, port in PORTS.items())
    os.rename(path + ".new", path)
    threading.Event().wait()


main(sys.argv[1])
