"""A socket unit of systemd for gpurota-web, in small: listens at a free port of 127.0.0.1, starts
the program with the socket, and restarts the program whenever it ends.

web_port.py COMMAND…: prints the number of the port when it listens. Ends when its standard input
does.
"""
import os
import select
import signal
import socket
import sys


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    print(listener.getsockname()[1], flush=True)
    child = 0
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        if child and os.waitpid(child, os.WNOHANG)[0]:
            child = 0
        if child:
            continue
        child = os.fork()
        if child == 0:
            os.dup2(listener.fileno(), 3)
            os.set_inheritable(3, True)
            os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
            os.execvp(sys.argv[1], sys.argv[1:])
        print(f"started {child}", flush=True)
    if child:
        os.kill(child, signal.SIGTERM)


main()
