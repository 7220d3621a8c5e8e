"""Jobs: commands that the daemon runs, even after this program has ended. map() runs many at
once."""

import datetime
import json
import os
import secrets
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from . import types
from .client import MOST_CALL_BYTES, RECONNECT_EVERY, call
from .errors import Cancelled, Error, LimitExceeded, NoDaemon, NotFound, TimedOut
from .process import Argument
from .wishes import SizeLike, TimeLike, Wishes

T = TypeVar("T")
Command = Sequence[Argument]
OnChange = Callable[[types.Job], object]

# The end of a short job is noticed at once; a long job costs one call a second.
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
USUAL_OUTPUT = 64 * 1024
ENDED = ("stopped", "finished", "failed", "cancelled")


def jobs(name: Optional[str] = None) -> List[types.Job]:
    """This user's jobs, or only the job with this name.

    An array is one job, and `items` has the number of its items in each state.
    """
    return call("ListJobs", {"name": name}, types.ListJobsReply).jobs


def job_items(name: str) -> List[types.JobItem]:
    """The items of an array, in the order of their indices."""
    return _items(name, call)


@dataclass(frozen=True)
class ItemResult:
    """How one command of map() ended."""

    index: int  # from 1: `gpurota job logs NAME[1]`
    command: List[str]
    state: str  # done, failed, unknown (nobody saw the end), cancelled (by a person)
    # As returncode of subprocess: -9 is signal 9. None: the command did not end by itself.
    exit_code: Optional[int]
    reason: str  # how it ended: "exited 3", "over-limit: it holds ..."
    output: str  # the end of what the command has printed
    started: Optional[datetime.datetime]
    ended: Optional[datetime.datetime]
    max_used_bytes: Optional[int]  # the most GPU memory used; None: unknown

    @property
    def ok(self) -> bool:
        return self.state == "done"


class ItemsFailed(Error):
    """Raised with check=True if some commands of map() did not end well. `results` has all
    results."""

    def __init__(self, results: List[ItemResult]) -> None:
        wrong = [each for each in results if not each.ok]
        shown = ["%d (%s)" % (each.index, each.reason) for each in wrong[:5]]
        shown += ["..."] * (len(wrong) > 5)
        super().__init__("%d of %d commands did not end well: %s"
                         % (len(wrong), len(results), ", ".join(shown)))
        self.results = results


def map(commands: Sequence[Command], memory: Optional[SizeLike] = None,
        at_once: Optional[int] = None, *, gpus: Optional[int] = None,
        gpu_ids: Optional[Sequence[Union[str, int]]] = None, swap: bool = False,
        oversize: bool = False, soft_limit: Optional[SizeLike] = None,
        priority: Optional[int] = None, quantum: Optional[str] = None,
        latency: Optional[str] = None, compute: Optional[str] = None,
        compute_max: Optional[str] = None,
        timeout: Optional[TimeLike] = None,
        wait: Optional[TimeLike] = None,
        note: Optional[str] = None, gpu_type: Optional[str] = None,
        gpu_class: Optional[str] = None, min_memory: Optional[SizeLike] = None,
        min_cc: Optional[Union[str, float]] = None, warn: Optional[str] = None,
        name: Optional[str] = None, cwd: Optional[Argument] = None,
        env: Optional[Mapping[str, str]] = None, restart: Optional[str] = None,
        after_success: Sequence[str] = (), after_end: Sequence[str] = (), check: bool = False,
        most_output: int = USUAL_OUTPUT, on_change: Optional[OnChange] = None) -> List[ItemResult]:
    """Runs each command as a job under its own lease, and returns how each ended.

    At most `at_once` (64) run at a time. The commands are the items of one array. `timeout` applies
    to each command. Control-C and any error stop and remove the array. With `name` the array is an
    ordinary job, and only `gpurota job` stops or removes the array. `on_change` is called with the
    Job whenever the states of its items have changed. Raises Cancelled if somebody stops or removes
    the array.
    """
    words = [_words(number, each) for number, each in enumerate(_listed(commands), 1)]
    if not words:
        return []
    wishes = Wishes(memory=memory, gpus=gpus, gpu_ids=gpu_ids, swap=swap, oversize=oversize,
                    soft_limit=soft_limit, priority=priority, quantum=quantum, latency=latency,
                    compute=compute, compute_max=compute_max,
                    timeout=timeout, wait=wait, note=note, gpu_type=gpu_type,
                    gpu_class=gpu_class, min_memory=min_memory, min_cc=min_cc, warn=warn)
    parameters: Dict[str, Any] = {
        "name": name or "map-%d-%s" % (os.getpid(), secrets.token_hex(3)),
        "command": [],
        "options": wishes.options(),
        "workdir": os.path.abspath(os.fsdecode(cwd)) if cwd is not None else os.getcwd(),
        "environment": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "restart": restart,
        "after_success": _names("after_success", after_success),
        "after_end": _names("after_end", after_end),
        "each": [{"words": each} for each in words],
        "at_once": at_once,
    }
    _check_length(parameters)
    call("CheckRequest", {"request": wishes.request([])}, types.CheckRequestReply)
    job: str = parameters["name"]
    try:
        call("AddJob", parameters, types.AddJobReply)
        _wait(job, on_change)
        results = [_result(job, words[each.index - 1], each, most_output)
                   for each in _items(job, _patiently)]
    finally:
        if name is None:
            _remove(job)
    if check and not all(each.ok for each in results):
        raise ItemsFailed(results)
    return results


def _listed(commands: Sequence[Command]) -> Sequence[Command]:
    if isinstance(commands, (str, bytes)):
        raise TypeError("commands is a list of commands, not the text %r" % (commands,))
    return commands


def _names(what: str, names: Sequence[str]) -> Optional[List[str]]:
    if isinstance(names, (str, bytes)):
        raise TypeError("%s is a list of names: write [%r]" % (what, names))
    return list(names) or None


def _words(number: int, command: Command) -> List[str]:
    if isinstance(command, (str, bytes)):
        raise TypeError("command %d is the text %r, and no shell reads it: write its words as a "
                        "list, or [\"sh\", \"-c\", %r]" % (number, command, command))
    words = [os.fsdecode(each) for each in command]
    if not words:
        raise ValueError("command %d is empty" % number)
    return words


def _check_length(parameters: Dict[str, Any]) -> None:
    """Checks the length of the call, with some room for the text around the parameters."""
    length = len(json.dumps(parameters, ensure_ascii=False).encode("utf-8", "replace")) + 256
    if length > MOST_CALL_BYTES:
        raise LimitExceeded("the commands and variables are too long (%d KiB of %d): write them "
                            "into a script that chooses by GPUROTA_ARRAY_INDEX, and let each "
                            "command be that script" % (length // 1024, MOST_CALL_BYTES // 1024))


def _patiently(method: str, parameters: Dict[str, Any], reply: Type[T]) -> T:
    """Repeats a call until a daemon answers: the array continues during a restart of the daemon."""
    while True:
        try:
            return call(method, parameters, reply)
        except (NoDaemon, TimedOut):
            time.sleep(RECONNECT_EVERY)


def _wait(name: str, on_change: Optional[OnChange]) -> None:
    shown: Optional[types.ItemCounts] = None
    pause = FIRST_PAUSE
    while True:
        try:
            job = _patiently("ListJobs", {"name": name}, types.ListJobsReply).jobs[0]
        except NotFound:
            raise Cancelled("job %s was removed before all its commands had ended" % name) from None
        if on_change is not None and job.items != shown:
            shown = job.items
            on_change(job)
        if job.state in ("stopped", "cancelled"):
            why = ": " + job.detail if job.detail else ""
            raise Cancelled("job %s was %s%s" % (name, job.state, why))
        if job.state in ENDED:
            return
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


Ask = Callable[[str, Dict[str, Any], Type[types.ListJobItemsReply]], types.ListJobItemsReply]


def _items(name: str, ask: Ask) -> List[types.JobItem]:
    found: List[types.JobItem] = []
    start: Optional[int] = None
    while True:
        reply = ask("ListJobItems", {"name": name, "from": start}, types.ListJobItemsReply)
        found += reply.items
        if reply.next is None:
            return found
        start = reply.next


def _result(job: str, command: List[str], item: types.JobItem, most_output: int) -> ItemResult:
    last = item.runs[-1] if item.runs else None
    code, reason = None, item.detail or item.state
    if last is not None:
        reason = last.reason
        if last.reason == "exited":
            code, reason = last.code, "exited %d" % last.code
        elif last.reason == "signalled":
            code, reason = -last.code, "killed by signal %d" % last.code
        if last.detail:
            reason += ": " + last.detail
    output = ""
    if last is not None and most_output > 0:
        parameters = {"name": job, "item": item.index, "bytes": most_output}
        output = _patiently("ReadJobLog", parameters, types.ReadJobLogReply).text
    return ItemResult(item.index, command, item.state, code, reason, output,
                      last.started if last else None, last.ended if last else None,
                      last.max_used_bytes if last else None)


def _remove(name: str) -> None:
    """Removes the job. An error is ignored, because it would hide the error that map() raises."""
    try:
        call("ControlJob", {"name": name, "action": "remove", "force": True}, types.ControlJobReply)
    except Error:
        pass
