"""Comparison of the records of batches that are not equal byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import ChecksumError, CodecError
from kafka_log.inspect.diff.side import Damage, Side, adjacent_batches
from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.segment.cursor import CHUNK_BYTES
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.row_masks import numbers
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import Scanner

MIN_CHUNK = 1 << 16

COMPARED = (
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "producer_id",
    "producer_epoch",
    "sequence",
    "leader_epoch",
    "is_transactional",
    "is_control",
)
"""Columns in which equal records agree. Codec, message format and batch boundaries may differ."""

_UNKNOWN = ("timestamp_type", "leader_epoch")
"""Columns that legacy message formats lack: -1 equals every value."""

COLUMNS = ("offset", *COMPARED, "position")


_CHANGED = (UnreadableError, ChecksumError)
"""Errors of a batch that was whole when its header was read."""


def read_records(
    side: Side,
    batches: Any,
    low: int,
    high: int | None,
    columns: Sequence[str] = COLUMNS,
    *,
    raise_if_changed: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of ``batches`` with offsets from ``low`` (included) to ``high`` (excluded;
    None: no end), by ascending offset; of several in a file with one offset the first. A batch that
    cannot be read or decoded, or whose checksum is wrong, is added to ``side.damage`` and skipped,
    also if its segment is gone. With ``raise_if_changed`` raise CodecError instead for a batch that
    can no longer be read, or whose checksum is wrong now.
    """
    for piece in adjacent_batches(batches):
        while len(piece):
            try:
                yield from _decode_records(side, piece, low, high, columns)
                break
            except CodecError as error:
                if raise_if_changed and isinstance(error, _CHANGED):
                    raise
                piece = _skip_damaged(side, piece, error)


def _decode_records(
    side: Side, piece: Any, low: int, high: int | None, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of adjacent batches with offsets from ``low`` (included) to ``high``
    (excluded; None: no end), in offset order; of several with one offset the first. Raise
    CodecError at damage or unreadable bytes, after the records before it, or if the segment is
    gone.
    """
    start, stop = int(piece["position"][0]), int(piece["position"][-1] + piece["size"][-1])
    scanner = Scanner(
        side.path(piece[0]),
        columns,
        selection=RowSelection(offsets=(low, high)),
        start=start,
        stop=stop,
        size=side.segments[int(piece["segment"][0])].size,
        reaches=int(piece["last"][-1]) + 1,
        chunk_bytes=min(max(stop - start, MIN_CHUNK), CHUNK_BYTES),
    )
    for batch in scanner:
        offsets = numbers(batch, "offset")
        if (np.diff(offsets) <= 0).any():
            batch = batch.take(pa.array(np.unique(offsets, return_index=True)[1]))
        yield batch


def _skip_damaged(side: Side, piece: Any, error: CodecError) -> Any:
    """Add the batch at which ``error`` occurred (the first one if it has no position) to
    ``side.damage``, and return the batches of ``piece`` after it.
    """
    at = error.where.position
    i = 0 if at is None else max(int(np.searchsorted(piece["position"], at, "right")) - 1, 0)
    bad = piece[i]
    start, end = int(bad["position"]), int(bad["position"] + bad["size"])
    bounds = int(bad["first"]) - 1, int(bad["last"]) + 1
    side.damage.append(Damage(side.path(bad), start, end, *bounds, error.reason))
    return piece[i + 1 :]


Pair = tuple[pa.RecordBatch, pa.RecordBatch]


def align_records(a: Iterator[pa.RecordBatch], b: Iterator[pa.RecordBatch]) -> Iterator[Pair]:
    """Yield pairs of record batches of A and B over the same offset range, in offset order, until
    both inputs end. If a side has no records there, its batch is empty; the batches of ``a`` and
    ``b`` must not be. Memory: a record batch of each.
    """
    of_a, of_b = next(a, None), next(b, None)
    while of_a is not None or of_b is not None:
        if of_a is None:
            assert of_b is not None
            yield of_b.slice(0, 0), of_b
            of_b = next(b, None)
            continue
        if of_b is None:
            yield of_a, of_a.slice(0, 0)
            of_a = next(a, None)
            continue
        limit = min(_last(of_a), _last(of_b))
        first_a, of_a = _split(of_a, limit, a)
        first_b, of_b = _split(of_b, limit, b)
        yield first_a, first_b


def _last(batch: pa.RecordBatch) -> int:
    """Return the last offset of a record batch."""
    return int(batch.column("offset")[-1].as_py())


def _split(
    batch: pa.RecordBatch, limit: int, more: Iterator[pa.RecordBatch]
) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Return the rows of ``batch`` with offsets up to ``limit`` (included), and the rows after
    them: the rest of ``batch``, else the next batch of ``more``, else None.
    """
    count = int(np.searchsorted(numbers(batch, "offset"), limit, "right"))
    rest = batch.slice(count) if count < batch.num_rows else next(more, None)
    return batch.slice(0, count), rest


class RecordComparison:
    """Records of both sides compared by offset.

    Attributes:
        only_a: Records that only A has.
        only_b: Records that only B has.
        differ: Offsets of records that differ.
        same: Number of equal records.
        positions: Positions in A of the equal records.
        last_same: Last offset of the equal records; -1 without any.
        columns: Names of the columns in which the first differing record differs.
        only_epochs: Whether no record differs in more than its leader epoch.
    """

    def __init__(self, a: pa.RecordBatch, b: pa.RecordBatch) -> None:
        in_a, in_b = numbers(a, "offset"), numbers(b, "offset")
        both, ia, ib = np.intersect1d(in_a, in_b, assume_unique=True, return_indices=True)
        self.only_a, self.only_b = _drop(a, ia), _drop(b, ib)
        a, b = _take(a, ia), _take(b, ib)
        wrong = {
            name: found for name in COMPARED if (found := _find_unequal(a, b, name)) is not None
        }
        mask = np.zeros(len(both), bool)
        for found in wrong.values():
            mask |= found
        self.differ = both[mask]
        self.same = len(both) - len(self.differ)
        self.positions = numbers(a, "position")[~mask]
        self.last_same = int(both[~mask][-1]) if self.same else -1
        self.columns: tuple[str, ...] = ()
        self.only_epochs = wrong.keys() <= {"leader_epoch"}
        if len(self.differ):
            i = int(np.argmax(mask))
            self.columns = tuple(name for name, found in wrong.items() if found[i])


def _take(batch: pa.RecordBatch, rows: Any) -> pa.RecordBatch:
    """Return the rows with the given indexes."""
    return batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))


def _drop(batch: pa.RecordBatch, rows: Any) -> pa.RecordBatch:
    """Return the rows of a batch without those at the indexes ``rows``."""
    if not len(rows):
        return batch
    if len(rows) == batch.num_rows:
        return batch.slice(0, 0)
    keep = np.ones(batch.num_rows, bool)
    keep[rows] = False
    return batch.filter(pa.array(keep))


def _find_unequal(a: pa.RecordBatch, b: pa.RecordBatch, name: str) -> Any:
    """Return a mask of the rows that differ between ``a`` and ``b``, which have as many rows, in
    the column ``name``; None if all are equal. Null equals only null. In columns that legacy
    formats lack (timestamp type, leader epoch), -1 equals every value.
    """
    x, y = a.column(name), b.column(name)
    if x.equals(y):
        return None
    if pa.types.is_list(x.type):
        pairs = zip(x.to_pylist(), y.to_pylist(), strict=True)
        found = np.array([left != right for left, right in pairs], bool)
    elif x.null_count or y.null_count:
        values = pc.fill_null(pc.not_equal(x, y), False)
        found = pc.or_(pc.xor(pc.is_null(x), pc.is_null(y)), values)
        found = found.to_numpy(zero_copy_only=False)
    else:
        found = pc.not_equal(x, y).to_numpy(zero_copy_only=False)
    if name in _UNKNOWN:
        found &= (numbers(a, name) != -1) & (numbers(b, name) != -1)
    return found if found.any() else None


def find_batch(side: Side, offset: int) -> tuple[str, int, int, int] | None:
    """Return file, byte position, checksum and leader epoch of the valid batch that contains
    ``offset``; None if no readable segment has one.
    """
    for segment in reversed(within_offsets(side.segments, (offset, offset + 1))):
        alone = Side(_with_segment(side, segment), lambda _: None)
        while not alone.done:
            alone.load()
            rows = alone.headers
            found = rows[(rows["first"] <= offset) & (rows["last"] >= offset)]
            if len(found):
                head = found[0]
                numbers_ = (int(head[name]) for name in ("position", "crc", "epoch"))
                return (os.fspath(segment.path), *numbers_)  # type: ignore[return-value]
            alone.drop(offset)
    return None


def _with_segment(side: Side, segment: Any) -> Any:
    """Return the partition of a side with one segment only."""
    from dataclasses import replace

    return replace(side.partition, segments=(segment,))
