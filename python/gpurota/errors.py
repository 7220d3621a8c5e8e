"""The exceptions of gpurota. Every message says what happened, why, and what to do."""

from typing import Any, Dict, Optional, Type

from .types import Reason


class Error(Exception):
    """The base of all exceptions of gpurota, except TypeError and ValueError for a wrong
    argument."""


class NoDaemon(Error):
    """No gpurotad is running here, or it has stopped."""


class ProtocolError(Error):
    """The daemon's answer cannot be understood."""


class TimedOut(Error):
    """The daemon is running, but does not answer."""


class LeaseEnded(Error):
    """The lease is over: released, lost, or its time has come."""


class Cancelled(Error):
    """The request was cancelled while it waited."""


class CannotAdopt(Error):
    """This process cannot come under a lease."""


class Refused(Error):
    """The daemon refused the request; the subclass says why."""


class InvalidRequest(Refused):
    """The request is not valid."""


class NotFound(Refused):
    """There is no such lease, request or GPU."""


class Denied(Refused):
    """The lease, request or job is another user's, or only administrators can do this."""


class NoGpu(Refused):
    """Nothing suitable is free now: try again later."""

    free = 0  # of `total` GPUs
    total = 0
    wait_reason: Optional[Reason] = None  # why a request would wait


class LimitExceeded(Refused):
    """The request exceeds a limit of the site or of the machine."""


class Unavailable(Refused):
    """Something that the request needs is missing, such as the driver or libgpurota."""


class Failed(Refused):
    """The daemon failed, because of its disk or the system."""


_OF_DAEMON: Dict[str, Type[Refused]] = {
    "dev.gpurota." + each.__name__: each
    for each in (InvalidRequest, NotFound, Denied, NoGpu, LimitExceeded, Unavailable, Failed)
}


def error_of(name: str, parameters: Dict[str, Any]) -> Error:
    """The exception for an error of the control protocol. An unknown error of a newer daemon keeps
    its message."""
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
