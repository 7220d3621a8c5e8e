"""Share the NVIDIA GPUs of one machine: leases for Python programs and notebooks.

    with gpurota.lease(memory="8G") as lease:       # for commands that this program starts
        lease.run(["./simulate", "--steps", "1000"], check=True)

    gpurota.adopt(memory="8G")                      # for this program itself: in its first lines

    # Many commands, each under a lease of its own:
    gpurota.map([["./train", "1"], ["./train", "2"]], memory="8G", at_once=4)

docs/python.md explains them. Needs a running gpurotad, and nothing but the standard library.
"""

from typing import Any

from .adoption import adopt, current
from .client import Connection
from .errors import (CannotAdopt, Cancelled, Denied, Error, Failed, InvalidRequest, LeaseEnded,
                     LimitExceeded, NoDaemon, NoGpu, NotFound, ProtocolError, Refused, TimedOut,
                     Unavailable)
from .jobs import ItemResult, ItemsFailed, job_items, jobs
from .jobs import map as map  # not in __all__: `import *` would replace the built-in function
from .leases import Lease, lease, update
from .process import Process
from .reasons import reason_text
from .types import VERSION as __version__
from .views import Explanation, events, explain, processes, queue, release, status
from .waiting import waiting_text

__all__ = [
    "CannotAdopt", "Cancelled", "Connection", "Denied", "Error", "Explanation", "Failed",
    "InvalidRequest", "ItemResult", "ItemsFailed", "Lease", "LeaseEnded", "LimitExceeded",
    "NoDaemon", "NoGpu", "NotFound", "Process", "ProtocolError", "Refused", "TimedOut",
    "Unavailable", "__version__", "adopt", "current", "events", "explain", "job_items", "jobs",
    "lease", "processes", "queue", "reason_text", "release", "status", "update", "waiting_text",
]


def load_ipython_extension(shell: Any) -> None:
    """%load_ext gpurota"""
    from .jupyter import load_ipython_extension as load

    load(shell)
