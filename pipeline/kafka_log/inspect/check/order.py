"""Offsets of batches: they rise, and lie where the names of the segments say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from kafka_log.inspect.check.base import Check, are
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.segment_scan import Walked
from kafka_log.segment.model import Policy
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.reader import SegmentReader

OF_ONE_SEGMENT = 100
"""Batches of a segment that are named one by one."""

_MOVE = "Copy the partition from another replica: a broker reads such a batch in the wrong place or not at all."


class OrderCheck(Check):
    """Batches that are out of order, there twice, or in a segment that they do not belong to; segments that overlap."""

    def segment(self, walked: Walked) -> Iterable[Finding]:
        if walked.outside.any():
            yield from self._outside(walked, walked.outside)
        if not walked.placed.all():
            yield from self._order(walked)

    def _outside(self, walked: Walked, outside: Any) -> Iterator[Finding]:
        """Batches whose offsets are not those of the segment: at its head the name is wrong, at its end it overlaps
        the next one, in between the batch is."""
        headers = walked.headers
        low = outside & (headers.first < walked.segment.base_offset)
        head, tail = _leading(low), _leading((outside & ~low)[::-1])
        end = len(headers) - tail
        if head:
            yield self._head(walked, head)
        if tail and _rises(headers, end):
            if not self._is_misnamed(walked.next_base):
                yield self._overlap(walked, range(end, len(headers)))
        else:
            end = len(headers)
        rest = [i for i in np.flatnonzero(outside).tolist() if head <= i < end]
        for i in rest[:OF_ONE_SEGMENT]:
            yield self._of_batch(
                "batch_in_wrong_segment",
                walked,
                i,
                f"A batch has offsets {headers.first[i]} to {headers.last[i]}, which do not belong into this segment.",
            )

    def _is_misnamed(self, base: int | None) -> bool:
        """Return whether a segment holds nothing that its name and that of the next one allow: then it is the one that is wrong, and has
        a finding of its own."""
        bases = self.context.bases
        following = () if base is None else bases[bisect_right(bases, base) :]
        if not following:
            return False
        path = self.context.partition.directory / f"{base:020d}.log"
        reader = SegmentReader(path, policy=Policy.SALVAGE, records=False, rescue=False)
        first = next(iter(reader), None)
        return first is not None and (first.base_offset or 0) >= following[0]

    def _head(self, walked: Walked, count: int) -> Finding:
        headers, base = walked.headers, walked.segment.base_offset
        last = int(headers.last[:count].max())
        return self.context.finding(
            "error",
            "first_offset_below_name",
            walked.segment.path,
            f"The segment begins with offset {headers.first[0]}, below {base} that its name says.",
            "Give the segment the name of its first offset if no other segment has these offsets; else copy it from another replica.",
            byte=int(headers.position[0]),
            first_offset=int(headers.first[0]),
            last_offset=last,
            records=_records(headers, range(count)),
        )

    def _overlap(self, walked: Walked, high: range) -> Finding:
        headers = walked.headers
        first, last = int(headers.first[high[0]]), int(headers.last[high[-1]])
        if walked.next_base is None or first - walked.segment.base_offset > MAX_RELATIVE:
            return self._far(walked, high, first, last)
        return self.context.finding(
            "error",
            "segments_overlap",
            walked.segment.path,
            f"{are(len(high), 'batch', 'batches')} at the end, up to offset {last}: but the next segment begins with {walked.next_base}.",
            "Compare the two segments: keep the one that the other replicas agree with, and move the other one away.",
            byte=int(headers.position[high[0]]),
            first_offset=first,
            last_offset=last,
            records=_records(headers, high),
        )

    def _far(self, walked: Walked, high: range, first: int, last: int) -> Finding:
        return self.context.finding(
            "error",
            "offset_too_far",
            walked.segment.path,
            f"{are(len(high), 'batch', 'batches')} up to offset {last}: that is more than {MAX_RELATIVE} above the one in the name.",
            "Copy the partition from another replica. A broker splits such a segment when it starts, if its offsets are right.",
            byte=int(walked.headers.position[high[0]]),
            first_offset=first,
            last_offset=last,
            records=_records(walked.headers, high),
        )

    def _order(self, walked: Walked) -> Iterator[Finding]:
        headers, placed = walked.headers, walked.placed
        odd = np.flatnonzero(~placed & ~walked.outside).tolist()
        for i in odd[:OF_ONE_SEGMENT]:
            first, last, size = headers.first[i], headers.last[i], headers.size[i]
            same = placed & (headers.first == first) & (headers.last == last)
            others = np.flatnonzero(same & (headers.size == size))
            if last < first:
                code, what = "offsets_reversed", "says that it ends before it begins"
            elif len(others):
                place = headers.position[others[0]]
                code, what = "batch_twice", f"is there twice, also at byte {place}"
            else:
                code, what = "offsets_not_rising", "does not lie in the order of the offsets"
            yield self._of_batch(
                code, walked, i, f"The batch with offsets {first} to {last} {what}."
            )

    def _of_batch(self, code: str, walked: Walked, i: int, meaning: str) -> Finding:
        headers = walked.headers
        return self.context.finding(
            "error",
            code,
            walked.segment.path,
            meaning,
            _MOVE,
            byte=int(headers.position[i]),
            first_offset=int(headers.first[i]),
            last_offset=int(headers.last[i]),
            records=_records(headers, [i]),
        )


def _leading(flags: Any) -> int:
    """How many flags at the front are set."""
    return len(flags) if bool(flags.all()) else int(np.argmin(flags))


def _rises(headers: Any, start: int) -> bool:
    """Whether offsets rise from the batch before a place to the last one."""
    begin = max(start - 1, 0)
    return bool((headers.first[begin + 1 :] > headers.last[begin:-1]).all())


def _records(headers: Any, those: Iterable[int]) -> int | None:
    counts = [int(headers.count[i]) for i in those]
    return None if min(counts, default=-1) < 0 else sum(counts)
