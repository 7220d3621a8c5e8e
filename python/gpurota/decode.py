"""Converts JSON to the dataclasses of types.py. Pure.

Unknown fields are ignored. An optional field that cannot be read becomes None, so that one wrong
field does not invalidate the whole answer.
"""

import dataclasses
import datetime
import re
import typing
from typing import Any, Dict, List, Tuple, Type, TypeVar

from .errors import ProtocolError

T = TypeVar("T")

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))")


def time_of(text: str) -> datetime.datetime:
    """Parses a time of RFC 3339. Before Python 3.11, datetime.fromisoformat() accepts fewer
    forms."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError("not a time")
    year, month, day, hour, minute, second = (int(each) for each in match.groups()[:6])
    fraction = int(((match.group(7) or ".0")[1:] + "000000")[:6])
    time = datetime.datetime(year, month, day, hour, minute, min(second, 59), fraction,
                             datetime.timezone.utc)
    if match.group(8):
        offset = datetime.timedelta(hours=int(match.group(9)), minutes=int(match.group(10)))
        time += offset if match.group(8) == "-" else -offset
    return time


_Fields = List[Tuple[str, str, Any, bool]]
_known: Dict[Any, _Fields] = {}


def _fields(cls: Any) -> _Fields:
    """For each field: its name, its name in JSON, its type, and whether it is optional."""
    if cls in _known:
        return _known[cls]
    hints = typing.get_type_hints(cls)
    found: _Fields = []
    for each in dataclasses.fields(cls):
        may_lack = (each.default is not dataclasses.MISSING
                    or each.default_factory is not dataclasses.MISSING)
        # A field whose name is a Python keyword ends with an underscore here.
        found.append((each.name, each.name.rstrip("_"), hints[each.name], may_lack))
    _known[cls] = found
    return found


def _value(kind: Any, value: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin is typing.Union:  # Optional
        return None if value is None else _value(typing.get_args(kind)[0], value)
    if origin is list:
        if not isinstance(value, list):
            raise ValueError("not a list")
        return [_value(typing.get_args(kind)[0], each) for each in value]
    if dataclasses.is_dataclass(kind):
        return decode(typing.cast(Type[Any], kind), value)
    if kind is datetime.datetime and isinstance(value, str):
        return time_of(value)
    if kind is int and isinstance(value, (int, float)) and not isinstance(value, bool):
        return round(value)
    if kind in (str, bool) and isinstance(value, kind):
        return value
    raise ValueError("not a %s" % getattr(kind, "__name__", kind))


def decode(cls: Type[T], parameters: Any) -> T:
    """Raises ProtocolError if a required field is missing or wrong."""
    if not isinstance(parameters, dict):
        raise ProtocolError("gpurotad's answer has no %s: is something else listening there?"
                            % cls.__name__)
    values: Dict[str, Any] = {}
    for name, wire, kind, may_lack in _fields(cls):
        if wire not in parameters and may_lack:
            continue
        try:
            values[name] = _value(kind, parameters.get(wire))
        except (ValueError, OverflowError, ProtocolError):
            if not may_lack:
                raise ProtocolError("gpurotad's answer cannot be read: '%s' of %s is missing or "
                                    "not what it should be"
                                    % (wire, cls.__name__)) from None
    return cls(**values)
