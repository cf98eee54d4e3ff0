"""Which offsets of a partition the options choose, and whether all of these are there."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.runtime.errors import CodecError
from kafka_log.logs.log_start import LogStarts
from kafka_log.segment.ranges import MAX_OFFSET, Range
from pyspark_kafka_log.logs import Log
from pyspark_kafka_log.options import EARLIEST, LATEST, Bound, OptionError, Options


def offsets_of(log: Log, options: Options, starts: LogStarts) -> Range:
    """The offsets that the options choose. Raises :class:`OptionError` where no record is as late as the first is to be, and with
    ``failOnDataLoss`` where offsets that are named are not there, or the first comes after the last."""
    first = _offset(options.starting_offsets, log, EARLIEST)
    end = _offset(options.ending_offsets, log, LATEST)
    if options.starting_times is not None:
        first = _at(options.starting_times, log, options, starts)
        if first is None and not options.latest_if_none:
            raise OptionError(
                "startingTimestamp",
                f"{_named(log)} has no record that late; with"
                " startingOffsetsByTimestampStrategy set to latest such partitions are read from their end on",
            )
        first = MAX_OFFSET if first is None else first
    elif first is not None and options.fail_on_data_loss:
        _check_there("startingOffsets", first, log, options, starts)
    if options.ending_times is not None:
        end = _at(options.ending_times, log, options, starts)
    elif end is not None and options.fail_on_data_loss:
        _check_there("endingOffsets", end, log, options, starts)
    ordered = first is None or end is None or first <= end or first == MAX_OFFSET
    if options.fail_on_data_loss and not ordered:
        raise OptionError("startingOffsets", f"{_named(log)}: {first} comes after the end, {end}")
    return first, end


def _offset(offsets: Bound | None, log: Log, none: int) -> int | None:
    offset = offsets[log.key] if isinstance(offsets, Mapping) else offsets
    return None if offset == none else offset


def _at(times: Bound, log: Log, options: Options, starts: LogStarts) -> int | None:
    """The first offset that is as late as the options say."""
    from kafka_log.read.offsets_by_time import offset_at  # records are read: not for other plans

    begin = None if options.selection.deleted_records else starts.get(log)
    time = times[log.key] if isinstance(times, Mapping) else times
    return offset_at(log, time, options.planning, options.engine, begin)


def _check_there(option: str, offset: int, log: Log, options: Options, starts: LogStarts) -> None:
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
        raise OptionError(option, f"{_named(log)} begins at offset {begins}: {gone}; {_HINT}")
    end = _end(log, options)
    if end is not None and offset > end:
        stable = options.selection.isolation == "read_committed"
        ends = "is decided up to" if stable else "ends at"
        raise OptionError(option, f"{_named(log)} {ends} offset {end}, not {offset}; {_HINT}")


_HINT = "with failOnDataLoss set to false what is there is read"


def _end(log: Log, options: Options) -> int | None:
    """The offset after the last one that can be read; None where damage hides it, which whoever reads there meets."""
    from kafka_log.read.progress import Ends  # batches are read: not for other plans

    ends = Ends(options.selection, options.engine)
    try:
        end = ends.of(log.key, log)
        return None if end is None else ends.readable(log.key, log, end).offset
    except (CodecError, FileNotFoundError):
        return None


def _named(log: Log) -> str:
    return f"partition {log.partition} of topic {log.topic}"
