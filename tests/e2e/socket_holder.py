#!/usr/bin/env python3
"""Does what systemd does for gpurotad.socket and Restart=always: socket_holder.py RUNTIME_DIR
PID_FILE COMMAND…

Listens at both sockets of the daemon, starts COMMAND with them, and restarts it whenever it ends.
PID_FILE has the pid of the running process. On SIGTERM the program ends COMMAND with SIGTERM, and
then itself.
"""

import os
import signal
import socket
import sys
from typing import List


def listen(kind: int, path: str) -> int:
    with socket.socket(socket.AF_UNIX, kind) as listener:
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen(4096)
        return os.dup(listener.fileno())


def begin(sockets: List[int], command: List[str]) -> int:
    child = os.fork()
    if child != 0:
        return child
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    high = [os.dup2(each, 100 + i) for i, each in enumerate(sockets)]
    for i, each in enumerate(high):
        os.dup2(each, 3 + i, inheritable=True)
    os.closerange(3 + len(high), 200)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(high)),
                      LISTEN_FDNAMES=":".join(["gpurotad.socket"] * len(high)))
    os.execvp(command[0], command)


def main(folder: str, pid_file: str, *command: str) -> None:
    sockets = [listen(socket.SOCK_STREAM, folder + "/control.sock"),
               listen(socket.SOCK_SEQPACKET, folder + "/tenant.sock")]
    running = 0
    over = False

    def end(*_: object) -> None:
        nonlocal over
        over = True
        if running:
            os.kill(running, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    while not over:
        running = begin(sockets, list(command))
        with open(pid_file + ".new", "w", encoding="ascii") as file:
            file.write("%d\n" % running)
        os.rename(pid_file + ".new", pid_file)
        os.waitpid(running, 0)
        running = 0


main(*sys.argv[1:])
