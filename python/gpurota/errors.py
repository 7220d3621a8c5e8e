"""What can go wrong. Every message says what happened, why, and what to do."""

from typing import Any, Dict, Optional, Type

from .types import Reason


class Error(Exception):
    """Whatever gpurota raises, except for a TypeError or ValueError of a wrong argument."""


class NoDaemon(Error):
    """No gpurotad is running here, or it has gone away."""


class ProtocolError(Error):
    """The daemon's answer cannot be understood."""


class TimedOut(Error):
    """The daemon is there, and does not answer."""


class LeaseEnded(Error):
    """The lease is over: released, lost, or its time has come."""


class Cancelled(Error):
    """The request was cancelled while it waited."""


class CannotAdopt(Error):
    """This process cannot come under a lease."""


class Refused(Error):
    """The daemon said no; the subclass says why."""


class InvalidRequest(Refused):
    """No daemon would do this."""


class NotFound(Refused):
    """There is no such lease, request or GPU."""


class Denied(Refused):
    """It is somebody else's, or only administrators can do it."""


class NoGpu(Refused):
    """Nothing that fits is free now: trying again later makes sense."""

    free = 0  # of `total` GPUs
    total = 0
    wait_reason: Optional[Reason] = None  # what it would wait for


class LimitExceeded(Refused):
    """The site's limits, or the machine, do not allow it."""


class Unavailable(Refused):
    """Something that it needs is not there: the driver, libgpurota."""


class Failed(Refused):
    """The daemon could not do it: its disk, the system."""


_OF_DAEMON: Dict[str, Type[Refused]] = {
    "dev.gpurota." + each.__name__: each
    for each in (InvalidRequest, NotFound, Denied, NoGpu, LimitExceeded, Unavailable, Failed)
}


def error_of(name: str, parameters: Dict[str, Any]) -> Error:
    """The exception for an error of the control protocol. Of a newer daemon's error the message is
    kept."""
    message = parameters.get("message")
    if name.startswith("dev.gpurota."):
        error = _OF_DAEMON.get(name, Refused)(message if isinstance(message, str) else name)
        if isinstance(error, NoGpu):
            free, total = parameters.get("free"), parameters.get("total")
            error.free = free if isinstance(free, int) else 0
            error.total = total if isinstance(total, int) else 0
        return error
    if name == "org.varlink.service.InvalidParameter":
        return InvalidRequest("gpurotad does not take this value of '%s'"
                              % parameters.get("parameter", "?"))
    if name == "org.varlink.service.MethodNotFound":
        return ProtocolError("gpurotad does not know %s: it is older than this module; restart it "
                             "after its upgrade"
                             % parameters.get("method", "this call"))
    return ProtocolError("gpurotad answered with the error %s" % name)
