"""A command in a lease, with an interface like subprocess.Popen. The command is not a child of this
process, but a descendant of its lease's first process.

Any thread may wait for, poll and signal the command.
"""

import array
import functools
import io
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import LeaseEnded

Argument = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Arguments = Union[str, bytes, Sequence[Argument]]
Stream = Union[None, int, IO[Any]]


class TextOptions:
    """Whether standard streams are text: they are bytes unless one of these arguments asks for
    text."""

    def __init__(self, text: bool, encoding: Optional[str], errors: Optional[str]) -> None:
        self.is_text = bool(text or encoding or errors)
        self.encoding, self.errors = encoding, errors

    def file(self, descriptor: int, mode: str) -> IO[Any]:
        binary = open(descriptor, mode + "b")
        if not self.is_text:
            return binary
        return io.TextIOWrapper(binary, encoding=self.encoding, errors=self.errors,
                                write_through=mode == "w")


class _Streams:
    """The three standard streams of a command, and our ends of those that are pipes."""

    def __init__(self, stdin: Stream, stdout: Stream, stderr: Stream, text: TextOptions) -> None:
        self.given: List[int] = []
        self.ours: List[Optional[IO[Any]]] = [None, None, None]
        self._owned: List[int] = []
        try:
            for number, stream in enumerate((stdin, stdout, stderr)):
                self.given.append(self._open(number, stream, text))
        except BaseException:
            self.close(True)
            raise

    def _open(self, number: int, stream: Stream, text: TextOptions) -> int:
        if stream is None:
            return number
        if stream == subprocess.STDOUT and number == 2:
            return self.given[1]
        if stream == subprocess.DEVNULL:
            self._owned.append(os.open(os.devnull, os.O_RDWR))
            return self._owned[-1]
        if stream == subprocess.PIPE:
            reading, writing = os.pipe()
            theirs, ours = (reading, writing) if number == 0 else (writing, reading)
            self._owned.append(theirs)
            self.ours[number] = text.file(ours, "w" if number == 0 else "r")
            return theirs
        return stream if isinstance(stream, int) else stream.fileno()

    def close(self, ours_too: bool) -> None:
        for descriptor in self._owned:
            os.close(descriptor)
        self._owned = []
        for file in self.ours:
            if ours_too and file is not None:
                file.close()


def _text(word: Argument) -> str:
    return os.fsdecode(word)


def start(control: socket.socket, args: Arguments, environment: Mapping[str, str], *, stdin: Stream,
          stdout: Stream, stderr: Stream, shell: bool, cwd: Optional[Argument], text: TextOptions,
          start_new_session: bool) -> "Process":
    """Starts a command. Raises OSError like subprocess.Popen, and LeaseEnded if the lease has
    ended."""
    words = [_text(args)] if isinstance(args, (str, bytes)) else [_text(each) for each in args]
    if not words:
        raise ValueError("the command is empty")
    spec = {
        "args": ["/bin/sh", "-c", *words] if shell else words,
        "executable": None,
        "cwd": _text(cwd) if cwd is not None else os.getcwd(),
        "env": {_text(name): _text(value) for name, value in environment.items()},
        "start_new_session": start_new_session,
    }
    streams = _Streams(stdin, stdout, stderr, text)
    channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with theirs, open(os.memfd_create("gpurota-command"), "w+b") as file:
            file.write(json.dumps(spec).encode("ascii"))
            file.flush()
            descriptors = array.array("i", [file.fileno(), theirs.fileno(), *streams.given])
            try:
                control.sendmsg([b"start"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            except (BrokenPipeError, ConnectionResetError):
                raise LeaseEnded("the lease has ended") from None
        streams.close(False)
        answer = json.loads(channel.recv(65536) or b'{"ended": true}')
        if "errno" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]), answer["filename"])
        if "wrong" in answer:
            raise ValueError(answer["wrong"])
        if "pid" not in answer:
            raise LeaseEnded("the lease has ended")
    except BaseException:
        _give_up(channel)
        streams.close(True)
        raise
    return Process(args, answer["pid"], channel, streams.ours)


def _give_up(channel: socket.socket) -> None:
    """Kills a command whose start was interrupted: it may already run, and nobody would wait for
    it."""
    try:
        channel.send(bytes([signal.SIGKILL]))
    except OSError:
        pass  # the command has not been started
    channel.close()


class Process:
    """The parts of subprocess.Popen that programs use most. If the end of the lease ended the
    command, `returncode` is that of the signal."""

    def __init__(self, args: Arguments, pid: int, channel: socket.socket,
                 streams: List[Optional[IO[Any]]]) -> None:
        self.args = args
        self._shown: Any = args  # for subprocess.TimeoutExpired
        self.pid = pid
        self.returncode: Optional[int] = None
        self.stdin, self.stdout, self.stderr = streams
        self._channel = channel  # closed once the return code is known
        self._lock = threading.RLock()  # guards the channel and the return code

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()

    def __repr__(self) -> str:
        return "<gpurota.Process %d: returncode %s, args %r>" % (
            self.pid, self.returncode, self.args)

    def poll(self) -> Optional[int]:
        """The return code of the command, or None while it runs."""
        with self._lock:
            if self.returncode is None:
                try:
                    data = self._channel.recv(4096, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return None
                except ConnectionResetError:
                    data = b""
                # No data: the spawner was killed, and the lease's other processes with it.
                self.returncode = json.loads(data)["returncode"] if data else -signal.SIGKILL
                self._channel.close()
            return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(self._shown, timeout or 0)
            poller = select.poll()
            with self._lock:
                if self.returncode is None:
                    poller.register(self._channel, select.POLLIN)
            # Waits for at most a second, because another thread may read the return code meanwhile.
            poller.poll(1000 if left is None else min(1000, left * 1000 + 1))
        return code

    def send_signal(self, number: int) -> None:
        with self._lock:
            if self.poll() is None:
                try:
                    self._channel.send(bytes([number]))
                except OSError:
                    pass  # the command has just ended

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, input: Union[str, bytes, None] = None,
                    timeout: Optional[float] = None) -> Tuple[Any, Any]:
        """Writes `input`, reads the output, and waits for the end of the command. After
        TimeoutExpired, the output is lost."""
        deadline = None if timeout is None else time.monotonic() + timeout
        printed: Dict[str, Any] = {}
        tasks: List[Callable[[], None]] = []
        for name, stream in (("stdout", self.stdout), ("stderr", self.stderr)):
            if stream is not None:
                tasks.append(functools.partial(_drain, stream, name, printed))
        if self.stdin is not None:
            tasks.append(functools.partial(_feed, self.stdin, input))
        threads = [threading.Thread(target=task, daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(None if deadline is None else max(0, deadline - time.monotonic()))
            if thread.is_alive():
                raise subprocess.TimeoutExpired(self._shown, timeout or 0)
        self.wait(None if deadline is None else max(0, deadline - time.monotonic()))
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        return printed.get("stdout"), printed.get("stderr")


def _drain(stream: IO[Any], name: str, printed: Dict[str, Any]) -> None:
    printed[name] = stream.read()


def _feed(stream: IO[Any], data: Union[str, bytes, None]) -> None:
    try:
        if data:
            stream.write(data)
        stream.close()
    except (BrokenPipeError, ValueError):
        pass  # the command does not read all of its input: no error, as with subprocess
