"""Check of missing offsets between batches and segments, and of what may have removed them.

Compaction removes records, batches and segments, so a gap alone is not an error. It is an error if compaction cannot
be the reason: if records without keys are beside it, which a compacted topic rejects, or if no batch of the partition
shows a trace of compaction and the broker's cleaner has no checkpoint of the partition. A replica that was fetched from
a leader which compacted the topic has gaps too. The cluster metadata says whether the topic can be compacted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.base import Check, Context
from kafka_log.inspect.check.catalog import Severity
from kafka_log.inspect.check.finding import Finding, make_finding
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.names import CLEANER, CLUSTER_METADATA, LOG_START
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.tiers import find_tier_gaps, merge_tiered_segments
from kafka_log.read.internal_topics import COORDINATOR_TOPICS
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.header_columns import UNBOUNDED
from kafka_log.segment.model import Policy
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.versions import have_field

MAX_GAPS = 16
"""Maximum of gaps of a partition that are examined one by one."""

FEW = 3
"""Maximum of gaps of a log with keys that is not taken for a compacted one."""

_INDEXES = (".index", ".timeindex", ".txnindex")
_REPLACED = (".deleted", ".swap", ".cleaned")

_PERHAPS = "compaction may have removed them, or they are lost"
_ASK = "Nothing to do if the topic is compacted (cleanup.policy of the topic, or log.cleanup.policy of the broker). If it is not, the records are lost here: stop the broker and copy the partition from another replica."


@dataclass(frozen=True, slots=True)
class Gap:
    """Range of missing offsets.

    Attributes:
        first: First missing offset.
        last: Last missing offset.
        before: Segment and position of the batch before the gap; None at the start of the log.
        after: Segment and position of the batch after the gap; position 0 of a segment that does not begin with a
            valid batch, whose name ends the gap.
        between: Whether a whole segment is missing between two others.
        index: Index file of the missing segment, if it still exists.
    """

    first: int
    last: int
    before: tuple[Path, int] | None
    after: tuple[Path, int]
    between: bool
    index: Path | None = None

    @property
    def offsets(self) -> int:
        """Return the number of missing offsets."""
        return self.last - self.first + 1


class GapCheck(Check):
    """Reports offsets that are missing between batches or segments, or before the first batch: an
    error if compaction cannot have removed them, else a note unless compaction explains them.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.cleaned = context.broker.offset(CLEANER, context.key)
        self.gaps: list[Gap] = []
        self.count = 0
        self.more: Gap | None = None  # spans all gaps beyond MAX_GAPS
        self.count_of_more = self.offsets_of_more = 0
        self.has_holes = False
        self.has_old = False
        self.end_before: tuple[int, tuple[Path, int] | None] | None = None
        self.base_before: int | None = None
        self.before_empty: Gap | None = None  # ends at the name of a segment without bytes
        segments = context.partition.segments
        if (
            segments
            and segments[0].has_canonical_name
            and context.bases[:1] == (segments[0].base_offset,)
        ):
            # A segment is named after its first offset.
            self.end_before = context.bases[0] - 1, None

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        headers, path = scanned.headers, scanned.segment.path
        span = headers.last - headers.first + 1
        counted = (headers.count >= 0) & ~headers.is_control
        self.has_holes |= bool((counted & (headers.count < span)).any())
        self.has_old |= not have_field(headers.magic, "record_count").all()
        self._find_gap_before(scanned)
        if not scanned.placed.all() or (scanned.lost and not len(headers)):
            self._forget_end()
        if not scanned.placed.all() or not len(headers):
            return ()
        # A header that contradicts itself does not say where its batch ends.
        is_bounded = headers.offset_bound != UNBOUNDED
        apart = np.flatnonzero(is_bounded[:-1] & (headers.first[1:] > headers.last[:-1] + 1))
        # Offsets in lost ranges are missing for another reason.
        starts = np.array([run.start for run in scanned.lost], np.int64)
        before = np.searchsorted(starts, headers.position)
        apart = apart[before[apart] == before[apart + 1]]
        self.count += len(apart)
        apart = apart[headers.first[apart + 1] > (self.cleaned or 0)]
        room = MAX_GAPS - len(self.gaps)
        for i in apart[:room].tolist():
            positions = int(headers.position[i]), int(headers.position[i + 1])
            first, last = int(headers.last[i]) + 1, int(headers.first[i + 1]) - 1
            self.gaps.append(Gap(first, last, (path, positions[0]), (path, positions[1]), False))
        self._sum_up_after(apart[room:], headers, path)
        at_end = any(run.end == scanned.size for run in scanned.lost)
        end = int(headers.last.max()), (path, int(headers.position[-1]))
        self.end_before = None if at_end or not is_bounded[-1] else end
        return ()

    def skip_segment(self, segment: Segment) -> None:
        self._forget_end()

    def _forget_end(self) -> None:
        """Take note that the end of the last segment is unknown. A gap before an empty segment is recorded."""
        if self.before_empty is not None:
            self._add_gap(self.before_empty)
        self.end_before = self.before_empty = None

    def _find_gap_before(self, scanned: ScannedSegment) -> None:
        """Record the gap between the last batch of the segment before and the first batch of this
        one, if offsets are missing between them. If no valid batch begins this segment, its base
        offset ends the gap; if it is empty, a batch of a later segment may extend the gap. Record
        nothing if damage, misplaced batches or segments that are not checked make the end before it
        unknown, or if its name is not its base offset or is above its first batch.

        A broker names a segment after the end of the log, or the first offset that it appends: no lower one comes later.
        """
        headers, base = scanned.headers, scanned.segment.base_offset
        before, self.base_before = self.base_before, base
        if before is not None and before not in _previous_base(self.context.bases, base):
            self._forget_end()  # segments between the two were not asked for
        if (
            self.end_before is None
            or not scanned.placed.all()
            or not scanned.segment.has_canonical_name
        ):
            return
        last, place = self.end_before
        first, position = base, 0
        if len(headers) and not any(run.start < headers.position[0] for run in scanned.lost):
            first, position = int(headers.first[0]), int(headers.position[0])
        if last + 1 < first and base <= first:
            # A segment that went missing leaves a gap up to the name of the next one.
            between = first == base and place is not None
            index = self._remaining_index(last + 1) if between else None
            here = scanned.segment.path, position
            self.before_empty = Gap(last + 1, first - 1, place, here, between, index)
        if len(headers) or scanned.lost:
            gap, self.before_empty = self.before_empty, None
            if gap is not None:
                self._add_gap(gap)

    def _remaining_index(self, base: int) -> Path | None:
        """Return the first index file that is left of the missing segment with the base offset
        ``base``, in the order .index, .timeindex, .txnindex. Return None if there is none, or if
        the segment file exists, also as .deleted, .swap or .cleaned.

        A broker that deletes or replaces a segment renames the segment before its indexes.
        """
        path = self.context.partition.directory / f"{base:020d}.log"
        if any(path.with_name(path.name + end).exists() for end in ("", *_REPLACED)):
            return None
        return next((index for end in _INDEXES if (index := path.with_suffix(end)).exists()), None)

    def _add_gap(self, gap: Gap) -> None:
        """Count a gap, and append it to ``gaps``. A gap that ends below the checkpoint of the log
        cleaner is only counted; one beyond MAX_GAPS kept gaps is only added to the sums. A gap with
        a remaining index file is always appended.
        """
        self.count += 1
        if gap.last < (self.cleaned or 0) and gap.index is None:
            return
        if len(self.gaps) < MAX_GAPS or gap.index is not None:
            self.gaps.append(gap)
        else:
            self._sum_up(gap, 1, gap.offsets)

    def _sum_up_after(self, apart: Any, headers: Headers, path: Path) -> None:
        """Add the gaps after the batches with the ascending indexes ``apart`` to the sums of gaps
        beyond MAX_GAPS. Do nothing if ``apart`` is empty.
        """
        if not len(apart):
            return
        before, after = int(apart[0]), int(apart[-1]) + 1
        first, last = int(headers.last[before]) + 1, int(headers.first[after]) - 1
        places = [(path, int(headers.position[i])) for i in (before, before + 1)]
        offsets = int((headers.first[apart + 1] - headers.last[apart] - 1).sum())
        self._sum_up(Gap(first, last, places[0], places[1], False), len(apart), offsets)

    def _sum_up(self, gaps: Gap, count: int, offsets: int) -> None:
        """Add ``count`` gaps with ``offsets`` missing offsets to the sums of gaps beyond MAX_GAPS.
        ``gaps`` is one Gap from the first to the last of them: the Gap ``more``, which spans all
        summed gaps, is extended to its end, or begins as it.
        """
        first = self.more or gaps
        self.more = Gap(first.first, gaps.last, first.before, first.after, False)
        self.count_of_more += count
        self.offsets_of_more += offsets

    def check_end(self) -> Iterable[Finding]:
        self._forget_end()
        told = {offsets.start for offsets in self.context.missing}
        self.gaps = [gap for gap in self.gaps if gap.first not in told]
        reasons = [self._impossible_reason(gap) for gap in self.gaps]
        for gap, reason in zip(self.gaps, reasons, strict=True):
            if reason is not None:
                self.context.missing.append(range(gap.first, gap.last + 1))
                yield self._error_finding(gap, reason)
        rest = [
            gap
            for gap, reason in zip(self.gaps, reasons, strict=True)
            if reason is None and not self._is_explained(gap)
        ]
        more = self.more
        if more is not None and self._is_explained(more):
            more = None
        if more is None and len(rest) <= FEW:
            yield from map(self._note_finding, rest)
        else:
            yield self._sum_finding(rest, more)

    def _error_finding(self, gap: Gap, reason: str) -> Finding:
        """Return the error about a gap that compaction cannot have caused: ``segment_missing`` for
        a whole segment between two others, else ``offsets_missing``. ``reason`` is the clause that
        says why.
        """
        if gap.before is None:
            what = "batches are missing before the first one"
        else:
            what = (
                f"a segment is missing before this one, which begins at offset {gap.last + 1}"
                if gap.between
                else "batches are missing before this byte"
            )
        return self._finding(
            "error", gap, f"Offsets are missing: {what}, {reason}.", None, gap.offsets
        )

    def _note_finding(self, gap: Gap) -> Finding:
        """Return the note about a gap that compaction may have caused."""
        return self._finding("note", gap, f"Offsets are missing: {_PERHAPS}.", _ASK, gap.offsets)

    def _sum_finding(self, gaps: list[Gap], more: Gap | None) -> Finding:
        """Return one ``offsets_missing`` note with the numbers of gaps and of missing offsets. It
        counts ``gaps`` and, if ``more`` is not None, the gaps that are summed up in it. It lies at
        the batch after the first gap; its offsets reach from the first to the last missing one.
        """
        every = [*gaps, *([] if more is None else [more])]
        number, offsets = len(gaps), sum(gap.offsets for gap in gaps)
        if more is not None:
            number, offsets = number + self.count_of_more, offsets + self.offsets_of_more
        first = every[0]
        whole = Gap(first.first, every[-1].last, first.before, first.after, False)
        meaning = f"{count_noun(offsets, 'offset')} are missing in {count_noun(number, 'gap')}: {_PERHAPS}."
        return self._finding("note", whole, meaning, _ASK, offsets)

    def _finding(
        self, severity: Severity, gap: Gap, meaning: str, remedy: str | None, records: int
    ) -> Finding:
        """Return a finding at the batch after a gap, with the missing offsets, ``severity`` and the
        sentence ``meaning``. It is ``segment_missing`` if a whole segment is missing between two
        others, else ``offsets_missing``. ``remedy`` None is that of the catalog. ``records`` is the
        number at risk.
        """
        return self.context.finding(
            "segment_missing" if gap.between else "offsets_missing",
            gap.after[0],
            meaning,
            severity=severity,
            remedy=remedy,
            byte=gap.after[1],
            first_offset=gap.first,
            last_offset=gap.last,
            records=records,
        )

    def _is_explained(self, gap: Gap) -> bool:
        """Return whether compaction explains the gap. It does if the gap ends below the checkpoint
        of the log cleaner, or the partition has traces of compaction (:meth:`_has_traces`). Always
        False for the metadata log, which is not compacted.
        """
        topic, _ = self.context.key
        if topic == CLUSTER_METADATA:
            return False
        return self._has_traces() or gap.last < (self.cleaned or 0)

    def _has_traces(self) -> bool:
        """Return whether the partition shows that it is compacted. It does if a data batch has
        fewer records than offsets, if the topic is one of a coordinator (always compacted), or if
        there are legacy messages and more than FEW gaps.

        Messages of the legacy formats stand alone: many gaps between them are the only trace.
        """
        topic, _ = self.context.key
        return self.has_holes or topic in COORDINATOR_TOPICS or (self.has_old and self.count > FEW)

    def _is_compacted(self) -> bool:
        """Return whether anything shows that the partition is or was compacted."""
        if self.cleaned is not None or self._has_traces() or self._is_compacted_by_default():
            return True
        return self.count > FEW and not self._is_never_compacted()

    def _is_compacted_by_default(self) -> bool:
        """Return whether server.properties must make all topics compacted. The file itself is not
        read: return True if the checkpoint of the log cleaner has any topic for which the cluster
        metadata, which knows the topic, never had a cleanup policy.
        """
        names = {topic for topic, _ in self.context.broker.checkpoints.get(CLEANER, {})}
        return any(map(self.context.cluster.is_never_compacted, names))

    def _is_never_compacted(self) -> bool:
        """Return whether the cluster metadata says that the topic was never compacted, and nothing
        contradicts it. The metadata must have the topic, and never a cleanup policy for it or for
        all topics. A checkpoint of the log cleaner, a trace of compaction, or compaction by
        server.properties contradicts it.
        """
        topic, _ = self.context.key
        if self.cleaned is not None or self._has_traces() or self._is_compacted_by_default():
            return False
        return self.context.cluster.is_never_compacted(topic)

    def _impossible_reason(self, gap: Gap) -> str | None:
        """Return why compaction cannot have removed the offsets of a gap, as a clause. The reasons:
        it is the metadata log; an index of the missing segment remains; records without keys are on
        both sides of the gap, or on one side if nothing shows compaction; the metadata never had a
        cleanup policy; or the log cleaner has checkpoints, but none of this partition, and all gaps
        are whole segments. Return None otherwise. Except in the metadata log, also return None for
        a gap below the log start offset. Raise FileNotFoundError if a neighbor segment is gone.
        """
        topic, _ = self.context.key
        if topic == CLUSTER_METADATA:
            return "and the metadata log is not compacted"
        if gap.last < (self.context.broker.offset(LOG_START, self.context.key) or 0):
            return None  # deleted records
        if gap.index is not None and self._remaining_index(gap.first) is not None:
            return (
                f"and its {gap.index.name} still exists: brokers delete the indexes with a segment"
            )
        # A topic may have been compacted once: then only what lies on both sides tells.
        around = [
            False if place is None else _lacks_keys(*place) for place in (gap.before, gap.after)
        ]
        if all(around) or (any(around) and not self._is_compacted()):
            return "and records without keys are beside them, which no compacted topic has"
        if self._is_never_compacted():
            return "and by the cluster metadata the topic was never compacted (the metadata does not have log.cleanup.policy of server.properties: if that is compact, compaction may be the reason)"
        if self._is_compacted():
            return None
        known = CLEANER in self.context.broker.checkpoints
        if known and all(other.between for other in self.gaps):
            return "and the broker's cleaner has no checkpoint of this partition"
        return None


def check_tier_gaps(partitions: Iterable[Partition]) -> Iterator[Finding]:
    """Yield ``segment_missing`` for offsets between the first copy of a partition in tiered storage
    and its first live segment that no copy has, from the log start offset on. It is an error if
    compaction cannot be the reason, because the metadata of the copy before states where it ends,
    or records after the gap have no key; else a note.
    """
    starts = LogStarts()
    for partition in merge_tiered_segments(partitions):
        ends = {segment.stated_end for segment in partition.segments}
        for gap, end, segment in find_tier_gaps(partition):
            if (first := max(gap, starts.get(partition) or 0)) >= end:
                continue
            is_lost = gap in ends
            with suppress(FileNotFoundError):
                is_lost |= _lacks_keys(segment.path, 0)
            yield make_finding(
                "segment_missing",
                segment.path,
                f"Offsets {first} to {end - 1} are missing before this segment: no copy in tiered storage has them, and no live segment.",
                severity="error" if is_lost else "note",
                remedy="Look for the copies in a backup of the tier, or for local segments on the other replicas. Nothing to do if the topic was compacted before its segments were copied.",
                topic=partition.topic,
                partition=partition.partition,
                first_offset=first,
                last_offset=end - 1,
                records=end - first,
            )


def _previous_base(bases: tuple[int, ...], base: int) -> tuple[int, ...]:
    """Return the base offset of the segment before the segment ``base``, in a tuple; ``()`` if it is the first."""
    at = bisect_left(bases, base)
    return bases[at - 1 : at] if at else ()


def _lacks_keys(path: Path, position: int) -> bool:
    """Return whether the batch at byte ``position`` of a segment has a readable record without a
    key. Return False for a control batch, and if no batch begins there or it cannot be read. Raise
    FileNotFoundError if the file is gone.
    """
    reader = SegmentReader(path, policy=Policy.SALVAGE, start=position, stop=position + 1)
    for batch in reader:
        if batch.position == position and not batch.is_control:
            return any(record.key is None for record in batch.records)
        break
    return False
