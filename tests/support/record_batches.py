"""Rows of whole segments in Spark's columns, without planning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Unpack

import pyarrow as pa

from codecgen.runtime.located_bytes import Limits
from kafka_log.logs.partitions import Segment
from kafka_log.read.plan import Split
from kafka_log.read.selection import RowFilters, Selection, change_selection
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Policy
from pyspark_kafka_log.columns import DEFAULT_COLUMNS, Unit
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import read_split


def record_batches(
    segments: Iterable[Segment | Split],
    columns: Iterable[str] = DEFAULT_COLUMNS,
    policy: Policy | str | None = None,
    batch_rows: int = 16_384,
    *,
    selection: Selection | None = None,
    batch_bytes: int = 64 << 20,
    limits: Limits | None = None,
    engine: Engine = "auto",
    timestamp_unit: Unit = "us",
    **filters: Unpack[RowFilters],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of segments in this order. A Split says itself which rows of it are selected."""
    wanted = change_selection(selection, policy, filters)
    scan = Scan(
        columns=tuple(columns),
        policy=wanted.policy,
        on_damage=wanted.damage,
        batch_rows=batch_rows,
        batch_bytes=batch_bytes,
        limits=limits or Limits(),
        engine=engine,
        timestamp_unit=timestamp_unit,
    )
    rows = wanted.rows()
    for item in segments:
        yield from read_split(item if isinstance(item, Split) else Split(item, rows=rows), scan)
