"""Messages of the legacy formats as record batches, as Kafka converts them: no producer, no leader epoch, CreateTime for those that
have no timestamp."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_codecs import Compression, TimestampType
from kafka_codecs.columns.records import RECORDS
from kafka_log.segment.row_masks import numbers
from kafka_log.segment.scanner import Scanner
from kafka_log.write.encoding import encode

GROUP_BYTES = 16384
"""Bytes of keys and values of messages that are not compressed, which become one batch; one message may have more."""

_WHOLE = 1 << 28
_ROW = 8
"""Bytes of a record beside key and value, about."""

_COLUMNS = [c.name for c in RECORDS.columns if c.name != "position"]
_MADE = ("base_offset", "timestamp_type")
_WRITTEN = [name for name in _COLUMNS if name != "magic"]


def converted(
    path: Path, start: int, stop: int, magic: int, codec: str | None, level: int | None
) -> Iterator[memoryview]:
    """The messages between two places of a file, in pieces of whole batches. A compressed message becomes one batch; others that
    follow each other share batches. ``magic`` is the version of the batches; ``codec`` None: as they are.

    Raises :class:`~codecgen.runtime.errors.CodecError` for damage, and rows that no batch can hold.
    """
    scanner = Scanner(path, _COLUMNS, start=start, stop=stop)
    rows = (_grouped(batch) for batch in scanner)
    schema = pa.schema([scanner.schema.field(name) for name in _WRITTEN])
    stream = pa.RecordBatchReader.from_batches(schema, rows)
    return encode(stream, magic=magic, codec=codec, level=level, batch_bytes=_WHOLE)


def _grouped(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with the first offsets of the batches that they are to be in, and a kind of timestamp that these have."""
    offsets, kinds = numbers(rows, "offset"), numbers(rows, "timestamp_type")
    single = numbers(rows, "codec") == Compression.NONE
    base = numbers(rows, "base_offset").copy()
    first = _first_of_group(rows, single, kinds)
    base[single] = offsets[first[single]]
    made = {"base_offset": base, "timestamp_type": np.maximum(kinds, TimestampType.CREATE_TIME)}
    arrays = [
        pa.array(made[name], rows.schema.field(name).type) if name in _MADE else rows.column(name)
        for name in _WRITTEN
    ]
    return pa.RecordBatch.from_arrays(arrays, names=_WRITTEN)


def _first_of_group(rows: pa.RecordBatch, single: Any, kinds: Any) -> Any:
    """For each row the first one of its group, where messages that are not compressed follow each other."""
    times = numbers(rows, "timestamp")
    begins = np.ones(rows.num_rows, bool)
    begins[1:] = ~(single[1:] & single[:-1]) | (kinds[1:] != kinds[:-1])
    begins[1:] |= (kinds[1:] == TimestampType.LOG_APPEND_TIME) & (times[1:] != times[:-1])
    before = np.cumsum(_sizes(rows)) - _sizes(rows)
    index = np.arange(rows.num_rows)
    of_run = before - before[np.maximum.accumulate(np.where(begins, index, 0))]
    full = of_run // GROUP_BYTES
    begins[1:] |= full[1:] != full[:-1]
    return np.maximum.accumulate(np.where(begins, index, 0))


def _sizes(rows: pa.RecordBatch) -> Any:
    lengths = (pc.binary_length(rows.column(name)).fill_null(0) for name in ("key", "value"))
    return sum((numbers_of.to_numpy(zero_copy_only=False) for numbers_of in lengths), start=_ROW)
