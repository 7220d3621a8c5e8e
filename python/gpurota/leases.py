"""Leases for commands that this process starts.

This process holds the lease: the daemon watches it by a pidfd, so the lease ends with this process,
even after kill -9. A small program (spawner.py) is the lease's first process and starts the
commands: its descendants are in the lease, as with `gpurota run`. This process itself is not in the
lease; adoption.py is for that.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import process, types
from .client import ANSWER_TIMEOUT, Connection, call, sendable_command
from .errors import Error, LeaseEnded, NoDaemon, NotFound, TimedOut, Unavailable
from .process import Argument, Arguments, Process, Stream, TextOptions
from .waiting import Granted, OnWait, obtain
from .wishes import (SizeLike, TimeLike, WhenLike, Wishes, check_amount, check_latency,
                     compute_max_of, compute_percent_of, size_of,
                     warning_of, whole_seconds_of)

# The daemon's grace (5 s), and the time until the memory is free. `gpurota run` waits as long.
END_TAKES = 10.0


# The variables of a lease, besides libgpurota in LD_PRELOAD: GPUROTA_LEASE_VARIABLES of
# src/abi/env.h.
LEASE_VARIABLES = ("GPUROTA_LEASE", "GPUROTA_TOKEN", "GPUROTA_SOCKET", "GPUROTA_WHOLE",
                   "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")


def merged_environment(base: Mapping[str, str], variables: Mapping[str, str],
                       preload: Optional[str]) -> Dict[str, str]:
    """The environment of a command, as `gpurota run` makes it: the lease's variables replace those
    of another lease, and libgpurota becomes the first library of LD_PRELOAD."""
    found = {name: value for name, value in base.items() if name not in LEASE_VARIABLES}
    found.update(variables)
    before = found.get("LD_PRELOAD", "")
    libraries = [each for each in before.replace(":", " ").split(" ") if each]
    if base.get("GPUROTA_LEASE"):
        before = ":".join(each for each in libraries if os.path.basename(each) != "libgpurota.so")
    if preload and preload not in before.replace(":", " ").split(" "):
        before = preload + (":" + before if before else "")
    if before:
        found["LD_PRELOAD"] = before
    else:
        found.pop("LD_PRELOAD", None)
    return found


def check_preload(library: str) -> None:
    """Raises Unavailable if commands cannot load the library. The dynamic linker would only print a
    message and run the command without a limit."""
    problem = ""
    if " " in library or ":" in library:
        problem = "LD_PRELOAD cannot name it, as there is a space or a colon in its path"
    elif not os.access(library, os.R_OK):
        problem = "it is not there, or you may not read it"
    if problem:
        raise Unavailable("the limit could not be enforced: your programs cannot load %s: %s. "
                          "Install gpurota where everybody may read it, such as /usr/local; in a "
                          "container, mount it" % (library, problem))


class Lease:
    """A lease, made by lease(). The lease ends with release(), with the `with` block, or with this
    process; a forked child cannot end it."""

    def __init__(self, granted: Granted) -> None:
        self._info = granted.lease
        self._variables = granted.environment
        self._preload = granted.preload
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._released = False
        if self._preload:
            check_preload(self._preload)
        self._control, self._spawner = _spawner()
        try:
            granted.connection.call("Start", {"lease_id": self.id, "pid": self._spawner.pid},
                                    types.StartReply)
        except BaseException:
            self._control.close()
            self._spawner.kill()
            self._spawner.wait()
            raise
        granted.connection.close()

    @property
    def id(self) -> str:
        """The id of the lease, such as "L12"."""
        return self._info.lease_id

    @property
    def info(self) -> types.Lease:
        """The lease as the daemon last reported it: see refresh()."""
        return self._info

    @property
    def environ(self) -> Dict[str, str]:
        """os.environ with the variables that put a command under the lease, for commands that are
        not started by run() or popen()."""
        return self.environment(os.environ)

    def environment(self, base: Mapping[str, str]) -> Dict[str, str]:
        return merged_environment(base, self._variables, self._preload)

    def __repr__(self) -> str:
        return "<gpurota.Lease %s on GPU %s>" % (self.id,
                                                 ",".join(gpu.label or str(gpu.index)
                                                          for gpu in self._info.gpus))

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self.release()
        except Error:
            if kind is None:
                raise

    def popen(self, args: Arguments, *, stdin: Stream = None, stdout: Stream = None,
              stderr: Stream = None, shell: bool = False, cwd: Optional[Argument] = None,
              env: Optional[Mapping[str, str]] = None, text: bool = False,
              encoding: Optional[str] = None, errors: Optional[str] = None,
              start_new_session: bool = False) -> Process:
        """Starts a command in the lease, with the arguments of subprocess.Popen. The lease's
        variables are added to `env`."""
        if os.getpid() != self._pid:
            raise Error("%s belongs to process %d: a forked child starts its commands with "
                        "subprocess and env=lease.environ"
                        % (self.id, self._pid))
        try:
            return process.start(self._control, args,
                                 self.environment(os.environ if env is None else env), stdin=stdin,
                                 stdout=stdout, stderr=stderr, shell=shell, cwd=cwd,
                                 text=TextOptions(text, encoding, errors),
                                 start_new_session=start_new_session)
        except (LeaseEnded, OSError) as error:
            if isinstance(error, LeaseEnded) or self._control.fileno() < 0:
                raise self._ended() from None
            raise

    def run(self, args: Arguments, *, input: Union[str, bytes, None] = None,
            capture_output: bool = False, timeout: Optional[float] = None, check: bool = False,
            stdin: Stream = None, stdout: Stream = None, stderr: Stream = None, shell: bool = False,
            cwd: Optional[Argument] = None, env: Optional[Mapping[str, str]] = None,
            text: bool = False, encoding: Optional[str] = None,
            errors: Optional[str] = None) -> "subprocess.CompletedProcess[Any]":
        """Like subprocess.run(). Raises LeaseEnded if the end of the lease ended the command."""
        if input is not None:
            stdin = subprocess.PIPE
        if capture_output:
            stdout = stderr = subprocess.PIPE
        started = self.popen(args, stdin=stdin, stdout=stdout, stderr=stderr, shell=shell, cwd=cwd,
                             env=env, text=text, encoding=encoding, errors=errors)
        with started:
            try:
                out, said = started.communicate(input, timeout)
            except BaseException:
                started.kill()
                raise
        code = started.wait()
        if code < 0 and self.ended is not None:
            raise self._ended()
        done: "subprocess.CompletedProcess[Any]" = subprocess.CompletedProcess(
            args, code, out, said)
        if check:
            done.check_returncode()
        return done

    @property
    def ended(self) -> Optional[str]:
        """Why the lease has ended or is ending; None while it is active."""
        try:
            with Connection() as connection:
                connection.send("Hold", {"lease_id": self.id}, True)
                reply, _ = connection.receive(types.HoldReply, time.monotonic() + ANSWER_TIMEOUT)
        except NotFound:
            return "gpurotad no longer knows it"
        except (NoDaemon, TimedOut):
            return None  # the lease continues: the next daemon reads it from its store
        self._info = reply.lease if reply.ended is None else self._info
        is_over = reply.ended is not None or reply.lease.state == "ending"
        return (reply.reason or "it has ended") if is_over else None

    def refresh(self) -> types.Lease:
        """The current state of the lease from the daemon, such as its memory in use and its end.
        Raises LeaseEnded if the lease is over."""
        if self.ended is not None:
            raise self._ended()
        return self._info

    def update(self, *, memory: Optional[SizeLike] = None, soft_limit: Optional[SizeLike] = None,
               note: Optional[str] = None, timeout: Optional[TimeLike] = None,
               priority: Optional[int] = None, quantum: Optional[str] = None,
               warn: Optional[str] = None, latency: Optional[str] = None,
               compute: Optional[str] = None,
               compute_max: Optional[str] = None) -> types.Lease:
        self._info = update(self.id, memory=memory, soft_limit=soft_limit, note=note,
                            timeout=timeout, priority=priority, quantum=quantum, warn=warn,
                            latency=latency, compute=compute, compute_max=compute_max)
        return self._info

    def release(self) -> None:
        """Ends the lease and its commands. Returns when the memory is free, or after 10 s. A second
        call does nothing."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._released:
                return
            self._released = True
        try:
            _end(self.id)
        except (NotFound, NoDaemon, TimedOut):
            pass  # the lease has ended, or the next daemon will end it
        finally:
            self._control.close()
            _reap(self._spawner)

    def _ended(self) -> LeaseEnded:
        return LeaseEnded("%s has ended: %s" % (self.id, "you released it" if self._released
                                                else self.ended or "its first process is gone"))


def _spawner() -> "Tuple[socket.socket, subprocess.Popen[bytes]]":
    """Starts spawner.py, which then waits for commands, so that no program of the user runs before
    the daemon has the spawner in the lease."""
    if not sys.executable:
        raise Error("this program has no Python interpreter of its own (sys.executable is empty): "
                    "use 'gpurota run'")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spawner.py")
        null = subprocess.DEVNULL
        try:
            # In isolated mode, because the user's PYTHON* variables are meant for the commands.
            child = subprocess.Popen([sys.executable, "-I", "-S", "-B", program,
                                      str(theirs.fileno())],
                                     pass_fds=(theirs.fileno(),), stdin=null, stdout=null,
                                     stderr=null, cwd="/")
        except BaseException:
            ours.close()
            raise
    return ours, child


def _reap(child: "subprocess.Popen[bytes]") -> None:
    try:
        child.wait(END_TAKES)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _end(lease_id: str) -> None:
    deadline = time.monotonic() + END_TAKES
    with Connection() as watch:
        watch.send("Hold", {"lease_id": lease_id}, True)
        # If the lease is over already, this is the only answer, and there is nothing to release.
        _, living = watch.receive(types.HoldReply, time.monotonic() + ANSWER_TIMEOUT)
        if living:
            call("Release", {"lease_id": lease_id}, types.ReleaseReply)
        while living:
            _, living = watch.receive(types.HoldReply, deadline)


def update(lease_id: str, *, memory: Optional[SizeLike] = None,
           soft_limit: Optional[SizeLike] = None, note: Optional[str] = None,
           timeout: Optional[TimeLike] = None, priority: Optional[int] = None,
           quantum: Optional[str] = None, warn: Optional[str] = None,
           latency: Optional[str] = None, compute: Optional[str] = None,
           compute_max: Optional[str] = None) -> types.Lease:
    """Changes a lease. `timeout`: its end, from now on. `warn`: as for lease(); "0": its commands
    are no longer warned. `compute`: "30%"; "0": no share any more. `compute_max`: "50%"; "100%": no
    upper bound any more."""
    check_latency(latency)
    for what, size in (("memory", memory), ("soft_limit", soft_limit)):
        if size is not None:
            check_amount(what, size)
    parameters: Dict[str, Any] = {
        "lease_id": lease_id,
        "memory": None if memory is None else size_of(memory),
        "soft_limit": None if soft_limit is None else size_of(soft_limit),
        "note": note,
        "seconds": None if timeout is None else whole_seconds_of(timeout),
        "priority": priority,
        "quantum": quantum,
        "latency": latency,
        "compute_percent": None if compute is None else compute_percent_of(compute),
        "compute_max_percent": None if compute_max is None else compute_max_of(compute_max),
        "warn_seconds": None if warn is None else warning_of(warn)[0],
        "warn_signal": None if warn is None else warning_of(warn)[1],
    }
    return call("Update", parameters, types.UpdateReply).lease


def _own_command() -> List[str]:
    return sendable_command([os.path.basename(sys.executable), *sys.argv])


def lease(memory: Optional[SizeLike] = None, gpus: Optional[int] = None, *,
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
          memory_threshold: Optional[SizeLike] = None, on_wait: Optional[OnWait] = None,
          warn: Optional[str] = None) -> Lease:
    """A lease like that of `gpurota run`, for any number of commands of this process.

    Waits in the queue for as long as it takes, at most `wait` ("1h"), or not at all (0). Raises
    NoGpu if no GPU was free in time. `on_wait` is called with the Request whenever something about
    the wait changes. Control-C cancels the request. `warn`: how long before a known end of the
    lease its commands get a signal, if they handle it, and which one: "10m", "10m:USR1".
    """
    wishes = Wishes(memory=memory, gpus=gpus, gpu_ids=gpu_ids, swap=swap, oversize=oversize,
                    soft_limit=soft_limit, priority=priority, quantum=quantum, latency=latency,
                    compute=compute, compute_max=compute_max,
                    warn=warn, timeout=timeout, wait=wait, note=note, name=name,
                    as_name=as_name, gpu_type=gpu_type, gpu_class=gpu_class,
                    min_memory=min_memory, min_cc=min_cc, near=near, until=until,
                    memory_threshold=memory_threshold)
    granted = obtain(wishes, _own_command(), on_wait)
    try:
        return Lease(granted)
    except BaseException:
        granted.connection.close()  # which ends the lease
        raise
