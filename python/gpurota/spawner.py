"""Runs inside a lease and starts its commands, which are in the lease as descendants of this
program.

This file is not a module of the package: leases.py starts it as a program, `spawner.py DESCRIPTOR`,
which imports nothing of gpurota. The descriptor is a SOCK_SEQPACKET socket. Each message on it has
five descriptors for one command: a file that says what to start (JSON), a socket for the command,
and its three standard streams. On the command's socket, the spawner answers {"pid"}, {"errno"},
{"wrong"} or {"ended"}, and later {"returncode"}. Each byte received there is a signal for the
command.

After SIGTERM, which all processes of an ended lease get, or when its owner is gone, the spawner
ends as soon as its last command has ended.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from typing import Any, Dict, List

DESCRIPTORS = 5


def receive(control: socket.socket) -> List[int]:
    """The descriptors of one message; an empty list: the owner is gone."""
    data, ancillary, _, _ = control.recvmsg(16, socket.CMSG_SPACE(4 * DESCRIPTORS),
                                            socket.MSG_CMSG_CLOEXEC)
    found: List[int] = []
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found += [int.from_bytes(content[at:at + 4], sys.byteorder)
                      for at in range(0, len(content) - 3, 4)]
    return found


class Command:
    def __init__(self, process: "subprocess.Popen[bytes]", channel: socket.socket) -> None:
        self.process = process
        self.channel = channel


class Spawner:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._commands: Dict[int, Command] = {}
        self._ending = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._on_control)
        self._woken, wake = os.pipe()
        for end in (self._woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._selector.register(self._woken, selectors.EVENT_READ, self._on_signal)

    def run(self) -> None:
        while not (self._ending and self._reap()):
            for key, _ in self._selector.select():
                key.data(key.fileobj)

    def end(self, *_: object) -> None:
        self._ending = True

    def _on_signal(self, _: Any) -> None:
        try:
            os.read(self._woken, 4096)
        except BlockingIOError:
            pass
        self._reap()

    def _on_control(self, _: Any) -> None:
        descriptors = receive(self._control)
        if not descriptors:
            self._selector.unregister(self._control)
            self._ending = True
            for command in self._commands.values():
                command.process.send_signal(signal.SIGTERM)
            return
        try:
            self._start(descriptors)
        finally:
            for each in descriptors:
                os.close(each)

    def _start(self, descriptors: List[int]) -> None:
        file, own, *streams = descriptors
        channel = socket.socket(fileno=os.dup(own))
        if self._ending:
            answer_once(channel, {"ended": True})
            return
        with open(file, "rb", closefd=False) as text:
            text.seek(0)
            spec = json.load(text)
        try:
            process = subprocess.Popen(spec["args"], executable=spec["executable"], cwd=spec["cwd"],
                                       env=spec["env"], stdin=streams[0], stdout=streams[1],
                                       stderr=streams[2], start_new_session=spec[
                                           "start_new_session"])
        except OSError as error:
            answer_once(channel, {"errno": error.errno, "filename": error.filename})
            return
        # A NUL in a word, or a '=' in a name.
        except (ValueError, TypeError, subprocess.SubprocessError) as error:
            answer_once(channel, {"wrong": str(error)})
            return
        say(channel, {"pid": process.pid})
        self._commands[process.pid] = Command(process, channel)
        self._selector.register(channel, selectors.EVENT_READ,
                                lambda _: self._on_channel(process.pid))

    def _on_channel(self, pid: int) -> None:
        command = self._commands[pid]
        try:
            signals = command.channel.recv(64)
        except OSError:
            signals = b""
        if not signals:
            self._selector.unregister(command.channel)  # nobody waits for the command; it continues
        for each in signals:
            try:
                os.kill(pid, each)  # not reaped yet, so no other process has this pid
            except OSError:
                pass  # the command has changed to another user

    def _reap(self) -> bool:
        """Reaps all children that have ended, and reports the end of commands. True: no child is
        left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            command = self._commands.pop(pid, None)
            if command is None:
                continue  # a process that a command left behind
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            command.process.returncode = code
            say(command.channel, {"returncode": code})
            try:
                self._selector.unregister(command.channel)
            except KeyError:
                pass
            command.channel.close()


def say(channel: socket.socket, message: Dict[str, Any]) -> None:
    try:
        channel.send(json.dumps(message).encode())
    except OSError:
        pass  # nobody listens any more


def answer_once(channel: socket.socket, message: Dict[str, Any]) -> None:
    say(channel, message)
    channel.close()


def keep_strays() -> None:
    """Makes processes that a command leaves behind children of this process, so that they stay in
    the lease. Best effort: a control group is more reliable."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    except (ImportError, OSError, AttributeError):
        pass


def main() -> int:
    spawner = Spawner(socket.socket(fileno=int(sys.argv[1])))
    keep_strays()
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, spawner.end)
    # The terminal's signals are for the commands. Use a handler: commands would inherit an ignored
    # signal.
    for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, lambda *_: None)
    spawner.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
