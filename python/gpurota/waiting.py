"""Requests a lease and waits in the queue, even during restarts of the daemon. An exception while
waiting cancels the request."""

import os
import re
import secrets
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from .client import RECONNECT_EVERY, Connection
from .errors import Cancelled, NoDaemon, NoGpu, NotFound, TimedOut
from .reasons import request_text
from .types import AcquireReply, EnqueueReply, Lease, Request, Variable
from .wishes import TimeLike, Wishes, seconds_of

OnWait = Callable[[Request], object]

# The number of attempts if the daemon closes the connection before it answers.
TRIES = 4
# The longest wait for the answer to Acquire: a filler may have to leave first and free its memory.
PATIENCE = 120.0


class Granted:
    """A lease that has not been started: the lease ends when `connection` is closed."""

    def __init__(self, connection: Connection, lease: Lease, environment: List[Variable],
                 preload: Optional[str]) -> None:
        self.connection = connection
        self.lease = lease
        self.environment = {each.name: each.value for each in environment}
        self.preload = preload


def waiting_text(request: Request) -> str:
    """Why the request waits, and until when, as `gpurota run` shows it."""
    return "%s, position %d: %s" % (request.request_id, request.position, request_text(request))


class Line:
    """The default of `on_wait`: prints a line for each change, if standard error is a terminal."""

    def __init__(self) -> None:
        self._shown = ""

    def __call__(self, request: Request) -> None:
        text = waiting_text(request)
        if text == self._shown or not sys.stderr or not sys.stderr.isatty():
            return
        self._shown = text
        # The daemon's text may contain control characters from others' notes.
        print("gpurota: waiting as " + "".join(c if c.isprintable() else "?" for c in text),
              file=sys.stderr, flush=True)


def obtain(wishes: Wishes, command: List[str], on_wait: Optional[OnWait] = None) -> Granted:
    """Waits for a lease. Raises NoGpu if no GPU was free in time, and Cancelled if somebody
    cancelled the request."""
    request = wishes.request(command)
    shell = os.environ.get("GPUROTA_LEASE", "")
    if re.fullmatch(r"L[0-9]+", shell):
        request["inside"] = shell  # a wait for the end of that lease is refused
    if wishes.wait is not None and seconds_of(wishes.wait) == 0:
        return _acquire(request)
    return _Waiter(request, wishes.wait, on_wait or Line()).wait()


def _acquire(request: Dict[str, Any]) -> Granted:
    connection = Connection()
    try:
        got = connection.call("Acquire", {"request": request}, AcquireReply, PATIENCE)
        return Granted(connection, got.lease, got.environment, got.preload)
    except BaseException:
        connection.close()
        raise


class _Waiter:
    def __init__(self, request: Dict[str, Any], wait: Optional[TimeLike], on_wait: OnWait) -> None:
        # After a restart of the daemon, the same ticket keeps the place in the queue, or gets the
        # lease that was made meanwhile.
        self._call = {"ticket": secrets.token_hex(16), "request": request}
        self._on_wait = on_wait
        self._wait = wait
        self._deadline = None if wait is None else time.monotonic() + seconds_of(wait)
        self._waits: Optional[Request] = None
        self._hung_up = 0

    def wait(self) -> Granted:
        connection = self._ask()
        while True:
            try:
                reply, _ = connection.receive(EnqueueReply, self._deadline)
                if reply.lease is not None:
                    return Granted(connection, reply.lease, reply.environment, reply.preload)
                if reply.request is not None:
                    self._waits = reply.request
                    self._on_wait(reply.request)
            except NoDaemon:
                connection.close()
                connection = self._come_back()
            except BaseException as error:
                connection.close()  # which cancels the request
                raise self._judged(error) from None

    def _ask(self) -> Connection:
        connection = Connection()
        try:
            connection.send("Enqueue", self._call, True)
        except BaseException:
            connection.close()
            raise
        return connection

    def _come_back(self) -> Connection:
        """Waits until there is a daemon again. A daemon that closes every connection is tried only
        TRIES times."""
        self._hung_up += self._waits is None
        if self._hung_up >= TRIES:
            raise NoDaemon("gpurotad closed the connection before it answered: it was stopped, or "
                           "this user has too many connections. Try again")
        while True:
            time.sleep(RECONNECT_EVERY)
            try:
                return self._ask()
            except (NoDaemon, TimedOut):
                if self._deadline is not None and time.monotonic() >= self._deadline:
                    raise self._gave_up() from None
                if self._waits is None:
                    raise

    def _gave_up(self) -> NoGpu:
        reason = (request_text(self._waits, remedy=False) if self._waits
                  else "gpurotad has not answered")
        error = NoGpu("gave up after %g s: %s" % (seconds_of(self._wait or 0), reason))
        error.wait_reason = self._waits.wait_reason if self._waits else None
        return error

    def _judged(self, error: BaseException) -> BaseException:
        if isinstance(error, TimedOut):
            return self._gave_up()
        # NotFound for a request that was in the queue: somebody has cancelled the request.
        if isinstance(error, NotFound) and self._waits is not None:
            return Cancelled(str(error))
        return error
