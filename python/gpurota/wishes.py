"""The wishes for a lease: parses sizes and times as people write them, and makes the request. Pure.

A wrong argument raises a ValueError or TypeError that says what to write.
"""

import datetime
import math
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

SizeLike = Union[str, int]
TimeLike = Union[str, int, float, datetime.timedelta]
WhenLike = Union[str, datetime.datetime]

MIB = 1 << 20

_SIZE = re.compile(r"(\d+)(?:\.(\d+))?( ?)(?:([kmgt])(?:i?b|i)?|b)?", re.IGNORECASE)
_PERCENT = re.compile(r"(\d{1,3})%")
_TIMES = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SIGNALS = ("HUP", "INT", "USR1", "USR2", "TERM", "CONT", "WINCH")
_COMPUTE = re.compile(r"(\d{1,3})%?")
_LATENCIES = ("normal", "interactive")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def bytes_of(size: SizeLike) -> int:
    """The bytes of a size such as "8G", "1.5 GiB" or 8589934592. All units are powers of 1024."""
    if isinstance(size, bool) or not isinstance(size, (str, int)):
        raise TypeError("a size is text such as '8G', or a number of bytes, not %r" % (size,))
    wrong = ValueError("%r is not a size: write 8G, 1.5GiB or 512M" % (size,))
    if isinstance(size, int):
        if size < 1:
            raise wrong
        return size
    match = _SIZE.fullmatch(size)
    if (match is None or (match.group(3) and size.endswith(" "))
        or (match.group(2) and size[-1].isdigit())):
        raise wrong
    shift = 10 * (" kmgt".index((match.group(4) or " ").lower()))
    digits = match.group(2) or "0"
    found = (int(match.group(1)) << shift) + (int(digits) << shift) // int("1" + "0" * len(digits))
    if not 0 < found < 1 << 63:
        raise wrong
    return found


def size_of(size: SizeLike) -> Dict[str, int]:
    """A Size of the protocol: bytes, or a share of the GPU's memory ("25%")."""
    match = _PERCENT.fullmatch(size) if isinstance(size, str) else None
    if match is None:
        return {"bytes": bytes_of(size)}
    if not 1 <= int(match.group(1)) <= 100:
        raise ValueError("%r is not a size: a share is from 1%% to 100%%" % (size,))
    return {"percent": int(match.group(1))}


def check_amount(what: str, size: SizeLike) -> None:
    """Refuses less than 1 MiB, because a unit was probably forgotten. `what`: the argument, such as
    "memory"."""
    amount = size_of(size)
    if amount.get("bytes", MIB) >= MIB:
        return
    number = re.match(r"\d+", str(size))
    # A large number probably means MiB, as in other tools.
    unit = "M" if number and len(number.group()) > 2 else "G"
    raise ValueError("%s=%r is less than 1 MiB: did you mean \"%s%s\"?"
                     % (what, size, number.group() if number else "", unit))


def check_latency(latency: Optional[str], shares_gpus: bool = True) -> None:
    """Refuses a class that there is not, and the class interactive for a whole GPU."""
    if latency not in (None, *_LATENCIES):
        raise ValueError("latency=%r: write \"normal\" or \"interactive\"" % (latency,))
    if latency == "interactive" and not shares_gpus:
        raise ValueError("a program with a whole GPU has no other beside it that could hold back "
                         "work: give memory or swap")


def compute_percent_of(share: str) -> int:
    """A share of a GPU's compute time, such as "30%", in percent; 0: none."""
    match = _COMPUTE.fullmatch(share) if isinstance(share, str) else None
    if match is None or int(match.group(1)) > 95:
        raise ValueError("compute=%r: write a share from \"1%%\" to \"95%%\"" % (share,))
    return int(match.group(1))


def compute_max_of(share: str) -> int:
    """An upper bound of a GPU's compute time, such as "50%", in percent; 100: none."""
    match = _COMPUTE.fullmatch(share) if isinstance(share, str) else None
    if match is None or not 1 <= int(match.group(1)) <= 100:
        raise ValueError("compute_max=%r: write a bound from \"1%%\" to \"99%%\", or \"100%%\" for "
                         "none" % (share,))
    return int(match.group(1))


def capability_of(version: Union[str, float]) -> int:
    """A compute capability ("8.0", 8.6 or 9) in the form of the protocol: 80, 86, 90."""
    match = re.fullmatch(r"(\d{1,2})(?:\.(\d))?", str(version))
    if isinstance(version, bool) or match is None:
        raise ValueError("min_cc=%r is not a compute capability: write \"8.0\"" % (version,))
    return 10 * int(match.group(1)) + int(match.group(2) or 0)


def seconds_of(time: TimeLike) -> float:
    """The seconds of "30s", "10m", "2h", "1d", "1h30m", a number of seconds, or a timedelta."""
    if isinstance(time, datetime.timedelta):
        return time.total_seconds()
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        if not math.isfinite(time):
            raise ValueError("%r is not a time: write 30s, 10m, 2h, 1d or 1h30m" % (time,))
        return float(time)
    if not isinstance(time, str):
        raise TypeError("a time is text such as '2h', a number of seconds or a timedelta, not %r"
                        % (time,))
    if _TIMES.fullmatch(time) is None:
        raise ValueError("%r is not a time: write 30s, 10m, 2h, 1d or 1h30m" % (time,))
    return sum(float(number) * _SECONDS[unit] for number, unit in _TIME.findall(time))


def whole_seconds_of(time: TimeLike) -> int:
    seconds = int(seconds_of(time))
    if seconds < 1:
        raise ValueError("%r is not a time: at least 1 s" % (time,))
    return seconds


def warning_of(warn: str) -> Tuple[int, Optional[str]]:
    """Parses "10m" or "10m:USR1": the seconds before the end, and the signal. "0": no warning."""
    if not isinstance(warn, str):
        raise TypeError("a warning is text such as '10m' or '10m:USR1', not %r" % (warn,))
    time, colon, signal = warn.partition(":")
    if colon and signal not in _SIGNALS:
        raise ValueError("%r: write HUP, INT, USR1, USR2, TERM, CONT or WINCH after the colon"
                         % (warn,))
    seconds = 0 if time in ("0", "0s") else whole_seconds_of(time)
    if seconds > 86400:
        raise ValueError("%r: a warning comes at most 24h before the end" % (warn,))
    return seconds, signal if colon else None


_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WHEN = re.compile(r"(?:([a-z]{3,}|\d{4}-\d{2}-\d{2})[ T])?(\d{1,2}):(\d{2})", re.IGNORECASE)


def time_of(when: WhenLike, now: datetime.datetime) -> datetime.datetime:
    """The time of "18:00" (the next one), "Fri 18:00", "tomorrow 18:00" or "2026-11-30 18:00" in
    local time, "+2h", or a datetime. `now` has a time zone."""
    if isinstance(when, datetime.datetime):
        return when.astimezone()
    if isinstance(when, str) and when.startswith("+"):
        return now + datetime.timedelta(seconds=seconds_of(when[1:]))
    wrong = ValueError("until=%r is not a time: write \"18:00\", \"Fri 18:00\", \"tomorrow 18:00\" "
                       "or \"2026-11-30 18:00\"" % (when,))
    match = _WHEN.fullmatch(when.strip()) if isinstance(when, str) else None
    if match is None:
        raise wrong
    day, hour, minute = (match.group(1) or "").lower(), int(match.group(2)), int(match.group(3))
    weekday = next((i for i, name in enumerate(_DAYS) if day and name.startswith(day)), None)
    here = now.astimezone()
    date = here.date()
    try:
        if day[:1].isdigit():
            date = datetime.date.fromisoformat(day)
        elif day == "tomorrow":
            date += datetime.timedelta(days=1)
        elif weekday is not None:
            date += datetime.timedelta(days=(weekday - date.weekday()) % 7)
        elif day not in ("", "today"):
            raise wrong
        found = datetime.datetime.combine(date, datetime.time(hour, minute)).astimezone()
        if found <= here and (not day or weekday is not None):
            date += datetime.timedelta(days=7 if day else 1)
            found = datetime.datetime.combine(date, datetime.time(hour, minute)).astimezone()
    except ValueError:
        raise wrong from None
    return found


@dataclass
class Wishes:
    """The options of `gpurota run`, which gpurota(1) explains. `wait`: None waits as long as it
    takes, 0 does not wait.

    `name` is the name of the lease, and `as_name` the person who uses a shared account (--as).
    `near` is the id of a lease.
    """

    memory: Optional[SizeLike] = None
    gpus: Optional[int] = None
    gpu_ids: Optional[Sequence[Union[str, int]]] = None
    swap: bool = False
    oversize: bool = False
    soft_limit: Optional[SizeLike] = None
    priority: Optional[int] = None
    quantum: Optional[str] = None
    latency: Optional[str] = None
    compute: Optional[str] = None
    compute_max: Optional[str] = None
    warn: Optional[str] = None
    timeout: Optional[TimeLike] = None
    wait: Optional[TimeLike] = None
    note: Optional[str] = None
    name: Optional[str] = None
    as_name: Optional[str] = None
    gpu_type: Optional[str] = None
    gpu_class: Optional[str] = None
    min_memory: Optional[SizeLike] = None
    min_cc: Optional[Union[str, float]] = None
    near: Optional[str] = None
    until: Optional[WhenLike] = None
    memory_threshold: Optional[SizeLike] = None

    def __post_init__(self) -> None:
        if self.gpus is not None and self.gpu_ids is not None:
            raise ValueError("gpus says how many, gpu_ids which: give one of them")
        if isinstance(self.gpu_ids, str):
            self.gpu_ids = self.gpu_ids.split(",")
        for what, size in (("memory", self.memory), ("soft_limit", self.soft_limit),
                           ("min_memory", self.min_memory)):
            if size is not None:
                check_amount(what, size)
        self._check_kind()
        check_latency(self.latency, self.memory is not None or self.swap)
        self._check_compute()
        for what, text, most in (("note", self.note, 1024), ("name", self.name, 64),
                                 ("as_name", self.as_name, 64),
                                 ("gpu_type", self.gpu_type, 64),
                                 ("gpu_class", self.gpu_class, 64)):
            if text is not None and len(text.encode("utf-8", "replace")) > most:
                raise ValueError("the %s is longer than %d bytes: shorten it" % (what, most))
        if self.timeout is not None and self.until is not None:
            raise ValueError("timeout and until both say when it ends: give one of them")
        self.seconds()
        if self.warn is not None:
            warning_of(self.warn)
        if self.wait is not None and not seconds_of(self.wait) >= 0:
            raise ValueError("wait=%r: 0 does not wait, None waits as long as it takes"
                             % (self.wait,))

    def _check_compute(self) -> None:
        least = 0 if self.compute is None else compute_percent_of(self.compute)
        most = 100 if self.compute_max is None else compute_max_of(self.compute_max)
        for what, given in (("compute", least != 0), ("compute_max", most != 100)):
            if given and (self.swap or self.memory is None or self.latency == "interactive"):
                raise ValueError("%s is for slices of class normal: give memory, and leave out "
                                 "swap and latency" % what)
        if least > most:
            raise ValueError("compute=%r is above compute_max=%r: give a smaller compute"
                             % (self.compute, self.compute_max))

    def _check_kind(self) -> None:
        kind = (self.gpu_type, self.gpu_class, self.min_memory, self.min_cc, self.near)
        if self.gpu_ids is not None and any(each is not None for each in kind):
            raise ValueError("gpu_ids names the GPUs: leave out gpu_type, gpu_class, min_memory, "
                             "min_cc and near")
        if self.min_memory is not None and "percent" in size_of(self.min_memory):
            raise ValueError("min_memory is the size of a GPU: write an amount, as \"40G\"")
        if self.min_cc is not None:
            capability_of(self.min_cc)
        if self.near is not None and not re.fullmatch(r"L\d+", self.near):
            raise ValueError("near=%r is not the id of a lease: write it as \"L12\"" % (self.near,))
        self.threshold()

    def threshold(self) -> Optional[int]:
        """The threshold in bytes; None: not given. Zero means that any use counts."""
        if self.memory_threshold is None or self.memory_threshold in (0, "0"):
            return None if self.memory_threshold is None else 0
        check_amount("memory_threshold", self.memory_threshold)
        return bytes_of(self.memory_threshold)

    def seconds(self) -> Optional[int]:
        """The length of the lease in seconds, from now on."""
        if self.until is None:
            return None if self.timeout is None else whole_seconds_of(self.timeout)
        now = datetime.datetime.now().astimezone()
        left = math.ceil((time_of(self.until, now) - now).total_seconds())
        if left < 1:
            raise ValueError("until=%r is over already" % (self.until,))
        return left

    def request(self, command: List[str]) -> Dict[str, Any]:
        """The protocol's LeaseRequest."""
        found: Dict[str, Any] = {
            "kind": "run",
            "gpus": self.gpus,
            "gpu_ids": None if self.gpu_ids is None else [str(each) for each in self.gpu_ids],
            "memory": None if self.memory is None else size_of(self.memory),
            "soft_limit": None if self.soft_limit is None else size_of(self.soft_limit),
            "seconds": self.seconds(),
            "swap": self.swap or None,
            "oversize": self.oversize or None,
            "priority": self.priority,
            "quantum": self.quantum,
            "latency": self.latency,
            "compute_percent": (None if self.compute is None
                                else compute_percent_of(self.compute)),
            "compute_max_percent": (None if self.compute_max is None
                                    else compute_max_of(self.compute_max)),
            "warn_seconds": None if self.warn is None else warning_of(self.warn)[0],
            "warn_signal": None if self.warn is None else warning_of(self.warn)[1],
            "name": self.name,
            "as_name": self.as_name,
            "note": self.note,
            "gpu_type": self.gpu_type,
            "gpu_class": self.gpu_class,
            "min_memory_bytes": None if self.min_memory is None else bytes_of(self.min_memory),
            "min_cc": None if self.min_cc is None else capability_of(self.min_cc),
            "near": self.near,
            "unreserved_threshold": self.threshold(),
            "command": command or None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def options(self) -> List[str]:
        """The wishes as options of `gpurota run`."""
        found: List[str] = []
        values = (("--memory", self.memory), ("--gpus", self.gpus),
                  ("--soft-limit", self.soft_limit), ("--priority", self.priority),
                  ("--quantum", self.quantum), ("--latency", self.latency),
                  ("--compute", self.compute), ("--compute-max", self.compute_max),
                  ("--warn", self.warn), ("--note", self.note),
                  ("--name", self.name), ("--as", self.as_name),
                  ("--gpu-type", self.gpu_type), ("--gpu-class", self.gpu_class),
                  ("--min-memory", self.min_memory),
                  ("--min-cc", self.min_cc), ("--near", self.near),
                  ("--memory-threshold", self.threshold()))
        for option, value in values:
            if value is not None:
                found.append("%s=%s" % (option, value))  # one word: the value may begin with '-'
        if self.gpu_ids is not None:
            found.append("--gpu-ids=" + ",".join(str(each) for each in self.gpu_ids))
        found += ["--swap"] * self.swap + ["--oversize"] * self.oversize
        seconds = self.seconds()
        if seconds is not None:
            found.append("--timeout=%ds" % seconds)
        if self.wait is not None:
            patience = math.ceil(seconds_of(self.wait))
            found.append("--wait=%ds" % patience if patience else "--nonblock")
        return found
