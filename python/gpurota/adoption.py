"""Puts this process under a lease.

libgpurota replaces functions of the CUDA driver, so it must be loaded before the process looks up
these functions. LD_PRELOAD of a running process cannot be changed. So adopt() executes the program
anew as the command of `gpurota run`, with the same interpreter and arguments, and the limit is
enforced as for any other command. Before that, adopt() checks whether something would be lost.
"""

import builtins
import ctypes
import multiprocessing
import os
import shutil
import signal
import sys
from typing import List, NoReturn, Optional, Sequence, Union

from . import types
from .client import call
from .errors import CannotAdopt
from .wishes import SizeLike, TimeLike, WhenLike, Wishes

NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED


def find_program() -> str:
    """`gpurota`: on the PATH, or where this module was installed with it."""
    prefix = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                          *[os.pardir] * 4))
    beside = os.path.join(prefix, "bin", "gpurota")
    found = shutil.which("gpurota") or (beside if os.access(beside, os.X_OK) else None)
    if found is None:
        raise CannotAdopt("the program 'gpurota' is not on the PATH: add the folder that it is "
                          "installed in, such as /usr/local/bin")
    return found


def _mapped(name: str) -> bool:
    with open("/proc/self/maps", "rb") as maps:
        return any(os.path.basename(line.rstrip(b"\n")).startswith(name.encode()) for line in maps)


def cuda_is_initialised() -> bool:
    """Whether something in this process has initialised CUDA. Initialises nothing."""
    if not _mapped("libcuda.so"):
        return False
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        count = ctypes.c_int()
        return bool(driver.cuDeviceGetCount(ctypes.byref(count)) != NOT_INITIALIZED)
    except (OSError, AttributeError):
        return True  # the driver is loaded under another name: assume that it is initialised


def current() -> Optional[types.Lease]:
    """The lease that this process is under; None if there is none, or if it has ended."""
    lease_id = os.environ.get("GPUROTA_LEASE")
    leases = call("Status", {}, types.StatusReply).leases if lease_id else []
    return next((each for each in leases if each.lease_id == lease_id and each.uid == os.getuid()),
                None)


def _check_held(lease_id: str) -> types.Lease:
    lease = current()
    if lease is None:
        raise CannotAdopt("this process is under %s, which has ended, or is another user's: unset "
                          "GPUROTA_LEASE LD_PRELOAD CUDA_VISIBLE_DEVICES, or open a new shell"
                          % lease_id)
    if os.environ.get("GPUROTA_SOCKET") and not _mapped("libgpurota.so"):
        raise CannotAdopt("this process has %s in its environment, but libgpurota is not loaded in "
                          "it, so no limit is enforced: start it with LD_PRELOAD as 'gpurota run' "
                          "sets it" % lease_id)
    return lease


def _check_may_restart() -> None:
    in_shell = hasattr(builtins, "__IPYTHON__")  # not every importer of ipykernel is a kernel
    if in_shell and "ipykernel" in sys.modules:
        raise CannotAdopt("a notebook's kernel cannot be executed anew without losing it: install "
                          "a kernel that starts under a lease with "
                          "gpurota.jupyter.install_kernel(memory=...), and choose that")
    interactive = in_shell or hasattr(sys, "ps1") or bool(sys.flags.interactive)
    file = getattr(sys.modules.get("__main__"), "__file__", None)  # "<stdin>" if read from there
    is_command = sys.argv[:1] == ["-c"] if file is None else not file.startswith("<")
    if interactive or not is_command:
        raise CannotAdopt("an interactive interpreter, or a program on standard input, cannot be "
                          "executed anew: start it with 'gpurota run --memory 8G -- python3'")
    if multiprocessing.parent_process() is not None:
        raise CannotAdopt("this is a child of multiprocessing: call adopt() in the program that "
                          "starts it, which its children inherit")
    if not sys.executable:
        raise CannotAdopt("this program has no Python interpreter of its own (sys.executable is "
                          "empty): start it with 'gpurota run'")
    if cuda_is_initialised():
        raise CannotAdopt("CUDA is initialised in this process already, and what it has on the GPU "
                          "would be lost: call gpurota.adopt() in the first lines of the program, "
                          "before anything uses the GPU")


def _own_arguments() -> List[str]:
    """The arguments of this process, with the options of the interpreter, which sys.argv lacks."""
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[1:-1]]


def adopt(memory: Optional[SizeLike] = None, gpus: Optional[int] = None, *,
          gpu_ids: Optional[Sequence[Union[str, int]]] = None, swap: bool = False,
          oversize: bool = False, soft_limit: Optional[SizeLike] = None,
          priority: Optional[int] = None, quantum: Optional[str] = None,
          latency: Optional[str] = None, compute: Optional[str] = None,
          compute_max: Optional[str] = None,
          timeout: Optional[TimeLike] = None,
          wait: Optional[TimeLike] = None,
          note: Optional[str] = None, name: Optional[str] = None, as_name: Optional[str] = None,
          gpu_type: Optional[str] = None, gpu_class: Optional[str] = None,
          min_memory: Optional[SizeLike] = None, min_cc: Optional[Union[str, float]] = None,
          near: Optional[str] = None, until: Optional[WhenLike] = None,
          memory_threshold: Optional[SizeLike] = None, warn: Optional[str] = None) -> types.Lease:
    """Puts this process and all that it starts under a lease, for the life of this process. Call
    adopt() before anything else.

    adopt() executes the program anew under `gpurota run`, so everything before the call runs twice.
    If the program is under a lease already, adopt() returns that lease and requests none. Raises
    CannotAdopt, with the reason, if this process cannot be put under a lease.
    """
    wishes = Wishes(memory=memory, gpus=gpus, gpu_ids=gpu_ids, swap=swap, oversize=oversize,
                    soft_limit=soft_limit, priority=priority, quantum=quantum, latency=latency,
                    compute=compute, compute_max=compute_max,
                    warn=warn, timeout=timeout, wait=wait, note=note, name=name,
                    as_name=as_name, gpu_type=gpu_type, gpu_class=gpu_class,
                    min_memory=min_memory, min_cc=min_cc, near=near, until=until,
                    memory_threshold=memory_threshold)
    lease_id = os.environ.get("GPUROTA_LEASE")
    if lease_id:
        return _check_held(lease_id)
    _check_may_restart()
    program = find_program()
    # If the request can never be fulfilled on this machine, raise an exception now, while this
    # program can still catch it.
    call("CheckRequest", {"request": wishes.request([])}, types.CheckRequestReply)
    _execute(program, [program, "run", *wishes.options(), "--", sys.executable, *_own_arguments()])


def _execute(program: str, arguments: List[str]) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    # Python ignores these signals, and the new program would inherit that.
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    os.execv(program, arguments)
