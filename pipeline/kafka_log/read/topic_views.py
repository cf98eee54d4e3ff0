"""Views of Kafka's internal topics: decoded records as tables with the columns that the schemas define."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.arrow.output_buffers import choose, schema_of
from codecgen.runtime.arrow.payloads import Rejected, decode, load_kernels
from codecgen.runtime.arrow.view import Column, PayloadView
from codecgen.runtime.errors import Where
from codecgen.runtime.located_bytes import Limits
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.read.arguments import check_columns
from kafka_log.read.internal_topics import VIEWS
from kafka_log.read.unknown_records import RecordRefused, refuse_unknown
from kafka_log.segment.kernels import Engine
from kafka_log.segment.row_damage import COLUMNS as ROW_DAMAGE
from kafka_log.segment.row_masks import numbers_of
from kafka_log.segment.scanner import Unread
from kafka_log.segment.times import MS_MAX

MIN_PAYLOADS_TO_LOAD_KERNELS = 10_000
"""Min number of payloads for compiled kernels that are kept on disk. Loading them takes 0.1 s of CPU, and numba 0.3 s more. The
reference codecs take 30 us a payload, the kernels 0.1 us."""

MIN_PAYLOADS_TO_COMPILE_KERNELS = 150_000
"""Min number of payloads for kernels that have to be compiled first, which takes 4.6 s of CPU, once."""

_OF_RECORD: Mapping[str, tuple[Any, Callable[[Segment], Any] | None, str]] = {
    "record_offset": (pa.int64(), None, "offset"),
    "record_timestamp": (pa.timestamp("ms", "UTC"), None, "timestamp"),
    "record_partition": (pa.int32(), lambda s: s.partition, ""),
    "record_segment": (pa.string(), lambda s: os.fspath(s.path), ""),
}
"""Columns on request that identify the record of a row: type, function of the segment, column of the view records."""

RECORD_COLUMNS = tuple(_OF_RECORD)

_DAMAGE_COLUMNS: Mapping[str, tuple[Any, Callable[[Segment], Any] | None, str]] = {
    name: (column.field.type, None, name) for name, column in ROW_DAMAGE.items()
}
"""Damage columns of the record, on request."""

_MORE = {**_OF_RECORD, **_DAMAGE_COLUMNS}


@dataclass(frozen=True)
class TopicView:
    """A view of one internal topic, with the selected columns.

    Secrets are :data:`~codecgen.runtime.sensitive.REDACTED` unless ``show_secrets``.
    """

    name: str
    columns: tuple[str, ...]
    view: PayloadView
    show_secrets: bool = False

    @property
    def topic(self) -> str:
        """Name of the topic."""
        return VIEWS[self.name]

    @property
    def decoded_columns(self) -> tuple[str, ...]:
        """The selected columns that are decoded from keys and values."""
        return tuple(name for name in self.columns if name not in _MORE)

    @property
    def secrets(self) -> tuple[Column, ...]:
        """The selected columns that have values to hide, whole or inside of them; ``()`` if secrets
        are shown.
        """
        if self.show_secrets:
            return ()
        return tuple(c for c in self.view.columns if c.name in self.columns and c.has_secrets)

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns of the view records that the selected columns need."""
        of_record = (_MORE[name][2] for name in self.columns if name in _MORE)
        return tuple(dict.fromkeys(("offset", *self.view.parts, *filter(None, of_record))))

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the selected columns, in their order: columns of the view, and columns of
        their records such as ``record_offset`` and ``damage``. Columns with numbers that are hidden
        as null are nullable.
        """
        found = choose(self.view, self.decoded_columns) if self.decoded_columns else ()
        if not self.show_secrets:
            found = tuple(column.make_hidden() for column in found)
        own = {field.name: field for field in schema_of(found)}
        fields = [
            own[n] if n in own else pa.field(n, _MORE[n][0], n in _DAMAGE_COLUMNS)
            for n in self.columns
        ]
        return pa.schema(fields)

    def partitions(self, found: Sequence[Partition]) -> list[Partition]:
        """Return the partitions of the view's topic among ``found``. Raise ValueError if there is
        none.
        """
        there = [partition for partition in found if partition.topic == self.topic]
        if not there:
            names = ", ".join(sorted({partition.topic for partition in found})[:20])
            raise ValueError(
                f"the view {self.name} reads the topic {self.topic}, which is not there; there are: {names}"
            )
        return there


class ViewRows:
    """Row format of a view: decoded records of a topic, with the types of ``schema``.

    A record that does not parse, or whose type or version is unknown, is an error with its offset; if ``keeps_damage`` it is left out.
    Records of types that the view does not show, and in topics of coordinators those of unknown types, have no row. A
    timestamp that its column cannot hold becomes null. Compiled kernels decode if ``engine`` is ``arrow``, or if it is ``auto`` and they are
    faster for ``size`` bytes of segments (:func:`use_payload_kernels`). The rows are equal in both cases.
    """

    def __init__(
        self,
        view: TopicView,
        schema: pa.Schema,
        *,
        is_strict: bool,
        keeps_damage: bool,
        limits: Limits,
        engine: Engine,
        size: int,
    ) -> None:
        """Store the options; nothing is loaded yet."""
        self.schema = schema
        self.columns = view.needed
        self._of = view
        self._secrets = view.secrets
        self._is_strict = is_strict
        self._keeps_damage = keeps_damage
        self._limits = limits
        self._size = size
        self._compiled = None if engine == "auto" else engine == "arrow"

    def convert(self, item: pa.RecordBatch | Unread, segment: Segment) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a view for decoded records of a segment, with secrets hidden; nothing
        for a place without a readable record. Iterating raises RecordRefused, a CodecError, for a
        record that does not parse, whose type or version is unknown, or without the value that its
        topic requires; if damage is kept, such a record has no row. In topics of coordinators a
        record of an unknown type never has a row, and raises nothing.
        """
        if not isinstance(item, pa.RecordBatch):
            return
        view, secrets = self._of, self._secrets
        if not self._keeps_damage:
            refuse_unknown(view.topic, item, segment)
        parts = {name: item.column(name) for name in view.view.parts}
        if self._compiled is None:
            self._compiled = use_payload_kernels(view.view, parts, self._size)
        # A view without a column of its own still says how many rows there are.
        names = (c.sensitive.named_by for c in secrets if c.sensitive is not None)
        naming = (name for name in names if name is not None)
        wanted = tuple(dict.fromkeys((*view.decoded_columns, *naming))) or (
            view.view.columns[0].name,
        )
        for found in decode(
            view.view,
            parts,
            wanted,
            strict=self._is_strict,
            limits=self._limits,
            compiled=self._compiled,
        ):
            if found.rejected and not self._keeps_damage:
                raise _error(found.rejected[0], item, segment)
            if found.batch.num_rows:
                own = without_secrets(found.batch, secrets)
                yield _rows(own, item.take(found.rows), segment, self.schema)


def use_payload_kernels(view: PayloadView, parts: Mapping[str, pa.Array], size: int) -> bool:
    """Return whether compiled kernels read ``size`` bytes of payloads faster than the reference
    codecs, including the time to load or compile them. Return False if the view has no kernels,
    numba is missing, or the payloads are too few. ``parts`` are some payloads, whose mean size
    tells the number.

    Args:
        view: The view. False if it has no kernels, or numba is missing.
        parts: Some of the payloads. Their mean size tells how many there are.
        size: Bytes of all segments that are read.
    """
    if view.kernels is None:
        return False
    rows = max(len(array) for array in parts.values())
    payloads = size * rows // max(1, sum(array.nbytes for array in parts.values()))
    if payloads < MIN_PAYLOADS_TO_LOAD_KERNELS:
        return False
    kernels = load_kernels(view)
    if kernels is None or not kernels.JIT:
        return False
    from codecgen.runtime.arrow.primitives.compiling import is_compiled  # imports numba

    return payloads >= MIN_PAYLOADS_TO_COMPILE_KERNELS or is_compiled(kernels.KERNELS)


def without_secrets(rows: pa.RecordBatch, secrets: Sequence[Column]) -> pa.RecordBatch:
    """Return ``rows`` with the secrets in the columns ``secrets`` hidden: all values, or those that
    another column names by certain endings or null. Null stays null. The schema allows the nulls
    that stand for numbers.
    """
    for column in secrets:
        at = rows.schema.get_field_index(column.name)
        values = rows.column(at)
        named_by = None if column.sensitive is None else column.sensitive.named_by
        names = [None] * len(values) if named_by is None else rows.column(named_by).to_pylist()
        around = named_by or ""
        hidden = [
            column.hide_secrets(value, {around: name})
            for value, name in zip(values.to_pylist(), names, strict=True)
        ]
        (field,) = schema_of([column.make_hidden()])
        rows = rows.set_column(at, field, pa.array(hidden, field.type))
    return rows


def _rows(
    decoded: pa.RecordBatch, records: pa.RecordBatch, segment: Segment, schema: pa.Schema
) -> pa.RecordBatch:
    """Return a batch with ``schema``: the view's columns from ``decoded``, others from their
    ``records`` or from the segment. Both batches have the same rows. Timestamps that do not fit
    become null.
    """
    arrays = []
    for field in schema:
        if field.name not in _MORE:
            arrays.append(_cast(decoded.column(field.name), field.type))
            continue
        _, of_segment, column = _MORE[field.name]
        if of_segment is None:
            arrays.append(_cast(records.column(column), field.type))
        else:
            value = pa.scalar(of_segment(segment), field.type)
            arrays.append(pa.repeat(value, decoded.num_rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array cast to another type; the array itself if it has that type. A timestamp in
    milliseconds that does not fit into 64-bit microseconds becomes null.
    """
    if values.type == kind:
        return values
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        times = numbers_of(values.fill_null(0) if values.null_count else values)
        fits = (times >= -MS_MAX) & (times <= MS_MAX)
        if not fits.all():
            values = pc.if_else(pa.array(fits), values, None)
    return values.cast(kind)


def topic_view(
    name: str, columns: Sequence[str] | None, *, show_secrets: bool = False
) -> TopicView:
    """Return the view ``name`` of an internal topic with ``columns`` in that order; None selects
    its default columns. Secrets are hidden unless ``show_secrets``. Raise ValueError for an unknown
    view, and for an empty, repeated or unknown column.
    """
    if name not in VIEWS:
        close = get_close_matches(name, VIEWS, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"no view is called {name!r}{hint}; known: {', '.join(VIEWS)}")
    module = importlib.import_module(f"kafka_codecs.columns.{name}")
    view: PayloadView = getattr(module, name.upper())
    if columns is None:
        columns = [column.name for column in view.columns if not column.on_request]
    check_columns(columns, (*(column.name for column in view.columns), *_MORE))
    return TopicView(name, tuple(columns), view, show_secrets)


def _error(rejected: Rejected, batch: pa.RecordBatch, segment: Segment) -> RecordRefused:
    """Return, not raise, the RecordRefused for a record that does not parse, with the record's
    offset, the path of the field and the file.
    """
    offset = batch.column("offset")[rejected.row].as_py()
    path = ".".join(word for word in (rejected.part, rejected.field) if word)
    reason = f"the record at offset {offset}: {rejected.message}"
    where = Where(path=path, file=os.fspath(segment.path), schema=rejected.place)
    return RecordRefused(reason, where, offset)


__all__ = ["RECORD_COLUMNS", "TopicView", "ViewRows", "topic_view"]
