"""Which segments of a partition may hold a range of offsets, by their names and the batch headers at their ends."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise

from codecgen.runtime.errors import CodecError
from kafka_log.logs.partitions import Segment
from kafka_log.logs.replicas import read_segment_end
from kafka_log.segment.batch_headers import entries, headers
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.model import Tail
from kafka_log.segment.places import is_url
from kafka_log.segment.ranges import MAX_OFFSET, Range
from kafka_log.segment.reader import SegmentReader, last_offset_at


def within_offsets(
    segments: Sequence[Segment], offsets: Range, only: frozenset[int] | None = None
) -> list[Segment]:
    """Return the segments of a partition that may hold offsets of the half-open range; with
    ``only`` one of these offsets. Leave out a segment only if both its name with the next one and
    the batch headers at its ends exclude them. Segments without a canonical name are always
    included.

    Names alone decide about files in a store, where each header would be a request, and about files whose headers cannot be read.
    """
    found = []
    for i, segment in enumerate(segments):
        following = segments[i + 1 : i + 2]
        end = next((other.base_offset for other in following if other.has_canonical_name), None)
        if (
            not segment.has_canonical_name
            or _may_hold(segment.base_offset, end, offsets, only)
            or _may_hold_by_headers(segment, offsets, only)
        ):
            found.append(segment)
    return found


def _may_hold(
    first: int, end: int | None, offsets: Range, only: frozenset[int] | None = None
) -> bool:
    """Return whether the offsets ``first`` to ``end`` (excluded; None: unknown) include some of the
    half-open range, and one of ``only`` (None: any).
    """
    low, high = offsets
    if (high is not None and first >= high) or (low is not None and end is not None and end <= low):
        return False
    return only is None or any(first <= offset and (end is None or offset < end) for offset in only)


def _may_hold_by_headers(segment: Segment, offsets: Range, only: frozenset[int] | None) -> bool:
    """Return whether a segment may hold offsets of the half-open range, and one of ``only`` (None:
    any), by its first and its last batch. Return False for a file in a store, a file without
    batches, and one whose batches cannot be read.
    """
    if is_url(segment.path):
        return False
    try:
        first = _read_first_offset(segment)
        if first is None or not _may_hold(first, None, offsets, only):
            return False
        end = _read_end(segment)
    except (CodecError, OSError):
        return False
    return end is not None and _may_hold(first, end, offsets, only)


def widest_offsets(segment: Segment, following: Segment | None) -> tuple[int, int]:
    """Return the half-open range of offsets that a segment may hold, by its name and that of the
    segment after it (None: there is none), and by the batch headers at its ends. Names alone decide
    about files in a store and files whose headers cannot be read.
    """
    first, end = segment.base_offset, MAX_OFFSET + 1 if following is None else following.base_offset
    held = read_offsets(segment)
    return (first, end) if held is None else (min(first, held[0]), max(end, held[1]))


def are_in_offset_order(segments: Sequence[Segment]) -> bool:
    """Return whether each segment ends before the next one begins, by the batch headers at their
    ends. Segments without batches, files in a store and files whose headers cannot be read are
    passed over.
    """
    held = [offsets for segment in segments if (offsets := read_offsets(segment)) is not None]
    return all(before[1] <= after[0] for before, after in pairwise(held))


def read_offsets(segment: Segment) -> tuple[int, int] | None:
    """Return the first offset of a segment and the one after its last, by the batch headers at its
    ends. Return None for a file in a store, without batches, or whose headers cannot be read.
    """
    if is_url(segment.path):
        return None
    try:
        first, end = _read_first_offset(segment), _read_end(segment)
    except (CodecError, OSError):
        return None
    return None if first is None or end is None else (first, end)


def _read_first_offset(segment: Segment) -> int | None:
    """Return the first offset of the first batch of a segment; None if it has no batch. If its
    header does not state the range of its offsets, return the lowest offset of its records. Verify
    no checksum. Raise CodecError if the batch is damaged or the file cannot be read.
    """
    columns = ("base_offset", "last_offset", "offset_bound")
    found = next(iter(headers(segment.path, columns)), None)
    if found is None:
        return None
    first, last, bound = found
    if first is not None and bound is not None:
        return int(first)
    batch = next(iter(SegmentReader(segment.path)), None)
    offsets = [] if batch is None else [record.offset for record in batch.records]
    return min(offsets, default=int(last if first is None else first))


def _read_end(segment: Segment) -> int | None:
    """Return the offset after the last batch of a segment before damage; None if it has no batch.
    Verify no checksum. Raise CodecError if the last offset is the largest possible one.
    """
    end = _read_end_by_index(segment)
    if end is not None:
        return end
    found = read_segment_end(segment, on_damage="keep")
    return None if found is None else found.offset


def _read_end_by_index(segment: Segment) -> int | None:
    """Return the offset after the last batch of a segment by the headers from the last entry of its
    offset index on. Return None if no batch that fits the entry begins there, the batches do not
    end with the file, or a file cannot be read.
    """
    from kafka_log.logs.index_files import read_last_index_entry  # layouts of indexes

    indexed = read_last_index_entry(segment)
    if indexed is None or not 0 < indexed[1] < segment.size:
        return None
    columns = HeaderColumns(("base_offset", "last_offset", "offset_bound"), os.fspath(segment.path))
    try:
        found = list(entries(segment.path, Tail.ROLLED, indexed[1]))
        first, last, _ = columns.read(found[0])
        if not segment.base_offset <= (last if first is None else first) <= last <= indexed[0]:
            return None
        _, last, bound = columns.read(found[-1])
    except (CodecError, IndexError):
        return None
    return 1 + (last_offset_at(segment.path, found[-1].position, last) if bound is None else last)
