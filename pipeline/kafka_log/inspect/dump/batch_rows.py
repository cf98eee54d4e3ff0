"""Batch headers as rows and as lines: what Kafka's own dump tool says of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import choose, schema_of
from kafka_codecs.columns.batches import BATCHES
from kafka_log.inspect.dump.batch_text import timestamp_type
from kafka_log.inspect.dump.rows import TOLD, is_told
from kafka_log.logs.partitions import Partition
from kafka_log.read.arguments import check_columns
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.blocks import Block
from kafka_log.segment.model import Batch, codec_label
from kafka_log.segment.row_damage import crc_ok, damage
from kafka_log.segment.row_values import OF_BATCHES
from kafka_log.text.lines import Cell, Layout, display_lines

_VIEW = schema_of(choose(BATCHES, [column.name for column in BATCHES.columns]))
SCHEMA = pa.schema([*_VIEW, pa.field("crc_ok", pa.bool_()), pa.field("damage", pa.string())])
"""The columns of the view batches, and what is wrong with a batch."""


def block_rows(block: Block) -> pa.RecordBatch:
    """Batches with which nothing is wrong."""
    rows = block.batch_headers
    arrays = [rows.column(f.name) for f in _VIEW]
    good = pa.repeat(True, rows.num_rows)
    return pa.RecordBatch.from_arrays(
        [*arrays, good, pa.nulls(rows.num_rows, pa.string())], schema=SCHEMA
    )


def batch_rows(batches: Sequence[Batch]) -> pa.RecordBatch:
    """Batches as rows."""
    made = [[OF_BATCHES[f.name](batch, None) for batch in batches] for f in _VIEW]
    made += [[of(batch, None) for batch in batches] for of in (crc_ok, damage)]
    arrays = [pa.array(values, f.type) for values, f in zip(made, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


_PLACES = {
    "topic": pa.field("topic", pa.dictionary(pa.int32(), pa.string()), False),
    "partition": pa.field("partition", pa.int32(), False),
}


class BatchTable:
    """Columns of batches with those that say where they lie. ``sparse``: without what is wrong, where nothing is.

    Raises ValueError for a column that is not there.
    """

    def __init__(self, names: Sequence[str] | None, *, sparse: bool) -> None:
        known = (*_PLACES, *SCHEMA.names)
        check_columns(names or known, known)
        self.sparse = sparse and names is None
        fields = _PLACES | {f.name: f for f in SCHEMA}
        self.schema = pa.schema([fields[name] for name in names or known])

    def rows(self, rows: pa.RecordBatch, partition: Partition) -> pa.RecordBatch:
        """Rows of SCHEMA in these columns."""
        places = {"topic": utf8(partition.topic), "partition": partition.partition}
        is_short = self.sparse and not is_told(rows)
        fields = [f for f in self.schema if not (is_short and f.name in TOLD)]
        arrays = [
            pa.array([places[f.name]] * rows.num_rows, f.type)
            if f.name in places
            else rows.column(f.name)
            for f in fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _text(name: str) -> Callable[[pa.RecordBatch], Any]:
    return lambda rows: rows.column(name)


def _number(name: str) -> Callable[[pa.RecordBatch], Any]:
    return lambda rows: rows.column(name).view(pa.int64())


def _words(name: str, word: Callable[[int], str]) -> Callable[[pa.RecordBatch], Any]:
    def made(rows: pa.RecordBatch) -> Any:
        numbers = rows.column(name).dictionary_encode()
        texts = pa.array([word(n) for n in numbers.dictionary.to_pylist()], pa.string())
        return pa.DictionaryArray.from_arrays(numbers.indices, texts)

    return made


def _codec(number: int) -> str:
    return codec_label(number) or "unknown"


_OLD = (
    ("offset: ", "null", _text("last_offset")),
    (" position: ", "null", _text("position")),
)
_NEW = (
    ("baseOffset: ", "null", _text("base_offset")),
    (" lastOffset: ", "null", _text("last_offset")),
    (" count: ", "null", _text("record_count")),
    (" baseSequence: ", "null", _text("base_sequence")),
    (" lastSequence: ", "null", _text("last_sequence")),
    (" producerId: ", "null", _text("producer_id")),
    (" producerEpoch: ", "null", _text("producer_epoch")),
    (" partitionLeaderEpoch: ", "null", _text("leader_epoch")),
    (" isTransactional: ", "null", _text("is_transactional")),
    (" isControl: ", "null", _text("is_control")),
    (" deleteHorizonMs: ", "none", _number("delete_horizon")),
    (" position: ", "null", _text("position")),
)
_ALL = (
    (" ", "null", _words("timestamp_type", timestamp_type)),
    (": ", "null", _number("max_timestamp")),
    (" size: ", "null", _text("size")),
    (" magic: ", "null", _text("magic")),
    (" compresscodec: ", "null", _words("codec", _codec)),
    (" crc: ", "null", _text("crc")),
    (" isvalid: ", "false", _text("crc_ok")),
)


def batch_lines(rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
    """Rows as :func:`kafka_log.inspect.dump.batch_text.batch_line` has them."""
    # What counts its records is said in other words than the messages of older formats.
    counted = np.asarray(rows.column("record_count").is_valid())
    turns = [0, *(np.flatnonzero(np.diff(counted)) + 1).tolist(), rows.num_rows]
    for start, end in pairwise(turns):
        if start < end:
            cells = (_NEW if counted[start] else _OLD) + _ALL
            yield from _lines(rows.slice(start, end - start), cells)


def _lines(
    rows: pa.RecordBatch, cells: Sequence[tuple[str, str, Callable[[pa.RecordBatch], Any]]]
) -> Iterator[bytes | memoryview]:
    arrays = [make(rows) for _, _, make in cells]
    made = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    layout = Layout(tuple(Cell(prefix, null) for prefix, null, _ in cells), 0)
    yield from display_lines(made, layout)
