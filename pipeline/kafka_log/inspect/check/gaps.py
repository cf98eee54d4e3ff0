"""Offsets that are nowhere, and what may have taken them.

Compaction takes records, whole batches, and whole segments, so a gap is no error by itself. It is one where compaction
cannot be the reason: beside records without keys, which a compacted topic does not take, and where no other batch of
the partition shows a trace of it, and the broker's cleaner does not know the partition. A replica that was fetched from a leader
which had compacted the topic has gaps of which its own broker's cleaner knows nothing: whether there can be such a leader, the metadata
of the cluster says.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kafka_log.inspect.check.base import Check, Context, are
from kafka_log.inspect.check.finding import Finding, Severity
from kafka_log.inspect.check.segment_scan import Walked
from kafka_log.logs.names import CLEANER, CLUSTER_METADATA, LOG_START
from kafka_log.logs.partitions import Segment
from kafka_log.read.internal_topics import COORDINATOR_TOPICS
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.model import Policy
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.versions import have

KEPT = 16
"""Gaps of a partition that are looked at."""

FEW = 3
"""A log with more gaps than these, and records with keys, is taken for a compacted one."""

_INDEXES = (".index", ".timeindex", ".txnindex")
_REPLACED = (".deleted", ".swap", ".cleaned")

_PERHAPS = "compaction may have removed them, or they are lost"
_ASK = "Ask whether the topic is compacted; if it is not, copy the partition from another replica."


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that are not there, and the batches around them: there is none before the first one of the log. ``between`` is whether
    segments end and begin here; then ``index`` is one of the segment that had these offsets, if it is still there."""

    first: int
    last: int
    before: tuple[Path, int] | None
    after: tuple[Path, int]
    between: bool
    index: Path | None = None

    @property
    def offsets(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


class GapCheck(Check):
    """Segments and batches that are missing in the middle."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.cleaned = context.broker.offset(CLEANER, context.key)
        self.gaps: list[Gap] = []
        self.count = 0
        self.more: Gap | None = None  # from the first one to the last one that is not kept
        self.count_of_more = self.offsets_of_more = 0
        self.has_holes = False
        self.has_old = False
        self.end_before: tuple[int, tuple[Path, int] | None] | None = None
        self.base_before: int | None = None
        segments = context.partition.segments
        if (
            segments
            and segments[0].has_canonical_name
            and context.bases[:1] == (segments[0].base_offset,)
        ):
            # Segments have the names of their first offsets.
            self.end_before = context.bases[0] - 1, None

    def segment(self, walked: Walked) -> Iterable[Finding]:
        headers, path = walked.headers, walked.segment.path
        span = headers.last - headers.first + 1
        counted = (headers.count >= 0) & ~headers.is_control
        self.has_holes |= bool((counted & (headers.count < span)).any())
        self.has_old |= not have(headers.magic, "record_count").all()
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
        self.count += len(apart)
        apart = apart[headers.first[apart + 1] > (self.cleaned or 0)]
        room = KEPT - len(self.gaps)
        for i in apart[:room].tolist():
            positions = int(headers.position[i]), int(headers.position[i + 1])
            first, last = int(headers.last[i]) + 1, int(headers.first[i + 1]) - 1
            self.gaps.append(Gap(first, last, (path, positions[0]), (path, positions[1]), False))
        self._pass_over(apart[room:], headers, path)
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
        if walked.segment.has_canonical_name and last + 1 < first and base <= first:
            here = walked.segment.path, int(headers.position[0])
            # A segment that went missing leaves a gap up to the name of the next one.
            between = first == base and place is not None
            index = self._index_of(last + 1) if between else None
            self._add(Gap(last + 1, first - 1, place, here, between, index))

    def _index_of(self, base: int) -> Path | None:
        """Return an index of a segment that is nowhere. A broker that deletes or replaces a segment renames the segment first."""
        path = self.context.partition.directory / f"{base:020d}.log"
        if any(path.with_name(path.name + end).exists() for end in ("", *_REPLACED)):
            return None
        return next((index for end in _INDEXES if (index := path.with_suffix(end)).exists()), None)

    def _add(self, gap: Gap) -> None:
        self.count += 1
        if gap.last < (self.cleaned or 0) and gap.index is None:
            return
        if len(self.gaps) < KEPT or gap.index is not None:
            self.gaps.append(gap)
        else:
            self._sum_up(gap, 1, gap.offsets)

    def _pass_over(self, apart: Any, headers: Headers, path: Path) -> None:
        """Count gaps after the batches ``apart`` that are not kept."""
        if not len(apart):
            return
        before, after = int(apart[0]), int(apart[-1]) + 1
        first, last = int(headers.last[before]) + 1, int(headers.first[after]) - 1
        places = [(path, int(headers.position[i])) for i in (before, before + 1)]
        offsets = int((headers.first[apart + 1] - headers.last[apart] - 1).sum())
        self._sum_up(Gap(first, last, places[0], places[1], False), len(apart), offsets)

    def _sum_up(self, gaps: Gap, count: int, offsets: int) -> None:
        first = self.more or gaps
        self.more = Gap(first.first, gaps.last, first.before, first.after, False)
        self.count_of_more += count
        self.offsets_of_more += offsets

    def end(self) -> Iterable[Finding]:
        told = {offsets.start for offsets in self.context.missing}
        self.gaps = [gap for gap in self.gaps if gap.first not in told]
        reasons = [self._reason(gap) for gap in self.gaps]
        for gap, reason in zip(self.gaps, reasons, strict=True):
            if reason is not None:
                self.context.missing.append(range(gap.first, gap.last + 1))
                yield self._error(gap, reason)
        rest = [
            gap
            for gap, reason in zip(self.gaps, reasons, strict=True)
            if reason is None and not self._is_explained(gap)
        ]
        more = self.more
        if more is not None and self._is_explained(more):
            more = None
        if more is None and len(rest) <= FEW:
            yield from map(self._note, rest)
        else:
            yield self._sum(rest, more)

    def _error(self, gap: Gap, reason: str) -> Finding:
        if gap.before is None:
            what = "batches are missing before the first one"
        else:
            what = (
                "a segment is missing before this one"
                if gap.between
                else "batches are missing here"
            )
        return self._finding(
            "error",
            gap,
            f"Offsets are not there: {what}, {reason}.",
            "Copy the partition from another replica, or look for the file in a backup.",
            gap.offsets,
        )

    def _note(self, gap: Gap) -> Finding:
        return self._finding("note", gap, f"Offsets are not there: {_PERHAPS}.", _ASK, gap.offsets)

    def _sum(self, gaps: list[Gap], more: Gap | None) -> Finding:
        """Many gaps at once."""
        every = [*gaps, *([] if more is None else [more])]
        number, offsets = len(gaps), sum(gap.offsets for gap in gaps)
        if more is not None:
            number, offsets = number + self.count_of_more, offsets + self.offsets_of_more
        first = every[0]
        whole = Gap(first.first, every[-1].last, first.before, first.after, False)
        meaning = f"{are(offsets, 'offset')} are not there, in {are(number, 'gap')}: {_PERHAPS}."
        return self._finding("note", whole, meaning, _ASK, offsets)

    def _finding(
        self, severity: Severity, gap: Gap, meaning: str, remedy: str, records: int
    ) -> Finding:
        return self.context.finding(
            severity,
            "segment_missing" if gap.between else "offsets_missing",
            gap.after[0],
            meaning,
            remedy,
            byte=gap.after[1],
            first_offset=gap.first,
            last_offset=gap.last,
            records=records,
        )

    def _is_explained(self, gap: Gap) -> bool:
        """Whether compaction has been there: a cleaner goes through a log from its start on."""
        topic, _ = self.context.key
        if topic == CLUSTER_METADATA:
            return False
        return self._has_traces() or gap.last < (self.cleaned or 0)

    def _has_traces(self) -> bool:
        """Whether batches show that the partition was compacted, or it is one that always is. Of the older formats each message is by
        itself: there many gaps are all that there is to see."""
        topic, _ = self.context.key
        return self.has_holes or topic in COORDINATOR_TOPICS or (self.has_old and self.count > FEW)

    def _is_compacted(self) -> bool:
        """Whether anything says that the partition is, or was, compacted."""
        if self.cleaned is not None or self._has_traces() or self._is_compacted_by_default():
            return True
        return self.count > FEW and not self._is_never_compacted()

    def _is_compacted_by_default(self) -> bool:
        """Whether the broker has compacted a topic for which nobody has set it: then server.properties does, for all topics."""
        names = {topic for topic, _ in self.context.broker.checkpoints.get(CLEANER, {})}
        return any(map(self.context.cluster.is_never_compacted, names))

    def _is_never_compacted(self) -> bool:
        """Whether the metadata of the cluster says so, and nothing else says that it was."""
        topic, _ = self.context.key
        if self.cleaned is not None or self._has_traces() or self._is_compacted_by_default():
            return False
        return self.context.cluster.is_never_compacted(topic)

    def _reason(self, gap: Gap) -> str | None:
        """Why compaction has not removed these offsets; None where it may have."""
        topic, _ = self.context.key
        if topic == CLUSTER_METADATA:
            return "and the metadata log is not compacted"
        if gap.last < (self.context.broker.offset(LOG_START, self.context.key) or 0):
            return None  # nobody reads these
        if gap.index is not None and self._index_of(gap.first) is not None:
            return f"and its {gap.index.name} is still there: whatever takes a segment away takes its indexes too"
        # A topic may have been compacted once: then only what lies on both sides tells.
        around = [
            False if place is None else _has_no_keys(*place) for place in (gap.before, gap.after)
        ]
        if all(around) or (any(around) and not self._is_compacted()):
            return "and records without keys lie beside them, which no compacted topic has"
        if self._is_never_compacted():
            return "and by the metadata of the cluster the topic was never compacted (log.cleanup.policy in server.properties is not in it)"
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
