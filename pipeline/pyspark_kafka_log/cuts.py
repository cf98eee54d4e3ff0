"""Where segments are cut: splits that tasks read."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace

from codecgen.runtime.errors import CodecError
from kafka_log import Segment
from kafka_log.segment.batch_headers import Columns, entries
from kafka_log.tables.splits import Split


def split(
    segment: Segment,
    split_bytes: int,
    first: int | None = None,
    end: int | None = None,
    *,
    by_index: bool = False,
    records: int | None = None,
    narrow: bool = False,
) -> list[Split]:
    """Splits of a segment with about ``split_bytes`` bytes each at most, and about as many each, cut where batches begin.

    With ``records`` each has about as many offsets at most: then all headers are read. Those are left out that lie before the offset ``first`` or from the offset ``end`` on as a whole;
    with ``narrow`` so are the batches at both ends of the others, by the headers of these.
    """
    cuts = [Cut(0, None)]
    if records is not None:
        cuts += _by_records(segment, split_bytes, records)
    elif segment.size > split_bytes:
        count = math.ceil(segment.size / split_bytes)
        cuts += boundaries(segment, math.ceil(segment.size / count), by_index=by_index)
    out = []
    for i, cut in enumerate(cuts):
        following = cuts[i + 1] if i + 1 < len(cuts) else None
        if first is not None and following is not None and (following.offset or 0) <= first:
            continue
        if end is not None and cut.is_first_offset and (cut.offset or 0) >= end:
            break
        stop = segment.size if following is None else following.position
        part = Split(segment, cut.position, stop)
        begins_before = first is not None and (cut.offset or 0) < first
        goes_past = end is not None and (following is None or end <= (following.offset or 0))
        if not (narrow and (begins_before or goes_past)):
            out.append(part)
        elif (narrowed := _narrowed(part, first, end)) is not None:
            out.append(narrowed)
    return out


def _narrowed(part: Split, first: int | None, end: int | None) -> Split | None:
    """A split without the batches that lie before ``first`` or from ``end`` on; None when there are no others. It stays as it is when its
    headers cannot be read, or their offsets do not rise."""
    import numpy as np  # these take their time: not for queries that ask for no offsets

    from kafka_log.segment.columnar import BatchScanner

    names = ("position", "base_offset", "last_offset")
    scanner = BatchScanner(
        part.segment.path,
        names,
        start=part.start,
        stop=part.stop,
        tail=part.segment.tail,
        size=part.segment.size,
    )
    try:
        found = scanner.to_reader().read_all()
    except CodecError:
        return part
    places, lasts = (found.column(name).to_numpy() for name in ("position", "last_offset"))
    if not len(places):
        return part
    stated = found.column("base_offset")
    unstated = stated.is_null().to_numpy()  # a wrapper's records have offsets after those before it
    bases = np.where(unstated, np.append(-1, lasts[:-1]) + 1, stated.fill_null(0).to_numpy())
    if (bases > lasts).any() or (bases[1:] <= lasts[:-1]).any():
        return part
    begin = 0 if first is None else int(lasts.searchsorted(first))
    after = len(places) if end is None else int(bases.searchsorted(end))
    if begin >= after:
        return None
    return replace(
        part,
        start=part.start if begin == 0 else int(places[begin]),
        stop=part.stop if after == len(places) else int(places[after]),
    )


def _by_records(segment: Segment, split_bytes: int, records: int) -> list[Cut]:
    """Places between which there are ``records`` offsets at most, and about ``split_bytes`` bytes, as far as a batch has no more."""
    begin = Cut(0, segment.base_offset if segment.is_named else 0)
    last = begin
    found: list[Cut] = []
    for cut in boundaries(segment, 1):
        span = (cut.offset or 0) - (begin.offset or 0)
        if last is not begin and (span > records or cut.position - begin.position > split_bytes):
            found.append(last)
            begin = last
        last = cut
    # What follows the last place has as many records as nobody has counted.
    return found if last is begin else [*found, last]


@dataclass(frozen=True, slots=True)
class Cut:
    """A place where a batch begins, and the offset that stands there.

    For a wrapper of the older formats that is its last offset, not the first.
    """

    position: int
    offset: int | None
    is_first_offset: bool = False


def boundaries(segment: Segment, split_bytes: int, *, by_index: bool = False) -> list[Cut]:
    """Places where batches begin, at least ``split_bytes`` bytes from each other.

    Only lengths are read, and the headers in these places. What lies after the first one that cannot be is left to whoever reads the last
    split. ``by_index``: where the segment's index file leads from place to place, what lies between is not looked at.
    """
    cuts: list[Cut] = []
    offsets = Columns(("base_offset", "last_offset"), os.fspath(segment.path))
    index = None
    if by_index and segment.is_named:
        from kafka_log.disk.index_files import (
            IndexedBatches,
        )  # layouts of indexes: not for small files

        index = IndexedBatches(segment)
    wanted: int | None = split_bytes
    start = 0
    try:
        while wanted is not None and wanted < segment.size:
            found = None if index is None else index.at(wanted)
            if found is None:
                index = None  # it ends here, or says what is not so
            else:
                start = found
            for entry in entries(segment.path, start=start):
                if entry.position >= segment.size:
                    return cuts
                if entry.position >= wanted:
                    first, last = offsets.of(entry)
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
