"""Incomplete tails: bytes after the last complete batch of an active segment. A live or killed broker leaves them; they are no damage,
unless the files of the broker say that the log was complete there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log.logs.broker_files import (
    BrokerFiles,
    list_proof_files,
    log_directory_of,
    read_broker_files,
)
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.names import CLEAN_SHUTDOWN, CLUSTER_METADATA
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.replicas import read_segment_end
from kafka_log.logs.tiers import find_lost_offsets
from kafka_log.segment import tails
from kafka_log.segment.model import End, Lost, Policy, Tail
from kafka_log.segment.positioned_reads import UnreadableError, open_segment, read_exactly, size_of
from kafka_log.segment.ranges import EVERYTHING, MAX_OFFSET, Range
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.urls import is_url

_FIRST_AND_LAST = ("base_offset", "last_offset")
_APPENDED = ("live", "future")
"""States of segments that a broker appends to."""

ReadBroker = Callable[[Path], BrokerFiles]
"""Function that returns the broker's files of a log directory: :func:`read_broker_files`. Callers that ask about several partitions
cache it, because each file has a line for each partition."""


def find_incomplete_tail(segment: Segment, position: int) -> Lost | None:
    """Return the byte range from ``position`` to the end of a segment if a broker would cut it off:
    a torn batch of this segment, or zeros. Return None if it is damage or empty, the segment is not
    the active one, or the file cannot be read.

    A reader that accepts no damage decides it. If the bytes begin with a batch header, its offsets must belong to this segment.
    """
    try:
        if segment.tail is not Tail.ACTIVE or not _is_plausible_header(segment, position):
            return None
    except UnreadableError:
        return None
    reader = SegmentReader(
        segment.path, start=position, records=False, tail=segment.tail, size=segment.size
    )
    if next(iter(reader), None) is not None or reader.end is None or reader.end.note is None:
        return None
    reason = tails.ZEROS if reader.end.stop == "zeros" else tails.TORN
    return Lost(position, position + reader.end.trailing_bytes, reason)


def separate_incomplete_tail(
    segment: Segment, end: End | None
) -> tuple[tuple[Lost, ...], Lost | None]:
    """Return the lost ranges of a file that was read under ``salvage`` without its incomplete tail,
    and that tail; None for the tail if there is none. ``end`` is how the read ended; ``((), None)``
    if it is None.
    """
    if end is None:
        return (), None
    lost = end.lost
    stop = end.iterated_bytes + (0 if end.note else end.trailing_bytes)
    if lost and lost[-1].end == stop and lost[-1].before_offset is None:
        torn = find_incomplete_tail(segment, lost[-1].start)
        if torn is not None:
            return lost[:-1], replace(torn, after_offset=lost[-1].after_offset)
    return lost, None if end.note is None else find_incomplete_tail(segment, end.iterated_bytes)


def separate_unfinished_tail(
    segment: Segment, end: End | None
) -> tuple[tuple[Lost, ...], Lost | None]:
    """Return the lost ranges and the incomplete tail as :func:`separate_incomplete_tail` does. A tail
    is among the lost ranges if the files of the broker say that its records were written
    (:func:`find_tail_loss`). Raise OSError if the log directory may not be searched.
    """
    lost, tail = separate_incomplete_tail(segment, end)
    loss = None if tail is None else find_tail_loss(segment, tail)
    return (lost, tail) if loss is None else ((*lost, loss), None)


def is_tail_error(topic: str, broker: BrokerFiles) -> bool:
    """Return whether an incomplete tail of an active segment is damage because the broker was shut
    down cleanly. The metadata log may have one all the same.
    """
    return broker.was_clean_shutdown and topic != CLUSTER_METADATA


def find_tail_loss(
    segment: Segment, tail: Lost, read_broker: ReadBroker = read_broker_files
) -> Lost | None:
    """Return the incomplete tail ``tail`` of an active segment as a lost range if the broker was shut
    down cleanly, or if its recovery point or high watermark is above the first offset of the tail.
    The higher one of the two is its ``before_offset``. Return None in all other cases, if the
    segment is not in the log, and if a broker wrote to it since it was listed. Raise OSError if the
    log directory may not be searched.
    """
    if segment.state not in _APPENDED:
        return None
    broker = read_broker(log_directory_of(segment.path.parent))
    first = _first_offset_of(segment, tail)
    reached = broker.reached_offset((segment.topic, segment.partition))
    reasons = [tail.reason]
    if is_tail_error(segment.topic, broker):
        reasons.append(f"the broker was shut down cleanly ({CLEAN_SHUTDOWN})")
    if reached > first:
        reasons.append(f"by the checkpoints, the log reached offset {reached}")
    if len(reasons) == 1 or _has_changed(segment, tail):
        return None
    before = reached if reached > first else None
    return replace(tail, reason="; ".join(reasons), after_offset=first - 1, before_offset=before)


def find_lost_end(segments: Sequence[Segment], read_broker: ReadBroker) -> Lost | None:
    """Return the incomplete tail at the end of a partition's log whose records were written
    (:func:`find_tail_loss`). Return None if there is none, and if other damage comes before it. Raise OSError if the log directory may not be searched.

    ``read_broker`` is only called if there is an incomplete tail.
    """
    if not segments or segments[-1].rolled:
        return None
    last = segments[-1]
    if not list_proof_files(log_directory_of(last.path.parent)):
        return None
    try:
        from kafka_log.logs.index_files import find_position_by_index  # needs numpy

        start = find_position_by_index(last, MAX_OFFSET, None)
    except ModuleNotFoundError:
        start = 0
    reader = SegmentReader(last.path, start=start, records=False, tail=last.tail, size=last.size)
    try:
        for _ in reader:
            pass
    except CodecError:
        return None
    _, tail = separate_incomplete_tail(last, reader.end)
    return None if tail is None else find_tail_loss(last, tail, read_broker)


def find_losses(
    partition: Partition,
    offsets: Range,
    starts: LogStarts,
    read_broker: ReadBroker,
    policy: Policy = Policy.KAFKA,
) -> Iterator[tuple[Path, Lost]]:
    """Yield what the files of a merged partition prove to be lost of ``offsets`` (half-open)
    although no reader of ``policy`` meets damage, with the path of a segment: ranges that no
    segment has (:func:`find_lost_offsets`), and under ``kafka`` the incomplete tail of its log
    (:func:`find_end_losses`). ``salvage`` reports that tail as a lost range, ``strict`` raises an error.
    """
    yield from find_lost_offsets(partition, offsets, starts)
    if policy is Policy.KAFKA:
        yield from find_end_losses(partition, read_broker, offsets)


def find_end_losses(
    partition: Partition, read_broker: ReadBroker, offsets: Range = EVERYTHING
) -> Iterator[tuple[Path, Lost]]:
    """Yield the incomplete tail of a partition's log (:func:`find_lost_end`) if it may hold
    ``offsets``, with the path of its segment. Yield nothing for a log in a store, where each file
    of the broker would be a request, and if the log directory may not be searched.
    """
    if not partition.segments or is_url(partition.segments[-1].path):
        return
    try:
        lost = find_lost_end(partition.segments, read_broker)
    except OSError:
        return
    low, high = offsets
    if lost is None or lost.after_offset is None:
        return
    first, end = lost.after_offset + 1, lost.before_offset
    if (high is None or first < high) and (low is None or end is None or low < end):
        yield partition.segments[-1].path, lost


def _first_offset_of(segment: Segment, tail: Lost) -> int:
    """Return the offset that the first record of an incomplete tail has: the one after the last batch
    before it, or the base offset of the segment if there is none, or its header is damaged.
    """
    if tail.after_offset is not None:
        return tail.after_offset + 1
    try:
        end = read_segment_end(segment)
    except CodecError:
        end = None
    return segment.base_offset if end is None else end.offset


def _has_changed(segment: Segment, tail: Lost) -> bool:
    """Return whether a broker wrote to the segment since it was listed: its file has another size,
    or no longer the incomplete tail ``tail``. Return True if the file cannot be read.
    """
    try:
        if segment.path.stat().st_size != segment.size:
            return True
    except OSError:
        return True
    return find_incomplete_tail(segment, tail.start) is None


def _is_plausible_header(segment: Segment, position: int) -> bool:
    """Return False if the bytes at ``position`` have the magic of no message format, or an offset
    below the segment's base offset: they begin no torn batch. Return True otherwise, also if they
    are too few or zeros. Raise UnreadableError if the file cannot be read.
    """
    from kafka_codecs import LOG_ENTRY  # most logs end with a whole batch
    from kafka_log.segment import framing
    from kafka_log.segment.framing import Entry, HeaderColumns

    name = os.fspath(segment.path)
    with open_segment(segment.path, is_listed=True) as file:
        size = min(segment.size, size_of(file))
        data = read_exactly(file, position, max(min(framing.HEADER_BYTES, size - position), 0))
    if len(data) < framing.HEADER_START:
        return True
    try:
        frame = framing.frame_of(data, position, name)
    except CodecError:
        return True  # the reader recognizes zeros
    if frame.magic not in LOG_ENTRY.cases:
        return False
    try:
        first, last = HeaderColumns(_FIRST_AND_LAST, name).read(Entry(position, frame, data))
    except CodecError:
        return True
    offset = int(last if first is None else first)
    lowest = segment.base_offset if segment.has_offset_in_name else 0
    return offset >= lowest
