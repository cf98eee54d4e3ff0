"""What of ``__cluster_metadata`` counts as of an offset: the newest snapshot up to it, and the records after that."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_log.disk.directory import DirectoryError, NotThere, Partition, Segment, listed
from kafka_log.disk.names import CLUSTER_METADATA
from kafka_log.disk.replicas import LAST_OFFSET, furthest, log_end
from kafka_log.disk.snapshots import Snapshot, is_whole, snapshot_of, snapshots
from kafka_log.report.metadata_rows import Part, merged, rows
from kafka_log.segment.columnar import BatchScanner

_BEGIN, _END, _ABORT = 23, 24, 25
"""Records about transactions of the metadata log."""

Event = tuple[str, dict[str, Any]]
"""A view, and a row of it."""


@dataclass(frozen=True)
class MetadataLog:
    """What there is to read: a snapshot, and the records from its end (``start``) up to and with the offset ``as_of``. Of each segment
    it is the bytes before a position."""

    partition: Partition
    snapshot: Snapshot | None
    start: int
    as_of: int
    parts: tuple[Part, ...]

    def events(self, views: Sequence[str], *, salvage: bool = False) -> Iterator[Event]:
        """The rows of some views, in the order of the log, those of the snapshot first. What lies in a transaction of the metadata
        log that was aborted or is open is left out. Raises CodecError for damage, and for records that are not known, or (``salvage``)
        passes over these; OSError."""
        wanted = (self.start, self.as_of + 1)
        whole = [] if self.snapshot is None else [_as_part(self.snapshot, self.partition)]
        for _, view, row in merged({v: rows(v, whole, None, salvage) for v in views}):
            yield view, row
        gone = without_effect(rows("metadata_events", self.parts, wanted, salvage))
        firsts = [first for first, _ in gone]
        for offset, view, row in merged({v: rows(v, self.parts, wanted, salvage) for v in views}):
            i = bisect_right(firsts, offset) - 1
            if i < 0 or offset > gone[i][1]:
                yield view, row


def metadata_log(partitions: Sequence[Partition], as_of: int | None) -> MetadataLog:
    """What to read of ``__cluster_metadata``, as of an offset (None: the end). Of several replicas it is the one that goes furthest.

    Raises NotThere where there is no such topic or offset; DirectoryError where what came before the first record is not known, or
    records are missing; CodecError for damage; OSError.
    """
    partition = _replica(partitions)
    segments = tuple(s for s in partition.segments if s.is_named)
    end = log_end(segments)
    there = _snapshots(partition, None if end is None else end.offset)
    if not segments and not there:
        raise DirectoryError(partition.directory, "there is neither a segment nor a snapshot in it")
    last = max([s.end_offset for s in there] + ([] if end is None else [end.offset]), default=0) - 1
    if segments and end is None:
        last = LAST_OFFSET - 1  # the damage is told where it is met
    if as_of is None:
        as_of = last
    elif not -1 <= as_of <= last:
        raise NotThere(f"there is no offset {as_of}: the log ends at {last}")
    snapshot = next((s for s in there if s.end_offset <= as_of + 1 and is_whole(s)), None)
    start = 0 if snapshot is None else snapshot.end_offset
    parts = tuple(_parts(partition, _from(segments, start), start, as_of))
    return MetadataLog(partition, snapshot, start, as_of, parts)


def earliest(partitions: Sequence[Partition]) -> int:
    """The first offset as of which the metadata can be told: -1, before the first record, where the log has that, else the last one
    of the oldest snapshot. Raises NotThere, OSError."""
    partition = _replica(partitions)
    bases = [s.base_offset for s in partition.segments if s.is_named]
    if bases and min(bases) == 0:
        return -1
    ends = [s.end_offset for s in _snapshots(partition, None) if is_whole(s)]
    return min((end for end in ends if not bases or end >= min(bases)), default=0) - 1


def _replica(partitions: Sequence[Partition]) -> Partition:
    """The replica of the metadata log that goes furthest. Raises NotThere."""
    found = [partition for partition in partitions if partition.topic == CLUSTER_METADATA]
    if not found:
        names = listed({partition.topic for partition in partitions})
        raise NotThere(f"there is no topic {CLUSTER_METADATA}; there are: {names}")
    return furthest(found)[0]


def _snapshots(partition: Partition, end: int | None) -> list[Snapshot]:
    """The snapshots of a directory, or the one that is asked for; beside a file that is asked for those that lie before its end."""
    asked = [s for s in (snapshot_of(segment.path) for segment in partition.segments) if s]
    if asked:
        return asked
    found = snapshots(partition.directory)
    there = {path.name for path in partition.directory.glob("*.log")}
    if end is not None and there != {segment.path.name for segment in partition.segments}:
        return [snapshot for snapshot in found if snapshot.end_offset <= end]
    return found


def _from(segments: tuple[Segment, ...], start: int) -> tuple[Segment, ...]:
    """The segments that may have records from an offset on."""
    first = max((i for i, s in enumerate(segments) if s.base_offset <= start), default=0)
    return segments[first:]


def _parts(
    partition: Partition, segments: Sequence[Segment], start: int, as_of: int
) -> Iterator[Part]:
    """Segments that have the records from ``start`` to ``as_of``, with the byte before which these are. Refuses a log whose batches do
    not follow on each other: nothing is ever removed from the middle of this one. What comes later is not read."""
    expected = start
    columns = ("base_offset", "last_offset", "position")
    for segment in segments:
        stop = 0
        for batch in BatchScanner(segment.path, columns) if expected <= as_of else ():
            for first, last, position in zip(*(batch.column(n).to_pylist() for n in columns), strict=True):  # fmt: skip
                if expected <= as_of and last >= expected:
                    base = last if first is None else first
                    if base > expected:
                        raise _gap(segment.path, expected, base - 1, start)
                    expected, stop = last + 1, position + 1
            if expected > as_of:
                break
        if stop:
            yield segment, stop
    if expected <= as_of:
        raise _gap(partition.directory, expected, as_of, start)


def _gap(path: Path, first: int, last: int, start: int) -> DirectoryError:
    more = ", nor is a whole snapshot that has them" if first == start else ""
    return DirectoryError(path, f"the records from offset {first} to {last} are not there{more}")


def without_effect(events: Iterator[tuple[int, dict[str, Any]]]) -> list[tuple[int, int]]:
    """Ranges of offsets (first, last), in order, of transactions that were aborted or are open."""
    begun: int | None = None
    out = []
    for offset, row in events:
        kind = row["record_type"]
        if kind == _BEGIN and begun is None:
            begun = offset
        elif kind in (_END, _ABORT) and begun is not None:
            if kind == _ABORT:
                out.append((begun, offset))
            begun = None
    return out if begun is None else [*out, (begun, LAST_OFFSET)]


def _as_part(snapshot: Snapshot, partition: Partition) -> Part:
    size = snapshot.path.stat().st_size
    return Segment(snapshot.path, partition.topic, partition.partition, 0, size), size
