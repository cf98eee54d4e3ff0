"""Cut segments into splits where batches begin."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from codecgen.runtime.errors import CodecError
from kafka_log import Segment
from kafka_log.read.plan import Split
from kafka_log.segment.batch_headers import entries
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.ranges import EVERYTHING, Range
from kafka_log.segment.row_selection import RowSelection


def split_segment(
    segment: Segment,
    split_bytes: int,
    offsets: Range = EVERYTHING,
    *,
    by_index: bool = False,
    records: int | None = None,
) -> list[Split]:
    """Return a segment as splits that begin at batches, in file order, of about equal size up to
    ``split_bytes``; with ``records`` also up to about that many offsets. ``by_index`` finds batches
    by the offset index. Drop splits outside of the half-open range ``offsets``. An empty file is
    one split of 0 bytes. An invalid header or an unreadable file is no error: one split has the
    rest of the file.

    Args:
        segment: The segment.
        split_bytes: The size of a split in bytes. A single batch may be larger.
        offsets: The wanted offset range. Splits whose first and following headers lie outside are dropped, assuming that offsets rise.
        by_index: Find the cuts by the index file of the segment, as far as it reaches.
        records: The number of offsets of a split, about, at most. All headers of the segment are read then.
    """
    cuts = [Cut(0, None)]
    if records is not None:
        cuts += _cut_by_records(segment, split_bytes, records)
    elif segment.size > split_bytes:
        count = math.ceil(segment.size / split_bytes)
        cuts += find_boundaries(segment, math.ceil(segment.size / count), by_index=by_index)
    first, end = offsets
    out = []
    for i, cut in enumerate(cuts):
        following = cuts[i + 1] if i + 1 < len(cuts) else None
        if first is not None and following is not None and (following.offset or 0) <= first:
            continue
        if end is not None and cut.is_first_offset and (cut.offset or 0) >= end:
            break
        stop = segment.size if following is None else following.position
        out.append(Split(segment, cut.position, stop))
    return out


def find_selected_runs(
    segment: Segment, offsets: Range, only: frozenset[int] | None = None
) -> list[tuple[int, int]] | None:
    """Return the byte ranges (start, end) of consecutive batches that may hold selected offsets, in
    file order, from all batch headers of a segment; with the last batch, what follows it is
    included. No checksum is verified. Return None if there are no headers, one is invalid or the
    file cannot be read; ``[]`` if no batch may hold any.

    Args:
        segment: The segment.
        offsets: The offset range.
        only: The offsets of the range that are selected; None for all.
    """
    import numpy as np  # these take their time: not for queries that ask for no offsets

    from kafka_log.segment.row_masks import HEADERS, RowMasks, numbers
    from kafka_log.segment.scanner import header_scanner

    scanner = header_scanner(segment.path, HEADERS, tail=segment.tail, size=segment.size)
    masks = RowMasks(RowSelection(offsets=offsets))
    values = None if only is None else np.array(sorted(only), np.int64)
    runs: list[tuple[int, int]] = []
    last = None
    try:
        for headers in scanner:
            mask = masks.may_have(headers)
            if values is not None:
                mask &= _may_have_any(headers, values)
            starts = numbers(headers, "position")
            ends = starts + numbers(headers, "size")
            last = int(ends[-1])
            for position, end in zip(starts[mask].tolist(), ends[mask].tolist(), strict=True):
                if runs and runs[-1][1] == position:
                    runs[-1] = runs[-1][0], end
                else:
                    runs.append((position, end))
    except CodecError:
        return None
    if runs and runs[-1][1] == last:  # what follows the last batch is read with it
        runs[-1] = runs[-1][0], segment.size
    return None if last is None else runs


def _may_have_any(headers: Any, offsets: Any) -> Any:
    """Return a NumPy mask: True for each batch whose offset range holds one of ``offsets``
    (sorted), or whose header does not state the range.
    """
    from kafka_log.segment.row_masks import numbers_of

    first, last = (headers.column(name) for name in ("base_offset", "offset_bound"))
    is_open = numbers_of(first.is_null()) | numbers_of(last.is_null())
    low = offsets.searchsorted(numbers_of(first.fill_null(0)))
    high = offsets.searchsorted(numbers_of(last.fill_null(0)), "right")
    return is_open | (low < high)


def intersect_runs(part: Split, runs: Iterable[tuple[int, int]]) -> Iterator[Split]:
    """Yield the parts of a split that lie in ``runs``, byte ranges of the file with exclusive ends,
    in their order. Yield nothing for runs outside of the split.
    """
    stop = part.segment.size if part.stop is None else part.stop
    for begin, end in runs:
        begin, end = max(begin, part.start), min(end, stop)
        if begin < end:
            yield replace(part, start=begin, stop=end)


def _cut_by_records(segment: Segment, split_bytes: int, records: int) -> list[Cut]:
    """Return cuts at batch starts, in file order and without the start of the file, between which
    at most about ``records`` offsets and ``split_bytes`` bytes lie, unless a single batch has more.
    The last batch before the end, an invalid header or unreadable bytes begins a split of its own,
    however small the file is. Return ``[]`` for a single batch or none.
    """
    begin = Cut(0, segment.base_offset if segment.has_canonical_name else 0)
    last = begin
    found: list[Cut] = []
    for cut in find_boundaries(segment, 1):
        span = (cut.offset or 0) - (begin.offset or 0)
        if last is not begin and (span > records or cut.position - begin.position > split_bytes):
            found.append(last)
            begin = last
        last = cut
    # What follows the last place has as many records as nobody has counted.
    return found if last is begin else [*found, last]


@dataclass(frozen=True, slots=True)
class Cut:
    """The position at which a batch begins, and the offset in its header.

    For a wrapper of the legacy message formats it is the last offset, not the first.
    """

    position: int
    offset: int | None
    is_first_offset: bool = False


def find_boundaries(segment: Segment, split_bytes: int, *, by_index: bool = False) -> list[Cut]:
    """Return the start positions of batches, each at least ``split_bytes`` bytes after the one
    before, in file order, with the offset in their header. The start of the file is not included;
    ``[]`` if the file has at most ``split_bytes`` bytes. Stop without an error at an invalid header
    and unreadable bytes; no checksum is verified. ``by_index`` uses the offset index, as far as it
    reaches, to skip ahead.

    Args:
        segment: The segment.
        split_bytes: The least distance between two positions in bytes.
        by_index: Jump from position to position by the index file, as far as it reaches.
    """
    cuts: list[Cut] = []
    offsets = HeaderColumns(("base_offset", "last_offset"), os.fspath(segment.path))
    index = None
    if by_index and segment.has_canonical_name:
        from kafka_log.logs.index_files import (
            IndexedBatches,
        )  # layouts of indexes: not for small files

        index = IndexedBatches(segment)
    wanted: int | None = split_bytes
    start = 0
    try:
        while wanted is not None and wanted < segment.size:
            found = None if index is None else index.find_batch(wanted)
            if found is None:
                index = None  # it ends here, or says what is not so
            else:
                start = found
            for entry in entries(segment.path, start=start):
                if entry.position >= segment.size:
                    return cuts
                if entry.position >= wanted:
                    first, last = offsets.read(entry)
                    cuts.append(
                        Cut(entry.position, last if first is None else first, first is not None)
                    )
                    wanted = entry.position + split_bytes
                    start = entry.position
                    if index is not None:
                        break
            else:
                wanted = None
    except CodecError:
        pass
    return cuts
