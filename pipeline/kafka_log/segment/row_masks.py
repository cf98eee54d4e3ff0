"""Row filters over whole Arrow columns for a :class:`~kafka_log.segment.row_selection.RowSelection`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.output_buffers import VIEW_TYPES
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.segment.row_selection import Aborted, Header, RowSelection

HEADERS = (
    "position",
    "size",
    "base_offset",
    "offset_bound",
    "timestamp_bound",
    "first_timestamp",
    "producer_id",
    "is_transactional",
    "is_control",
)
"""Columns of the view batches that the filters of batches need."""


class RowMasks:
    """Filter of rows of the view records by a selection."""

    def __init__(self, selection: RowSelection) -> None:
        """Convert keys, producers and aborted transactions of ``selection`` to arrays."""
        self.selection = selection
        self._aborted = AbortedSpans(selection.aborted) if selection.aborted else None
        keys = selection.keys
        self._keys = None if keys is None else _keys(keys)
        self._producers = (
            None if selection.producers is None else np.array(selection.producers, np.int64)
        )

    def columns(self) -> tuple[str, ...]:
        """Return the columns that the filter needs."""
        return self.selection.columns()

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of ``batch`` (columns of the view ``records``) that the selection
        selects: by offset and timestamp (ranges include their first value and exclude their
        second), control records, producer, aborted transactions, key and record headers. It may be
        ``batch`` itself.
        """
        ranges = ("offset", self.selection.offsets), ("timestamp", self.selection.timestamps)
        for name, (low, high) in ranges:
            if (low, high) == EVERYTHING or not batch.num_rows:
                continue
            values = numbers(batch, name)
            mask = None
            if high is not None and values.max() >= high:
                mask = values < high
            if low is not None and values.min() < low:
                mask = values >= low if mask is None else mask & (values >= low)
            if mask is not None:
                batch = filter_rows(batch, mask)
        return self._with_selected_content(self._without_unselected(batch))

    def may_have(self, headers: pa.RecordBatch) -> Any:
        """Return the mask of batches that may hold a selected record, by their headers: offset
        range, start of the time range, producers and aborted transactions. Offsets or times that a
        header does not state exclude nothing; without a base offset in its header, a batch is
        always in the mask.
        """
        (low, high), (begin, _) = self.selection.offsets, self.selection.timestamps
        bases, bounds = headers.column("base_offset"), headers.column("offset_bound")
        says_all = numbers_of(bases.is_valid()) & numbers_of(bounds.is_valid())
        first, last = (numbers_of(column.fill_null(0)) for column in (bases, bounds))
        producers = numbers(headers, "producer_id")
        out = np.zeros(headers.num_rows, bool)
        if low is not None:
            out |= last < low
        if high is not None:
            out |= first >= high
        if self._aborted is not None:
            data = numbers(headers, "is_transactional") & ~numbers(headers, "is_control")
            out |= data & self._aborted.mask(producers, first) & self._aborted.mask(producers, last)
        out &= says_all
        if begin is not None:
            out |= is_below(headers.column("timestamp_bound"), begin)
        if self._producers is not None:
            out |= ~np.isin(producers, self._producers)
        return ~(out & numbers_of(bases.is_valid()))

    def is_after(self, headers: pa.RecordBatch) -> Any:
        """Return the mask of batches whose headers say that all their offsets are at or after the
        end of the offset range. It is all False without such an end; a batch whose header does not
        state a base offset, or contradicts itself about the last one, is not in it.
        """
        high = self.selection.offsets[1]
        if high is None:
            return np.zeros(headers.num_rows, bool)
        is_bounded = numbers_of(headers.column("offset_bound").is_valid())
        return ~is_below(headers.column("base_offset"), high, True) & is_bounded

    def _without_unselected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that the selection keeps: without control records unless they are wanted,
        of wanted producers only, and without data of aborted transactions. It is ``batch`` itself
        if all are kept.
        """
        keep = None
        if not self.selection.control_records and batch.column("is_control").true_count:
            keep = ~numbers(batch, "is_control")
        if self._producers is not None:
            written = np.isin(numbers(batch, "producer_id"), self._producers)
            keep = written if keep is None else keep & written
        if self._aborted is not None and batch.column("is_transactional").true_count:
            data = numbers(batch, "is_transactional") & ~numbers(batch, "is_control")
            gone = data & self._aborted.mask(
                numbers(batch, "producer_id"), numbers(batch, "offset")
            )
            keep = ~gone if keep is None else keep & ~gone
        return batch if keep is None or keep.all() else filter_rows(batch, keep)

    def _with_selected_content(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows whose key is one of the wanted ones and that have all wanted record
        headers; ``batch`` itself if the selection asks for neither.
        """
        if self._keys is None and not self.selection.headers:
            return batch
        import pyarrow.compute as pc  # takes 30 ms: not for other scans

        if self._keys is not None and batch.num_rows:
            batch = batch.filter(pc.is_in(batch.column("key"), value_set=self._keys))
        for wanted in self.selection.headers:
            if batch.num_rows:
                batch = batch.filter(pa.array(_with_header(batch.column("headers"), wanted)))
        return batch


class HeaderMasks(RowMasks):
    """Filter of rows of the view batches by a selection: batches that may lie in its ranges by their headers."""

    def columns(self) -> tuple[str, ...]:
        """Return the columns of the view batches that the filter needs, empty if nothing can be filtered."""
        return HEADERS if self.selection.skips else ()

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of ``batch``, one for each batch header, whose batch may hold selected
        records, by offset range, time range (both ends) and producers. Values that a header does
        not state exclude nothing. It is ``batch`` itself if the selection has none of these, nor
        aborted transactions.
        """
        if not self.selection.skips or not batch.num_rows:
            return batch
        (low, high), (begin, end) = self.selection.offsets, self.selection.timestamps
        last, latest = (batch.column(name) for name in ("offset_bound", "timestamp_bound"))
        out = np.zeros(batch.num_rows, bool)
        if low is not None:
            out |= is_below(last, low)
        if begin is not None:
            out |= is_below(latest, begin)
        if high is not None:
            out |= ~is_below(batch.column("base_offset"), high, True) & numbers_of(last.is_valid())
        if end is not None:
            # No record of it is known to be earlier than the first one.
            late = ~is_below(batch.column("first_timestamp"), end, True)
            out |= late & numbers_of(latest.is_valid())
        if self._producers is not None:
            out |= ~np.isin(numbers(batch, "producer_id"), self._producers)
        return batch.filter(pa.array(~out))


def is_below(column: pa.Array, bound: int, unknown: bool = False) -> Any:
    """Return a mask of the numbers or timestamps of a column that are below ``bound`` (excluded).
    For null, which stands for what a header does not state, the mask has ``unknown``.
    """
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return numbers_of(pc.fill_null(pc.less(column, bound), unknown))


class AbortedSpans:
    """Aborted transactions as sorted arrays for each producer. The transactions of a producer do not overlap."""

    def __init__(self, aborted: Aborted) -> None:
        """Convert aborted transactions to an array of first offsets and one of last offsets for each producer."""
        self._ends = {
            producer: (np.array([f for f, _ in ranges]), np.array([last for _, last in ranges]))
            for producer, ranges in aborted.by_producer.items()
        }
        self._producers = np.array(list(self._ends), np.int64)

    def mask(self, producers: Any, offsets: Any) -> Any:
        """Return the mask of rows whose producer id has an aborted transaction around their offset,
        first and last offset included. Whether a row is transactional is not checked.
        """
        out = np.zeros(len(producers), bool)
        for producer in np.intersect1d(producers, self._producers).tolist():
            rows = np.flatnonzero(producers == producer)
            firsts, lasts = self._ends[producer]
            at = np.searchsorted(firsts, offsets[rows], side="right") - 1
            out[rows] = (at >= 0) & (offsets[rows] <= lasts[at])
        return out


def _keys(keys: Any) -> pa.Array:
    """Return keys as an Arrow array of binaries."""
    return pa.array(list(keys), pa.binary())


def filter_rows(batch: pa.RecordBatch, mask: Any) -> pa.RecordBatch:
    """Return the rows of ``batch`` for which ``mask``, a NumPy array, is True. pyarrow cannot filter
    views, so the filtered 16 bytes of each view become a column with the same buffers.
    """
    views = {i: f.type for i, f in enumerate(batch.schema) if f.type in VIEW_TYPES.values()}
    if not views:
        return batch.filter(pa.array(mask))
    columns = batch.columns
    for i in views:
        array = columns[i]
        plain = array.buffers()[:2]
        columns[i] = pa.Array.from_buffers(pa.binary(16), len(array), plain, -1, array.offset)
    found = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).filter(pa.array(mask))
    columns = found.columns
    for i, kind in views.items():
        array, viewed = columns[i], batch.column(i).buffers()[2:]
        buffers = [*array.buffers(), *viewed]
        columns[i] = pa.Array.from_buffers(kind, len(array), buffers, -1, array.offset)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _with_header(column: pa.Array, wanted: Header) -> Any:
    """Return the mask of rows that have a record header called ``wanted``; if that is a pair (name,
    value), with this value too (None: null).
    """
    import pyarrow.compute as pc

    offsets = column.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    pairs = column.values.slice(first, last - first)
    name, has_value = (wanted, False) if isinstance(wanted, str) else (wanted[0], True)
    hits = pc.equal(pairs.field(0), name)
    if has_value:
        value = wanted[1]
        values = pairs.field(1)
        equal = (
            pc.is_null(values) if value is None else pc.equal(values, pa.scalar(value, pa.binary()))
        )
        hits = pc.and_(hits, pc.fill_null(equal, False))
    before = np.concatenate(([0], np.cumsum(hits.to_numpy(zero_copy_only=False))))
    found = before[offsets[1:] - first] > before[offsets[:-1] - first]
    return found


def numbers(batch: pa.RecordBatch, name: str) -> Any:
    """Return a column of numbers without nulls as a NumPy array."""
    return numbers_of(batch.column(name))


def numbers_of(column: pa.Array) -> Any:
    """Return an array of numbers without nulls as a NumPy array. Timestamps become their numbers."""
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return column.to_numpy(zero_copy_only=False)
