"""Check of the order of batches: offsets ascend, and lie in the segment whose name includes them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.base import Check
from kafka_log.inspect.check.catalog import COPY
from kafka_log.inspect.check.finding import Finding
from kafka_log.inspect.check.header_bytes import format_bytes, name_bytes
from kafka_log.inspect.check.repairs import describe_header_repairs
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.segment.model import Policy
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.versions import has_field, version_of

MAX_BATCHES = 100
"""Maximum of findings for single batches of one segment."""


class OrderCheck(Check):
    """Reports batches whose offsets descend, repeat or are out of order, batches with offsets of
    another segment, and segments with a wrong name or that overlap the next one.
    """

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        if scanned.placed.all():
            return
        repairs = describe_header_repairs(scanned)
        found = [*self._check_outside(scanned, scanned.outside), *self._check_order(scanned)]
        # The batch that breaks the order may be another one than the batch whose offset is wrong.
        elsewhere = "".join(repairs[k] for k in sorted(repairs.keys() - {f.byte for f in found}))
        for i, finding in enumerate(found):
            repair = "" if finding.byte is None else repairs.get(finding.byte, "")
            repair += elsewhere if i == 0 else ""
            yield replace(finding, meaning=finding.meaning + repair)

    def _check_outside(self, scanned: ScannedSegment, outside: Any) -> Iterator[Finding]:
        """Yield findings for the batches of the mask ``outside``, whose offsets belong to other
        segments. Those at the start have one ``first_offset_below_name``. Ascending ones at the end
        have one ``segments_overlap`` or ``offset_too_far``, none if the next segment has a wrong
        name. Each other one has ``batch_in_wrong_segment``, at most MAX_BATCHES. Raise
        FileNotFoundError if the next segment is gone.
        """
        headers = scanned.headers
        low = outside & (headers.first < scanned.segment.base_offset)
        head, tail = _count_leading(low), _count_leading((outside & ~low)[::-1])
        end = len(headers) - tail
        if head:
            yield self._name_finding(scanned, head)
        if tail and _ascends(headers, end):
            if not self._is_misnamed(scanned.next_base):
                yield self._overlap_finding(scanned, range(end, len(headers)))
        else:
            end = len(headers)
        rest = [i for i in np.flatnonzero(outside).tolist() if head <= i < end]
        for i in rest[:MAX_BATCHES]:
            yield self._batch_finding(
                "batch_in_wrong_segment",
                scanned,
                i,
                self._describe_misplaced(scanned, i),
                remedy=self._repair_base_offset(scanned, i),
            )

    def _describe_misplaced(self, scanned: ScannedSegment, i: int) -> str:
        """Return the sentences about the batch with the index ``i``, whose offsets belong to another
        segment by the names of the files.
        """
        headers, base = scanned.headers, scanned.segment.base_offset
        to = "on" if scanned.next_base is None else f"to {scanned.next_base - 1}"
        return (
            f"The batch has the offsets {headers.first[i]} to {headers.last[i]}, but by the names of the segments this file has the offsets from"
            f" {base} {to}. Brokers do not find the batch by its offsets. It was misplaced, or the base offset in its header is wrong: no checksum"
            " covers it."
        )

    def _repair_base_offset(self, scanned: ScannedSegment, i: int) -> str | None:
        """Return a remedy with the bytes that set the base offset of the batch ``i`` right. Return
        None (the remedy of the catalog) unless as many offsets are missing between the batches
        before and after it as it has itself; its base offset must then be the first of these.
        Return None for legacy messages too.
        """
        headers, placed = scanned.headers, np.flatnonzero(scanned.placed)
        version = version_of(int(headers.magic[i]))
        at = int(np.searchsorted(placed, i))
        base = scanned.segment.base_offset
        first = base if at == 0 else int(headers.last[placed[at - 1]]) + 1
        after = scanned.next_base if at == len(placed) else int(headers.first[placed[at]])
        alone = (at == 0 or placed[at - 1] == i - 1) and (at == len(placed) or placed[at] == i + 1)
        count = int(headers.last[i] - headers.first[i]) + 1
        if not alone or after != first + count or not has_field(version, "record_count"):
            return None
        where = name_bytes(version, "base_offset", int(headers.position[i]))
        data = format_bytes(version, "base_offset", first)
        return (
            f"{COPY} Salvage loses the batch. If no other segment has it too (kafka-log dump --batches shows its checksum), first set {where} to {data},"
            f" the base offset {first}: the {count_noun(count, 'offset')} from {first} to {after - 1} are missing at this place."
        )

    def _is_misnamed(self, base: int | None) -> bool:
        """Return whether the segment named by the base offset ``base`` has a wrong name. It has if
        its first batch begins at or after the base offset of the segment that follows it. Return
        False if ``base`` is None, no segment follows, or the segment ``base`` has no readable
        batch. Raise FileNotFoundError if the file of the segment ``base`` is gone.

        That segment has a finding of its own.
        """
        bases = self.context.bases
        following = () if base is None else bases[bisect_right(bases, base) :]
        if base is None or not following:
            return False
        first = self._read_first_offset(base)
        return first is not None and first >= following[0]

    def _read_first_offset(self, base: int) -> int | None:
        """Return the first offset of the first batch of the segment named by the base offset
        ``base``: 0 if its header has none, None if the file has no readable batch. Raise
        FileNotFoundError if the file is gone.
        """
        path = self.context.partition.directory / f"{base:020d}.log"
        reader = SegmentReader(path, policy=Policy.SALVAGE, records=False, salvage_records=False)
        first = next(iter(reader), None)
        return None if first is None else first.base_offset or 0

    def _name_finding(self, scanned: ScannedSegment, count: int) -> Finding:
        """Return the ``first_offset_below_name`` error about the first ``count`` batches of a
        segment, whose offsets are below the base offset in its name. ``records`` is None if the
        count of a batch is unknown.
        """
        headers, base = scanned.headers, scanned.segment.base_offset
        first, last = int(headers.first[0]), int(headers.last[:count].max())
        remedy = None
        is_misnamed = count == len(headers) or int(headers.first[count]) == last + 1
        if is_misnamed and first >= 0:
            remedy = (
                f"Stop the broker. If no other segment has these offsets, rename the .log, .index, .timeindex and .txnindex to {first:020d}, and run kafka-log"
                " check again. Otherwise copy the partition from another replica. Without one, kafka-log salvage writes all records by their offsets."
            )
        elif count == 1:
            remedy = self._repair_base_offset(scanned, 0)
        return self.context.finding(
            "first_offset_below_name",
            scanned.segment.path,
            f"The segment begins with offset {first}, below the base offset {base} in its name. {_describe_name(count, is_misnamed)}",
            remedy=remedy,
            byte=int(headers.position[0]),
            first_offset=first,
            last_offset=last,
            records=_sum_records(headers, range(count)),
        )

    def _overlap_finding(self, scanned: ScannedSegment, high: range) -> Finding:
        """Return the ``segments_overlap`` error about the last batches (indexes ``high``), whose
        offsets reach into the next segment. Return ``offset_too_far`` instead if there is no next
        segment, or their first offset is more than MAX_RELATIVE above the base offset. Raise
        FileNotFoundError if the next segment is gone.
        """
        headers = scanned.headers
        first, last = int(headers.first[high[0]]), int(headers.last[high[-1]])
        if scanned.next_base is None or first - scanned.segment.base_offset > MAX_RELATIVE:
            return self._far_finding(scanned, high, first, last)
        meaning, remedy = self._describe_overlap(scanned, scanned.next_base, high)
        return self.context.finding(
            "segments_overlap",
            scanned.segment.path,
            meaning,
            remedy=remedy,
            byte=int(headers.position[high[0]]),
            first_offset=first,
            last_offset=last,
            records=_sum_records(headers, high),
        )

    def _describe_overlap(
        self, scanned: ScannedSegment, next_base: int, high: range
    ) -> tuple[str, str | None]:
        """Return meaning and remedy (None: that of the catalog) of the overlap with the next
        segment, which has the base offset ``next_base``. The name of that segment is wrong if its
        first batch begins after the last offset of this one. Else this file is a copy or has a
        wrong name if all of its batches are in ``high`` (their indexes), or only these last batches
        are too high. Raise FileNotFoundError if the next segment is gone.
        """
        headers = scanned.headers
        first, last = int(headers.first[high[0]]), int(headers.last[high[-1]])
        following = self._read_first_offset(next_base)
        if following is not None and following > last:
            return (
                f"The next segment has the name {next_base}, but its first batch has offset {following}, after the last offset {last} of this segment. Its name is wrong.",
                f"Stop the broker. Rename the .log, .index, .timeindex and .txnindex of the next segment to offset {following}. Then run kafka-log check again.",
            )
        if len(high) == len(headers):
            return (
                f"All batches of this segment have offsets {first} to {last}, but the next segment begins at offset {next_base}. This file is a copy or has the wrong name.",
                "Stop the broker. Compare this file with the next segments (kafka-log dump --batches). If they have all its offsets, move it and its indexes away and keep them. Otherwise copy the partition from another replica. Without one, kafka-log salvage writes all records by their offsets.",
            )
        what = "batch has" if len(high) == 1 else f"{len(high)} batches have"
        return (
            f"The last {what} offsets {first} to {last}, but the next segment begins at offset {next_base}.",
            None,
        )

    def _far_finding(self, scanned: ScannedSegment, high: range, first: int, last: int) -> Finding:
        """Return the ``offset_too_far`` error about the last batches (indexes ``high``). Their
        offsets ``first`` to ``last`` (included) are too far above the base offset for the four
        bytes of an index entry.
        """
        return self.context.finding(
            "offset_too_far",
            scanned.segment.path,
            f"{'The last batch reaches' if len(high) == 1 else f'The last {len(high)} batches reach'} offset {last}, more than {MAX_RELATIVE} above the base offset in the name: index entries cannot hold it.",
            byte=int(scanned.headers.position[high[0]]),
            first_offset=first,
            last_offset=last,
            records=_sum_records(scanned.headers, high),
        )

    def _check_order(self, scanned: ScannedSegment) -> Iterator[Finding]:
        """Yield an error for each batch that is not in offset order, at most MAX_BATCHES. It is
        ``offsets_reversed`` if its last offset is below its first, ``batch_twice`` if an ordered
        batch has the same offsets and size, else ``offsets_not_rising``. Batches whose offsets
        belong to other segments are skipped.
        """
        headers, placed = scanned.headers, scanned.placed
        odd = np.flatnonzero(~placed & ~scanned.outside).tolist()
        for i in odd[:MAX_BATCHES]:
            first, last, size = headers.first[i], headers.last[i], headers.size[i]
            same = placed & (headers.first == first) & (headers.last == last)
            others = np.flatnonzero(same & (headers.size == size))
            if last < first:
                yield self._batch_finding(
                    "offsets_reversed", scanned, i, self._describe_reversed(scanned, i)
                )
                continue
            elif len(others):
                place = headers.position[others[0]]
                code, what = "batch_twice", f"is in the segment twice, also at byte {place}"
                means = "Consumers may read its records twice."
            else:
                code, what = "offsets_not_rising", "is out of offset order"
                means = "Brokers find batches by binary search, and may miss it."
            yield self._batch_finding(
                code, scanned, i, f"The batch with offsets {first} to {last} {what}. {means}"
            )

    def _describe_reversed(self, scanned: ScannedSegment, i: int) -> str:
        """Return the sentences about the batch with the index ``i``, whose last offset is below its
        first. They name both offsets, that its checksum is valid, and its number of records unless
        that is unknown.
        """
        headers = scanned.headers
        count = int(headers.count[i])
        said = f", and it has {count_noun(count, 'record')}" if count >= 0 else ""
        return f"The batch header has the first offset {headers.first[i]} and the last offset {headers.last[i]}. Its checksum is valid{said}. Brokers and consumers compute wrong offsets from it."

    def _batch_finding(
        self,
        code: str,
        scanned: ScannedSegment,
        i: int,
        meaning: str,
        *,
        remedy: str | None = None,
    ) -> Finding:
        """Return the finding ``code`` about the batch with the index ``i``: its byte position,
        first and last offset, and its record count (None if unknown) as ``records``. ``remedy``
        None: that of the catalog.
        """
        headers = scanned.headers
        return self.context.finding(
            code,
            scanned.segment.path,
            meaning,
            remedy=remedy,
            byte=int(headers.position[i]),
            first_offset=int(headers.first[i]),
            last_offset=int(headers.last[i]),
            records=_sum_records(headers, [i]),
        )


def _describe_name(count: int, is_misnamed: bool) -> str:
    """Return the sentence about a segment whose first ``count`` batches have offsets below the base
    offset in its name. It says that the name is wrong if ``is_misnamed``, else that these batches
    are misplaced or have a wrong base offset in their headers.
    """
    if is_misnamed:
        return "The offsets of its batches follow each other, so the name is probably wrong."
    which = "batch does" if count == 1 else f"{count} batches do"
    return f"The first {which} not continue with the others: misplaced, or with a wrong base offset in the header, which no checksum covers."


def _count_leading(flags: Any) -> int:
    """Return the number of consecutive True values at the start of ``flags``."""
    return len(flags) if bool(flags.all()) else int(np.argmin(flags))


def _ascends(headers: Any, start: int) -> bool:
    """Return whether offsets ascend from the batch before index ``start`` to the last batch."""
    begin = max(start - 1, 0)
    return bool((headers.first[begin + 1 :] > headers.last[begin:-1]).all())


def _sum_records(headers: Any, batches: Iterable[int]) -> int | None:
    """Return the sum of the record counts of some batches (indexes); None if one of them is
    unknown, or there are none.
    """
    counts = [int(headers.count[i]) for i in batches]
    return None if min(counts, default=-1) < 0 else sum(counts)
