"""Parse the options of streams: those of Spark's Kafka source that batch queries do not have, or have with another meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark_kafka_log.options import (
    LATEST,
    Bound,
    Offsets,
    OptionError,
    Options,
    Session,
    parse,
    parse_limits,
    values,
)
from pyspark_kafka_log.options.table import LIMITS, Given
from pyspark_kafka_log.stream.admission import Limits
from pyspark_kafka_log.stream.offsets import EPOCHS, INITIAL

_TIMES = (
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
)
ADDED_NAMES = (EPOCHS, INITIAL)
ENDS = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
"""Options of batch queries that a stream cannot have."""


@dataclass(frozen=True)
class StreamOptions:
    """The options of a stream, checked.

    ``starting`` is where a query without a checkpoint begins. ``starting_times`` (milliseconds, by partition or for all) replace it;
    ``latest_if_none`` begins at the end of partitions without so late a record.
    """

    reading: Options
    limits: Limits
    fails: bool = True
    starting: Bound = LATEST
    starting_times: Offsets | int | None = None
    latest_if_none: bool = False


def drop_options(given: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return options without ``names``, in any case."""
    alone = {name.lower() for name in names}
    return {name: value for name, value in given.items() if name.lower() not in alone}


def parse_stream(given: Mapping[str, str], session: Session = Session()) -> StreamOptions:  # noqa: B008
    """Return the checked options of a stream. Raise :class:`OptionError` for the first invalid or
    unknown one, and for what streams cannot have: an end, ignoreCorruptFiles, a report, segment
    states other than live and remote, ``replicas`` other than ``error``. A view is read with
    read_committed by default.

    Only the time zone of ``session`` is used: ``failOnDataLoss`` decides about missing files.
    """
    texts = {name.lower(): str(value) for name, value in given.items()}
    for name in ENDS:
        if name.lower() in texts:
            raise OptionError(name, "a stream does not end: leave this option out")
    plain = drop_options(given, (*LIMITS, *_TIMES))
    for name in [name for name in plain if name.lower() == "startingoffsets"]:
        plain[name] = _drop_added_names(plain[name])
    reading = parse(plain, batch=False, session=Session(session.time_zone))
    if reading.files.ignore_corrupt:
        raise OptionError(
            "ignoreCorruptFiles",
            "a stream continues in files that it has partly read, so that it cannot skip the rest of a file: set mode to DROPMALFORMED"
            " or PERMISSIVE, which skip damaged batches only",
        )
    if reading.report is not None:
        raise OptionError("view", f"a stream has no {reading.report}: read it in a batch query")
    if set(reading.selection.include) - {"remote"}:
        raise OptionError(
            "include",
            "a stream reads live segments, and with remote those in tiered storage: leave other states out",
        )
    if reading.selection.replicas != "error":
        raise OptionError("replicas", "a stream reads one replica of a partition: load one of them")
    if reading.view is not None and reading.selection.isolation is None:
        # What is undecided is held back: later nobody would look at it again.
        selection = reading.selection.but(isolation="read_committed")
        reading = replace(reading, selection=selection)
    starting = reading.starting_offsets
    return StreamOptions(
        reading=replace(reading, starting_offsets=None),
        limits=Limits(*parse_limits(Given(given))),
        fails=values.boolean("failOnDataLoss", texts.get("failondataloss", "true")),
        starting=LATEST if starting is None else starting,
        starting_times=_starting_times(texts),
        latest_if_none=_starting_strategy(texts) == "latest",
    )


def _drop_added_names(text: str) -> str:
    """Return a JSON text of offsets without the members for leader epochs and initial offsets that
    a stream's progress shows. Return the text unchanged if it has none or is not a JSON object.
    """
    try:
        found = json.loads(text)
    except ValueError:
        return text
    if not isinstance(found, dict) or not any(name.startswith(ADDED_NAMES) for name in found):
        return text
    return json.dumps(
        {name: inner for name, inner in found.items() if not name.startswith(ADDED_NAMES)}
    )


def _starting_times(texts: Mapping[str, str]) -> Offsets | int | None:
    """Return the option startingTimestamp, one time in milliseconds since 1970; else
    startingOffsetsByTimestamp, times by partition; None if neither is given. Raise OptionError if
    the value that is used is invalid.
    """
    one, several = texts.get(_TIMES[0].lower()), texts.get(_TIMES[1].lower())
    if one is not None:
        if not re.fullmatch(r"[0-9]{1,18}", one, re.ASCII):
            raise OptionError(_TIMES[0], f"milliseconds since 1970 are expected, not {one!r}")
        return int(one)
    return (
        None
        if several is None
        else values.parse_by_partition(_TIMES[1], several, 0, values.TIMES_EXAMPLE)
    )


def _starting_strategy(texts: Mapping[str, str]) -> str:
    """Return ``error`` or ``latest``, for partitions without so late a record."""
    text = texts.get(_TIMES[2].lower(), "error")
    return values.one_of("error", "latest")(_TIMES[2], text)
