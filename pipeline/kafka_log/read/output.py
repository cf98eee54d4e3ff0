"""The rows of :func:`kafka_log.scan`: decoded columns of a segment, and columns with one value for a whole segment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.output_buffers import choose, schema_of
from codecgen.runtime.arrow.view import Columns
from kafka_codecs.columns.records import RECORDS
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.read.arguments import check_columns
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.row_damage import COLUMNS as ROW_DAMAGE
from kafka_log.segment.scanner import Unread

_TEXT = pa.dictionary(pa.int32(), pa.string())
_PLACES: Mapping[str, tuple[Any, Callable[[Segment], str | int]]] = {
    "topic": (_TEXT, lambda segment: utf8(segment.topic)),
    "partition": (pa.int32(), lambda segment: segment.partition),
    "segment": (_TEXT, lambda segment: utf8(os.fspath(segment.path))),
    "state": (_TEXT, lambda segment: segment.state),
}
"""Columns with one value for a whole segment."""

_BY_DEFAULT = ("topic", "partition")
"""Columns of them that are added by default if more than one partition is read."""


@dataclass(frozen=True)
class _PlaceColumn:
    """A column such as topic, with one value for each segment. All batches share one dictionary."""

    type: Any
    get: Callable[[Segment], Any]
    numbers: Mapping[Any, int]
    dictionary: Any

    def array(self, segment: Segment, rows: int) -> Any:
        """Return an Arrow array of ``rows`` times the value of ``segment`` in this column: int32
        values, or dictionary-encoded text. Raise KeyError for a text that none of the segments of
        the column has.
        """
        value = self.get(segment)
        if self.dictionary is None:
            return pa.array(np.full(rows, value, np.int32))
        indices = pa.array(np.full(rows, self.numbers[value], np.int32))
        return pa.DictionaryArray.from_arrays(indices, self.dictionary)


def place_columns() -> list[str]:
    """Return the names of the columns that say where a row is: topic, partition, segment and state."""
    return list(_PLACES)


def record_columns() -> list[str]:
    """Return the names of all columns of :func:`kafka_log.scan`: topic, partition, those of a record, segment, state, and damage."""
    of_records = (column.name for column in RECORDS.columns)
    return list(dict.fromkeys((*_BY_DEFAULT, *of_records, *_PLACES, *ROW_DAMAGE)))


class Output:
    """Row format of :func:`kafka_log.scan`. ``columns`` are the columns to decode, ``schema`` is the schema of the stream."""

    def __init__(
        self,
        view: Columns,
        found: Sequence[Partition],
        columns: Sequence[str] | None,
        binary_view: bool = False,
        zero_copy: bool = False,
    ) -> None:
        """Resolve the columns of rows of ``view``. Raise ValueError for unknown, repeated or no
        ``columns``.

        Args:
            view: The view of records or batches.
            found: The partitions to read. More than one adds the columns ``topic`` and ``partition`` to the default.
            columns: Columns of the stream, or None for the default.
            binary_view: Use Arrow's view types for binaries and strings.
            zero_copy: Use them for keys and values alone, which the scanner returns so.
        """
        told = ROW_DAMAGE if view is RECORDS else {}
        known = (*_PLACES, *told, *(column.name for column in view.columns))
        if columns is None:
            places = _BY_DEFAULT if len(found) > 1 else ()
            columns = (*places, *(c.name for c in view.columns if not c.on_request))
        check_columns(columns, known)
        segments = [segment for partition in found for segment in partition.segments]
        self.names = tuple(columns)
        self.made = {name: _place_column(name, segments) for name in self.names if name in _PLACES}
        # Batches of Arrow without columns have no rows: one column is there to be counted.
        self.columns = [n for n in self.names if n not in _PLACES] or [view.columns[0].name]
        of_view = [n for n in self.columns if n not in told]
        decoded = schema_of(choose(view, of_view), views=zero_copy) if of_view else ()
        fields = {f.name: f for f in decoded}
        fields.update({n: told[n].field for n in self.columns if n in told})
        if binary_view:
            fields = {name: f.with_type(as_view_type(f.type)) for name, f in fields.items()}
        fields.update({name: pa.field(name, made.type, False) for name, made in self.made.items()})
        self.schema = pa.schema([fields[name] for name in self.names])

    def convert(self, item: pa.RecordBatch | Unread, segment: Segment) -> Iterator[pa.RecordBatch]:
        """Yield ``item`` with the columns of the stream if it is rows; nothing for a place without
        a readable record.
        """
        if isinstance(item, pa.RecordBatch):
            yield self._table(item, segment)

    def _table(self, batch: pa.RecordBatch, segment: Segment) -> pa.RecordBatch:
        """Return decoded rows of a segment with the columns of the stream in order: topic,
        partition, segment and state from ``segment``, others from ``batch``, cast if the stream has
        another type.
        """
        arrays = []
        for field in self.schema:
            made = self.made.get(field.name)
            if made is not None:
                arrays.append(made.array(segment, batch.num_rows))
                continue
            array = batch.column(field.name)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _place_column(name: str, segments: Sequence[Segment]) -> _PlaceColumn:
    """Return the column topic, partition, segment or state with the values that it has for these
    segments. Text columns share one sorted dictionary.
    """
    kind, get = _PLACES[name]
    if kind is not _TEXT:
        return _PlaceColumn(kind, get, {}, None)
    values = sorted({get(segment) for segment in segments})
    numbers = {value: i for i, value in enumerate(values)}
    return _PlaceColumn(kind, get, numbers, pa.array(values, pa.string()))


def as_view_type(kind: Any) -> Any:
    """Return an Arrow type with binary_view and string_view in place of binary and string, also
    inside lists and structs. Return other types unchanged.
    """
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(as_view_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(as_view_type(field.type)) for field in kind])
    return {pa.binary(): pa.binary_view(), pa.string(): pa.string_view()}.get(kind, kind)
