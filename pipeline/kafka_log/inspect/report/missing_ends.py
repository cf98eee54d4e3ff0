"""Ends that segments lack: how many bytes and batches of a cut file are missing, and with which offsets."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.logs.index_files import OFFSET_ENTRY_DTYPE, read_index_entries
from kafka_log.logs.partitions import Segment
from kafka_log.segment import framing
from kafka_log.segment.framing import Entry, HeaderColumns
from kafka_log.segment.regular_files import open_regular


@dataclass(frozen=True, slots=True)
class LostRange:
    """A range of bytes of a segment that are not valid batches, or a place where batches are missing.

    Attributes:
        start: First byte.
        end: Byte after the last one; ``start`` if batches are missing there.
        kind: ``lost``, ``refused`` (a valid checksum, but records that cannot be decoded), ``tail`` (an incomplete batch
            or zeros at the end, which a crash leaves) or ``missing`` (batches that the file no longer has).
        first_offset: First offset that is missing there; None if unknown.
        last_offset: Last offset that is missing there; None if unknown.
        reason: What is wrong.
        missing_bytes: Minimum number of bytes that the file no longer has; 0 if unknown.
        missing_batches: Minimum number of batches of which the file no longer has all bytes; 0 if unknown.
    """

    start: int
    end: int
    kind: str
    first_offset: int | None
    last_offset: int | None
    reason: str
    missing_bytes: int = 0
    missing_batches: int = 0


def find_missing_end(
    segment: Segment, start: int, end: int, first: int, limit: int | None
) -> LostRange | None:
    """Return what a segment lacks after its last byte, by the header of its incomplete last batch and
    by entries of its offset index beyond the end. Neither has a checksum: a header or an entry counts
    only if its offsets are among the missing ones. Return None if neither proves that bytes are
    missing. Raise OSError if the file cannot be read.

    Args:
        segment: The segment.
        start: Byte after the last valid batch.
        end: Byte after the last one of the file.
        first: First offset that is missing.
        limit: Offset after the last missing one; None if unknown.
    """
    bytes_by_header, last = _read_incomplete_batch(segment, start, end, first, limit)
    missing_bytes, batches = max(bytes_by_header, segment.missing), int(bytes_by_header > 0)
    reasons = []
    if bytes_by_header:
        reasons.append(f"by its header, the batch at byte {start} ends with offset {last}")
    positions = _find_positions_beyond(segment, end, first, limit)
    if len(positions):
        batches += len(positions)
        beyond = int(positions[-1]) - end + framing.HEADER_START
        missing_bytes = max(missing_bytes, beyond)
        reasons.append(f"by the .index, a batch began at byte {int(positions[-1])}")
    if not missing_bytes:
        return None
    reason = f"the file was cut at byte {end}"
    missing = find_missing_offsets(first - 1 if last is None else last, limit)
    if reasons:
        reason += f": {'; '.join(reasons)}"
    return LostRange(end, end, "missing", *missing, reason, missing_bytes, batches)


def separate_tail(tail: LostRange, missing: LostRange) -> LostRange:
    """Return the incomplete end ``tail`` of a segment without the offsets of ``missing``, which its
    batch does not have, if that batch is known.
    """
    first, end = tail.first_offset, missing.first_offset
    return (
        tail if first is None or end is None or end <= first else replace(tail, last_offset=end - 1)
    )


def find_missing_offsets(after: int | None, before: int | None) -> tuple[int | None, int | None]:
    """Return the first and last offset that a range between two offsets has lost. ``after`` is the
    offset before the range, ``before`` the first one after it; the result is None where one is
    None, and twice None if nothing lies between them.
    """
    first = None if after is None else after + 1
    last = None if before is None else before - 1
    if first is not None and last is not None and first > last:
        return None, None
    return first, last


def describe_missing_size(lost: LostRange) -> str:
    """Return how many bytes and batches are missing at a place: ``unknown``, ``at least N bytes`` or
    ``at least N bytes of M batches``.
    """
    if not lost.missing_bytes:
        return "unknown"
    size = f"at least {count_noun(lost.missing_bytes, 'byte', spec=',')}"
    if not lost.missing_batches:
        return size
    return f"{size} of {count_noun(lost.missing_batches, 'batch', 'batches', spec=',')}"


def _read_incomplete_batch(
    segment: Segment, start: int, end: int, first: int, limit: int | None
) -> tuple[int, int | None]:
    """Return how many bytes the batch at ``start`` lacks by its header, and its last offset. Return
    ``(0, None)`` if its header is incomplete, does not lead beyond ``end``, or has offsets that are
    not among the missing ones.
    """
    name = os.fspath(segment.path)
    with open_regular(segment.path, -1) as file:
        file.seek(start)
        data = file.read(min(framing.HEADER_BYTES, end - start))
    if len(data) < framing.HEADER_START:
        return 0, None
    try:
        frame = framing.frame_of(data, start, name)
        columns = HeaderColumns(("base_offset", "last_offset"), name)
        base, last = columns.read(Entry(start, frame, data))
    except CodecError:
        return 0, None
    lowest = last if base is None else base
    is_missing = first <= lowest <= last and (limit is None or last < limit)
    size = start + frame.size - end
    return (size, int(last)) if size > 0 and is_missing else (0, None)


def _find_positions_beyond(segment: Segment, end: int, first: int, limit: int | None) -> np.ndarray:
    """Return the byte positions at or after ``end`` in the offset index of a segment, ascending, of
    entries whose offsets are missing ones.
    """
    entries = read_index_entries(segment.path.with_suffix(".index"), OFFSET_ENTRY_DTYPE)
    positions = entries["position"].astype(np.int64)
    offsets = segment.base_offset + entries["relative_offset"].astype(np.int64)
    is_missing = (positions >= end) & (offsets >= first)
    if limit is not None:
        is_missing &= offsets < limit
    found: np.ndarray = positions[is_missing]
    return found
