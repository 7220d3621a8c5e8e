"""What a lease is to be: sizes and times as people write them, and what is asked for with them. Pure.

A wrong argument is a ValueError or TypeError that says what to write.
"""

import datetime
import math
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

SizeLike = Union[str, int]
TimeLike = Union[str, int, float, datetime.timedelta]

_SIZE = re.compile(r"(\d+)(?:\.(\d+))?( ?)(?:([kmgt])(?:i?b|i)?|b)?", re.IGNORECASE)
_PERCENT = re.compile(r"(\d{1,3})%")
_TIMES = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SIGNALS = ("HUP", "INT", "USR1", "USR2", "TERM", "CONT", "WINCH")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def bytes_of(size: SizeLike) -> int:
    """8G, "1.5 GiB" and 8589934592 alike. All units are powers of 1024."""
    if isinstance(size, bool) or not isinstance(size, (str, int)):
        raise TypeError("a size is text such as '8G', or a number of bytes, not %r" % (size,))
    wrong = ValueError("%r is not a size: write 8G, 1.5GiB or 512M" % (size,))
    if isinstance(size, int):
        if size < 1:
            raise wrong
        return size
    match = _SIZE.fullmatch(size)
    if match is None or (match.group(3) and size.endswith(" ")) or (match.group(2) and size[-1].isdigit()):
        raise wrong
    shift = 10 * (" kmgt".index((match.group(4) or " ").lower()))
    digits = match.group(2) or "0"
    found = (int(match.group(1)) << shift) + (int(digits) << shift) // int("1" + "0" * len(digits))
    if not 0 < found < 1 << 63:
        raise wrong
    return found


def size_of(size: SizeLike) -> Dict[str, int]:
    """The protocol's Size: bytes, or a share of the GPU's memory ("25%")."""
    match = _PERCENT.fullmatch(size) if isinstance(size, str) else None
    if match is None:
        return {"bytes": bytes_of(size)}
    if not 1 <= int(match.group(1)) <= 100:
        raise ValueError("%r is not a size: a share is from 1%% to 100%%" % (size,))
    return {"percent": int(match.group(1))}


def seconds_of(time: TimeLike) -> float:
    """"30s", "10m", "2h", "1d", "1h30m", a number of seconds, or a timedelta."""
    if isinstance(time, datetime.timedelta):
        return time.total_seconds()
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        if not math.isfinite(time):
            raise ValueError("%r is not a time: write 30s, 10m, 2h, 1d or 1h30m" % (time,))
        return float(time)
    if not isinstance(time, str):
        raise TypeError("a time is text such as '2h', a number of seconds or a timedelta, not %r" % (time,))
    if _TIMES.fullmatch(time) is None:
        raise ValueError("%r is not a time: write 30s, 10m, 2h, 1d or 1h30m" % (time,))
    return sum(float(number) * _SECONDS[unit] for number, unit in _TIME.findall(time))


def whole_seconds_of(time: TimeLike) -> int:
    seconds = int(seconds_of(time))
    if seconds < 1:
        raise ValueError("%r is not a time: at least 1 s" % (time,))
    return seconds


def warning_of(warn: str) -> Tuple[int, Optional[str]]:
    """"10m" or "10m:USR1": the seconds before the end and the signal. "0": no warning."""
    if not isinstance(warn, str):
        raise TypeError("a warning is text such as '10m' or '10m:USR1', not %r" % (warn,))
    time, colon, signal = warn.partition(":")
    if colon and signal not in _SIGNALS:
        raise ValueError("%r: write HUP, INT, USR1, USR2, TERM, CONT or WINCH after the colon" % (warn,))
    seconds = 0 if time in ("0", "0s") else whole_seconds_of(time)
    if seconds > 86400:
        raise ValueError("%r: a warning comes at most 24h before the end" % (warn,))
    return seconds, signal if colon else None


@dataclass
class Wishes:
    """As the options of `gpurota run`, which gpurota(1) explains. `wait`: None waits as long as it takes, 0 does not wait."""

    memory: Optional[SizeLike] = None
    gpus: Optional[int] = None
    gpu_ids: Optional[Sequence[Union[str, int]]] = None
    swap: bool = False
    oversize: bool = False
    soft_limit: Optional[SizeLike] = None
    priority: Optional[int] = None
    quantum: Optional[str] = None
    warn: Optional[str] = None
    timeout: Optional[TimeLike] = None
    wait: Optional[TimeLike] = None
    note: Optional[str] = None
    name: Optional[str] = None

    def __post_init__(self) -> None:
        if self.gpus is not None and self.gpu_ids is not None:
            raise ValueError("gpus says how many, gpu_ids which: give one of them")
        if isinstance(self.gpu_ids, str):
            self.gpu_ids = self.gpu_ids.split(",")
        for each in (self.memory, self.soft_limit):
            if each is not None:
                size_of(each)
        for what, text, most in (("note", self.note, 1024), ("name", self.name, 64)):
            if text is not None and len(text.encode("utf-8", "replace")) > most:
                raise ValueError("the %s is longer than %d bytes: shorten it" % (what, most))
        if self.timeout is not None:
            whole_seconds_of(self.timeout)
        if self.warn is not None:
            warning_of(self.warn)
        if self.wait is not None and not seconds_of(self.wait) >= 0:
            raise ValueError("wait=%r: 0 does not wait, None waits as long as it takes" % (self.wait,))

    def request(self, command: List[str]) -> Dict[str, Any]:
        """The protocol's LeaseRequest."""
        found: Dict[str, Any] = {
            "kind": "run",
            "gpus": self.gpus,
            "gpu_ids": None if self.gpu_ids is None else [str(each) for each in self.gpu_ids],
            "memory": None if self.memory is None else size_of(self.memory),
            "soft_limit": None if self.soft_limit is None else size_of(self.soft_limit),
            "seconds": None if self.timeout is None else whole_seconds_of(self.timeout),
            "swap": self.swap or None,
            "oversize": self.oversize or None,
            "priority": self.priority,
            "quantum": self.quantum,
            "warn_seconds": None if self.warn is None else warning_of(self.warn)[0],
            "warn_signal": None if self.warn is None else warning_of(self.warn)[1],
            "as_name": self.name,
            "note": self.note,
            "command": command or None,
        }
        return {name: value for name, value in found.items() if value is not None}

    def options(self) -> List[str]:
        """The same for `gpurota run`."""
        found: List[str] = []
        values = (("--memory", self.memory), ("--gpus", self.gpus), ("--soft-limit", self.soft_limit), ("--priority", self.priority),
                  ("--quantum", self.quantum), ("--warn", self.warn), ("--note", self.note), ("--as", self.name))
        for option, value in values:
            if value is not None:
                found.append("%s=%s" % (option, value))  # in one word, as it may begin with a '-'
        if self.gpu_ids is not None:
            found.append("--gpu-ids=" + ",".join(str(each) for each in self.gpu_ids))
        found += ["--swap"] * self.swap + ["--oversize"] * self.oversize
        if self.timeout is not None:
            found.append("--timeout=%ds" % whole_seconds_of(self.timeout))
        if self.wait is not None:
            seconds = math.ceil(seconds_of(self.wait))
            found.append("--wait=%ds" % seconds if seconds else "--nonblock")
        return found
