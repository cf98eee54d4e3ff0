"""The hidden column ``_metadata`` of Spark's file sources: which file a row is of, and which bytes of it its task reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_log.read.plan import Split
from kafka_log.segment.places import is_url
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.source import KafkaLogReader, Task

NAME = "_metadata"

_TYPES = {
    "file_path": pa.string(),
    "file_name": pa.string(),
    "file_size": pa.int64(),
    "file_block_start": pa.int64(),
    "file_block_length": pa.int64(),
    "file_modification_time": pa.timestamp("us", tz="UTC"),
}


def field(names: Sequence[str]) -> pa.Field:
    """The column with these fields."""
    return pa.field(NAME, pa.struct([(name, _TYPES[name]) for name in names]))


def with_metadata(
    reader: KafkaLogReader, splits: Sequence[Split], losses: Losses, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of a task with the column. Batches are of one split each."""
    column = field(names)
    for split in splits:
        values = None
        for batch in reader.rows(Task((split,)), losses):
            values = values or _values(split, names)  # only of a file that has rows
            arrays = [
                pa.repeat(pa.scalar(values[name], _TYPES[name]), batch.num_rows) for name in names
            ]
            made = pa.StructArray.from_arrays(arrays, fields=list(column.type))
            yield batch.append_column(column, made)


def _values(split: Split, names: Sequence[str]) -> dict[str, Any]:
    path = split.segment.path
    written: int | None = None
    if "file_modification_time" in names:
        with suppress(OSError):  # it is gone by now
            written = path.stat().st_mtime_ns // 1000
    return {
        "file_path": _uri(path),
        "file_name": _uri(path).rpartition("/")[2],
        "file_size": split.segment.size,
        "file_block_start": split.start,
        "file_block_length": split.size,
        "file_modification_time": written,
    }


def _uri(path: Path) -> str:
    """As Spark's file sources write paths, and names too: bytes that are no letters of URIs stand as ``%`` and two digits."""
    return os.fspath(path) if is_url(path) else Path(os.path.abspath(path)).as_uri()  # noqa: PTH100 (no links are followed)
