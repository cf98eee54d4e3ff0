"""What of ``__cluster_metadata`` counts as of an offset: the newest whole snapshot up to it, and the records after that."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_log.logs.metadata_snapshots import (
    MetadataSnapshot,
    find_snapshot_damage,
    list_snapshots,
    parse_snapshot_path,
)
from kafka_log.logs.partitions import DirectoryError, Partition, Segment
from kafka_log.logs.replicas import read_log_end
from kafka_log.read.topic_views import ViewRows, topic_view
from kafka_log.read.unknown_records import RecordRefused
from kafka_log.segment.model import Policy
from kafka_log.segment.ranges import EVERYTHING, MAX_OFFSET
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import Scanner, header_scanner
from kafka_log.text.json_values import to_rows

_BEGIN, _END, _ABORT = 23, 24, 25
"""Records about transactions of the metadata log."""

Event = tuple[str, dict[str, Any]]
"""A view, and a row of it."""

Reason = CodecError | DirectoryError
"""Why records are left out."""


@dataclass(frozen=True)
class Unread:
    """What has turned out not to be readable: snapshots, and the records from ``first`` to ``last``."""

    snapshots: tuple[tuple[Path, Reason], ...] = ()
    records: tuple[tuple[int, int, Reason], ...] = ()


@dataclass(frozen=True)
class MetadataLog:
    """What there is to read: a snapshot, and the records from its end (``start``) up to and with the offset ``as_of``, which was
    asked for, or is the last one before what cannot be read, for the ``reason``.
    ``passed`` are newer snapshots that are not whole, and why. With ``salvage`` all of it is read, and what cannot be is passed over."""

    partition: Partition
    snapshot: MetadataSnapshot | None
    start: int
    as_of: int
    parts: tuple[Part, ...]
    reason: Reason | None = None
    passed: tuple[tuple[Path, Reason], ...] = ()
    salvage: bool = False

    def events(self, views: Sequence[str]) -> Iterator[Event]:
        """The rows of some views, in the order of the log, those of the snapshot first. What lies in a transaction of the metadata
        log that was aborted or is open is left out. Raises CodecError for damage, and for records that are not known; OSError."""
        wanted, salvage = (self.start, self.as_of + 1), self.salvage
        whole = [] if self.snapshot is None else [_as_part(self.snapshot, self.partition)]
        for _, view, row in merged({v: rows(v, whole, None, salvage) for v in views}):
            yield view, row
        gone = without_effect(rows("metadata_events", self.parts, wanted, salvage))
        firsts = [first for first, _ in gone]
        for offset, view, row in merged({v: rows(v, self.parts, wanted, salvage) for v in views}):
            i = bisect_right(firsts, offset) - 1
            if i < 0 or offset > gone[i][1]:
                yield view, row


def last_offset(partition: Partition) -> int:
    """The last offset as of which a replica may tell something; more than a log can have where damage hides its end. Raises
    DirectoryError where there is nothing, OSError."""
    segments = _segments(partition)
    end = read_log_end(segments)
    if segments and end is None:
        return MAX_OFFSET - 1
    there = _snapshots(partition, None if end is None else end.offset)
    if not segments and not there:
        raise DirectoryError(partition.directory, "there is neither a segment nor a snapshot in it")
    return max([s.end_offset for s in there] + ([] if end is None else [end.offset]), default=0) - 1


def metadata_log(partition: Partition, as_of: int, unread: Unread) -> MetadataLog:
    """What to read of a replica of ``__cluster_metadata``, as of an offset: the newest snapshot that is whole with the records after
    it, or, where these cannot be read or are not there, the one with which most can.

    Raises DirectoryError where what came before the first record is not known, CodecError where that is damaged; OSError.
    """
    segments = _segments(partition)
    end = read_log_end(segments)
    there = _snapshots(partition, None if end is None else end.offset)
    passed: list[tuple[Path, Reason]] = []
    best: MetadataLog | None = None
    for snapshot in [*(s for s in there if s.end_offset <= as_of + 1), None]:
        if snapshot is not None and (wrong := _wrong(snapshot, unread)) is not None:
            passed.append((snapshot.path, wrong))
            continue
        found = _after(partition, segments, snapshot, as_of, unread, tuple(passed))
        if best is None or (found.as_of, snapshot is not None) > (best.as_of, best.snapshot is not None):  # fmt: skip
            best = found
        if best.reason is None:
            break
    assert best is not None
    if best.snapshot is None and best.reason is not None and best.as_of < 0:
        if passed and isinstance(best.reason, DirectoryError):
            damaged = "; ".join(f"{path.name}: {why}" for path, why in passed)
            raise DirectoryError(best.reason.path, f"{best.reason.reason} ({damaged})")
        raise best.reason
    return best


def salvaged(partition: Partition, as_of: int, found: MetadataLog | None) -> MetadataLog:
    """The same with what cannot be read passed over: from the snapshot that was ``found``, if the records go on up to a newer one, or
    else from the newest one."""
    segments = _segments(partition)
    there = [s for s in _snapshots(partition, None) if s.end_offset <= as_of + 1]
    newest = next(iter(there), None)
    if found is None or (newest is not None and found.as_of < newest.end_offset - 1):
        start = 0 if newest is None else newest.end_offset
    else:
        newest, start = found.snapshot, found.start
    parts = tuple(Part(segment, 0, segment.size) for segment in _from(segments, start))
    passed = () if found is None else found.passed
    return MetadataLog(partition, newest, start, as_of, parts, None, passed, salvage=True)


def refused(log: MetadataLog, error: CodecError, unread: Unread) -> Unread | None:
    """What cannot be read, with that for which reading ``log`` has ended. None where nobody knows which records these are."""
    file = error.where.file
    if log.snapshot is not None and file == str(log.snapshot.path):
        return replace(unread, snapshots=(*unread.snapshots, (log.snapshot.path, error)))
    segment = next((p.segment for p in log.parts if str(p.segment.path) == file), None)
    if segment is None:
        return None
    if isinstance(error, RecordRefused):
        found = error.offset, error.offset
    elif error.where.position is not None:
        found = _batch_at(segment, error.where.position)
    else:
        return None
    known = (*found, error)
    if any(known[:2] == other[:2] for other in unread.records):
        return None
    return replace(unread, records=(*unread.records, known))


def earliest(partition: Partition) -> int:
    """The first offset as of which the metadata can be told: -1, before the first record, where the log has that, else the last one
    of the oldest snapshot that is whole. Raises OSError."""
    bases = [s.base_offset for s in _segments(partition)]
    if bases and min(bases) == 0:
        return -1
    ends = [s.end_offset for s in _snapshots(partition, None) if find_snapshot_damage(s) is None]
    return min((end for end in ends if not bases or end >= min(bases)), default=0) - 1


def _segments(partition: Partition) -> tuple[Segment, ...]:
    return tuple(s for s in partition.segments if s.has_canonical_name)


def _wrong(snapshot: MetadataSnapshot, unread: Unread) -> Reason | None:
    """Why a snapshot is not read."""
    return next(
        (why for path, why in unread.snapshots if path == snapshot.path),
        find_snapshot_damage(snapshot),
    )


def _snapshots(partition: Partition, end: int | None) -> list[MetadataSnapshot]:
    """The snapshots of a directory, or the one that is asked for; beside a file that is asked for those that lie before its end."""
    asked = [s for s in (parse_snapshot_path(segment.path) for segment in partition.segments) if s]
    if asked:
        return asked
    found = list_snapshots(partition.directory)
    there = {path.name for path in partition.directory.glob("*.log")}
    if end is not None and there != {segment.path.name for segment in partition.segments}:
        return [snapshot for snapshot in found if snapshot.end_offset <= end]
    return found


def _from(segments: tuple[Segment, ...], start: int) -> tuple[Segment, ...]:
    """The segments that may have records from an offset on."""
    first = max((i for i, s in enumerate(segments) if s.base_offset <= start), default=0)
    return segments[first:]


def _after(
    partition: Partition,
    segments: tuple[Segment, ...],
    snapshot: MetadataSnapshot | None,
    as_of: int,
    unread: Unread,
    passed: tuple[tuple[Path, Reason], ...],
) -> MetadataLog:
    """A snapshot with the records after it up to an offset, or to the first that cannot be read."""
    start = 0 if snapshot is None else snapshot.end_offset
    bad = min((r for r in unread.records if r[1] >= start and r[0] <= as_of), default=None, key=lambda r: r[0])  # fmt: skip
    until = as_of if bad is None else max(bad[0], start) - 1
    reason = None if bad is None else bad[2]
    parts: list[Part] = []
    reach, why = _parts(partition, _from(segments, start), start, until, parts)
    reason = why or reason
    return MetadataLog(partition, snapshot, start, reach, tuple(parts), reason, passed)


def _parts(
    partition: Partition, segments: Sequence[Segment], start: int, as_of: int, parts: list[Part]
) -> tuple[int, Reason | None]:
    """Segments that have the records from ``start`` to ``as_of``; the last offset up to which they follow on each other, and why they
    do not go on: nothing is ever removed from the middle of this log. What comes later is not read, nor is damage before a reason."""
    expected = start
    for segment in segments:
        part, expected, why = _part(segment, expected, start, as_of)
        if why is not None and part is None and isinstance(why, CodecError):
            # The damage may lie before what is wanted.
            part, expected, more = _part(segment, expected, start, as_of, Policy.SALVAGE)
            why = None if part is not None and more is None else why
        if part is not None:
            parts.append(part)
        if why is not None:
            return expected - 1, why
    if expected <= as_of and as_of < MAX_OFFSET - 1:
        return expected - 1, _gap(partition.directory, expected, as_of, start)
    return min(as_of, expected - 1), None


def _part(
    segment: Segment, expected: int, start: int, as_of: int, policy: Policy = Policy.KAFKA
) -> tuple[Part | None, int, Reason | None]:
    """What of a segment has the records from ``expected`` on; the offset after them, and why they do not go on."""
    columns = ("base_offset", "last_offset", "position")
    begin = stop = -1

    def part() -> Part | None:
        return None if begin < 0 else Part(segment, begin, stop)

    try:
        for batch in header_scanner(segment.path, columns, policy) if expected <= as_of else ():
            for first, last, position in zip(*(batch.column(n).to_pylist() for n in columns), strict=True):  # fmt: skip
                if last < expected:
                    continue
                base = last if first is None else first
                if base > expected:
                    return part(), expected, _gap(segment.path, expected, base - 1, start)
                begin = position if begin < 0 else begin
                expected, stop = last + 1, position + 1
                if expected > as_of:
                    return part(), expected, None
    except CodecError as error:
        return part(), expected, error
    return part(), expected, None


def _batch_at(segment: Segment, position: int) -> tuple[int, int]:
    """The offsets of the batch at a byte; without one the offset after those before."""
    columns = ("base_offset", "last_offset", "position", "size")
    after = segment.base_offset
    try:
        for batch in header_scanner(segment.path, columns):
            for first, last, at, size in zip(*(batch.column(n).to_pylist() for n in columns), strict=True):  # fmt: skip
                if at <= position < at + size:
                    return (last if first is None else first), last
                if at < position:
                    after = last + 1
    except CodecError:
        pass
    return after, after


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
    return out if begun is None else [*out, (begun, MAX_OFFSET)]


def _as_part(snapshot: MetadataSnapshot, partition: Partition) -> Part:
    size = snapshot.path.stat().st_size
    segment = Segment(snapshot.path, partition.topic, partition.partition, 0, size)
    return Part(segment, 0, size)


class Part(NamedTuple):
    """A file, the byte at which the first batch of it begins that is to be read, and the one before which the last one does."""

    segment: Segment
    start: int
    stop: int


Offsets = tuple[int, int] | None
"""The first is in, the second is not."""

Rows = Iterator[tuple[int, dict[str, Any]]]
"""Rows with their offsets."""


def rows(name: str, parts: Sequence[Part], offsets: Offsets, salvage: bool) -> Rows:
    """The rows of a view. Raises CodecError for damage and for records that are not known, or (``salvage``) passes over these."""
    columns = [field.name for field in topic_view(name, None).schema]
    # Secrets are hidden in answers: before, two of them have to be told apart.
    view = topic_view(name, [*columns, "record_offset"], show_secrets=True)
    size = sum(part.stop - part.start for part in parts)
    converter = ViewRows(
        view,
        view.schema,
        is_strict=False,
        keeps_damage=salvage,
        limits=Limits(),
        engine="auto",
        size=size,
    )
    for part in parts:
        for records in _scanner(part, view.needed, offsets, salvage):
            for batch in converter.convert(records, part.segment):
                for row in to_rows(pa.Table.from_batches([batch])):
                    yield row.pop("record_offset"), row


def merged(streams: Mapping[str, Rows]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The rows of several views, by offset."""

    def named(view: str, found: Rows) -> Iterator[tuple[int, str, dict[str, Any]]]:
        for offset, row in found:
            yield offset, view, row

    return heapq.merge(*(named(*stream) for stream in streams.items()), key=lambda event: event[0])


def _scanner(part: Part, columns: Sequence[str], offsets: Offsets, salvage: bool) -> Scanner:
    return Scanner(
        part.segment.path,
        columns,
        Policy.SALVAGE if salvage else Policy.KAFKA,
        selection=RowSelection(offsets or EVERYTHING, control_records=False),
        on_damage="keep" if salvage else "raise",
        limits=Limits(),
        start=part.start,
        stop=part.stop,
    )
