"""Notebooks: a kernel that starts under a lease, and the magic %gpurota.

A running kernel cannot be put under a lease (adoption.py says why). Instead, install_kernel() adds
a kernel that starts under a lease to Jupyter's list. `%load_ext gpurota` in a notebook then adds:

    %gpurota status              the GPUs, and what this kernel has of them
    %gpurota memory 12G          changes the limit of the kernel's lease
    %gpurota release --yes       gives the lease back, which ends the kernel
"""

import importlib
import json
import os
import re
import shlex
import sys
from typing import Any, Optional, Sequence, Union

from . import views
from .adoption import current, find_program
from .errors import Error
from .leases import update
from .types import Lease, StatusReply
from .wishes import SizeLike, TimeLike, Wishes

USAGE = "write %gpurota status, %gpurota memory 8G, or %gpurota release --yes"
GIB = 1 << 30


def install_kernel(memory: Optional[SizeLike] = None, gpus: Optional[int] = None, *,
                   gpu_ids: Optional[Sequence[Union[str, int]]] = None, swap: bool = False,
                   oversize: bool = False, soft_limit: Optional[SizeLike] = None,
                   priority: Optional[int] = None, quantum: Optional[str] = None,
                   latency: Optional[str] = None, compute: Optional[str] = None,
                   compute_max: Optional[str] = None,
                   timeout: Optional[TimeLike] = None,
                   wait: Optional[TimeLike] = "45s",
                   note: Optional[str] = None, gpu_type: Optional[str] = None,
                   gpu_class: Optional[str] = None, min_memory: Optional[SizeLike] = None,
                   min_cc: Optional[Union[str, float]] = None, kernel_name: Optional[str] = None,
                   display_name: Optional[str] = None, prefix: Optional[str] = None,
                   python: Optional[str] = None) -> str:
    """Adds a kernel of this interpreter, which starts under a lease, to Jupyter's list: for this
    user, or below `prefix`. Returns the folder of the kernel.

    The default of `wait` is below a minute, because Jupyter gives up on a kernel that takes a
    minute to start.
    """
    wishes = Wishes(memory=memory, gpus=gpus, gpu_ids=gpu_ids, swap=swap, oversize=oversize,
                    soft_limit=soft_limit, priority=priority, quantum=quantum, latency=latency,
                    compute=compute, compute_max=compute_max,
                    timeout=timeout, wait=wait, note=note, gpu_type=gpu_type,
                    gpu_class=gpu_class, min_memory=min_memory, min_cc=min_cc)
    share = ("%s GPU" % memory if memory else "%d GPUs" % gpus if gpus and gpus > 1
             else "GPU") + (" in turns" if swap else "")
    shown = display_name or "Python 3 (%s)" % share
    name = kernel_name or "gpurota-" + re.sub(r"[^a-z0-9]+", "-", share.lower()).strip("-")
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise ValueError("%r is not the name of a kernel: write letters, digits, '.', '_' and '-'"
                         % name)
    folder = os.path.join(_data_folder(prefix), "kernels", name)
    os.makedirs(folder, exist_ok=True)
    kernel = {
        "argv": [find_program(), "run", *wishes.options(), "--", python or sys.executable, "-m",
                 "ipykernel_launcher", "-f",
                 "{connection_file}"],
        "display_name": shown,
        "language": "python",
        "metadata": {"debugger": True},
    }
    # Replace the file in one step, because Jupyter may be reading it.
    temporary = os.path.join(folder, ".kernel.json.new")
    if os.path.lexists(temporary):
        os.unlink(temporary)
    with open(temporary, "x", encoding="utf-8") as file:
        json.dump(kernel, file, indent=1)
        file.write("\n")
    os.replace(temporary, os.path.join(folder, "kernel.json"))
    return folder


def _data_folder(prefix: Optional[str]) -> str:
    if prefix is not None:
        return os.path.join(prefix, "share", "jupyter")
    own = (os.environ.get("XDG_DATA_HOME")
           or os.path.join(os.path.expanduser("~"), ".local", "share"))
    return os.environ.get("JUPYTER_DATA_DIR") or os.path.join(own, "jupyter")


# An unknown figure is not shown as zero.
def _gib(amount: Optional[int]) -> str:
    return "?" if amount is None else "%.1f" % (amount / GIB)


def status_text(status: StatusReply, lease: Optional[Lease]) -> str:
    lines = []
    for gpu in status.gpus:
        lines.append("GPU %s  %-14s %6s of %.1f GiB used  %s"
                     % (gpu.label or gpu.index, gpu.state.replace("_", " "), _gib(gpu.used_bytes),
                        gpu.memory_bytes / GIB, gpu.name))
    if lease is None:
        return "\n".join(lines + ["this kernel is under no lease"])
    for each in lease.gpus:
        limit = "all of it" if each.limit_bytes is None else "%.1f GiB" % (each.limit_bytes / GIB)
        lines.append("this kernel has %s: %s GiB used of GPU %s, limit %s"
                     % (lease.lease_id, _gib(each.used_bytes), each.label or each.index,
                        limit))
    return "\n".join(lines)


def _own_lease() -> Lease:
    lease = current()
    if lease is None:
        raise Error("this kernel is under no lease, and one that runs cannot be put under one: "
                    "call gpurota.jupyter.install_kernel(memory=\"8G\") once, then choose that "
                    "kernel for the notebook")
    return lease


def gpurota(line: str) -> None:
    """%gpurota status | memory SIZE | release --yes"""
    words = shlex.split(line)
    if words in ([], ["status"]):
        print(status_text(views.status(), current()))
    elif len(words) == 2 and words[0] == "memory":
        print(status_text(views.status(),
                          update(_own_lease().lease_id, memory=words[1])).splitlines()[-1])
    elif words == ["release"]:
        print("%s is given back by %%gpurota release --yes: that ends this kernel, and its "
              "variables are lost" % _own_lease().lease_id)
    elif words == ["release", "--yes"]:
        views.release(_own_lease().lease_id)
    else:
        raise Error("%%gpurota %s: %s" % (line.strip(), USAGE))


def load_ipython_extension(shell: Any) -> None:
    """Registers %gpurota. An error is shown as one line in the notebook, without a traceback."""
    usage_error = importlib.import_module("IPython.core.error").UsageError

    def magic(line: str) -> None:
        try:
            gpurota(line)
        except (Error, ValueError) as error:
            raise usage_error(str(error)) from None

    magic.__doc__ = __doc__
    shell.register_magic_function(magic, magic_kind="line", magic_name="gpurota")
