"""Which segments of a partition may hold a range of offsets, by their names and the batch headers at their ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from codecgen.runtime.errors import CodecError, ParseError
from kafka_log.logs.partitions import Segment
from kafka_log.segment.model import Tail
from kafka_log.segment.ranges import EVERYTHING, MAX_OFFSET, Range
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.urls import is_url

if TYPE_CHECKING:
    from kafka_log.segment.framing import Entry, HeaderColumns

FEW_BYTES = 16 << 10
"""Up to this size of a segment its headers are read one by one, which takes less time than to start a scanner."""


def within_offsets(
    segments: Sequence[Segment], offsets: Range, only: frozenset[int] | None = None
) -> list[Segment]:
    """Return the segments of a partition that may hold offsets of the half-open range ``offsets``;
    with ``only`` (None: any), that may hold one of these offsets too. A segment is left out if its
    name and that of the next one exclude them, and the first and last batch of both lie where the
    names say. Other segments whose name is not 20 digits and ``.log`` are included, but of copies
    in tiered storage only those that may provide such offsets, by their end
    (:attr:`Segment.offsets`) and their first and last batch. No error is raised for a file that
    cannot be read.

    Names alone decide about files in a store, where each header would be a request, and about files whose headers cannot be read.
    """
    ends = _next_names(segments)

    @cache
    def is_right(i: int) -> bool:
        return i == len(segments) or _lies_within(segments[i], ends[i])

    return [
        segment
        for i, (segment, end) in enumerate(zip(segments, ends, strict=False))
        if any(
            _may_hold(held, offsets, only)
            for held in _offsets_of_copy(segment, is_last=i + 1 == len(segments))
        )
        and (
            not segment.has_canonical_name
            or _may_hold((segment.base_offset, end), offsets, only)
            or not (is_right(i) and is_right(i + 1))
        )
    ]


def lie_within_names(segments: Sequence[Segment]) -> bool:
    """Return whether the first and the last batch of each segment lie between its name and the next
    one. Segments whose name is not 20 digits and ``.log``, without batches, in a store or whose
    headers cannot be read are passed over; return True if all are.
    """
    return all(
        _lies_within(segment, end)
        for segment, end in zip(segments, _next_names(segments), strict=True)
        if segment.has_canonical_name
    )


def _next_names(segments: Sequence[Segment]) -> list[int | None]:
    """Return, for each segment, the base offset in the name of the next one; None if that name is
    not 20 digits and ``.log``, and for the last segment.
    """
    names = (other.base_offset if other.has_canonical_name else None for other in segments[1:])
    return [*names, None][: len(segments)]


def _offsets_of_copy(segment: Segment, *, is_last: bool) -> Iterator[Range]:
    """Yield the offsets that a copy in tiered storage provides; then those that it may hold too, as
    no other segment provides them: by its first and last batch, or all above if it is the last
    segment. Yield all offsets for another segment, and only the first range for a file in a store
    or whose headers cannot be read.
    """
    yield segment.offsets
    if segment.offsets == EVERYTHING or None not in segment.overlap_limits:
        return
    held = read_offsets(segment)
    if held is None:
        return
    (low, high), (first, end) = segment.overlap_limits, segment.offsets
    if low is None:
        low = held[0] if first is None else min(first, held[0])
    if high is None and not is_last:
        high = held[1] if end is None else max(end, held[1])
    yield low, high


def _may_hold(held: Range, offsets: Range, only: frozenset[int] | None) -> bool:
    """Return whether the half-open range ``held`` includes offsets of another one, and one of
    ``only`` (None: any).
    """
    (start, end), (low, high) = held, offsets
    first = -1 if start is None else start  # no offset is lower than 0
    if (high is not None and first >= high) or (low is not None and end is not None and end <= low):
        return False
    return only is None or any(first <= offset and (end is None or offset < end) for offset in only)


def _lies_within(segment: Segment, next_base: int | None) -> bool:
    """Return whether the batches at the ends of a segment have offsets from its base offset on and
    below ``next_base`` (None: no limit); True if there are none, or they cannot be read.
    """
    held = read_offsets(segment)
    if held is None:
        return True
    return segment.base_offset <= held[0] and (next_base is None or held[1] <= next_base)


def widest_offsets(segment: Segment, following: Segment | None) -> tuple[int, int]:
    """Return the half-open range of offsets that a segment may hold, by its name and that of the
    segment after it (None: there is none, and the end is 2^63), and by the batches at its ends.
    Names alone decide about files in a store and files whose headers cannot be read.
    """
    first, end = segment.base_offset, MAX_OFFSET + 1 if following is None else following.base_offset
    held = read_offsets(segment)
    return (first, end) if held is None else (min(first, held[0]), max(end, held[1]))


def are_in_offset_order(segments: Sequence[Segment]) -> bool:
    """Return whether each segment ends before the next one begins, by the batches at their ends.
    Segments without batches, files in a store and files whose headers cannot be read are passed
    over; return True if fewer than two are left.
    """
    if len(segments) < 2:
        return True
    held = [offsets for segment in segments if (offsets := read_offsets(segment)) is not None]
    return all(before[1] <= after[0] for before, after in pairwise(held))


def read_offsets(segment: Segment) -> tuple[int, int] | None:
    """Return the half-open range of offsets of a segment by two batches: from the lowest offset in
    its first and last batch to the one after the highest. The last batch is that before damage, and
    no checksum counts. Return None for a file in a store, without batches, or whose headers cannot
    be read.
    """
    if is_url(segment.path):
        return None
    from kafka_log.segment.batch_headers import entries  # the codecs: names decide most selections

    try:
        first = next(entries(segment.path), None)
        last = _find_last_entry(segment)
        if first is None or last is None:
            return None
        ends = [_offsets_of_batch(segment, entry) for entry in (first, last)]
    except (CodecError, OSError):
        return None
    return min(low for low, _ in ends), max(high for _, high in ends) + 1


@cache
def _header_columns() -> HeaderColumns:
    """Return the reader of the offsets in a batch header; its errors name no file, which nobody reads here."""
    from kafka_log.segment.framing import HeaderColumns

    return HeaderColumns(("base_offset", "last_offset", "offset_bound"), "")


def _offsets_of_batch(segment: Segment, entry: Entry) -> tuple[int, int]:
    """Return the first and the last offset of a batch by its header; by its records if the header
    does not state both. Raise CodecError if the header is damaged.
    """
    first, last, bound = _header_columns().read(entry)
    if first is not None and bound is not None:
        return first, last
    batch = next(iter(SegmentReader(segment.path, start=entry.position)), None)
    offsets = [] if batch is None else [record.offset for record in batch.records]
    stated = last if first is None else first
    return min(offsets, default=stated), max(offsets, default=last)


def _find_last_entry(segment: Segment) -> Entry | None:
    """Return the last batch of a segment before damage, found from the last entry of its offset
    index on, or else by all headers; None if it has no batch, or a header scan cannot open it.
    Raise UnreadableError if the file cannot be read again.
    """
    from kafka_log.logs.index_files import read_last_index_entry  # layouts of indexes
    from kafka_log.segment.batch_headers import entries

    if segment.size <= FEW_BYTES:
        last = None
        with suppress(ParseError):
            for entry in entries(segment.path, segment.tail):
                last = entry
        return last
    indexed = read_last_index_entry(segment)
    if indexed is not None and 0 < indexed[1] < segment.size:
        with suppress(CodecError):  # no batch begins there, or the last one does not end the file
            found = list(entries(segment.path, Tail.ROLLED, indexed[1]))
            low, high = _offsets_of_batch(segment, found[0])
            if segment.base_offset <= low <= high <= indexed[0]:
                return found[-1]
    from kafka_log.segment.scanner import header_scanner  # numpy

    position = None
    for rows in header_scanner(
        segment.path, ("position",), on_damage="keep", tail=segment.tail, size=segment.size
    ):
        position = rows.column(0)[-1].as_py() if rows.num_rows else position
    return None if position is None else next(entries(segment.path, start=position), None)
