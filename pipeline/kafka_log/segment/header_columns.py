"""Columns of batches as NumPy arrays, from blocks of the kernels and from batches of the reference codecs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_log.segment.blocks import Block
from kafka_log.segment.model import Batch
from kafka_log.segment.row_masks import numbers, numbers_of
from kafka_log.segment.row_values import OF_BATCHES, bounds_of

TIMED = ("position", "base_offset", "timestamp")
"""Columns of records that the columns here need."""

_NONE = UNBOUNDED = np.iinfo(np.int64).max
"""The bound of a header that has none, or contradicts itself."""

HOUR = 3_600_000
"""Milliseconds."""


class Period(NamedTuple):
    """Records of a batch whose timestamps lie in the same day, hour or minute.

    ``begin`` is its start in milliseconds since 1970, -1 for records without a timestamp. ``records`` is their number,
    ``late`` the number of timestamps in the future, ``least`` and ``largest`` are the minimum and maximum timestamp.
    """

    begin: int
    records: int
    late: int
    least: int
    largest: int


def periods_of(times: Any, now: int, length: int) -> tuple[Period, ...]:
    """Return a Period for each period of ``length`` milliseconds since 1970 that has at least one
    of ``times`` (milliseconds, as an array), sorted; negative times are one Period with ``begin``
    -1. ``late`` of a Period counts its times after ``now``. Return ``()`` for no times.
    """
    begins = np.where(times < 0, -1, times // length * length)
    found = []
    for begin in np.unique(begins).tolist():
        own = times[begins == begin]
        late = int((own > now).sum())
        found.append(Period(begin, len(own), late, int(own.min()), int(own.max())))
    return tuple(found)


Arrays = Mapping[str, Any]
"""An array for each name of :data:`COLUMNS`."""


class _OfBlock:
    """Values of the columns for all batches of a block, as arrays with one element for each batch.

    ``deep`` says that records were read, not only headers and checksums.
    """

    def __init__(self, block: Block, deep: bool, now: int, period: int) -> None:
        """Note for which batches of ``block`` records were read: for all if ``deep``, else where the header has no record count."""
        self.block = block
        self.now = now
        self.period = period
        self.counts = block.batch_headers.column("record_count")
        self.read = (
            np.full(len(self.counts), True) if deep else self.column_of(self.counts.is_null())
        )

    def column_of(self, column: Any) -> Any:
        """Return a column without nulls as a NumPy array."""
        return numbers_of(column)

    def header(self, name: str) -> Any:
        """Return a column of the batch headers as a NumPy array."""
        return numbers(self.block.batch_headers, name)

    @cached_property
    def starts(self) -> Any:
        """Return the first row of each batch, and the number of rows at the end."""
        return self.block.starts()

    @property
    def record_counts(self) -> Any:
        """Return the number of records of each batch: as read, else as stated in the header."""
        stated = numbers_of(self.counts.fill_null(0))
        return np.where(self.read, np.diff(self.starts), stated) if self.read.any() else stated

    @property
    def least_timestamps(self) -> Any:
        """Return, for each batch, the minimum timestamp of its records if any were read (-1 if none
        has one); else the first timestamp of the header, or its max timestamp if it states none.
        """
        first = self.block.batch_headers.column("first_timestamp")
        found = numbers_of(first.fill_null(0))
        if first.null_count:
            found = np.where(numbers_of(first.is_valid()), found, self.header("max_timestamp"))
        return self._of_records(found, least=True)

    @property
    def largest_timestamps(self) -> Any:
        """Maximum timestamp of the records of each batch if any were read, else that of the header."""
        return self._of_records(self.header("max_timestamp"), least=False)

    @property
    def timestamp_bounds(self) -> Any:
        """Timestamp that no record of a batch exceeds: the maximum of its records if any were read,
        else the bound of the header, UNBOUNDED if it has none.
        """
        return self._of_records(self.bounds("timestamp_bound"), least=False)

    def bounds(self, name: str) -> Any:
        """Return a column of the batch headers (numbers or timestamps) as a NumPy array, with
        UNBOUNDED (the largest int64) in place of null.
        """
        column = self.block.batch_headers.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.view(pa.int64())
        return numbers_of(column.fill_null(UNBOUNDED))

    def _of_records(self, found: Any, *, least: bool) -> Any:
        """Return a timestamp for each batch: the minimum (``least``) or maximum of its records if
        they were read and there are any, else that in the array ``found``, which is not changed.
        Negative timestamps are ignored for the minimum, which is -1 if there are no others.
        """
        rows = self.block.batch
        if not rows.num_rows:
            return found
        times = numbers(rows, "timestamp")
        own = np.diff(self.starts) > 0
        begins = self.starts[:-1][own]
        if not least:
            reduced = np.maximum.reduceat(times, begins)
        elif times.min() >= 0:
            reduced = np.minimum.reduceat(times, begins)
        else:
            lowest = np.minimum.reduceat(np.where(times < 0, _NONE, times), begins)
            reduced = np.where(np.maximum.reduceat(times, begins) < 0, -1, lowest)
        out = found.copy()
        out[own] = np.where(self.read[own], reduced, found[own])
        return out

    @property
    def late(self) -> Any:
        """Return, for each batch, how many of its records have a timestamp after ``now``. A batch
        whose records were not read counts in full if its max timestamp is after ``now``, else 0.
        """
        found = np.where(self.header("max_timestamp") > self.now, self.record_counts, 0)
        if not self.read.any():
            return found
        times = numbers(self.block.batch, "timestamp")
        if not len(times) or times.max() <= self.now:
            return np.where(self.read, 0, found)
        after = np.append(0, np.cumsum(times > self.now))
        return np.where(self.read, np.diff(after[self.starts]), found)

    @property
    def periods(self) -> Any:
        """Return an object array with a tuple of Period for each batch whose records were read and
        lie in several periods, and None for each other batch.
        """
        out = np.full(len(self.counts), None, object)
        rows = self.block.batch
        own = np.flatnonzero(self.read & (np.diff(self.starts) > 0))
        if not rows.num_rows or not len(own):
            return out
        times = numbers(rows, "timestamp")
        numbered = np.where(times < 0, -1, times // self.period)
        begins = self.starts[own]
        several = np.minimum.reduceat(numbered, begins) < np.maximum.reduceat(numbered, begins)
        for i in own[several].tolist():
            out[i] = periods_of(times[self.starts[i] : self.starts[i + 1]], self.now, self.period)
        return out

    @cached_property
    def sections(self) -> tuple[Any, Any]:
        """Return two arrays: the bytes of the records of each batch as stored in the file, and
        uncompressed; equal for an uncompressed batch. If its section was not measured (as in an
        uncompressed legacy message), both are the size of the whole batch.
        """
        size = self.header("size")
        stored, plain = size.copy(), size.copy()
        sizes = self.block.sections
        if sizes is not None:
            at = np.searchsorted(self.header("position"), sizes.start)
            stored[at], plain[at] = sizes.stored, sizes.plain
        return stored, plain


@dataclass(frozen=True, slots=True)
class _OfBatch:
    """Values of the columns for one batch of the reference codecs."""

    batch: Batch
    deep: bool
    now: int
    period: int

    @property
    def first(self) -> int:
        """Base offset, or the last offset if the base offset is unknown."""
        batch = self.batch
        return batch.last_offset if batch.base_offset is None else batch.base_offset

    @property
    def is_read(self) -> bool:
        """Whether the records of the batch were read."""
        return self.deep or self.batch.record_count is None

    @property
    def record_count(self) -> int:
        """Number of records as read, else as stated in the header."""
        return len(self.batch.records) if self.is_read else max(self.batch.record_count or 0, 0)

    @property
    def least_timestamp(self) -> int:
        """Return the minimum timestamp of the records, -1 if none has one. If records were not
        read, or there are none, return the first timestamp of the header, or its max timestamp if
        it states none.
        """
        batch = self.batch
        if self.is_read and batch.records:
            return min((r.timestamp for r in batch.records if r.timestamp >= 0), default=-1)
        first = OF_BATCHES["first_timestamp"](batch, None)
        return batch.max_timestamp if first is None else int(first)

    @property
    def largest_timestamp(self) -> int:
        """Return the maximum timestamp of the records; if they were not read, or there are none,
        the max timestamp of the header.
        """
        batch = self.batch
        if self.is_read and batch.records:
            return max(r.timestamp for r in batch.records)
        return batch.max_timestamp

    @property
    def bounds(self) -> tuple[int, int]:
        """Offset and timestamp that no record of the batch exceeds, UNBOUNDED if the header contradicts itself."""
        batch = self.batch
        last, latest = (UNBOUNDED if one is None else one for one in bounds_of(batch))
        return last, self.largest_timestamp if self.is_read and batch.records else latest

    @property
    def section(self) -> tuple[int, int]:
        """Return the bytes of the records as stored in the file, and uncompressed; equal for an
        uncompressed batch. If its section was not opened (as in an uncompressed legacy message),
        both are the size of the whole batch, or 0 if no records were read.
        """
        size = self.batch.size if self.batch.records else 0
        return self.batch.section or (size, size)

    @property
    def periods(self) -> tuple[Period, ...] | None:
        """Return a tuple of Period, sorted, if the records were read and their timestamps lie in
        several periods. Return None otherwise.
        """
        if not self.is_read:
            return None
        times = np.array([r.timestamp for r in self.batch.records], np.int64)
        found = periods_of(times, self.now, self.period)
        return found if len(found) > 1 else None

    @property
    def late(self) -> int:
        """Number of records with a timestamp after ``now``. An unread batch counts in full if its maximum is after ``now``."""
        if self.is_read:
            return sum(r.timestamp > self.now for r in self.batch.records)
        return self.record_count if self.batch.max_timestamp > self.now else 0


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its NumPy type, and the functions that compute it for a block and for a batch."""

    kind: Any
    of_block: Callable[[_OfBlock], Any]
    of_batch: Callable[[_OfBatch], Any]


def _header(name: str, kind: Any = np.int64) -> _Column:
    """Return a column that is copied from the batch header."""
    return _Column(kind, lambda it: it.header(name), lambda it: getattr(it.batch, name))


COLUMNS: Mapping[str, _Column] = {
    "position": _header("position"),
    "size": _header("size"),
    "magic": _header("magic"),
    "codec": _header("codec"),
    "crc": _header("crc"),
    "timestamp_type": _header("timestamp_type"),
    "max_timestamp": _header("max_timestamp"),
    "producer_id": _header("producer_id"),
    "producer_epoch": _header("producer_epoch"),
    "base_sequence": _header("base_sequence"),
    "last_sequence": _header("last_sequence"),
    "leader_epoch": _header("leader_epoch"),
    "is_transactional": _header("is_transactional", np.bool_),
    "is_control": _header("is_control", np.bool_),
    "first": _Column(np.int64, lambda it: it.block.base_offsets(), lambda it: it.first),
    "last": _Column(np.int64, lambda it: it.header("last_offset"), lambda it: it.batch.last_offset),
    "count": _Column(
        np.int64,
        lambda it: numbers_of(it.counts.fill_null(-1)),
        lambda it: -1 if it.batch.record_count is None else it.batch.record_count,
    ),
    "records": _Column(np.int64, lambda it: it.record_counts, lambda it: it.record_count),
    "least_timestamp": _Column(
        np.int64, lambda it: it.least_timestamps, lambda it: it.least_timestamp
    ),
    "largest_timestamp": _Column(
        np.int64, lambda it: it.largest_timestamps, lambda it: it.largest_timestamp
    ),
    "offset_bound": _Column(
        np.int64, lambda it: it.bounds("offset_bound"), lambda it: it.bounds[0]
    ),
    "timestamp_bound": _Column(np.int64, lambda it: it.timestamp_bounds, lambda it: it.bounds[1]),
    "periods": _Column(np.object_, lambda it: it.periods, lambda it: it.periods),
    "late": _Column(np.int64, lambda it: it.late, lambda it: it.late),
    "stored": _Column(np.int64, lambda it: it.sections[0], lambda it: it.section[0]),
    "plain": _Column(np.int64, lambda it: it.sections[1], lambda it: it.section[1]),
    "is_invalid": _Column(
        np.bool_,
        lambda it: np.zeros(len(it.counts), np.bool_),
        lambda it: not it.batch.is_valid,
    ),
}
"""Columns by name.

``first`` is the base offset, or for a compressed legacy message the offset of its first record. ``count`` is the record count of
the header, -1 if it has none; ``records`` is the number of records as read, else as stated. Timestamps are in milliseconds, -1 for
none; ``late`` counts records with a timestamp after now. ``stored`` and ``plain`` are the bytes of records, as stored in the file and
uncompressed."""


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """Computation of the columns ``names`` (:data:`COLUMNS`) of batches, as NumPy arrays with an
    element for each batch.

    ``deep`` says that records were read, not only headers. ``now`` is in milliseconds since 1970. ``period`` is the length of the periods
    of :class:`Period`, in milliseconds.
    """

    names: tuple[str, ...]
    deep: bool = False
    now: int = _NONE
    period: int = HOUR

    def from_block(self, block: Block) -> Arrays:
        """Return a dict with an array for each of ``names``, which has an element for each batch of
        a block. Raise KeyError for a name that COLUMNS lacks.
        """
        it = _OfBlock(block, self.deep, self.now, self.period)
        made = ((n, COLUMNS[n]) for n in self.names)
        return {name: column.of_block(it).astype(column.kind) for name, column in made}

    def row(self, batch: Batch) -> tuple[Any, ...]:
        """Return the columns of one batch as a tuple, in the order of ``names``. Raise KeyError for
        a name that COLUMNS lacks.
        """
        it = _OfBatch(batch, self.deep, self.now, self.period)
        return tuple([COLUMNS[name].of_batch(it) for name in self.names])

    def from_rows(self, rows: Sequence[tuple[Any, ...]]) -> Arrays:
        """Return tuples that :meth:`row` made, one for each batch, as a dict with an array for each
        column; empty arrays for no tuples.
        """
        columns = list(zip(*rows, strict=True)) or [()] * len(self.names)
        return {
            name: _array(column, COLUMNS[name].kind)
            for name, column in zip(self.names, columns, strict=True)
        }

    def concatenate(self, parts: Sequence[Arrays]) -> Arrays:
        """Return the arrays of ``parts`` joined, in order, for each column; empty arrays if there
        are no parts, and the part itself if there is one.
        """
        if len(parts) == 1:
            return parts[0]
        some = parts or [self.from_rows([])]
        return {name: np.concatenate([part[name] for part in some]) for name in self.names}


def _array(values: Sequence[Any], kind: Any) -> Any:
    """Return values as a one-dimensional NumPy array of type ``kind``. With ``np.object_`` each
    value is one element, also if all are tuples of one length.
    """
    if kind is not np.object_:
        return np.array(values, kind)
    found = np.empty(len(values), np.object_)
    for i, value in enumerate(values):
        found[i] = value
    return found


def sliced(arrays: Arrays, start: int, stop: int) -> Arrays:
    """Return the rows from ``start`` to ``stop`` (excluded) of arrays."""
    return {name: array[start:stop] for name, array in arrays.items()}


def as_table(arrays: Arrays) -> pa.Table:
    """Return arrays as an Arrow table."""
    return pa.table({name: pa.array(array) for name, array in arrays.items()})
