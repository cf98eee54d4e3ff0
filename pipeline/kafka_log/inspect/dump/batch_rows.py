"""Batch headers as rows, and as lines in the words of Kafka's dump tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import choose, schema_of
from kafka_codecs.columns.batches import BATCHES
from kafka_log.inspect.dump.batch_text import timestamp_type
from kafka_log.inspect.dump.rows import DAMAGE_COLUMNS, has_damage
from kafka_log.logs.partitions import Partition
from kafka_log.read.arguments import check_columns
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.blocks import Block
from kafka_log.segment.model import Batch, codec_label
from kafka_log.segment.row_damage import crc_ok, damage
from kafka_log.segment.row_values import OF_BATCHES
from kafka_log.text.lines import Cell, Layout, encode_text_lines

_HEADER_FIELDS = schema_of(choose(BATCHES, [column.name for column in BATCHES.columns]))
SCHEMA = pa.schema(
    [*_HEADER_FIELDS, pa.field("crc_ok", pa.bool_()), pa.field("damage", pa.string())]
)
"""Columns of the view batches, ``crc_ok`` and ``damage``."""


def block_rows(block: Block) -> pa.RecordBatch:
    """Return the batches of a block of the kernels as rows of :data:`SCHEMA`. The kernels accept
    only intact batches: ``crc_ok`` is True and ``damage`` null in all rows.
    """
    rows = block.batch_headers
    arrays = [rows.column(f.name) for f in _HEADER_FIELDS]
    good = pa.repeat(True, rows.num_rows)
    return pa.RecordBatch.from_arrays(
        [*arrays, good, pa.nulls(rows.num_rows, pa.string())], schema=SCHEMA
    )


def batch_rows(batches: Sequence[Batch]) -> pa.RecordBatch:
    """Return batches of the reference codecs as rows of :data:`SCHEMA`, one row each, with
    ``crc_ok`` and ``damage`` as the batch has them.
    """
    columns = [[OF_BATCHES[f.name](batch, None) for batch in batches] for f in _HEADER_FIELDS]
    columns += [[value_of(batch, None) for batch in batches] for value_of in (crc_ok, damage)]
    arrays = [pa.array(values, f.type) for values, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


_PARTITION_COLUMNS = {
    "topic": pa.field("topic", pa.dictionary(pa.int32(), pa.string()), False),
    "partition": pa.field("partition", pa.int32(), False),
}


class BatchTable:
    """Selection of output columns: ``names``, of topic, partition and the columns of :data:`SCHEMA`; None selects all. ``sparse``
    drops the damage columns from record batches without damage; it has no effect with ``names``.

    Raises ValueError for an unknown column.
    """

    def __init__(self, names: Sequence[str] | None, *, sparse: bool) -> None:
        known = (*_PARTITION_COLUMNS, *SCHEMA.names)
        check_columns(names or known, known)
        self.sparse = sparse and names is None
        fields = _PARTITION_COLUMNS | {f.name: f for f in SCHEMA}
        self.schema = pa.schema([fields[name] for name in names or known])

    def select_columns(self, rows: pa.RecordBatch, partition: Partition) -> pa.RecordBatch:
        """Return rows of :data:`SCHEMA` in the output columns, with topic and number of the
        partition. If ``sparse`` and no row is damaged or has an unverified checksum, the columns
        ``crc_ok`` and ``damage`` are left out.
        """
        places = {"topic": utf8(partition.topic), "partition": partition.partition}
        is_short = self.sparse and not has_damage(rows)
        fields = [f for f in self.schema if not (is_short and f.name in DAMAGE_COLUMNS)]
        arrays = [
            pa.array([places[f.name]] * rows.num_rows, f.type)
            if f.name in places
            else rows.column(f.name)
            for f in fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _column(name: str) -> Callable[[pa.RecordBatch], Any]:
    """Return a function that reads a column as it is."""
    return lambda rows: rows.column(name)


def _int64_column(name: str) -> Callable[[pa.RecordBatch], Any]:
    """Return a function that reads the int64 values of a timestamp column."""
    return lambda rows: rows.column(name).view(pa.int64())


def _label_column(name: str, word: Callable[[int], str]) -> Callable[[pa.RecordBatch], Any]:
    """Return a function that returns the column ``name`` of a record batch as a dictionary array,
    with each number replaced by the text ``word(number)``; null stays null.
    """

    def build_labels(rows: pa.RecordBatch) -> Any:
        numbers = rows.column(name).dictionary_encode()
        texts = pa.array([word(n) for n in numbers.dictionary.to_pylist()], pa.string())
        return pa.DictionaryArray.from_arrays(numbers.indices, texts)

    return build_labels


def _codec_name(number: int) -> str:
    """Return the name of a compression codec; ``unknown`` for an unknown number."""
    return codec_label(number) or "unknown"


_LEGACY_CELLS = (
    ("offset: ", "null", _column("last_offset")),
    (" position: ", "null", _column("position")),
)
_V2_CELLS = (
    ("baseOffset: ", "null", _column("base_offset")),
    (" lastOffset: ", "null", _column("last_offset")),
    (" count: ", "null", _column("record_count")),
    (" baseSequence: ", "null", _column("base_sequence")),
    (" lastSequence: ", "null", _column("last_sequence")),
    (" producerId: ", "null", _column("producer_id")),
    (" producerEpoch: ", "null", _column("producer_epoch")),
    (" partitionLeaderEpoch: ", "null", _column("leader_epoch")),
    (" isTransactional: ", "null", _column("is_transactional")),
    (" isControl: ", "null", _column("is_control")),
    (" deleteHorizonMs: ", "none", _int64_column("delete_horizon")),
    (" position: ", "null", _column("position")),
)
_COMMON_CELLS = (
    (" ", "null", _label_column("timestamp_type", timestamp_type)),
    (": ", "null", _int64_column("max_timestamp")),
    (" size: ", "null", _column("size")),
    (" magic: ", "null", _column("magic")),
    (" compresscodec: ", "null", _label_column("codec", _codec_name)),
    (" crc: ", "null", _column("crc")),
    (" isvalid: ", "false", _column("crc_ok")),
)


def batch_lines(rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
    """Yield rows of :data:`SCHEMA`, in order, as encoded lines like those of
    :func:`kafka_log.inspect.dump.batch_text.batch_line`, many lines at a time; nothing without
    rows.
    """
    # Kafka prints v2 batches, which count their records, with other words than legacy messages.
    counted = np.asarray(rows.column("record_count").is_valid())
    borders = [0, *(np.flatnonzero(np.diff(counted)) + 1).tolist(), rows.num_rows]
    for start, end in pairwise(borders):
        if start < end:
            cells = (_V2_CELLS if counted[start] else _LEGACY_CELLS) + _COMMON_CELLS
            yield from _encode_lines(rows.slice(start, end - start), cells)


def _encode_lines(
    rows: pa.RecordBatch, cells: Sequence[tuple[str, str, Callable[[pa.RecordBatch], Any]]]
) -> Iterator[bytes | memoryview]:
    """Yield rows of one message format as encoded lines, many at a time. Each cell is the text
    before a value, the text for null, and a function that returns the values from the rows.
    """
    arrays = [make(rows) for _, _, make in cells]
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    layout = Layout(tuple(Cell(prefix, null) for prefix, null, _ in cells), 0)
    yield from encode_text_lines(batch, layout)
