"""Incomplete tails: bytes after the last complete batch of an active segment. A live or killed broker leaves them; they are no damage."""

from __future__ import annotations

import os
from dataclasses import replace

from codecgen.runtime.errors import CodecError
from kafka_codecs import LOG_ENTRY
from kafka_log.logs.partitions import Segment
from kafka_log.segment import framing, tails
from kafka_log.segment.framing import HEADER_BYTES, Entry, HeaderColumns
from kafka_log.segment.model import End, Lost, Tail
from kafka_log.segment.positioned_reads import UnreadableError, open_segment, read_exactly, size_of
from kafka_log.segment.reader import SegmentReader

_FIRST_AND_LAST = ("base_offset", "last_offset")


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


def _is_plausible_header(segment: Segment, position: int) -> bool:
    """Return False if the bytes at ``position`` have the magic of no message format, or an offset
    below the segment's base offset: they begin no torn batch. Return True otherwise, also if they
    are too few or zeros. Raise UnreadableError if the file cannot be read.
    """
    name = os.fspath(segment.path)
    with open_segment(segment.path, is_listed=True) as file:
        size = min(segment.size, size_of(file))
        data = read_exactly(file, position, max(min(HEADER_BYTES, size - position), 0))
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
