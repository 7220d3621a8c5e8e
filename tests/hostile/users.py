"""The two users of these tests, who have no accounts, and functions to become one of them (as
root)."""
import ast
import os
import signal
import struct
import time

MALLORY, ALICE = 54001, 54002


def as_user(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def deep_tree(count, depth=240, own_group=True):
    """Starts `count` processes, all children of one process below `depth` others. Returns the
    process group to kill (without `own_group`: the first process), and the numbers of the `count`
    processes."""
    numbers = os.memfd_create("numbers")
    group = os.fork()
    if group == 0:
        if own_group:
            os.setpgid(0, 0)
        for _ in range(depth):
            if os.fork():
                time.sleep(3600)
        for _ in range(count):
            if os.fork() == 0:
                os.write(numbers, struct.pack("<i", os.getpid()))
                time.sleep(3600)
        time.sleep(3600)
    while os.fstat(numbers).st_size < 4 * count:
        time.sleep(0.05)
    pids = os.pread(numbers, 4 * count, 0)
    os.close(numbers)
    return group, list(struct.unpack(f"<{count}i", pids))


class Doing:
    """A process of `uid` that does `work` and then stays, with everything it holds, until end().
    `said` is the result of work()."""

    def __init__(self, uid, work):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            code = 1
            try:
                as_user(uid)
                os.write(write, f"{work()!r}\n".encode())
                signal.pause()
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as pipe:
            text = pipe.readline()
        assert text, "it failed, see above"
        self.said = ast.literal_eval(text)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
