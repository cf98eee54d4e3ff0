"""Ids of schemas that keys and values of logs have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, MutableMapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from kafka_log.logs.partitions import Partition
from kafka_log.read.scanning import scan
from kafka_log.read.schemas import PARTS
from kafka_log.read.schemas.framing import split_frames
from kafka_log.read.schemas.registry import SchemaId, SchemaRegistry
from kafka_log.segment.model import Lost, describe_lost

DEFAULT_RECORDS = 10_000
"""Number of records of each partition that are read to find which schemas a topic uses."""

OnProblem = Callable[[str], None]


@dataclass
class Usage:
    """Number of records by id of the keys or values of one topic. ``unframed`` counts those without an id."""

    counts: Counter[SchemaId] = field(default_factory=Counter)
    unframed: int = 0

    @property
    def ids(self) -> list[SchemaId]:
        """The ids, the most frequent one first."""
        return [schema_id for schema_id, _ in self.counts.most_common()]


def count_ids(
    partition: Partition,
    records: int | None,
    registry: SchemaRegistry,
    usage: MutableMapping[tuple[str, str], Usage],
    on_problem: OnProblem,
) -> None:
    """Add the schema ids of the keys and values of the first ``records`` records (None: all) of a
    partition to ``usage``, by topic and part; ``usage`` makes missing entries itself. Damaged
    records (also by their checksum) count but are not added, nor are nulls. Call ``on_problem``
    with a line for lost ranges, and for files and directories that cannot be read; no error of them
    is raised.
    """

    def on_lost(path: Path, lost: Lost) -> None:
        on_problem(describe_lost(path, lost))

    count = 0
    columns = ["key", "value", "headers", "damage"]
    try:
        with closing(scan([partition], columns, "salvage", on_lost=on_lost)) as reader:
            for batch in reader:
                rows = batch if records is None else batch.slice(0, records - count)
                count += rows.num_rows
                rows = rows.filter(pc.is_null(rows.column("damage")))
                for part in PARTS:
                    _count_batch(rows, part, registry, usage[partition.topic, part])
                if count == records:
                    break
    except (CodecError, OSError) as error:
        on_problem(str(error))


def _count_batch(rows: pa.RecordBatch, part: str, registry: SchemaRegistry, usage: Usage) -> None:
    """Add the ids of the keys or values (``part``) of rows to the counts of ``usage``, and the
    number of those without an id to ``unframed``; nulls do not count.
    """
    frames = split_frames(rows.column(part), rows.column("headers"), part, registry)
    counts = np.bincount(frames.codes[frames.codes >= 0], minlength=len(frames.ids)).tolist()
    for schema_id, count in zip(frames.ids, counts, strict=True):
        if schema_id is None:
            usage.unframed += count
        else:
            usage.counts[schema_id.without_data] += count
