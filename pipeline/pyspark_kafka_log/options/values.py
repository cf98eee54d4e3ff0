"""Parse the values of options. Each parser takes the name of an option and its text, and raises OptionError for an invalid one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar

from kafka_log import Policy
from kafka_log.logs.names import State, parse_include
from kafka_log.segment.globs import PatternError, compile_pattern
from kafka_log.segment.model import OnDamage
from kafka_log.segment.urls import has_password
from pyspark_kafka_log.columns import COLUMNS

S = TypeVar("S", bound=str)

EARLIEST, LATEST = -2, -1

Offsets = Mapping[tuple[str, int], int]
"""An offset for each topic and partition; EARLIEST and LATEST stand for the ends."""

Bound = Offsets | int
"""Offsets, or EARLIEST or LATEST for all partitions."""

MODES: Mapping[str, tuple[OnDamage, Policy]] = {
    "FAILFAST": ("raise", Policy.KAFKA),
    "PERMISSIVE": ("keep", Policy.SALVAGE),
    "DROPMALFORMED": ("drop", Policy.SALVAGE),
}
"""Handling of damage and policy, by mode."""

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Units of durations, in milliseconds."""


class OptionError(ValueError):
    """An option is unknown or its value is invalid. ``option`` is its name."""

    def __init__(self, option: str, reason: str) -> None:
        """Store the name of the option and the reason."""
        super().__init__(option, reason)
        self.option = option
        self.reason = reason

    def __str__(self) -> str:
        """Return the message with the option and the reason."""
        return f"kafka-log: option {self.option}: {self.reason}"


def boolean(name: str, value: str) -> bool:
    """Return True for ``true`` and False for ``false``, in any case and without blanks. Raise
    OptionError for any other value.
    """
    if value.lower() not in ("true", "false"):
        raise OptionError(name, f"true or false is expected, not {value!r}")
    return value.lower() == "true"


def number(name: str, value: str) -> int:
    """Return the integer of an option, of 1 to 18 digits without a sign. Raise OptionError for 0
    and any other value.
    """
    if not re.fullmatch(r"[0-9]{1,18}", value, re.ASCII) or int(value) < 1:
        raise OptionError(name, f"a number from 1 on is expected, not {value!r}")
    return int(value)


def text(name: str, value: str) -> str:
    """Return ``value`` as it is."""
    return value


def integer(name: str, value: str) -> int:
    """Return an integer as Python's ``int`` reads it, also with a sign, blanks around it, and ``_``
    between digits. Raise OptionError for any other value.
    """
    try:
        return int(value)
    except ValueError:
        raise OptionError(name, f"a number is expected, not {value!r}") from None


def one_of(*allowed: S) -> Callable[[str, str], S]:
    """Return a function of an option's name and text that returns the one of ``allowed`` that
    equals the text without regard to case. The function raises OptionError if there is none.
    """

    def read(name: str, value: str) -> S:
        """Return the allowed value that equals ``value`` without case. Raises OptionError if there is none."""
        for one in allowed:
            if one.lower() == value.lower():
                return one
        raise OptionError(name, f"one of {', '.join(allowed)} is expected, not {value!r}")

    return read


def name_pattern(name: str, value: str) -> str:
    """Return the value, a pattern of file names, unchanged. Raise OptionError if it is empty or an
    invalid pattern.
    """
    if not value:
        raise OptionError(
            name, "it is empty: give a pattern of file names, or leave the option out"
        )
    try:
        compile_pattern(value)
    except PatternError as error:
        raise OptionError(name, str(error)) from None
    return value


def states(name: str, value: str) -> tuple[State, ...]:
    """Return the segment states in a comma-separated list, each once, in the order of STATES and
    without ``live``; ``all`` stands for all of them. Case and spaces around names do not matter.
    Raise OptionError for an unknown or empty name.
    """
    try:
        return parse_include(value)
    except ValueError as error:
        raise OptionError(name, str(error)) from None


def mode(name: str, value: str) -> tuple[OnDamage, Policy]:
    """Return what to do with damage and the policy for one of Spark's modes, in any case: FAILFAST
    is ``raise`` and ``kafka``, PERMISSIVE ``keep`` and ``salvage``, DROPMALFORMED ``drop`` and
    ``salvage``. Raise OptionError for another mode.
    """
    if value.upper() not in MODES:
        raise OptionError(name, f"one of {', '.join(MODES)} is expected, not {value!r}")
    return MODES[value.upper()]


def policy(name: str, value: str) -> Policy:
    """Return the policy with a name, in any case. Raise OptionError if there is none."""
    return Policy(one_of(*Policy)(name, value))


def names(name: str, value: str) -> tuple[str, ...]:
    """Return the names of a comma-separated list in order, without surrounding spaces. Raise
    OptionError if a name is empty or occurs twice.
    """
    found = tuple(part.strip() for part in value.split(","))
    if not all(found):
        raise OptionError(
            name, f"a name is empty in {value!r}: write names with commas between, such as a,b"
        )
    twice = sorted({n for n in found if found.count(n) > 1})
    if twice:
        raise OptionError(name, f"{', '.join(twice)} is named twice: name each once")
    return found


def topics(name: str, value: str) -> tuple[str, ...]:
    """Return the topics of a comma-separated list in order, without surrounding spaces. Drop empty
    and repeated names, as Spark's Kafka source does. Raise OptionError if no name is left.
    """
    found = tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
    if not found:
        raise OptionError(
            name, f"no topic is named in {value!r}: write topics with commas between, such as a,b"
        )
    return found


def pattern(name: str, value: str) -> str:
    """Return a regular expression without surrounding spaces. Raise OptionError if it is empty or
    does not compile.
    """
    if not value.strip():
        raise OptionError(name, "it is empty: give a regular expression, or leave the option out")
    value = value.strip()
    try:
        re.compile(value)
    except re.error as error:
        raise OptionError(name, f"{value!r} is not a regular expression: {error}") from None
    return value


def column(name: str, value: str) -> str:
    """Return the value unchanged, as the name of an additional column. Raise OptionError if it is
    blank, or the name of a column of the source in any case.
    """
    if not value.strip() or value.lower() in {known.lower() for known in COLUMNS}:
        raise OptionError(name, f"a name that no other column has is expected, not {value!r}")
    return value


def path(name: str, value: str) -> tuple[str, ...]:
    """Return a tuple with the one path, URL or pattern of the option, unchanged. Whether it exists
    is not checked. Raise OptionError if it is empty, or a URL that contains a password.
    """
    if not value:
        raise OptionError(
            name,
            "it is empty; say what to read: a log directory, a partition directory or a segment file, a pattern or a URL of them",
        )
    if has_password(value):
        raise OptionError(
            name,
            "a URL must not contain a password, because the path is shown in plans and messages",
        )
    return (value,)


def paths(name: str, value: str) -> tuple[str, ...]:
    """Return the paths of a JSON list of strings, in order; ``()`` for ``[]``. Raise OptionError if
    the value is not such a list, or a path is empty or a URL with a password.
    """
    found = read_json(name, value, '["/data/kafka-1", "/data/kafka-2"]')
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise OptionError(name, f"a JSON list of paths is expected, not {value!r}")
    return tuple(one for text in found for one in path(name, text))


def read_json(name: str, value: str, example: str) -> object:
    """Return the value of a JSON text. Raise OptionError, which shows ``example``, if the text is
    not JSON; OptionError if an object in it has a key twice.
    """

    def reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
        """Return the pairs of an object as a dict. Raises OptionError if a key repeats."""
        if len(dict(pairs)) < len(pairs):
            raise OptionError(name, f"a key occurs twice in {value!r}: give each key once")
        return dict(pairs)

    try:
        return json.loads(value, object_pairs_hook=reject_duplicates)
    except (ValueError, RecursionError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(name, f"JSON such as {example} is expected, not {value!r}") from None


def assign(name: str, value: str) -> frozenset[tuple[str, int]]:
    """Return the set of (topic, partition) pairs in JSON such as ``{"topicA":[0,1]}``; an empty list
    adds none. Raise OptionError for any other value, a partition that is no integer or negative,
    and an empty object.
    """
    example = '{"topicA":[0,1],"topicB":[0,1]}'
    wrong = OptionError(name, f"expected e.g. {example}, got {value!r}")
    found = read_json(name, value, example)
    if not isinstance(found, dict) or not found:
        raise wrong
    out = set()
    for topic, partitions in found.items():
        if not isinstance(partitions, list):
            raise wrong
        for partition in partitions:
            if type(partition) is not int or partition < 0:
                raise wrong
            out.add((topic, partition))
    return frozenset(out)


def bound(name: str, value: str) -> Bound:
    """Return EARLIEST or LATEST for their names in any case, else the offsets by (topic, partition)
    in JSON such as ``{"topicA":{"0":23}}``, in which -1 is LATEST and -2 EARLIEST. Raise
    OptionError for any other value.
    """
    ends = {"earliest": EARLIEST, "latest": LATEST}
    end = ends.get(value.strip().lower())
    return parse_by_partition(name, value, EARLIEST, _OFFSETS_EXAMPLE) if end is None else end


def milliseconds(name: str, value: str) -> int:
    """Return a time in milliseconds since 1970. Raise OptionError unless the value consists of 1 to
    18 digits.
    """
    if not re.fullmatch(r"[0-9]{1,18}", value, re.ASCII):
        raise OptionError(name, f"milliseconds since 1970 are expected, not {value!r}")
    return int(value)


def duration(name: str, value: str) -> int:
    """Return the milliseconds of a duration such as ``15m``: an integer of 1 to 12 digits without a
    sign, and one of the units ms (the default), s, m, min, h and d, in any case. Blanks around both
    are allowed. Raise OptionError for any other value.
    """
    found = re.fullmatch(r"\s*([0-9]{1,12})\s*([a-z]*)\s*", value.lower(), re.ASCII)
    unit = None if found is None else UNITS_MS.get(found[2] or "ms")
    if found is None or unit is None:
        raise OptionError(name, f"a duration such as 15m is expected, not {value!r}")
    return int(found[1]) * unit


def moment(name: str, value: str) -> tuple[datetime, str | None]:
    """Return a time in ISO 8601, aware only if the text has an offset or ``Z``, and the name of the
    time zone written after it, as in ``2026-11-22T10:15:00 Europe/Paris`` (None without one, not
    checked; no brackets). Raise OptionError for any other value, and for a zone after a time with
    an offset.
    """
    named = re.fullmatch(r"(.*?[0-9])\s*([A-Za-z]{2}.*)", value.strip(), re.ASCII)
    text, zone = named.groups() if named is not None else (value.strip(), None)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        when = None
    if when is None or (zone is not None and when.tzinfo is not None):
        raise OptionError(name, f"a time such as 2026-11-22T10:15:00 is expected, not {value!r}")
    return when, zone


def times(name: str, value: str) -> Offsets:
    """Return the times in JSON such as ``{"topicA":{"0":1700000000000}}``, in milliseconds since
    1970, by (topic, partition). Raise OptionError for any other value, and a negative time.
    """
    return parse_by_partition(name, value, 0, TIMES_EXAMPLE)


_OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":50},"topicB":{"0":0}}'
TIMES_EXAMPLE = '{"topicA":{"0":1700000000000,"1":1700000000000}}'
"""Examples of values for each partition, as messages show them."""


def parse_by_partition(name: str, value: str, least: int, example: str) -> Offsets:
    """Return the numbers in JSON such as ``{"topic":{"0":23}}`` by (topic, partition); ``{}`` for
    an empty object. Raise OptionError, which shows the valid ``example``, for any other value, a
    partition that is not 1 to 9 digits, and a number that is no integer from ``least`` to 2^63 - 1.
    """
    wrong = OptionError(name, f"expected e.g. {example}, got {value!r}")
    found = read_json(name, value, example)
    if not isinstance(found, dict):
        raise wrong
    out: dict[tuple[str, int], int] = {}
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            raise wrong
        for partition, offset in partitions.items():
            if not re.fullmatch(r"[0-9]{1,9}", partition, re.ASCII):
                raise wrong
            if type(offset) is not int or not least <= offset < 1 << 63:
                raise wrong
            out[topic, int(partition)] = offset
    return out
