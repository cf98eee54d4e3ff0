"""Options that select records and batches, with the same name and meaning in every command."""

from __future__ import annotations

import argparse
import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import (
    argument_type,
    parse_offset_range,
    parse_plain_offset_range,
    parse_time_range,
)
from kafka_log.logs.names import STATES, parse_include
from kafka_log.logs.replicas import Replicas
from kafka_log.read.selection import ISOLATIONS, MAX_PARTITION, Selection
from kafka_log.segment.row_selection import Header
from kafka_log.segment.times import TIMES

T = TypeVar("T")

BYTES = "text as UTF-8, or hex:..., base64:..., text:... (for what begins so)"

CHOICE = ("topic", "partition")
"""Options of commands that go by what a directory has now."""
PLACES = ("topic", "partition", "include", "replicas")
"""Options of commands that read no batch."""
BATCHES = ("topic", "partition", "offsets", "time", "producer", "include", "replicas")
"""Options of commands that read batches, by their headers."""
RECORDS = (
    "topic",
    "partition",
    "offsets",
    "time",
    "key",
    "header",
    "producer",
    "isolation",
    "control_records",
    "deleted_records",
    "include",
    "replicas",
)
"""Options of commands that read records."""


_UNREPORTED = (*PLACES, "control_records", "deleted_records")
"""Options that never cause an empty answer: they add records, or name what exists."""


_MAX_LOGS = 5
"""Maximum number of partitions whose offsets are printed."""


@dataclass(frozen=True)
class _Option:
    """Command-line option of a filter: the attribute of :class:`Selection`, its help and argparse
    settings.
    """

    filter: str
    help: str
    settings: Mapping[str, Any]


def add_selection(
    command: argparse.ArgumentParser,
    *names: str,
    but: Mapping[str, str] | None = None,
    types: Mapping[str, Callable[[str], Any]] | None = None,
) -> None:
    """Add selection options to a parser.

    Args:
        command: Parser of the command.
        names: Names of options, such as :data:`PLACES`, :data:`BATCHES` or :data:`RECORDS`.
        but: Other help texts by option name. An offset range with another help cannot count from the end of a log.
        types: Other parsers of values by option name.
    """
    command.set_defaults(filters=names)
    for name in names:
        option = _OPTIONS[name]
        text = (but or {}).get(name, option.help)
        settings = dict(option.settings)
        if name == "offsets" and but is not None and name in but:
            settings["type"] = argument_type(parse_plain_offset_range)
        if types is not None and name in types:
            settings["type"] = argument_type(types[name])
        command.add_argument(_flag_name(name), help=text, **settings)


def selection_of(options: argparse.Namespace) -> Selection:
    """Return the selection that the options of a command describe; missing options select
    everything.
    """
    found = {
        option.filter: value
        for name, option in _OPTIONS.items()
        if (value := getattr(options, name, None)) is not None
    }
    if (policy := getattr(options, "policy", None)) is not None:
        found["policy"] = policy
    return Selection(**found)


def say_unmatched(options: argparse.Namespace, *more: str) -> None:
    """Print one line to stderr about the given filters, after an empty answer; ``more`` are further
    flags.

    If ``--offsets`` was given, a second line names the offsets of the logs.
    """
    names: Sequence[str] = getattr(options, "filters", ())
    given = [name for name in names if name not in _UNREPORTED and getattr(options, name) not in (None, ())]  # fmt: skip
    flags = [*map(_flag_name, given), *more]
    if flags:
        print_message(f"nothing matches {', '.join(flags)}")
    if (
        "offsets" in given and "include" in names
    ):  # else these are no offsets of the logs that are read
        _print_offset_ranges(options)


def _print_offset_ranges(options: argparse.Namespace) -> None:
    """Print one line to stderr with the offset ranges of the first partitions that were read."""
    from kafka_log.logs.discovery import survey
    from kafka_log.logs.log_start import LogStarts
    from kafka_log.logs.partitions import select_partitions
    from kafka_log.logs.replicas import read_log_end, select_replicas

    there = survey(options.paths, options.include, unreadable_raises=False).partitions
    replicas = getattr(options, "replicas", None)
    there = select_replicas(
        select_partitions(there, options.topic, options.partition), replicas or "keep"
    )
    starts, said = LogStarts(), []
    for partition in there[:_MAX_LOGS]:
        segments = [segment for segment in partition.segments if segment.state != "snapshot"]
        try:
            end = read_log_end(segments)
        except OSError:
            end = None
        if end is None:
            continue
        start = max(segments[0].base_offset, starts.get(partition) or 0)
        has = (
            f"{start} to {end.offset - 1}"
            if start < end.offset
            else f"none, the next is {end.offset}"
        )
        said.append(f"{partition.topic}-{partition.partition} {has}")
    if said:
        more = len(there) - _MAX_LOGS
        rest = f" and {more} more partitions" if more > 0 else ""
        print_message(f"offsets there: {', '.join(said)}{rest}")


def describe_unknown_arguments(options: argparse.Namespace, left: Sequence[str]) -> str:
    """Return the error message for unknown arguments, which may be filters of other commands."""
    given = (text.partition("=")[0] for text in left)
    known = {_flag_name(name) for name in _OPTIONS}
    refused = next((text for text in given if text in known), None)
    if refused is None:
        return f"unrecognized arguments: {' '.join(left)}"
    names: Sequence[str] = getattr(options, "filters", ())
    taken = f"its filters are {', '.join(map(_flag_name, names))}" if names else "it has no filters"
    return f"{refused} means nothing to {options.command}: {taken}"


def _flag_name(name: str) -> str:
    """Return the option with a name: ``--deleted-records`` for ``deleted_records``."""
    return "--" + name.replace("_", "-")


# ---------------------------------------------------------------- values as people write them


def parse_key(text: str) -> bytes | None:
    """Return the bytes of a key as :func:`parse_bytes` does; None for ``null:``, which stands for
    records without a key. Raise ValueError if text after ``hex:`` or ``base64:`` is invalid.
    """
    return None if text == "null:" else parse_bytes(text)


def parse_bytes(text: str) -> bytes:
    """Return the bytes of a text, or the bytes written after ``hex:``, ``base64:`` or ``text:``.
    Raise ValueError if the text after ``hex:`` or ``base64:`` is invalid.
    """
    kind, colon, rest = text.partition(":")
    if colon and kind == "hex":
        try:
            return bytes.fromhex(rest)
        except ValueError:
            raise ValueError(f"{rest!r} is no bytes in hexadecimal digits") from None
    if colon and kind == "base64":
        try:
            return base64.b64decode(rest, validate=True)
        except binascii.Error:
            raise ValueError(f"{rest!r} is no bytes in Base64") from None
    # What the shell gives is bytes, and may be no UTF-8.
    return (rest if colon and kind == "text" else text).encode("utf-8", "surrogateescape")


def parse_header(text: str) -> Header:
    """Return the name in ``NAME``, or name and value in ``NAME=VALUE``, with a value as
    :func:`parse_key` takes it. Raise ValueError if the value is invalid.
    """
    name, equals, value = text.partition("=")
    return (name, parse_key(value)) if equals else name


def _parse_partition(text: str) -> int:
    """Return the partition number in a text. Raise ValueError if it is no number or too large."""
    return _parse_number(text, 0, MAX_PARTITION, "number of a partition")


def _parse_producer(text: str) -> int:
    """Return the producer id in a text, which may be negative. Raise ValueError if it is no 64-bit
    number.
    """
    return _parse_number(text, -1 << 63, (1 << 63) - 1, "producer id")


def _parse_number(text: str, low: int, high: int, what: str) -> int:
    """Return the decimal number in a text. Raise ValueError, which names ``what``, if it is no
    number from ``low`` to ``high`` (both included).
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
        raise ValueError(f"{text!r} is no {what}")
    if not low <= int(text) <= high:
        raise ValueError(f"{text} is no {what}: it must be from {low} to {high}")
    return int(text)


def _repeatable(parse: Callable[[str], Any], metavar: str) -> dict[str, Any]:
    """Return the argparse settings of an option that may be repeated."""
    return {"action": "append", "type": argument_type(parse), "metavar": metavar}


_OPTIONS: Mapping[str, _Option] = {
    "topic": _Option(
        "topics", "of this topic only; may be repeated", {"action": "append", "metavar": "NAME"}
    ),
    "partition": _Option(
        "partitions", "of this partition only; may be repeated", _repeatable(_parse_partition, "N")
    ),
    "offsets": _Option(
        "offsets",
        "from offset A up to, but not with, B; A: and :B are open; negative ones count from the end: -5: are the last 5",
        {"type": argument_type(parse_offset_range), "metavar": "A:B"},
    ),
    "time": _Option(
        "timestamps",
        f"from time A up to, but not with, B; each is {TIMES}",
        {"type": argument_type(parse_time_range), "metavar": "A:B"},
    ),
    "key": _Option(
        "keys",
        f"with this key: {BYTES}, null: (none); may be repeated: any of them",
        _repeatable(parse_key, "KEY"),
    ),
    "header": _Option(
        "headers",
        "with this header, and this value: as of --key; may be repeated: all of them",
        _repeatable(parse_header, "NAME[=VALUE]"),
    ),
    "producer": _Option(
        "producers",
        "of this producer id only (-1: of none); may be repeated",
        _repeatable(_parse_producer, "ID"),
    ),
    "isolation": _Option(
        "isolation",
        "read_committed leaves out aborted and open transactions",
        {"choices": ISOLATIONS},
    ),
    "control_records": _Option(
        "control_records",
        "also what brokers write for themselves: transaction markers",
        {"action": "store_true"},
    ),
    "deleted_records": _Option(
        "deleted_records",
        "also records before the log start offset: what DeleteRecords has cut off",
        {"action": "store_true"},
    ),
    "include": _Option(
        "include",
        f"also segments that are not live: {', '.join(STATES[1:])}, or all of them",
        {"type": argument_type(parse_include), "default": (), "metavar": "STATE,..."},
    ),
    "replicas": _Option(
        "replicas",
        "if several directories hold a partition: newest reads the one whose log goes furthest, keep all of them, error none"
        " (default: keep where rows name the directory, else error)",
        {"choices": get_args(Replicas)},
    ),
}
