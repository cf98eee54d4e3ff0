"""Which offsets of a partition the options choose, and whether all of these are there."""

from __future__ import annotations

import json
from collections.abc import Mapping

from codecgen.runtime.errors import CodecError
from kafka_log.logs.log_start import LogStarts
from kafka_log.read.progress import Ends
from kafka_log.segment.ranges import MAX_OFFSET, Range
from pyspark_kafka_log.options import (
    EARLIEST,
    LATEST,
    Bound,
    OptionError,
    Options,
    Paths,
    parse_paths,
)
from pyspark_kafka_log.splits.logs import Log, find_logs, select_logs


def resolve_offsets(log: Log, options: Options, starts: LogStarts) -> Range:
    """The offsets that the options choose. Raises :class:`OptionError` where no record is as late as the first is to be, and with
    ``failOnDataLoss`` where offsets that are named are not there, or the first comes after the last."""
    first = _given_offset(options.starting_offsets, log, EARLIEST)
    end = _given_offset(options.ending_offsets, log, LATEST)
    if options.starting_times is not None:
        first = _offset_at_time(options.starting_times, log, options, starts)
        if first is None and not options.latest_if_none:
            raise OptionError(
                "startingTimestamp",
                f"{_describe_partition(log)} has no record that late; with"
                " startingOffsetsByTimestampStrategy set to latest such partitions are read from their end on",
            )
        first = MAX_OFFSET if first is None else first
    elif first is not None and options.fail_on_data_loss:
        _check_available("startingOffsets", first, log, options, starts)
    if options.ending_times is not None:
        end = _offset_at_time(options.ending_times, log, options, starts)
    elif end is not None and options.fail_on_data_loss:
        _check_available("endingOffsets", end, log, options, starts)
    ordered = first is None or end is None or first <= end or first == MAX_OFFSET
    if options.fail_on_data_loss and not ordered:
        raise OptionError(
            "startingOffsets", f"{_describe_partition(log)}: {first} comes after the end, {end}"
        )
    return first, end


def _given_offset(offsets: Bound | None, log: Log, none: int) -> int | None:
    offset = offsets[log.key] if isinstance(offsets, Mapping) else offsets
    return None if offset == none else offset


def _offset_at_time(times: Bound, log: Log, options: Options, starts: LogStarts) -> int | None:
    """The first offset that is as late as the options say."""
    from kafka_log.read.offsets_by_time import offset_at

    begin = None if options.selection.deleted_records else starts.get(log)
    time = times[log.key] if isinstance(times, Mapping) else times
    return offset_at(log, time, options.planning, options.engine, begin)


def _check_available(
    option: str, offset: int, log: Log, options: Options, starts: LogStarts
) -> None:
    """Raises :class:`OptionError` for an offset before the first one that is there, or after the end."""
    lowest, files = log.segments[0], options.files
    if not lowest.has_canonical_name or (files.pattern, files.after, files.before) != (
        None,
        None,
        None,
    ):
        return  # parts of a log, which do not say where it begins and ends
    deleted = 0 if options.selection.deleted_records else starts.get(log) or 0
    begins = max(lowest.base_offset, deleted)
    if offset < begins:
        gone = f"{offset} to {begins - 1} are gone"
        raise OptionError(
            option, f"{_describe_partition(log)} begins at offset {begins}: {gone}; {_HINT}"
        )
    end = _readable_end(log, options)
    if end is not None and offset > end:
        stable = options.selection.isolation == "read_committed"
        ends = "is decided up to" if stable else "ends at"
        raise OptionError(
            option, f"{_describe_partition(log)} {ends} offset {end}, not {offset}; {_HINT}"
        )


_HINT = "with failOnDataLoss set to false what is there is read"


def _readable_end(log: Log, options: Options) -> int | None:
    """The offset after the last one that can be read; None where damage hides it, which whoever reads there meets."""
    ends = Ends(options.selection, options.engine)
    try:
        end = ends.of(log.key, log)
        return None if end is None else ends.readable(log.key, log, end).offset
    except (CodecError, FileNotFoundError):
        return None


def _describe_partition(log: Log) -> str:
    return f"partition {log.partition} of topic {log.topic}"


def ending_offsets(path: Paths, options: Mapping[str, str] | None = None) -> str:
    """What the option ``endingOffsets`` is for queries that read what is there now, and not what comes later:
    ``{"orders":{"0":950}}``, as JSON.

    ``path`` and ``options`` are those of the queries. A partition ends after its last whole batch; with ``isolationLevel`` ``read_committed`` where
    its oldest open transaction begins. Files are looked at by this process. A query with these offsets fails when a partition is new since.

    Raises :class:`OptionError`, also for options that say where queries end; DirectoryError for a path without logs, and CodecError for damage.
    """
    wanted = parse_paths(path, options)
    if wanted.ending_offsets not in (None, LATEST) or wanted.ending_times is not None:
        raise OptionError(
            "endingOffsets", "it is asked for, so leave out what says where queries end"
        )
    ends = Ends(wanted.selection, wanted.engine)
    found: dict[str, dict[str, int]] = {}
    for log in select_logs(find_logs(wanted), wanted):
        end = ends.of(log.key, log)
        if end is not None:
            of_topic = found.setdefault(log.topic, {})
            of_topic[str(log.partition)] = ends.readable(log.key, log, end).offset
    return json.dumps(found, separators=(",", ":"))
