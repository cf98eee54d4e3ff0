"""Parsing of times and time ranges that people type."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from operator import index
from typing import Any

from kafka_log.segment.ranges import Range, checked_range

MS_MAX = ((1 << 63) - 1) // 1000
"""Largest timestamp in milliseconds, before or after 1970, that a signed 64-bit number of microseconds can hold."""

Time = int | str | datetime
"""Milliseconds since 1970, a text of :data:`TIMES`, or a datetime; what has no zone is in UTC."""

Times = Range | str | tuple[Time | None, Time | None]
"""First (included) and end (excluded) of a range of times, None for no bound; or a text such as ``2026-11-22`` (that day) or ``-2h:``."""

_AGO = re.compile(r"-(\d{1,6})(s|m|h|d|w)\Z")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MILLISECONDS = re.compile(r"-?\d{1,19}\Z", re.ASCII)
_MOST = (1 << 63) - 2
"""The largest time that can be the included bound of a range."""

TIMES = "2026-11-22, 2026-11-22T10:15, 2026-11-22T10:15:00.250+01:00, -2h (ago), now, or milliseconds since 1970"


class RangeError(ValueError):
    """A text of times or offsets that is ambiguous or no range. The message is complete for the user."""


def milliseconds(text: str, now: int | None = None) -> int:
    """Return a time that a user typed in milliseconds since 1970: ISO 8601 (in UTC without a zone,
    rounded down), ``now``, ``-2h`` (ago), or milliseconds. ``now`` replaces the clock. Raise
    RangeError if a number may also be a year, a date or seconds; ValueError for other text, or a
    number that is too large.
    """
    text = text.strip()
    if _MILLISECONDS.match(text):
        if what := _other_meaning(text):
            meant = datetime.fromtimestamp(int(text) / 1000, UTC).isoformat(timespec="milliseconds")
            raise RangeError(
                f"{text} may be {what}, or milliseconds since 1970: write 2026-11-22T10:15, or {meant}"
            )
        return _in_range(int(text), text)
    ago = _AGO.match(text)
    if ago or text == "now":
        base = present() if now is None else now
        span = timedelta(**{_UNITS[ago[2]]: int(ago[1])}) if ago else timedelta()
        return base - span // timedelta(milliseconds=1)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time; write {TIMES}") from None
    return _since_1970(when)


def parse_time_range(text: str, now: int | None = None) -> Range:
    """Return a range of times (first included, end excluded) as milliseconds since 1970: ``A:B``,
    ``A:``, ``:B`` or ``:``, whose missing bounds are None, or one day, hour, minute, second or
    millisecond, such as ``2026-11-22T10``. Times without a zone are in UTC; relative ones refer to
    ``now`` (None: the clock). Raise RangeError (a ValueError) if A is after B, or the text can be
    read in two ways; ValueError for other text.

    Times contain colons too: exactly one colon must leave a time or nothing on each side.

    Args:
        text: The range.
        now: Present in milliseconds that relative times refer to; None: the clock.
    """
    found = [] if (period := _parse_period(text)) is None else [period]
    why: ValueError | None = None
    for at in (i for i, c in enumerate(text) if c == ":"):
        try:
            found.append(_parse_pair(text[:at], text[at + 1 :], now))
        except RangeError as error:
            why = error
        except ValueError:
            continue
    if not found:
        raise why or ValueError(
            f"{text!r} is not a range of times: write A:B, A: or :B, where A and B are {TIMES};"
            " or one day, hour or minute, such as 2026-11-22T10"
        )
    if len(found) > 1:
        raise RangeError(
            f"{text!r} can be split at more than one colon: write both times with seconds"
        )
    return found[0]


_PERIOD = re.compile(
    r"\d{4}-\d\d-\d\d(?P<hour>[T ]\d\d(?P<minute>:\d\d(?P<second>:\d\d(?P<fraction>[.,]\d+)?)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
"""A date, perhaps with the hour, minute, second and fraction of a second, and then perhaps a zone."""
_PERIODS_MS = {"fraction": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000}
"""Length of the period that a time stands for, by its last part."""
_DAY_MS = 86_400_000


def _parse_period(text: str) -> Range | None:
    """Return the first millisecond of the day, hour, minute, second or millisecond that a time
    stands for, and the first one after it. A time without a zone is in UTC. Return None for another
    text, and for a date or time that does not exist.
    """
    parts = _PERIOD.fullmatch(text.strip())
    if parts is None:
        return None
    try:
        begin = milliseconds(text)
    except ValueError:
        return None
    return begin, begin + next((ms for name, ms in _PERIODS_MS.items() if parts[name]), _DAY_MS)


def _parse_pair(low: str, high: str, now: int | None) -> Range:
    """Return two times in milliseconds; an empty text is None. Times without a zone are in UTC;
    relative ones refer to ``now`` (None: the clock). Raise RangeError if the first is later or a
    text is ambiguous, ValueError if a text is no time.
    """
    begin, end = (milliseconds(part, now) if part else None for part in (low, high))
    if begin is not None and end is not None and begin > end:
        raise RangeError(f"{low} is after {high}: write the earlier time first")
    return begin, end


def checked_times(name: str, value: Any) -> Range:
    """Return a range of timestamps (first included, end excluded) in milliseconds since 1970: from
    a text as for :func:`parse_time_range`, from a pair of numbers, texts, datetimes or None (no
    bound), or (None, None) from None. Raise ValueError, whose message names ``name``, for other
    values, and if the first time is after the end.
    """
    if isinstance(value, str):
        try:
            return parse_time_range(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if isinstance(value, tuple | list) and len(value) == 2:
        value = tuple(
            parse_time(name, bound) if isinstance(bound, str | datetime) else bound
            for bound in value
        )
    return checked_range(name, value)


def present() -> int:
    """Return the present in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def parse_time(name: str, value: Any) -> int | None:
    """Return milliseconds, a datetime or a text (see :func:`milliseconds`) in milliseconds since
    1970; None for None. A datetime without a zone is in UTC. Raise ValueError, whose message names
    ``name``, if it is no time (a bool is none), out of range, or ambiguous.
    """
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return milliseconds(value)
        if isinstance(value, datetime):
            return _since_1970(value)
        if not isinstance(value, bool):
            return _in_range(index(value), str(value))
    except TypeError:
        pass
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    raise ValueError(f"{name} is {value!r}: a time is expected, {TIMES}, or a datetime")


def _since_1970(when: datetime) -> int:
    """Return a datetime in milliseconds since 1970. A datetime without a zone is in UTC."""
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _other_meaning(digits: str) -> str | None:
    """Return what else a number of milliseconds may be: ``a year`` (1900 to 2099), ``seconds`` (10
    digits) or ``a date`` (YYYYMMDD). Return None if it is none of these.
    """
    if len(digits) == 4 and digits[:2] in ("19", "20"):
        return "a year"
    if len(digits) == 10 and digits.isdecimal():
        return "seconds"
    if len(digits) == 8 and digits[:2] in ("19", "20"):
        try:
            datetime.strptime(digits, "%Y%m%d")
        except ValueError:
            return None
        return "a date"
    return None


def _in_range(found: int, text: str) -> int:
    """Return ``found``. Raises ValueError, which shows ``text``, if its absolute value is above the largest time."""
    if not -_MOST <= found <= _MOST:
        raise ValueError(f"{text} is not a time: milliseconds since 1970 have at most 64 bits")
    return found
