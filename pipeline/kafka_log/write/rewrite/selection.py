"""Which batches of a log are written again: ranges of offsets and timestamps, committed data only, damaged records too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafka_log.logs.partitions import Segment
from kafka_log.logs.replicas import read_end_offset
from kafka_log.logs.transactions import read_transactions
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.header_columns import UNBOUNDED
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.ranges import EVERYTHING, Range, counts_from_end, offsets_before
from kafka_log.segment.row_masks import AbortedSpans
from kafka_log.segment.row_selection import Aborted, RowSelection
from kafka_log.segment.scanner import Scanner
from kafka_log.write.segment_contents import SegmentContents

_NEVER = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class RewriteSelection:
    """Selection of the batches that are written again. A batch is selected as a whole if one of its records is.

    Attributes:
        offsets: Range of offsets, half-open. Negative ones count from the end of a partition until :meth:`resolve_offsets` replaces them.
        timestamps: Range of timestamps in milliseconds, half-open.
        flatten: Write only committed data, without producers and transactions.
        keep_damaged: Also write records whose checksum is wrong.
    """

    offsets: Range = EVERYTHING
    timestamps: Range = EVERYTHING
    flatten: bool = False
    keep_damaged: bool = False

    @property
    def is_all(self) -> bool:
        """Return whether neither offsets nor timestamps are restricted."""
        return self.offsets == EVERYTHING and self.timestamps == EVERYTHING

    def resolve_offsets(self, segments: Sequence[Segment]) -> RewriteSelection:
        """Return the selection for the segments of one partition, with negative offsets replaced by
        absolute ones. Damaged and unreadable files are ignored for the end of the partition.
        """
        if not counts_from_end(self.offsets):
            return self
        return replace(self, offsets=offsets_before(self.offsets, read_end_offset(segments)))

    def mark_selected(self, found: SegmentContents) -> Any:
        """Return a NumPy mask of the batches that may have a record in the offset range, and have a
        record, perhaps another or a control record, in the timestamp range, if one is set. Records
        are read only for timestamps, and for batches whose header does not bound their offsets: then
        what cannot be read is not selected. Nothing raises for damage or an unreadable file.
        """
        headers, (low, high) = found.headers, self.offsets
        is_empty = low is not None and high is not None and low >= high
        inside = np.full(len(headers), not is_empty)
        if low is not None:
            inside &= headers.offset_bound >= low
        if high is not None:
            inside &= headers.first < high
        unbounded = inside & (headers.offset_bound == UNBOUNDED)
        if low is not None and unbounded.any():
            rows = RowSelection(self.offsets, control_records=True)
            inside &= ~unbounded | np.isin(
                headers.position, _find_selected_positions(found.segment, rows)
            )
        if self.timestamps != EVERYTHING:
            rows = RowSelection(timestamps=self.timestamps)
            inside &= np.isin(headers.position, _find_selected_positions(found.segment, rows))
        return inside

    def may_concern(self, lost: Lost) -> bool:
        """Return whether a lost range of bytes may have held selected offsets, by the offsets
        around it; an unknown one excludes nothing.
        """
        low, high = self.offsets
        first, end = lost.after_offset, lost.before_offset
        before = low is not None and end is not None and end <= low
        after = high is not None and first is not None and first >= high - 1
        return not (before or after)


def _find_selected_positions(segment: Segment, selection: RowSelection) -> Any:
    """Return an array with the byte positions of the batches of a segment that have a selected
    record, ascending; a position may be repeated. Readable records of damaged batches count; other
    damage is skipped.
    """
    scanner = Scanner(
        segment.path,
        ["position"],
        Policy.SALVAGE,
        selection=selection,
        tail=segment.tail,
        size=segment.size,
    )
    found = [np.unique(rows.column("position").to_numpy()) for rows in scanner]
    return np.concatenate([*found, np.empty(0, np.int64)])


def find_uncommitted(segments: Sequence[Segment]) -> Aborted:
    """Return the offset ranges (both ends included), by producer id, of records of transactions that
    were aborted or have not ended; the last ones end at the largest 64-bit integer. Skip damaged
    batches, also those with a wrong checksum, and unreadable segments. Raise UnreadableError if
    retention deletes a segment meanwhile.
    """
    found = read_transactions(segments, Policy.SALVAGE, damage_raises=False)
    undecided = [(producer, first, _NEVER) for producer, first in found.open_first_offsets]
    aborted = [(t.producer_id, t.first_offset, t.last_offset) for t in found.aborted]
    return Aborted([*aborted, *undecided])


def mark_hidden(headers: Headers, hidden: Aborted) -> Any:
    """Return a mask of the data batches that lie in spans of uncommitted records."""
    data = headers.is_transactional & ~headers.is_control
    return data & AbortedSpans(hidden).mask(headers.producer_id, headers.first)


def has_producer(headers: Headers) -> Any:
    """Return a mask of the batches that have a producer id or belong to a transaction."""
    return (headers.producer_id >= 0) | headers.is_transactional
