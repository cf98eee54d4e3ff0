"""Settings of a Spark session that apply where options are not given, and time zones."""

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
"""Settings of the Spark configuration, by names of options."""


@dataclass(frozen=True)
class Session:
    """Settings of a session, as for Spark's file sources. ``time_zone`` is None if unknown: the Python source does not get the configuration."""

    time_zone: str | None = None
    ignore_corrupt: bool = False
    ignore_missing: bool = False

    @classmethod
    def from_settings(cls, told: Mapping[str, Any]) -> Session:
        """Return the settings from values under the names of :data:`CONFS`. Missing ones have their defaults."""
        ignored = (str(told.get(name, "false")).lower() == "true" for name in [*CONFS][1:])
        return cls(told.get("timeZone"), *ignored)

    @classmethod
    def from_conf(cls, setting: Callable[[str, None], str | None]) -> Session:
        """Return the settings from a function that returns a configuration value by name, such as ``spark.conf.get``."""
        found = {name: setting(conf, None) for name, conf in CONFS.items()}
        return cls.from_settings({name: text for name, text in found.items() if text is not None})


def parse_time_zone(name: str, value: str) -> tzinfo:
    """Return a time zone in one of Spark's forms: ``Europe/Paris``, ``UTC``, ``Z``, ``+01:00``,
    ``GMT+1``. Raise OptionError, which names the option ``name``, for an unknown name, and for an
    offset that is invalid or more than 18 hours.
    """
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
    """Return a time as nanoseconds since 1970. A time without a zone is in ``zone``, or in this
    machine's zone if that is None. Raise OptionError, which names the option ``name``, for a time
    in this machine's zone so near the years 1 or 9999 that the system cannot convert it.
    """
    try:
        if when.tzinfo is None:
            when = when.astimezone() if zone is None else when.replace(tzinfo=zone)
        return (when - _EPOCH) // timedelta(microseconds=1) * 1000
    except (OverflowError, ValueError, OSError):
        raise OptionError(
            name,
            f"{when.isoformat()} is too near the years 1 or 9999 for this machine to convert it from its time zone: write"
            " its offset or a time zone after it, such as Z",
        ) from None
