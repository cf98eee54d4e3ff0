"""Offsets that are nowhere, and what may have taken them.

Compaction takes records, whole batches, and whole segments, so a gap is no error by itself. It is one where compaction
cannot be the reason: beside records without keys, which a compacted topic does not take, and where no other batch of
the partition shows a trace of it, and the broker's cleaner does not know the partition.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kafka_log.disk.directory import Segment
from kafka_log.disk.names import CLEANER
from kafka_log.report.check.base import Check, Context
from kafka_log.report.check.finding import Finding
from kafka_log.report.check.walk import Walked
from kafka_log.segment.model import Policy
from kafka_log.segment.reader import SegmentReader

KEPT = 16
"""Gaps of a partition that are looked at."""

FEW = 3
"""A log with more gaps than these, and records with keys, is taken for a compacted one."""

METADATA = "__cluster_metadata"
COMPACTED = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Kafka's own topics that are always compacted."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that are not there, and the batches around them. ``between`` is whether segments end and begin here."""

    first: int
    last: int
    before: tuple[Path, int]
    after: tuple[Path, int]
    between: bool


class GapCheck(Check):
    """Segments and batches that are missing in the middle."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.gaps: list[Gap] = []
        self.count = 0
        self.has_holes = False
        self.end_before: tuple[int, tuple[Path, int]] | None = None
        self.base_before: int | None = None

    def segment(self, walked: Walked) -> Iterable[Finding]:
        headers, path = walked.headers, walked.segment.path
        span = headers.last - headers.first + 1
        counted = (headers.count >= 0) & ~headers.is_control
        self.has_holes |= bool((counted & (headers.count < span)).any())
        self._between_segments(walked)
        if not walked.placed.all():
            self.end_before = None
        if not walked.placed.all() or not len(headers):
            return ()
        apart = np.flatnonzero(headers.first[1:] > headers.last[:-1] + 1)
        # Where bytes are lost offsets are missing for another reason.
        starts = np.array([run.start for run in walked.lost], np.int64)
        before = np.searchsorted(starts, headers.position)
        apart = apart[before[apart] == before[apart + 1]]
        self.count += max(len(apart) - KEPT, 0)
        for i in apart[:KEPT].tolist():
            positions = int(headers.position[i]), int(headers.position[i + 1])
            first, last = int(headers.last[i]) + 1, int(headers.first[i + 1]) - 1
            self._add(Gap(first, last, (path, positions[0]), (path, positions[1]), False))
        at_end = any(run.end == walked.size for run in walked.lost)
        end = int(headers.last.max()), (path, int(headers.position[-1]))
        self.end_before = None if at_end else end
        return ()

    def unread(self, segment: Segment) -> None:
        self.end_before = None

    def _between_segments(self, walked: Walked) -> None:
        headers, base = walked.headers, walked.segment.base_offset
        before, self.base_before = self.base_before, base
        if before is not None and before not in _next_below(self.context.bases, base):
            self.end_before = None  # segments between the two were not asked for
        if self.end_before is None or not len(headers) or not walked.placed.all():
            return
        if any(run.start < headers.position[0] for run in walked.lost):
            return
        last, place = self.end_before
        first = int(headers.first[0])
        if walked.segment.is_named and last + 1 < first and base <= first:
            here = walked.segment.path, int(headers.position[0])
            # A segment that went missing leaves a gap up to the name of the next one.
            self._add(Gap(last + 1, first - 1, place, here, first == base))

    def _add(self, gap: Gap) -> None:
        self.count += 1
        if len(self.gaps) < KEPT:
            self.gaps.append(gap)

    def end(self) -> Iterable[Finding]:
        for gap in self.gaps:
            yield from self._judge(gap)

    def _judge(self, gap: Gap) -> Iterable[Finding]:
        code = "segment_missing" if gap.between else "offsets_missing"
        what = "a segment is missing before this one" if gap.between else "batches are missing here"
        reason = self._reason(gap)
        if reason is not None:
            severity, meaning = "error", f"Offsets are not there: {what}, {reason}."
            remedy = "Copy the partition from another replica, or look for the file in a backup."
        elif self._is_compacted():
            return
        else:
            severity = "note"
            meaning = "Offsets are not there: compaction may have removed them, or they are lost."
            remedy = "Ask whether the topic is compacted; if it is not, copy the partition from another replica."
        yield self.context.finding(
            "error" if severity == "error" else "note",
            code,
            gap.after[0],
            meaning,
            remedy,
            byte=gap.after[1],
            first_offset=gap.first,
            last_offset=gap.last,
            records=gap.last - gap.first + 1,
        )

    def _is_compacted(self) -> bool:
        """Whether anything says that the partition is, or was, compacted."""
        topic, _ = self.context.key
        cleaned = self.context.broker.offset(CLEANER, self.context.key) is not None
        return cleaned or self.has_holes or self.count > FEW or topic in COMPACTED

    def _reason(self, gap: Gap) -> str | None:
        """Why compaction has not removed these offsets; None where it may have."""
        topic, _ = self.context.key
        if topic == METADATA:
            return "and the metadata log is not compacted"
        cleaned = self.context.broker.offset(CLEANER, self.context.key)
        if cleaned is not None and gap.last < cleaned:
            return None
        # A topic may have been compacted once: then only what lies on both sides tells.
        without = [_has_no_keys(*gap.before), _has_no_keys(*gap.after)]
        if all(without) or (any(without) and not self._is_compacted()):
            return "and records without keys lie beside them, which no compacted topic has"
        if self._is_compacted():
            return None
        known = CLEANER in self.context.broker.checkpoints
        if known and all(other.between for other in self.gaps):
            return "and the broker has not compacted this partition"
        return None


def _next_below(bases: tuple[int, ...], base: int) -> tuple[int, ...]:
    """The base offset of the segment before one, if there is one."""
    at = bisect_left(bases, base)
    return bases[at - 1 : at] if at else ()


def _has_no_keys(path: Path, position: int) -> bool:
    """Whether a batch of data has a record without a key."""
    reader = SegmentReader(path, policy=Policy.SALVAGE, start=position, stop=position + 1)
    for batch in reader:
        if batch.position == position and not batch.is_control:
            return any(record.key is None for record in batch.records)
        break
    return False
