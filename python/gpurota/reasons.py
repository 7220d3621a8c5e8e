"""The daemon's reason for a wait, as text: the only place of this package that fills in the time.
Pure, but for the time zone."""

import datetime
from typing import Optional

from .types import Reason, Request

# Times nearer than this are shown with seconds.
_NEAR = datetime.timedelta(minutes=2)
_THIS_WEEK = datetime.timedelta(days=6)


def reason_text(reason: Reason, now: Optional[datetime.datetime] = None) -> str:
    """The sentence with its time, as `gpurota run` shows it. `now` has a time zone; None: the
    current time."""
    if reason.time is None:
        return reason.text
    return reason.text.replace("{time}",
                               _time_text(reason.time, now
                                          or datetime.datetime.now(datetime.timezone.utc)), 1)


def request_text(request: Request, remedy: bool = True) -> str:
    """Why the request waits and, with `remedy`, how it could start now. For an older daemon: its
    own text."""
    if request.wait_reason is None:
        return request.reason
    text = reason_text(request.wait_reason)
    return ("%s; %s" % (text, request.wait_reason.remedy) if remedy and request.wait_reason.remedy
            else text)


def _time_text(time: datetime.datetime, now: datetime.datetime) -> str:
    at, today = time.astimezone(), now.astimezone()
    if abs(time - now) < _NEAR:
        return at.strftime("%H:%M:%S")
    if at.date() == today.date():
        return at.strftime("%H:%M")
    return at.strftime("%a %H:%M" if datetime.timedelta() < time - now < _THIS_WEEK
                       else "%a %e %b %H:%M")
