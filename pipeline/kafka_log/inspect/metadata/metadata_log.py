"""Choose what to read of ``__cluster_metadata`` as of an offset: the newest undamaged snapshot before it, and the records after the snapshot."""

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
    sort_snapshots,
)
from kafka_log.logs.partitions import DirectoryError, Partition, Segment
from kafka_log.logs.replicas import read_log_end
from kafka_log.read.topic_views import ViewRows, topic_view
from kafka_log.read.unknown_records import RecordRefused
from kafka_log.segment.model import Policy
from kafka_log.segment.positioned_reads import listed_directory, unreadable
from kafka_log.segment.ranges import EVERYTHING, MAX_OFFSET
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import Scanner, header_scanner
from kafka_log.text.json_values import to_rows

_BEGIN, _END, _ABORT = 23, 24, 25
"""Record types that begin, end and abort a transaction of the metadata log."""

Event = tuple[str, dict[str, Any]]
"""Name of a view, and a row of it."""

Reason = CodecError | DirectoryError
"""Error because of which records are left out."""


@dataclass(frozen=True)
class Unread:
    """Snapshots, and ranges of records (first and last offset), that could not be read, with the errors."""

    snapshots: tuple[tuple[Path, Reason], ...] = ()
    records: tuple[tuple[int, int, Reason], ...] = ()


@dataclass(frozen=True)
class MetadataLog:
    """A snapshot and the parts of segments that are read after it.

    Attributes:
        partition: The replica.
        snapshot: The snapshot; None reads the log from its first record.
        start: First offset after the snapshot.
        as_of: Offset of the last record: the requested one, or the last one before unreadable records.
        parts: The parts of segments to read.
        reason: Why ``as_of`` is not the requested offset; None if it is.
        passed: Newer snapshots that are damaged, and their errors.
        salvage: Read everything and skip what cannot be read.
    """

    partition: Partition
    snapshot: MetadataSnapshot | None
    start: int
    as_of: int
    parts: tuple[Part, ...]
    reason: Reason | None = None
    passed: tuple[tuple[Path, Reason], ...] = ()
    salvage: bool = False

    def events(self, views: Sequence[str]) -> Iterator[Event]:
        """Yield the rows of some views in the order of the log, rows of the snapshot first, without
        records in aborted or open transactions of the metadata log. Raise CodecError for damage,
        unreadable or missing files and unknown record types; with ``salvage`` these are skipped,
        except for a wrong checksum alone.
        """
        wanted, salvage = (self.start, self.as_of + 1), self.salvage
        whole = [] if self.snapshot is None else _snapshot_parts(self.snapshot, self.partition, salvage)  # fmt: skip
        for _, view, row in merge_by_offset({v: read_rows(v, whole, None, salvage) for v in views}):
            yield view, row
        gone = find_ineffective_ranges(read_rows("metadata_events", self.parts, wanted, salvage))
        firsts = [first for first, _ in gone]
        for offset, view, row in merge_by_offset(
            {v: read_rows(v, self.parts, wanted, salvage) for v in views}
        ):
            i = bisect_right(firsts, offset) - 1
            if i < 0 or offset > gone[i][1]:
                yield view, row


def find_last_offset(partition: Partition) -> int:
    """Return the last offset of a replica's segments and snapshots: -1 if they are empty,
    ``MAX_OFFSET - 1`` if damage hides the end of the log. Raise DirectoryError if the directory has
    neither a segment nor a snapshot; UnreadableError if it cannot be listed.
    """
    segments = _segments(partition)
    end = read_log_end(segments)
    if segments and end is None:
        return MAX_OFFSET - 1
    there = _snapshots(partition, None if end is None else end.offset)
    if not segments and not there:
        raise DirectoryError(
            partition.directory,
            "it has neither a segment nor a snapshot of the cluster metadata: name the metadata log of another node",
        )
    return max([s.end_offset for s in there] + ([] if end is None else [end.offset]), default=0) - 1


def plan_metadata_log(partition: Partition, as_of: int, unread: Unread) -> MetadataLog:
    """Return the plan for the state as of an offset: the newest undamaged snapshot and the records
    after it. The records reach to ``as_of``, or to before the first one that is missing or
    unreadable, and ``reason`` is then its error. Raise DirectoryError or CodecError if not even the
    first record is readable and no snapshot is, or the directory cannot be listed.

    If some of the records after the newest undamaged snapshot are missing or unreadable, the plan has the snapshot from which
    the readable records reach furthest. ``unread`` has what earlier attempts could not read.
    """
    segments = _segments(partition)
    end = read_log_end(segments)
    there = _snapshots(partition, None if end is None else end.offset)
    passed: list[tuple[Path, Reason]] = []
    best: MetadataLog | None = None
    for snapshot in [*(s for s in there if s.end_offset <= as_of + 1), None]:
        if snapshot is not None and (why := _snapshot_error(snapshot, unread)) is not None:
            passed.append((snapshot.path, why))
            continue
        found = _plan_from_snapshot(partition, segments, snapshot, as_of, unread, tuple(passed))
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


def plan_salvage(partition: Partition, as_of: int, found: MetadataLog | None) -> MetadataLog:
    """Return the plan that reads a snapshot and all segments after it, up to ``as_of``, and skips
    unreadable records. The snapshot is that of ``found``; or the newest one that does not end after
    ``as_of`` (none: all segments), if ``found`` is None or ends before it. Raise UnreadableError if
    the directory cannot be listed.
    """
    segments = _segments(partition)
    there = [s for s in _snapshots(partition, None) if s.end_offset <= as_of + 1]
    newest = next(iter(there), None)
    if found is None or (newest is not None and found.as_of < newest.end_offset - 1):
        start = 0 if newest is None else newest.end_offset
    else:
        newest, start = found.snapshot, found.start
    parts = tuple(Part(segment, 0, segment.size) for segment in _segments_from(segments, start))
    passed = () if found is None else found.passed
    return MetadataLog(partition, newest, start, as_of, parts, None, passed, salvage=True)


def exclude_unreadable(log: MetadataLog, error: CodecError, unread: Unread) -> Unread | None:
    """Return ``unread`` with the snapshot or the records added that caused ``error`` while ``log``
    was read. Return None if they cannot be located, or the records are in it already.
    """
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


def find_earliest_offset(partition: Partition) -> int:
    """Return the earliest offset whose state is known: -1 (before the first record) if the log
    begins at offset 0. Else it is the last offset of the oldest undamaged snapshot from which the
    log continues, or -1 if there is none. Raise UnreadableError if the directory cannot be listed.
    """
    bases = [s.base_offset for s in _segments(partition)]
    if bases and min(bases) == 0:
        return -1
    ends = [s.end_offset for s in _snapshots(partition, None) if find_snapshot_damage(s) is None]
    return min((end for end in ends if not bases or end >= min(bases)), default=0) - 1


def _segments(partition: Partition) -> tuple[Segment, ...]:
    """Return the segments whose names are offsets."""
    return tuple(s for s in partition.segments if s.has_canonical_name)


def _snapshot_error(snapshot: MetadataSnapshot, unread: Unread) -> Reason | None:
    """Return why a snapshot cannot be used: the error in ``unread``, or its damage. Return None if
    it is undamaged.
    """
    return next(
        (why for path, why in unread.snapshots if path == snapshot.path),
        find_snapshot_damage(snapshot),
    )


def _snapshots(partition: Partition, end: int | None) -> list[MetadataSnapshot]:
    """Return the snapshots of a partition directory, newest first. If snapshots are among the
    segments of ``partition``, return these alone; if single segments were given, whose log ends at
    ``end``, return only the snapshots up to there (included; None: all). Raise UnreadableError if
    the directory cannot be listed.
    """
    given = [s for s in (parse_snapshot_path(segment.path) for segment in partition.segments) if s]
    if given:
        return sort_snapshots(given)
    found = list_snapshots(partition.directory)
    there = {path.name for path in listed_directory(partition.directory).glob("*.log")}
    if end is not None and there != {segment.path.name for segment in partition.segments}:
        return [snapshot for snapshot in found if snapshot.end_offset <= end]
    return found


def _segments_from(segments: tuple[Segment, ...], start: int) -> tuple[Segment, ...]:
    """Return the segments that may have records at or after the offset ``start``."""
    first = max((i for i, s in enumerate(segments) if s.base_offset <= start), default=0)
    return segments[first:]


def _plan_from_snapshot(
    partition: Partition,
    segments: tuple[Segment, ...],
    snapshot: MetadataSnapshot | None,
    as_of: int,
    unread: Unread,
    passed: tuple[tuple[Path, Reason], ...],
) -> MetadataLog:
    """Return the plan that reads the snapshot (None: none) and the contiguous records after it. The
    records reach to ``as_of``, or to before the first missing or unreadable one, whose error is
    then its ``reason``. ``unread`` has records known to be unreadable; ``passed``, the snapshots
    skipped before, is only noted.
    """
    start = 0 if snapshot is None else snapshot.end_offset
    bad = min((r for r in unread.records if r[1] >= start and r[0] <= as_of), default=None, key=lambda r: r[0])  # fmt: skip
    until = as_of if bad is None else max(bad[0], start) - 1
    reason = None if bad is None else bad[2]
    parts: list[Part] = []
    reach, why = _find_parts(partition, _segments_from(segments, start), start, until, parts)
    reason = why or reason
    return MetadataLog(partition, snapshot, start, reach, tuple(parts), reason, passed)


def _find_parts(
    partition: Partition, segments: Sequence[Segment], start: int, as_of: int, parts: list[Part]
) -> tuple[int, Reason | None]:
    """Append to ``parts`` the parts of segments with the records from ``start`` to ``as_of``, as
    far as they are contiguous. Return the last contiguous offset, and the error that ends it (not
    raised); None if ``as_of`` is reached, or is MAX_OFFSET - 1 and the log ends. A log that ends
    before any other ``as_of`` has a gap, which is an error.

    Kafka never removes records from the middle of this log, so a gap is an error.
    """
    expected = start
    for segment in segments:
        part, expected, why = _find_part(segment, expected, start, as_of)
        if why is not None and part is None and isinstance(why, CodecError):
            # The damage may be before the wanted records.
            part, expected, more = _find_part(segment, expected, start, as_of, Policy.SALVAGE)
            why = None if part is not None and more is None else why
        if part is not None:
            parts.append(part)
        if why is not None:
            return expected - 1, why
    if expected <= as_of and as_of < MAX_OFFSET - 1:
        return expected - 1, _gap_error(partition.directory, expected, as_of, start)
    return min(as_of, expected - 1), None


def _find_part(
    segment: Segment, expected: int, start: int, as_of: int, policy: Policy = Policy.KAFKA
) -> tuple[Part | None, int, Reason | None]:
    """Return the part of a segment with the records from ``expected`` to ``as_of`` (included), the
    offset after its last record, and the error that ends it early. The part has whole batches. It
    is None, and the offset is ``expected``, if the segment has none of the records. The error is
    None if the part reaches ``as_of``, or the segment ends before it. Else it is returned, not
    raised: a CodecError, also for a segment that is gone, or a DirectoryError for a gap, which
    names ``start`` as the offset at which the read began. Under ``policy`` salvage damage is
    skipped, and shows only as a gap.
    """
    columns = ("base_offset", "last_offset", "position")
    begin = stop = -1

    def make_part() -> Part | None:
        """Return the part that was found so far, None if there is none."""
        return None if begin < 0 else Part(segment, begin, stop)

    try:
        headers = header_scanner(
            segment.path, columns, policy, tail=segment.tail, size=segment.size
        )
        for batch in headers if expected <= as_of else ():
            for first, last, position in zip(*(batch.column(n).to_pylist() for n in columns), strict=True):  # fmt: skip
                if last < expected:
                    continue
                base = last if first is None else first
                if base > expected:
                    return (
                        make_part(),
                        expected,
                        _gap_error(segment.path, expected, base - 1, start),
                    )
                begin = position if begin < 0 else begin
                expected, stop = last + 1, position + 1
                if expected > as_of:
                    return make_part(), expected, None
    except CodecError as error:
        return make_part(), expected, error
    return make_part(), expected, None


def _batch_at(segment: Segment, position: int) -> tuple[int, int]:
    """Return first and last offset of the batch that contains a byte position; the last one twice
    if the header states no first one. If no batch is there, return twice the offset after the
    batches before it (the base offset of the segment without any). Damage ends the search and is
    not raised.
    """
    columns = ("base_offset", "last_offset", "position", "size")
    after = segment.base_offset
    try:
        for batch in header_scanner(segment.path, columns, tail=segment.tail, size=segment.size):
            for first, last, at, size in zip(*(batch.column(n).to_pylist() for n in columns), strict=True):  # fmt: skip
                if at <= position < at + size:
                    return (last if first is None else first), last
                if at < position:
                    after = last + 1
    except CodecError:
        pass
    return after, after


def _gap_error(path: Path, first: int, last: int, start: int) -> DirectoryError:
    """Build the error for missing records ``first`` to ``last``."""
    more = ", and no complete snapshot has them" if first == start else ""
    return DirectoryError(path, f"the records from offset {first} to {last} are missing{more}")


def find_ineffective_ranges(events: Iterator[tuple[int, dict[str, Any]]]) -> list[tuple[int, int]]:
    """Return the offset ranges (first and last, both included) of aborted and open transactions, in
    order; an open one ends at MAX_OFFSET. A begin inside of a transaction, and an end without a
    begin, are ignored. ``events`` are rows of the view ``metadata_events``.
    """
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


def _snapshot_parts(snapshot: MetadataSnapshot, partition: Partition, salvage: bool) -> list[Part]:
    """Return a snapshot file as the only part to read. If it is gone or inaccessible, return ``[]``
    with ``salvage``, else raise UnreadableError.
    """
    try:
        size = snapshot.path.stat().st_size
    except OSError as error:
        if salvage:
            return []
        raise unreadable(error, 0, snapshot.path) from error
    segment = Segment(snapshot.path, partition.topic, partition.partition, 0, size)
    return [Part(segment, 0, size)]


class Part(NamedTuple):
    """A range of bytes of a segment or snapshot: batches that begin at or after ``start`` and before ``stop``."""

    segment: Segment
    start: int
    stop: int


Offsets = tuple[int, int] | None
"""Half-open range of offsets; None is unlimited."""

Rows = Iterator[tuple[int, dict[str, Any]]]
"""Rows with their offsets."""


def read_rows(name: str, parts: Sequence[Part], offsets: Offsets, salvage: bool) -> Rows:
    """Yield the rows of a view with their offsets, from ``parts`` in order, for offsets in a
    half-open range (None: all). Secrets are not redacted. Raise CodecError for damage, unreadable
    or missing files and unknown record types; with ``salvage`` skip them, and all records of a
    damaged batch, also if only its checksum is wrong.
    """
    columns = [field.name for field in topic_view(name, None).schema]
    # Answers hide secrets. They are read here so that changes of them can be found.
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
        for records in _open_scanner(part, view.needed, offsets, salvage):
            for batch in converter.convert(records, part.segment):
                for row in to_rows(pa.Table.from_batches([batch])):
                    yield row.pop("record_offset"), row


def merge_by_offset(streams: Mapping[str, Rows]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield offset, view name and row of several views by ascending offset; rows with the same
    offset in the order of ``streams``. Each stream must ascend.
    """

    def add_view(view: str, found: Rows) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Yield offset, view and row."""
        for offset, row in found:
            yield offset, view, row

    return heapq.merge(
        *(add_view(*stream) for stream in streams.items()), key=lambda event: event[0]
    )


def _open_scanner(part: Part, columns: Sequence[str], offsets: Offsets, salvage: bool) -> Scanner:
    """Return a scanner over the data records of a part, for offsets in a half-open range (None:
    all). At damage it raises CodecError, or with ``salvage`` continues after it.
    """
    return Scanner(
        part.segment.path,
        columns,
        Policy.SALVAGE if salvage else Policy.KAFKA,
        selection=RowSelection(offsets or EVERYTHING, control_records=False),
        on_damage="drop" if salvage else "raise",
        limits=Limits(),
        start=part.start,
        stop=part.stop,
        tail=part.segment.tail,
        size=part.segment.size,
    )
