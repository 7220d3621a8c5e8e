#!/usr/bin/env python3
"""Asks gpurotad for its status repeatedly, each time on a new connection: ask_always.py SOCKET
UNTIL

Ends when the file UNTIL is there, and prints how many questions there were, how many failed, and
the longest wait for an answer.
"""

import os
import socket
import sys
import time

CALL = b'{"method": "dev.gpurota.Status", "parameters": {}}\0'


def ask(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(path)
        connection.sendall(CALL)
        answer = b""
        while not answer.endswith(b"\0"):
            piece = connection.recv(1 << 16)
            if not piece:
                raise ConnectionError("closed after %d bytes" % len(answer))
            answer += piece
        if b'"error"' in answer[:40]:
            raise ConnectionError(answer[:200].decode())


def main(path, until):
    asked = failed = 0
    longest = 0.0
    while not os.path.exists(until):
        begun = time.monotonic()
        try:
            ask(path)
        except OSError as error:
            failed += 1
            print("failed: %s" % error, file=sys.stderr)
        longest = max(longest, time.monotonic() - begun)
        asked += 1
        time.sleep(0.002)
    print("%d asked, %d failed, the longest waited %.0f ms" % (asked, failed, longest * 1000))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
