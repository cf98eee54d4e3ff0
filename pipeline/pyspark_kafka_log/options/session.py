"""What the configuration of a session says where options do not, and the time zone of times that are written without one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from pyspark_kafka_log.options.values import OptionError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?", re.ASCII
)
_MOST_S = 18 * 3600

CONFS: Mapping[str, str] = {
    "timeZone": "spark.sql.session.timeZone",
    "ignoreCorruptFiles": "spark.sql.files.ignoreCorruptFiles",
    "ignoreMissingFiles": "spark.sql.files.ignoreMissingFiles",
}
"""What is asked of a configuration, by the names of the options."""


@dataclass(frozen=True)
class Session:
    """Settings of a session, as of Spark's file sources. ``time_zone`` is None where nobody says it: the Python source is not told of
    configurations."""

    time_zone: str | None = None
    ignore_corrupt: bool = False
    ignore_missing: bool = False

    @classmethod
    def from_settings(cls, told: Mapping[str, Any]) -> Session:
        """The settings by the names of :data:`CONFS`; those that are not told are what they are without a configuration."""
        ignored = (str(told.get(name, "false")).lower() == "true" for name in [*CONFS][1:])
        return cls(told.get("timeZone"), *ignored)

    @classmethod
    def from_conf(cls, setting: Callable[[str, None], str | None]) -> Session:
        """The settings by a function that gives what a configuration has under a name, such as ``spark.conf.get``."""
        found = {name: setting(conf, None) for name, conf in CONFS.items()}
        return cls.from_settings({name: text for name, text in found.items() if text is not None})


def parse_time_zone(name: str, value: str) -> tzinfo:
    """A time zone as Spark has them: ``Europe/Paris``, ``UTC``, ``+01:00``, ``GMT+1``."""
    if value in ("Z", "UTC", "GMT", "UT"):
        return UTC
    found = _OFFSET.fullmatch(value)
    if found is not None:
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        size = hours * 3600 + minutes * 60 + seconds
        if minutes < 60 and seconds < 60 and size <= _MOST_S:
            return timezone(timedelta(seconds=size if found[1] == "+" else -size))
    try:
        return ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise OptionError(
            name,
            f"a time zone such as Europe/Paris, UTC or +01:00 is expected, not {value!r}; names are those that this machine"
            " has, or the package tzdata",
        ) from None


def to_nanoseconds(name: str, when: datetime, zone: tzinfo | None) -> int:
    """A time as nanoseconds since 1970: in a zone, or (None) that of this machine, where it has none of its own."""
    try:
        if when.tzinfo is None:
            when = when.astimezone() if zone is None else when.replace(tzinfo=zone)
        return (when - _EPOCH) // timedelta(microseconds=1) * 1000
    except (OverflowError, ValueError, OSError):
        raise OptionError(name, f"{when.isoformat()} is too far away") from None
