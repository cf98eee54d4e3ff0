"""Resolve the offset options of a query for each partition, and check that the log still has these offsets."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import starmap
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.incomplete_tails import ReadBroker, find_end_losses, find_losses
from kafka_log.logs.log_start import LogStarts
from kafka_log.read.isolation import Known, PartitionFilters
from kafka_log.read.progress import LogEnds
from kafka_log.read.scanning import OnLost
from kafka_log.segment.model import Lost, Policy, describe_lost
from kafka_log.segment.ranges import MAX_OFFSET, Range
from pyspark_kafka_log.losses import DataLossError
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


def resolve_offsets(log: Log, options: Options, starts: LogStarts, known: Known) -> Range:
    """Return the half-open offset range that the options select in a log: the first offset, None
    for earliest, and the end, None for latest or an ending time that no record has. If no record
    has the starting time, raise OptionError, or start at MAX_OFFSET if the strategy is ``latest``.
    With ``failOnDataLoss`` raise OptionError if the log does not have a named offset, or the first
    comes after the end; without it both are returned unchanged. Raise CodecError for damage before
    a time's record unless the mode or ``ignoreCorruptFiles`` accepts it. Transactions are taken
    from ``known``, or looked up and added.
    """
    first = _given_offset(options.starting_offsets, log, EARLIEST)
    end = _given_offset(options.ending_offsets, log, LATEST)
    if options.starting_times is not None:
        first = _offset_at_time(options.starting_times, log, options, starts, warn_of_lost)
        if first is None and not options.latest_if_none:
            raise OptionError(
                "startingTimestamp",
                f"{_describe_partition(log)} has no record with this timestamp or a later one; with"
                " startingOffsetsByTimestampStrategy set to latest the query reads nothing of such partitions",
            )
        first = MAX_OFFSET if first is None else first
    elif first is not None and options.fail_on_data_loss:
        _check_available("startingOffsets", first, log, options, starts, known)
    if options.ending_times is not None:
        end = _offset_at_time(options.ending_times, log, options, starts)
    elif end is not None and options.fail_on_data_loss:
        _check_available("endingOffsets", end, log, options, starts, known)
    ordered = first is None or end is None or first <= end or first == MAX_OFFSET
    if options.fail_on_data_loss and not ordered:
        raise OptionError(
            "startingOffsets",
            f"{_describe_partition(log)}: it is {first}, after the end of the query, {end}: give a lower start or a higher end",
        )
    return first, end


def _given_offset(offsets: Bound | None, log: Log, none: int) -> int | None:
    """Return the offset that an option gives for a log, None if it is ``none`` (earliest or latest)."""
    offset = offsets[log.key] if isinstance(offsets, Mapping) else offsets
    return None if offset == none else offset


def warn_of_lost(path: Path, lost: Lost) -> None:
    """Warn of a lost range before the first record of a query that begins at a time. No task reads it."""
    warnings.warn(
        f"kafka-log: data is lost: {path}: bytes {lost.start} to {lost.end} before the first record that is read, which may have"
        f" records of the starting time or later: {lost.reason}",
        stacklevel=2,
    )


def _offset_at_time(
    times: Bound,
    log: Log,
    options: Options,
    starts: LogStarts,
    on_lost: OnLost | None = None,
) -> int | None:
    """Return the first offset whose timestamp is at or after the time that ``times`` gives for a
    log; None if there is none. Ignore deleted records unless they are included. Call ``on_lost``
    for lost ranges of the segments before the record. Raise CodecError for damage before the record
    unless the mode or ``ignoreCorruptFiles`` accepts it.
    """
    from kafka_log.read.offsets_by_time import offset_at

    begin = None if options.selection.deleted_records else starts.get(log)
    time = times[log.key] if isinstance(times, Mapping) else times
    return offset_at(log, time, options.planning, options.engine, begin, on_lost)


def list_losses(
    log: Log,
    offsets: Range,
    options: Options,
    starts: LogStarts,
    read_broker: ReadBroker,
    policy: Policy | None = None,
) -> list[str]:
    """Return a message for each loss in the half-open range ``offsets`` of a log that no task
    meets: offsets that neither copies in tiered storage nor live segments have, from the log start
    offset on, and an incomplete batch at its end that was written. The former are no loss if
    pathGlobFilter, modifiedAfter or modifiedBefore is set; tasks meet the latter unless ``policy``
    (None: that of ``options``) is ``kafka``.
    """
    policy = policy or options.selection.policy
    if not options.files.are_filtered:
        losses = find_losses(log, offsets, starts, read_broker, policy)
    elif policy is Policy.KAFKA:
        losses = find_end_losses(log, read_broker, offsets)
    else:
        return []
    return list(starmap(describe_lost, losses))


def raise_or_warn(losses: Sequence[str], options: Options) -> None:
    """Raise DataLossError if there are losses; without ``failOnDataLoss`` warn of each."""
    if losses and options.fail_on_data_loss:
        raise DataLossError(losses)
    for loss in losses:
        warnings.warn(f"kafka-log: data is lost: {loss}", stacklevel=2)


def _check_available(
    option: str, offset: int, log: Log, options: Options, starts: LogStarts, known: Known
) -> None:
    """Raise :class:`OptionError` if an offset lies before the first available one of a log, or
    after its readable end. Check nothing if pathGlobFilter, modifiedAfter or modifiedBefore is set,
    or the first file has no canonical name: the log may be a part only. An end hidden by damage is
    not checked.
    """
    lowest = log.segments[0]
    if not lowest.has_canonical_name or options.files.are_filtered:
        return  # parts of a log, which do not say where it begins and ends
    deleted = 0 if options.selection.deleted_records else starts.get(log) or 0
    begins = max(lowest.base_offset, deleted)
    if offset < begins:
        gone = f"{offset} to {begins - 1} are gone"
        raise OptionError(
            option, f"{_describe_partition(log)} begins at offset {begins}: {gone}; {_HINT}"
        )
    end = _readable_end(log, options, starts, known)
    if end is not None and offset > end:
        stable = options.selection.isolation == "read_committed"
        ends = "is decided up to" if stable else "ends at"
        raise OptionError(
            option, f"{_describe_partition(log)} {ends} offset {end}, not {offset}; {_HINT}"
        )


_HINT = "set failOnDataLoss to false to read what is there"


def _readable_end(log: Log, options: Options, starts: LogStarts, known: Known) -> int | None:
    """Return the offset after the last whole batch, with read_committed the first offset of the
    oldest open transaction, if one is open, by ``known`` or a lookup that is added there. Return
    None if damage or a missing file hides it, which the task that reads there reports, or the
    directory is gone. Unless the mode accepts damage, headers decide, and no checksum is verified.
    """
    try:
        end = LogEnds(options.selection, options.engine).find_end(log.key, log)
        if end is None or options.selection.isolation != "read_committed":
            return None if end is None else end.offset
        filters = PartitionFilters(options.planning, options.engine, starts=starts, known=known)
        stable = filters.last_stable_offset(log)
    except (CodecError, FileNotFoundError):
        return None
    return end.offset if stable is None else min(end.offset, stable)


def _describe_partition(log: Log) -> str:
    """Return the partition and topic of a log for messages."""
    return f"partition {log.partition} of topic {log.topic}"


def ending_offsets(path: Paths, options: Mapping[str, str] | None = None) -> str:
    """Return the present ends of the selected logs as JSON for the option ``endingOffsets``:
    ``{"orders":{"0":950}}``. Leave out partitions whose directory is gone. Raise DataLossError if a
    log lost its last batch, or warn without ``failOnDataLoss``; OptionError for
    options that are invalid, do not fit the logs, or already say where queries end; DirectoryError
    for a path without logs; OSError if a path or, unless the mode accepts damage, a partition
    cannot be listed; CodecError for damage unless the mode accepts it. Checksums are verified only
    if it does.

    Queries with this option read what is there now, and no later records. A partition ends after its last complete batch; with ``isolationLevel``
    ``read_committed`` at its oldest open transaction. This process reads the files. A query with these offsets fails if a partition is new since.

    Args:
        path: The path or paths of the queries.
        options: The options of the queries.

    Raises:
        OptionError: For invalid options, and for options that already say where queries end.
        DirectoryError: For a path without logs.
        CodecError: For damage.
        DataLossError: If an incomplete batch at the end of a log was written.
    """
    wanted = parse_paths(path, options)
    if wanted.ending_offsets not in (None, LATEST) or wanted.ending_times is not None:
        raise OptionError(
            "endingOffsets",
            "ending_offsets computes it: leave out the options that say where queries end",
        )
    ends = LogEnds(wanted.selection, wanted.engine)
    starts, read_broker = LogStarts(), cache(read_broker_files)
    losses: list[str] = []
    found: dict[str, dict[str, int]] = {}
    for log in select_logs(find_logs(wanted), wanted):
        end = ends.find_end(log.key, log)
        if end is not None:
            # A query that ends there asks for nothing behind it.
            losses += list_losses(log, (end.offset, None), wanted, starts, read_broker)
            of_topic = found.setdefault(log.topic, {})
            of_topic[str(log.partition)] = ends.find_readable_end(log.key, log, end).offset
    raise_or_warn(losses, wanted)
    return json.dumps(found, separators=(",", ":"))
