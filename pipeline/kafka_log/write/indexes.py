"""The files that a broker keeps beside segments, from the segments: offset, time and transaction indexes, producer snapshots.

They are what a broker writes when it recovers a segment. A running broker may have left other entries in its own: it counts the bytes
up to the next entry from zero when it starts, up to Kafka 4.0 it has an entry for what was appended at once at most, and the log
cleaner writes the entries of what it kept in one piece.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from codecgen.runtime.arrow.structured_dtype import structured
from codecgen.runtime.errors import Where
from kafka_codecs import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, TRANSACTION_INDEX
from kafka_log.logs.broker_files import read_producer_snapshot
from kafka_log.logs.header_rows import iter_row_tuples
from kafka_log.logs.incomplete_tails import separate_unfinished_tail
from kafka_log.logs.partitions import Segment
from kafka_log.logs.transactions import MarkerCache, MarkerReader
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.row_masks import numbers, numbers_of
from kafka_log.segment.row_values import OF_BATCHES
from kafka_log.write.output_files import write_file
from kafka_log.write.producer_states import ProducerBatch, ProducerStates
from kafka_log.write.verification import DEFECT, WrittenError, read_headers


class BatchRows:
    """Iterates over `columns` of the view ``batches``, a tuple for each batch; timestamps are in milliseconds, -1 for none.

    Damage is skipped. After the iteration ``lost`` has the ranges that were skipped, and ``unfinished`` the incomplete tail.
    """

    def __init__(self, segment: Segment, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.lost: tuple[Lost, ...] = ()
        self.unfinished: Lost | None = None
        self._segment = segment
        self._reader = BlockReader(
            segment.path,
            policy=Policy.SALVAGE,
            records=False,
            salvage_records=False,
            tail=segment.tail,
            size=segment.size,
        )

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        values = [OF_BATCHES[name] for name in self.columns]
        for part in self._reader.items():
            if isinstance(part, Block):
                yield from iter_row_tuples(part.batch_headers.select(self.columns))
            else:
                yield tuple([value(part, None) for value in values])
        self.lost, self.unfinished = separate_unfinished_tail(self._segment, self._reader.end)


_OFFSETS = structured(OFFSET_INDEX_ENTRY)
_TIMES = structured(TIME_INDEX_ENTRY)
_ABORTED: Any = np.dtype(
    [(name, np.int64) for name in ("producer_id", "first_offset", "last_offset")]
)

_VERIFIED_COLUMNS = (
    "base_offset",
    "position",
    "last_offset",
    "max_timestamp",
    "producer_id",
    "is_control",
)


def verify_indexes(segment: Segment, passed_over: Iterable[Lost], directory: Path) -> None:
    """Verify the offset, time and transaction index in ``directory`` against the batch headers of
    their segment. Raise WrittenError (a CodecError) if an entry does not lead to the batch that it
    describes, or an offset or time index ends within an entry. Missing entries and checksums of
    batches are not looked for. Raise another CodecError if the segment outside of the byte ranges
    ``passed_over``, or the transaction index, is damaged; OSError if the offset or time index is
    missing. The transaction index may be missing.

    Args:
        segment: The segment. Its batch headers are read once, by other code than that which wrote the indexes.
        passed_over: The byte ranges of the segment that are in no index.
        directory: The directory with the indexes, named after the base offset of the segment.
    """
    batches = _Batches(segment, passed_over)
    path = directory / f"{segment.base_offset:020d}.index"
    _refuse(path, segment, _fixed_entries(path, _OFFSETS), batches.are_at)
    path = path.with_suffix(".timeindex")
    _refuse(path, segment, _fixed_entries(path, _TIMES), batches.are_latest)
    path = path.with_suffix(".txnindex")
    if path.exists():
        read = TRANSACTION_INDEX.parse(path.read_bytes(), file=os.fspath(path)).entries
        aborted = [tuple(getattr(entry, name) for name in _ABORTED.names) for entry in read]
        _refuse(path, segment, np.array(aborted, _ABORTED), batches.are_of_aborted)


def _fixed_entries(path: Path, kind: Any) -> Any:
    """Return the entries of an index file as a NumPy structured array of type ``kind``, empty for
    an empty file. Raise WrittenError if the last entry is incomplete; OSError if the file cannot be
    read.
    """
    data = path.read_bytes()
    if len(data) % kind.itemsize:
        raise WrittenError(
            f"the index that was written ends with an incomplete entry; {DEFECT}",
            Where(position=len(data), file=os.fspath(path)),
        )
    return np.frombuffer(data, kind)


def _refuse(path: Path, segment: Segment, entries: Any, leads: Callable[[Any], Any]) -> None:
    """Raise WrittenError for the first of the index ``entries`` that does not lead to its batch, by
    the mask that ``leads`` returns; do nothing if all do.
    """
    if not len(entries):
        return
    wrong = np.flatnonzero(~leads(entries))
    if len(wrong):
        row = int(wrong[0])
        position = path.stat().st_size // len(entries) * row
        values = ", ".join(map("{} {}".format, entries.dtype.names, entries[row].item()))
        reason = (
            f"entry {row} ({values}) leads to no such batch of {os.fspath(segment.path)}; {DEFECT}"
        )
        raise WrittenError(reason, Where(position=position, file=os.fspath(path)))


class _Batches:
    """The batch headers of a segment as arrays, in file order. The methods return a mask of the index entries that lead to a batch."""

    def __init__(self, segment: Segment, passed_over: Iterable[Lost]) -> None:
        found: list[list[Any]] = [[np.empty(0, np.int64)] * len(_VERIFIED_COLUMNS)]
        start = 0
        for run in (*passed_over, Lost(segment.size, segment.size, "")):
            if start < run.start:
                for rows in read_headers(segment.path, _VERIFIED_COLUMNS, start, run.start):
                    first = pc.coalesce(rows.column("base_offset"), rows.column("last_offset"))
                    others = (numbers(rows, name) for name in _VERIFIED_COLUMNS[1:])
                    found.append([numbers_of(first), *others])
            start = run.end
        self._base = segment.base_offset
        self._first, self._position, self._last, self._time, self._producer, self._is_control = (
            np.concatenate(arrays) for arrays in zip(*found, strict=True)
        )
        self._is_control = self._is_control.astype(bool)

    def are_at(self, entries: Any) -> Any:
        """Return whether the batch at the position has the offset as its last one."""
        return self._have_offsets(entries, entries["position"], self._position)

    def are_latest(self, entries: Any) -> Any:
        """Return whether the batch with the offset is the first one with the largest timestamp up to it."""
        return self._have_offsets(entries, entries["timestamp"], np.maximum.accumulate(self._time))

    def _have_offsets(self, entries: Any, values: Any, column: Any) -> Any:
        """Return a mask of the index entries that lead to a batch. Their value is in ``column``,
        which ascends over the batches, and their offset is the last one of the first batch with
        this value. All are False if the segment has no batches.
        """
        if not len(column):
            return np.zeros(len(entries), bool)
        row = np.minimum(np.searchsorted(column, values.astype(np.int64)), len(column) - 1)
        offsets = entries["relative_offset"] + np.int64(self._base)
        return (column[row] == values) & (self._last[row] == offsets)

    def are_of_aborted(self, entries: Any) -> Any:
        """Return a mask of the transaction index entries (producer, first and last offset) that are
        right. For these the segment has a marker of the producer at the last offset, and its data
        at the first offset, unless that lies before the segment.
        """
        start = self._first.min(initial=self._base)
        known = self._of_producers
        found = [
            (producer, last, True) in known and (first < start or (producer, first, False) in known)
            for producer, first, last in entries.tolist()
        ]
        return np.array(found, bool)

    @cached_property
    def _of_producers(self) -> set[tuple[int, int, bool]]:
        """Return producer id, first offset and control flag of each batch."""
        columns = (self._producer, self._first, self._is_control)
        return set(zip(*(column.tolist() for column in columns), strict=True))


INTERVAL_BYTES = 4096
"""Kafka's ``index.interval.bytes``: more than these lie between the batches of two entries."""


_COLUMNS = (
    *("position", "size", "magic", "codec", "is_control", "record_count"),
    *("offset_bound", "timestamp_bound"),
    *ProducerBatch._fields,
)
_OF_PRODUCER = len(_COLUMNS) - len(ProducerBatch._fields)


@dataclass(frozen=True, slots=True)
class Rest:
    """The parts of a segment that have no index entries: lost ranges, and the incomplete tail. A
    segment that cannot be opened is one lost range, and is not indexed.
    """

    lost: tuple[Lost, ...]
    unfinished: Lost | None = None
    is_indexed: bool = True


@dataclass(frozen=True, slots=True)
class UnderstatedBatch:
    """A batch whose records go beyond the last offset in its header. Brokers index it by its header, and so do we."""

    position: int
    size: int
    first_offset: int
    last_offset: int
    reason: str


@dataclass(slots=True)
class EntryRule:
    """Kafka's rule for which batches get entries in the offset and time index of a segment, and the
    entries so far.

    Offsets are absolute. Timestamps are in milliseconds, -1 for none.
    """

    base_offset: int
    interval_bytes: int = INTERVAL_BYTES
    offsets: list[tuple[int, int]] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    _since: int = 0
    _largest: tuple[int, int] = (-1, -1)

    def add(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Add the next batch of the segment, of ``size`` bytes at ``position``. It gets an entry in
        the offset index if the batches before it, from the one with the last entry on (without an
        entry all), have more than ``interval_bytes`` bytes and the index may have its offset. With
        it, the time index gets an entry for the largest timestamp so far, if it may have that.
        """
        if max_timestamp > self._largest[0]:
            self._largest = max_timestamp, last_offset
        if self._since > self.interval_bytes and self._fits(last_offset):
            self.offsets.append((last_offset - self.base_offset, position))
            self._add_time()
            self._since = 0
        self._since += size

    def close(self) -> None:
        """Add an entry for the largest timestamp to the time index, as a broker does when it rolls the segment."""
        self._add_time()

    def _fits(self, offset: int) -> bool:
        """Return whether the offset index may have an entry for an offset: it lies 0 to
        MAX_RELATIVE above the base offset, and above the last entry.
        """
        relative = offset - self.base_offset
        return 0 <= relative <= MAX_RELATIVE and (
            not self.offsets or relative > self.offsets[-1][0]
        )

    def _add_time(self) -> None:
        """Add an entry for the largest timestamp so far to the time index. Do nothing if the
        timestamp is not above the last entry's, or its relative offset is below that entry's or too
        large.
        """
        timestamp, offset = self._largest
        relative = offset - self.base_offset
        last = self.times[-1] if self.times else (-1, 0)
        if timestamp > last[0] and last[1] <= relative <= MAX_RELATIVE:
            self.times.append((timestamp, relative))

    def files(self) -> dict[str, bytes]:
        """Return the bytes of the offset index and the time index, by the suffixes ``.index`` and
        ``.timeindex``.
        """
        return {
            ".index": np.array(self.offsets, _OFFSETS).tobytes(),
            ".timeindex": np.array(self.times, _TIMES).tobytes(),
        }


def write_indexes(
    segments: Sequence[Segment],
    out: Path,
    *,
    interval_bytes: int = INTERVAL_BYTES,
    advance: Callable[[int], None] = lambda _: None,
    on_understated: Callable[[Path, UnderstatedBatch], None] = lambda path, batch: None,
) -> dict[Path, Rest]:
    """Write offset, time and transaction indexes and producer snapshots of one partition's segments
    into ``out``, in place of files of the same names, and verify the indexes. An index gets an
    entry about every ``interval_bytes``; a transaction index is written only if transactions were
    aborted. ``on_understated`` is called with each batch whose records exceed its header. Return,
    by path, the parts without entries: damaged or incomplete ones, or a segment that cannot be
    opened as a whole, which gets no indexes; ``{}`` if there are none. Raise OSError if a file
    cannot be written or a segment is gone; CodecError if an index is wrong or the bytes of a
    control batch cannot be read.

    A snapshot is written where each segment but the first begins, and where the log ends; that where the log begins is copied from
    beside the first segment, as it knows of producers whose batches are gone. Batches with a wrong checksum, and what is no batch,
    are passed over: the answer has them by the path of their segment. ``interval_bytes`` is as of the topic. ``on_understated`` is called with the
    path of the segment for each batch whose entries say less than its records. Memory holds the entries of one segment.

    The indexes are read again, and their entries looked up in the segment.
    """
    rest: dict[Path, Rest] = {}
    producers, at_start = _at_start(segments)
    known: MarkerCache = {}
    next_offset = segments[0].base_offset if segments else 0
    for i, segment in enumerate(segments):
        name = f"{segment.base_offset:020d}"
        if i == 0 and at_start is not None:
            write_file(out / f"{name}.snapshot", at_start)
        if i:
            write_file(out / f"{name}.snapshot", producers.snapshot())
        rule = EntryRule(segment.base_offset, interval_bytes)
        aborted: list[bytes] = []
        rows = BatchRows(segment, _COLUMNS)
        try:
            markers = MarkerReader(segment, known)
        except UnreadableError as error:
            lost = Lost(0, segment.size, str(error))
            rest[segment.path] = Rest((lost,), is_indexed=False)
            continue
        with markers:
            for position, size, magic, codec, is_control, count, bound, latest, *values in rows:
                batch = ProducerBatch(*values)
                rule.add(position, size, batch.last_offset, batch.max_timestamp)
                if count and None in (bound, latest):
                    understated = _find_understated(segment.path, position)
                    if understated is not None:
                        on_understated(segment.path, understated)
                next_offset = max(next_offset, batch.last_offset + 1)
                if batch.producer_id < 0:
                    continue
                if not is_control:
                    producers.add(batch)
                    continue
                marker = markers.read_marker(position, size, magic, codec, count)
                if marker is not None:
                    aborted.append(producers.end(batch, marker))
        rule.close()
        for end, data in rule.files().items():
            write_file(out / f"{name}{end}", data)
        if any(aborted):
            write_file(out / f"{name}.txnindex", b"".join(aborted))
        passed_over = rows.lost if rows.unfinished is None else (*rows.lost, rows.unfinished)
        verify_indexes(segment, passed_over, out)
        if rows.lost or rows.unfinished is not None:
            rest[segment.path] = Rest(rows.lost, rows.unfinished)
        advance(segment.size)
        next_offset = max(next_offset, segment.base_offset)
    if segments:
        write_file(out / f"{next_offset:020d}.snapshot", producers.snapshot())
    return rest


def _find_understated(path: Path, position: int) -> UnderstatedBatch | None:
    """Return the batch at a byte position as an UnderstatedBatch if one of its records has a larger
    offset or timestamp than its header states. Return None if none has, or the batch cannot be
    read. Raise FileNotFoundError if the file is gone.
    """
    batch = next(iter(SegmentReader(path, start=position)), None)
    if batch is None or not batch.records:
        return None
    offsets = [record.offset for record in batch.records]
    last, latest = max(offsets), max(record.timestamp for record in batch.records)
    reasons = []
    if latest > batch.max_timestamp:
        reasons.append(f"max_timestamp is {batch.max_timestamp}, but a record has {latest}")
    if last > batch.last_offset:
        reasons.append(f"the last offset is {batch.last_offset}, but a record has {last}")
    if not reasons:
        return None
    reasons.append(
        "the indexes follow the header, as when a broker recovers the segment: it may not find the records of the batch by time or offset; scan does"
    )
    return UnderstatedBatch(position, batch.size, min(offsets), last, "; ".join(reasons))


def _at_start(segments: Sequence[Segment]) -> tuple[ProducerStates, bytes | None]:
    """Return the producer states where the log begins, and the bytes of the producer snapshot
    beside the first segment. Return empty states and None if there are no segments, the log begins
    at offset 0, or the snapshot is missing, unreadable or invalid.
    """
    if segments and segments[0].base_offset > 0:
        path = segments[0].path.with_name(f"{segments[0].base_offset:020d}.snapshot")
        entries = read_producer_snapshot(path)
        if entries is not None:
            return ProducerStates(entries), path.read_bytes()
    return ProducerStates(), None
