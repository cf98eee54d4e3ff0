"""Blocks: consecutive batches that the Arrow kernels decoded, as columns of batch headers and columns of records.

A block and the reference codecs give equal values for a batch. The kernels accept only batches without any finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import Rows
from kafka_log.segment.control import read_control
from kafka_log.segment.model import Batch, Record
from kafka_log.segment.row_masks import numbers, numbers_of
from kafka_log.segment.row_values import MORE_OF_BATCH, MORE_OF_RECORD, OF_BATCH, OF_RECORD

STRETCH = 8192
"""Minimum number of records that are converted to Python objects at once; at most one batch more."""

COLUMNS = (*OF_RECORD, *MORE_OF_RECORD, "position", "base_offset")
"""Columns from which :class:`Record` objects are made."""

COUNTED = ("position", "base_offset")
"""Columns of records that totals of a block need (:mod:`kafka_log.segment.header_columns`)."""


@dataclass(frozen=True, slots=True)
class Block(Rows):
    """Consecutive entries (record batches or legacy messages) of a file, as Arrow record batches of
    their headers and of their records.

    ``batch_headers`` has a row of the view batches for each entry. ``batch`` has the records, or no rows if only headers were read.
    If records were read, all entries have one layout.
    """

    batch_headers: pa.RecordBatch = field(kw_only=True)

    def starts(self) -> Any:
        """Return a NumPy array with the first row of each entry in ``batch``, and the number of
        rows as a last element. An entry without rows has the first row of the entry after it.
        """
        rows = numbers(self.batch, "position")
        return np.append(np.searchsorted(rows, numbers(self.batch_headers, "position")), len(rows))

    def counts(self) -> Any:
        """Return a NumPy array with the number of records of each entry: the record count of its
        header, else (legacy messages) the number that was read, 0 if only headers were.
        """
        stated = self.batch_headers.column("record_count")
        if not stated.null_count:
            return numbers_of(stated)
        return np.where(stated.is_null(), np.diff(self.starts()), numbers_of(stated.fill_null(0)))

    def base_offsets(self) -> Any:
        """Return a NumPy array with the first offset of each entry: the base offset of its header,
        or the offset of its first record for a compressed legacy message, whose header does not
        state it.
        """
        column = self.batch_headers.column("base_offset")
        if not column.null_count:
            return numbers(self.batch_headers, "base_offset")
        rows = np.append(numbers(self.batch, "base_offset"), 0)  # the last ones may have none
        first = rows[self.starts()[:-1]]
        return np.where(column.is_null(), first, column.fill_null(0))

    def batches(self, file: str) -> Iterator[Batch]:
        """Yield a Batch for each entry, in order, equal to the one that the reference codecs
        return, with parsed control records. A control record that does not parse has the error,
        which names ``file``; none is raised. ``records`` is ``[]`` if only headers were read, except
        for legacy messages.
        """
        starts = self.starts().tolist()
        columns = [_values(self.batch_headers.column(name)) for name in OF_BATCH]
        more = [list(_values(self.batch_headers.column(name))) for name in MORE_OF_BATCH]
        base_offsets = self.base_offsets().tolist()
        first = 0
        held: list[Record] = []
        for i, head in enumerate(zip(*columns, strict=True)):
            # One that a strict reader has nothing to say about.
            batch = Batch(**dict(zip(OF_BATCH, head, strict=True)))
            batch.has_base_offset = batch.base_offset is not None
            batch.base_offset = base_offsets[i]
            batch.more = tuple([column[i] for column in more])
            begin, end = starts[i], starts[i + 1]
            if end - first > len(held):
                first, held = begin, self._records(begin, max(end, begin + STRETCH))
            batch.records = held[begin - first : end - first]
            if batch.is_control:
                batch.records = [_with_control(r, file, batch.position) for r in batch.records]
            yield batch

    def _records(self, start: int, stop: int) -> list[Record]:
        """Return the records in the rows ``start`` to ``stop`` (excluded) as Record objects, whose
        ``control`` and ``crc_error`` are None.
        """
        rows = self.batch.slice(start, stop - start)
        columns = [_values(rows.column(name)) for name in OF_RECORD]
        none = [None] * rows.num_rows  # neither control records nor errors, so far
        more: Iterable[tuple[Any, ...]] = repeat((), rows.num_rows)
        if MORE_OF_RECORD:
            columns_more = (_values(rows.column(name)) for name in MORE_OF_RECORD)
            more = list(zip(*columns_more, strict=True))
        return list(map(Record._make, zip(*columns, none, none, more, strict=True)))


def _values(column: Any) -> Iterable[Any]:
    """Return the values of an Arrow column as Python objects: timestamps as integers, since a
    datetime cannot hold all of them, lists of structs as tuples of tuples, and null as None.
    """
    if pa.types.is_list(column.type):
        return _lists(column)
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    if column.null_count and not pa.types.is_binary(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    return column.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]


def _lists(column: Any) -> Iterable[tuple[tuple[Any, ...], ...]]:
    """Return a column of lists of structs as a tuple of tuples for each row. Without any element,
    return an iterator of empty tuples.
    """
    offsets = column.offsets.to_numpy().tolist()
    first, last = offsets[0], offsets[-1]
    if first == last:
        return repeat((), len(column))
    inner = column.values.slice(first, last - first)
    members = (_values(inner.field(i)) for i in range(inner.type.num_fields))
    items = list(zip(*members, strict=True))
    return [tuple(items[a - first : b - first]) for a, b in pairwise(offsets)]


def _with_control(record: Record, file: str, position: int) -> Record:
    """Return a control record with its parsed key and value in ``control``."""
    control = read_control(record.key, record.value, strict=False, file=file, position=position)
    return record._replace(control=control)
