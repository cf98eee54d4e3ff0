"""Options that select records and batches, with the same name and meaning in every command."""

from __future__ import annotations

import argparse
import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from kafka_log.cli.messages import print_message
from kafka_log.cli.ranges import (
    MAX_INT64,
    argument_type,
    number_type,
    parse_offset_range,
)
from kafka_log.logs.names import STATES, parse_include
from kafka_log.logs.partition_filters import parse_partitions, parse_topics
from kafka_log.logs.replicas import Replicas
from kafka_log.read.selection import ISOLATIONS, Selection
from kafka_log.segment.row_selection import Header
from kafka_log.segment.similar_names import suggest_similar
from kafka_log.segment.times import TIMES, parse_time_range

T = TypeVar("T")
Group = argparse._ArgumentGroup
"""Group of options in a help text."""

BYTES = "UTF-8 text, hex:0aff, base64:Cv8=, or text:... for text that begins with such a prefix"

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
    help_texts: Mapping[str, str] | None = None,
    types: Mapping[str, Callable[[str], Any]] | None = None,
) -> Group:
    """Add the selection options ``names`` to a parser, in the group "selection" of its help, and
    return the group, for further options. ``help_texts`` has other help texts and ``types`` other
    parsers for some. ``filters`` of the parsed options is set to ``names``. Raise KeyError for an unknown name.

    Args:
        command: Parser of the command.
        names: Names of options, such as :data:`PLACES`, :data:`BATCHES` or :data:`RECORDS`.
        help_texts: Other help texts by option name.
        types: Other parsers of values by option name.
    """
    command.set_defaults(filters=names)
    group = command.add_argument_group("selection")
    for name in names:
        option = _OPTIONS[name]
        text = (help_texts or {}).get(name, option.help)
        settings = dict(option.settings)
        if types is not None and name in types:
            settings["type"] = argument_type(types[name])
        group.add_argument(_flag_name(name), help=text, **settings)
    return group


def selection_of(options: argparse.Namespace) -> Selection:
    """Return the selection that the selection options and ``--policy`` of a command describe.
    Options that the command lacks, or that are not given, have the defaults of a Selection: no
    filter, but only live segments, and no control or deleted records.
    """
    found = {
        option.filter: value
        for name, option in _OPTIONS.items()
        if (value := getattr(options, name, None)) is not None
    }
    if (policy := getattr(options, "policy", None)) is not None:
        found["policy"] = policy
    return Selection(**found)


def warn_of_no_match(options: argparse.Namespace, *more: str, what: str = "nothing") -> None:
    """Print one line to stderr that ``what`` matches the given filters and the flags ``more``; none
    if there are neither. If ``--offsets`` was given to a command that has ``--include``, a second
    line gives the offsets of the logs.
    """
    names: Sequence[str] = getattr(options, "filters", ())
    given = [name for name in names if name not in _UNREPORTED and getattr(options, name) not in (None, ())]  # fmt: skip
    flags = [*map(_flag_name, given), *more]
    if flags:
        print_message(f"{what} matches {', '.join(flags)}")
    if (
        "offsets" in given and "include" in names
    ):  # else these are no offsets of the logs that are read
        _print_offset_ranges(options)


def _print_offset_ranges(options: argparse.Namespace) -> None:
    """Print one line to stderr with the offset ranges of the first five selected partitions, from
    the log start offset on; logs whose end is unknown or damaged are left out. Print nothing if none
    is left.
    """
    from kafka_log.logs.discovery import survey
    from kafka_log.logs.log_start import LogStarts
    from kafka_log.logs.partitions import select_partitions
    from kafka_log.logs.replicas import read_verified_end, select_replicas

    there = survey(options.paths, options.include, unreadable_raises=False).partitions
    replicas = getattr(options, "replicas", None)
    there = select_replicas(
        select_partitions(there, options.topic, options.partition), replicas or "keep"
    )
    starts, said = LogStarts(), []
    for partition in there[:_MAX_LOGS]:
        segments = [segment for segment in partition.segments if segment.state != "snapshot"]
        try:
            end = read_verified_end(segments)
        except OSError:
            end = None
        if end is None:
            continue
        start = max(segments[0].base_offset, starts.get(partition) or 0)
        has = f"{start} to {end - 1}" if start < end else f"is empty (next offset {end})"
        said.append(f"{partition.topic}-{partition.partition} {has}")
    if said:
        more = len(there) - _MAX_LOGS
        rest = f" and {more} more partitions" if more > 0 else ""
        print_message(f"available offsets: {', '.join(said)}{rest}")


def describe_unknown_arguments(
    options: argparse.Namespace, left: Sequence[str], flags: Iterable[str]
) -> str:
    """Return the error message for the unknown arguments ``left``. If some are filters of other
    commands, it is only about the first of these: that it does not apply to this command, and which
    filters do. Otherwise it lists all of ``left``, with the most similar one of ``flags``, the
    options of this command, for the first option among them.
    """
    given = (text.partition("=")[0] for text in left)
    known = {_flag_name(name) for name in _OPTIONS}
    refused = next((text for text in given if text in known), None)
    if refused is None:
        unknown = next((text.partition("=")[0] for text in left if text.startswith("--")), None)
        hint = "" if unknown is None else suggest_similar(unknown, flags)
        return f"unrecognized arguments: {' '.join(left)}{hint}"
    names: Sequence[str] = getattr(options, "filters", ())
    supported = f"it supports {', '.join(map(_flag_name, names))}" if names else "it has no filters"
    return f"{refused} does not apply to {options.command}: {supported}"


def _flag_name(name: str) -> str:
    """Return the option with a name: ``--deleted-records`` for ``deleted_records``."""
    return "--" + name.replace("_", "-")


# ---------------------------------------------------------------- values as people write them


def parse_key(text: str) -> bytes | None:
    """Return the bytes of a text, or the bytes written after ``hex:``, ``base64:`` or ``text:``;
    None for ``null:``, which stands for records without a key. Raise ValueError if text after
    ``hex:`` or ``base64:`` is invalid.
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
            raise ValueError(
                f"{text!r} is not hexadecimal: after hex: write an even number of digits, such as hex:0aff"
            ) from None
    if colon and kind == "base64":
        try:
            return base64.b64decode(rest, validate=True)
        except binascii.Error:
            raise ValueError(
                f"{text!r} is not Base64: after base64: write text such as base64:Cv8="
            ) from None
    # What the shell gives is bytes, and may be no UTF-8.
    return (rest if colon and kind == "text" else text).encode("utf-8", "surrogateescape")


def parse_header(text: str) -> Header:
    """Return the text itself for ``NAME``, which selects any value; for ``NAME=VALUE``, split at
    the first ``=``, the pair of name and value. Bytes of the name that are not UTF-8 become U+FFFD,
    as in names that are read. The value is None for ``null:``, the bytes written after ``hex:``,
    ``base64:`` or ``text:``, else the text's own bytes. Raise ValueError if text after ``hex:`` or
    ``base64:`` is invalid.
    """
    name, equals, value = text.partition("=")
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return (name, parse_key(value)) if equals else name


def _repeatable(parse: Callable[[str], Any], metavar: str) -> dict[str, Any]:
    """Return the argparse settings of an option that may be repeated."""
    return {"action": "append", "type": argument_type(parse), "metavar": metavar}


_STATES_HELP = f"{', '.join(STATES[1:])}, or all (default: only live segments)"
INCLUDE = f"add segments that are not live: {_STATES_HELP}"
INCLUDE_FOR_DIFF = (
    f"add segments that are not live, for offsets below the live segments: {_STATES_HELP}"
)


_OPTIONS: Mapping[str, _Option] = {
    "topic": _Option(
        "topics",
        "only these topics: names or patterns, such as orders-*, with commas between; patterns match internal topics only if they"
        " begin with __; may be repeated (default: all)",
        {"action": "extend", "type": argument_type(parse_topics), "metavar": "NAME,..."},
    ),
    "partition": _Option(
        "partitions",
        "only partitions with these numbers, such as 0-3,7; may be repeated (default: all)",
        {"action": "extend", "type": argument_type(parse_partitions), "metavar": "N,..."},
    ),
    "offsets": _Option(
        "offsets",
        "only offsets from A (included) to B (excluded); A: and :B are open; negative offsets count from the end of the log:"
        " -5: selects the last 5",
        {"type": argument_type(parse_offset_range), "metavar": "A:B"},
    ),
    "time": _Option(
        "timestamps",
        f"only timestamps from A (included) to B (excluded), or of a day, hour, minute or second, such as 2026-11-22; each is {TIMES}",
        {"type": argument_type(parse_time_range), "metavar": "A:B"},
    ),
    "key": _Option(
        "keys",
        f"only records with this key: {BYTES}; null: for records without a key; may be repeated to select several keys",
        _repeatable(parse_key, "KEY"),
    ),
    "header": _Option(
        "headers",
        "only records with this header, and with this value (written as for --key); if repeated, all must match",
        _repeatable(parse_header, "NAME[=VALUE]"),
    ),
    "producer": _Option(
        "producers",
        "only this producer id, -1 for records without one; may be repeated (default: all)",
        _repeatable(number_type("a producer id", -1 << 63, MAX_INT64), "ID"),
    ),
    "isolation": _Option(
        "isolation",
        "read_committed skips records of aborted and open transactions (default: read_uncommitted)",
        {"choices": ISOLATIONS},
    ),
    "control_records": _Option(
        "control_records",
        "include control records (transaction markers, leader changes)",
        {"action": "store_true"},
    ),
    "deleted_records": _Option(
        "deleted_records",
        "include records below the log start offset (deleted with kafka-delete-records)",
        {"action": "store_true"},
    ),
    "include": _Option(
        "include",
        INCLUDE,
        {"type": argument_type(parse_include), "default": (), "metavar": "STATE,..."},
    ),
    "replicas": _Option(
        "replicas",
        "which copies to read if several directories hold the same partition: newest reads the one with the highest leader epoch"
        " and offset, keep reads all, error stops with exit code 2 (default: keep if rows name their directory, else error)",
        {"choices": get_args(Replicas)},
    ),
}
