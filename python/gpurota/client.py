"""A connection to gpurotad: Varlink, which is one JSON object and a NUL byte in each direction.

A connection is for one thread at a time. After any error other than Refused, the connection must
not be used again.
"""

import json
import os
import pwd
import socket
import stat
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type, TypeVar

from . import types
from .decode import decode
from .errors import Denied, Error, LimitExceeded, NoDaemon, NoGpu, ProtocolError, TimedOut, error_of

T = TypeVar("T")

INTERFACE = "dev.gpurota."
SYSTEM_RUNTIME_DIR = "/run/gpurota"
# The daemon's limit for the size of a call, and a size beyond the daemon's longest answer.
MOST_CALL_BYTES = 64 * 1024
MOST_ANSWER_BYTES = 64 * 1024 * 1024
# A running daemon answers from memory, but a daemon whose driver was loading has been seen to take
# seconds.
ANSWER_TIMEOUT = 30.0
CONNECT_TIMEOUT = 5.0
RECONNECT_EVERY = 0.25
# A call is tried this many times: if the daemon closes the connection each time, it is not just
# being restarted.
MOST_TRIES = 3


def _is_own_folder(path: str) -> bool:
    """Whether the folder is this user's own: anybody can make a folder of that name in /tmp and
    listen in it."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.geteuid() and not info.st_mode & 0o022


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(CONNECT_TIMEOUT)
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


def find_socket(runtime_dir: Optional[str] = None) -> str:
    """The socket of the daemon for this user, found as the command `gpurota` finds it."""
    chosen = runtime_dir or os.environ.get("GPUROTA_RUNTIME_DIR")
    if chosen:
        return os.path.join(os.path.abspath(chosen), "control.sock")
    if os.geteuid() != 0:
        own = ["/tmp/gpurota-%d" % os.geteuid()]
        session = os.environ.get("XDG_RUNTIME_DIR", "")
        if session.startswith("/") and _is_own_folder(session):
            own.insert(0, session + "/gpurota")
        for folder in own:
            if _is_own_folder(folder) and _answers(folder + "/control.sock"):
                return folder + "/control.sock"
    return SYSTEM_RUNTIME_DIR + "/control.sock"


def _not_running(path: str) -> NoDaemon:
    if os.environ.get("GPUROTA_RUNTIME_DIR"):
        return NoDaemon("no gpurotad is running at %s: start 'gpurotad --runtime-dir %s', or unset "
                        "GPUROTA_RUNTIME_DIR to use the machine's daemon"
                        % (path, os.path.dirname(path)))
    return NoDaemon("no gpurotad is running (looked at %s): ask an administrator for 'systemctl "
                    "start gpurotad', or start 'gpurotad' as yourself" % path)


def _not_allowed(path: str) -> Denied:
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = "USER"
    return Denied("no access to %s: 'gpurota doctor' says whom it is for. If that is a group, an "
                  "administrator adds you with 'usermod -aG GROUP %s'; then log in again"
                  % (path, user))


class HungUp(NoDaemon):
    """The daemon closed the connection without an answer. `unread`: it had not read the call
    either."""

    def __init__(self, unread: bool) -> None:
        super().__init__("gpurotad closed the connection before it answered: it was stopped, or "
                         "this user has too many connections. Try again")
        self.unread = unread



def _error(name: str, parameters: Dict[str, Any]) -> Error:
    error = error_of(name, parameters)
    if isinstance(error, NoGpu) and parameters.get("wait_reason") is not None:
        try:
            error.wait_reason = decode(types.Reason, parameters["wait_reason"])
        except ProtocolError:
            pass  # the error's message has the reason, too
    return error

class Connection:
    """A connection to the daemon. Raises NoDaemon if none listens there, and Denied if this user
    has no access."""

    def __init__(self, path: Optional[str] = None, timeout: float = CONNECT_TIMEOUT) -> None:
        self.path = path or find_socket()
        self._buffer = bytearray()
        self._searched = 0  # the first bytes of the buffer, which have no NUL
        self._unread = False  # true: the daemon has not read the last call
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(self.path)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            self.close()
            raise _not_running(self.path) from None
        except PermissionError:
            self.close()
            raise _not_allowed(self.path) from None
        except (socket.timeout, BlockingIOError):
            self.close()
            raise TimedOut("gpurotad does not answer at %s" % self.path) from None
        except OSError as error:
            self.close()
            raise Error("cannot connect to %s: %s" % (self.path, error)) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, parameters: Dict[str, Any], reply: Type[T],
             timeout: float = ANSWER_TIMEOUT) -> T:
        self.send(method, parameters, False)
        return self.receive(reply, time.monotonic() + timeout)[0]

    def send(self, method: str, parameters: Dict[str, Any], more: bool) -> None:
        """Sends a call, without the parameters that are None. With `more`, a stream of answers
        follows, and no other call may be sent."""
        message: Dict[str, Any] = {"method": INTERFACE + method,
                                   "parameters": {name: value for name, value in parameters.items()
                                                  if value is not None}}
        if more:
            message["more"] = True
        # Python represents a byte that is not UTF-8 as a lone surrogate, which the daemon would not
        # accept as JSON.
        data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\0"
        if len(data) > MOST_CALL_BYTES:
            raise LimitExceeded("this is too long to be sent to gpurotad (%d KiB of %d): shorten it"
                                % (len(data) // 1024, MOST_CALL_BYTES // 1024))
        self._socket.settimeout(ANSWER_TIMEOUT)
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            self._unread = True  # receive() gets the reason of a refusal
        except socket.timeout:
            raise TimedOut("gpurotad does not take the call: its log says more (journalctl -u "
                           "gpurotad)") from None

    def receive(self, reply: Type[T], deadline: Optional[float] = None) -> Tuple[T, bool]:
        """The next answer, and whether others follow. Raises TimedOut at the deadline, a time of
        time.monotonic()."""
        while (end := self._buffer.find(b"\0", self._searched)) < 0:
            self._searched = len(self._buffer)
            self._fill(deadline)
        message = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        try:
            answer = json.loads(message)
        except (ValueError, RecursionError):
            raise ProtocolError("%s did not answer in JSON: is something else listening there?"
                                % self.path) from None
        if not isinstance(answer, dict):
            raise ProtocolError("%s did not answer with an object: is something else listening "
                                "there?" % self.path)
        parameters = answer.get("parameters")
        if parameters is None:
            parameters = {}
        if isinstance(answer.get("error"), str):
            raise _error(answer["error"], parameters if isinstance(parameters, dict) else {})
        return decode(reply, parameters), answer.get("continues") is True

    def stream(self, method: str, parameters: Dict[str, Any], reply: Type[T]) -> Iterator[T]:
        """Sends a call, and yields each answer as it arrives."""
        self.send(method, parameters, True)
        more = True
        while more:
            answer, more = self.receive(reply)
            yield answer

    def _fill(self, deadline: Optional[float]) -> None:
        try:
            if deadline is None:
                self._socket.settimeout(None)
            else:
                self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            data = self._socket.recv(65536)
        except socket.timeout:
            raise TimedOut("gpurotad did not answer in time: it may be starting, stopped, or "
                           "waiting for its disk. Its log says more: "
                           "journalctl -u gpurotad") from None
        except ConnectionResetError:
            self._unread = True
            data = b""
        if not data:
            raise HungUp(self._unread)
        self._buffer += data
        if len(self._buffer) > MOST_ANSWER_BYTES:
            raise ProtocolError("an answer of %s is longer than %d MiB: is something else "
                                "listening there?"
                                % (self.path, MOST_ANSWER_BYTES >> 20))


def sendable_command(arguments: List[str]) -> List[str]:
    """The part of a command that the daemon accepts for display: at most 256 words and 8192
    bytes."""
    found: List[str] = []
    room = 8192
    for each in arguments[:256]:
        encoded = each.encode("utf-8", "replace")[:room]
        if not encoded and each:
            break
        room -= len(encoded)
        found.append(encoded.decode("utf-8", "ignore"))
    return found


def call(method: str, parameters: Dict[str, Any], reply: Type[T]) -> T:
    """Sends one call on a connection of its own. A daemon that is being restarted may close the
    connection: the call is then sent to the next daemon, if the call changes nothing or the old
    daemon had not read it."""
    for _ in range(MOST_TRIES - 1):
        with Connection() as connection:
            try:
                return connection.call(method, parameters, reply)
            except HungUp as gone:
                if method not in types.READ_ONLY and not gone.unread:
                    raise
    with Connection() as connection:
        return connection.call(method, parameters, reply)
