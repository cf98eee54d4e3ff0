"""Batch headers as rows and as lines: what Kafka's own dump tool says of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from codecgen.runtime.arrow.decoder import choose, schema_of
from kafka_codecs.arrow.batches import BATCHES
from kafka_log.report.json_dump import TIMESTAMP_TYPES
from kafka_log.report.lines import Cell, Layout, line_blocks
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.model import Batch, codec_label
from kafka_log.segment.row_damage import crc_ok, damage
from kafka_log.segment.row_values import OF_BATCHES

_VIEW = schema_of(choose(BATCHES, [column.name for column in BATCHES.columns]))
SCHEMA = pa.schema([*_VIEW, pa.field("crc_ok", pa.bool_()), pa.field("damage", pa.string())])
"""The columns of the view batches, and what is wrong with a batch."""


def batch_rows(reader: BlockReader, on_batch: Callable[[Batch], None]) -> Iterator[pa.RecordBatch]:
    """The batches of a file, some of one kind at a time; those by themselves of which there is something to say: ``on_batch`` is
    told of them when their row has been taken."""
    for part in reader.parts():
        if isinstance(part, Block):
            rows = part.batch_headers
            good = pa.repeat(True, rows.num_rows)
            arrays = [rows.column(f.name) for f in _VIEW]
            yield pa.RecordBatch.from_arrays(
                [*arrays, good, pa.nulls(len(good), pa.string())], schema=SCHEMA
            )
            continue
        values = [OF_BATCHES[f.name](part, None) for f in _VIEW] + [
            crc_ok(part, None),
            damage(part, None),
        ]
        arrays = [pa.array([v], f.type) for v, f in zip(values, SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        if part.findings or part.problems:
            on_batch(part)


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
    (" ", "null", _words("timestamp_type", TIMESTAMP_TYPES.__getitem__)),
    (": ", "null", _number("max_timestamp")),
    (" size: ", "null", _text("size")),
    (" magic: ", "null", _text("magic")),
    (" compresscodec: ", "null", _words("codec", _codec)),
    (" crc: ", "null", _text("crc")),
    (" isvalid: ", "false", _text("crc_ok")),
)


def batch_lines(rows: pa.RecordBatch) -> Iterator[bytes | memoryview]:
    """Rows of :func:`batch_rows`, which are of one kind, as lines with the words of Kafka's dump tool."""
    if not rows.num_rows:
        return
    counted = rows.column("record_count").null_count == 0
    cells = (_NEW if counted else _OLD) + _ALL
    arrays = [make(rows) for _, _, make in cells]
    made = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    layout = Layout(tuple(Cell(prefix, null) for prefix, null, _ in cells), 0)
    yield from line_blocks(made, layout)
