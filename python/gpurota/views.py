"""Views of the GPUs, leases, queue and events, and release(). Each function makes one or a few
calls on connections of its own."""

import datetime
import os
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Union

from . import types
from .client import RECONNECT_EVERY, Connection, call
from .errors import NoDaemon, NotFound, TimedOut
from .waiting import waiting_text
from .wishes import TimeLike, seconds_of

Since = Union[datetime.datetime, TimeLike]


def status() -> types.StatusReply:
    """The GPUs, the leases and what the watch found."""
    return call("Status", {}, types.StatusReply)


def queue() -> List[types.Request]:
    """The waiting requests, in the order of the queue."""
    return call("ListRequests", {}, types.ListRequestsReply).requests


def processes(lease_id: Optional[str] = None) -> List[types.Process]:
    """All processes on all GPUs, or only those of a lease."""
    return call("ListProcesses", {"lease_id": lease_id}, types.ListProcessesReply).processes


def release(lease_id: str) -> None:
    """Ends a lease and all its processes. Returns at once; Lease.release() waits for the end."""
    call("Release", {"lease_id": lease_id}, types.ReleaseReply)


@dataclass(frozen=True)
class Explanation:
    """The answer of explain(); str() makes text for people."""

    requests: List[types.Request]
    leases: List[types.Lease]
    turns: List[types.TurnGpu]

    def __str__(self) -> str:
        lines = [waiting_text(each) for each in self.requests]
        for lease in self.leases:
            gpus = ",".join(gpu.label or str(gpu.index) for gpu in lease.gpus)
            end = ("ends at %s" % lease.ends.astimezone().strftime("%Y-%m-%d %H:%M:%S")
                   if lease.ends else "ends with its command")
            if lease.state != "active":
                end = ("its time is over, but its programs still hold memory"
                       if lease.state == "expired" else "it is ending")
            lines.append("%s on GPU %s: %s of %s, %s"
                         % (lease.lease_id, gpus, lease.kind, lease.user, end))
            lines += ["  GPU %d: %s" % (gpu.index, _turn_text(turn)) for gpu in self.turns
                      for turn in gpu.leases
                      if gpu.takes_turns and turn.lease_id == lease.lease_id]
        return "\n".join(lines) or "you have no lease and wait for nothing"


def _turn_text(turn: types.TurnLease) -> str:
    if turn.phase == "holding":
        return "it has the turn"
    return "%s, waits for %s%s" % (turn.phase, turn.waits_for,
                                   ", behind " + turn.behind if turn.behind else "")


def explain(what: Optional[str] = None) -> Explanation:
    """Why requests wait, which lease has the turn, and when leases end. `what`: "R7", "L12"; None:
    all requests and leases of this user."""
    requests, now = queue(), status()
    turns = call("ListTurns", {}, types.ListTurnsReply).gpus
    uid = os.geteuid()
    requests = [each for each in requests if each.request_id == what
                or (what is None and each.uid == uid)]
    leases = [each for each in now.leases if each.lease_id == what
              or (what is None and each.uid == uid)]
    if what is not None and not requests and not leases:
        raise NotFound("there is no lease or request %s: gpurota.status() and gpurota.queue() have "
                       "the current ones" % what)
    shown = {each.lease_id for each in leases}
    return Explanation(requests, leases,
                       [gpu for gpu in turns if any(each.lease_id in shown for each in gpu.leases)])


def events(follow: bool = False, since: Optional[Since] = None,
           lease_id: Optional[str] = None) -> Iterator[types.Event]:
    """The events, oldest first. `since`: a datetime, or how long ago ("2h"). With `follow`, the
    iterator waits for new events, continues after restarts of the daemon, and misses none; without
    `since`, it then begins with the next event."""
    if since is not None and not isinstance(since, datetime.datetime):
        since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(
            seconds=seconds_of(since))
    parameters: Dict[str, Any] = {"lease_id": lease_id, "follow": follow or None}
    if since is not None:
        parameters["since"] = since.astimezone(datetime.timezone.utc).strftime(
            "%Y-%m-%dT%H:%M:%S.%fZ")
    return _followed(parameters) if follow else _read(Connection(), parameters)


def _read(connection: Connection, parameters: Dict[str, Any]) -> Iterator[types.Event]:
    with connection:
        for reply in connection.stream("Events", parameters, types.EventsReply):
            yield from reply.events


def _followed(parameters: Dict[str, Any]) -> Iterator[types.Event]:
    connection = Connection()
    while True:
        try:
            for event in _read(connection, parameters):
                parameters = {**parameters, "after": event.event_id, "since": None}
                yield event
        except NoDaemon:
            pass
        connection = _connect_again()


def _connect_again() -> Connection:
    while True:
        time.sleep(RECONNECT_EVERY)
        try:
            return Connection()
        except (NoDaemon, TimedOut):
            pass
