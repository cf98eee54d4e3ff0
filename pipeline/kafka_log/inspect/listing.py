"""Partitions and their segments, by names, sizes and batch headers at the ends: nothing else is read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.logs.partitions import Partition, Segment, group_by_state
from kafka_log.segment.arrow_text import utf8

PARTITIONS = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field("segments", pa.int64(), False, {"doc": "Number of segments."}),
        pa.field("bytes", pa.int64(), False, {"doc": "Size of the .log files."}),
        pa.field(
            "base_offset",
            pa.int64(),
            metadata={
                "doc": "Base offset in the name of the first segment, 0 if the name has none; null if no segment has the state."
            },
        ),
        pa.field(
            "state",
            pa.string(),
            False,
            {"doc": "State of the segments: live, deleted, stray and others."},
        ),
        pa.field("directory", pa.string(), False, {"doc": "Path of the partition directory."}),
    ]
)

SEGMENTS = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field(
            "base_offset",
            pa.int64(),
            False,
            {"doc": "Base offset in the name of the segment; 0 if it has none."},
        ),
        pa.field(
            "bytes", pa.int64(), True, {"doc": "Size of the file; null if it could not be opened."}
        ),
        pa.field(
            "modified",
            pa.timestamp("ms", "UTC"),
            True,
            {"doc": "Time of the last write to the file; null if it is gone."},
        ),
        pa.field(
            "state",
            pa.string(),
            False,
            {"doc": "State of the segments: live, deleted, stray and others."},
        ),
        pa.field("path", pa.string(), False, {"doc": "Path of the segment file."}),
    ]
)


TOPICS = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field(
            "partitions",
            pa.int64(),
            False,
            {"doc": "Number of partitions; copies of one partition count once."},
        ),
        pa.field(
            "replicas",
            pa.int64(),
            False,
            {
                "doc": "Number of partition directories: a partition has one in each directory with a copy of it."
            },
        ),
        pa.field("segments", pa.int64(), False, {"doc": "Number of segments of all replicas."}),
        pa.field("bytes", pa.int64(), False, {"doc": "Size of the .log files of all replicas."}),
        pa.field(
            "largest_replica_bytes",
            pa.int64(),
            False,
            {"doc": "Size with only the largest replica of each partition."},
        ),
        pa.field(
            "state",
            pa.string(),
            False,
            {"doc": "State of the segments: live, deleted, stray and others."},
        ),
    ]
)


By = Literal["partition", "topic"]
BY: tuple[By, ...] = get_args(By)
"""What a row of ``ls`` stands for."""


def topic_table(partitions: Sequence[Partition]) -> pa.Table:
    """Return the disk usage per topic and state of segments, in the columns of :data:`TOPICS`, most
    bytes first; rows with equal bytes by topic and state. A path that could not be read counts 0
    bytes.
    """
    sizes: dict[tuple[str, str], dict[int, list[int]]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for partition, state, segments in group_by_state(partitions):
        key = utf8(partition.topic), state
        replicas = sizes.setdefault(key, {}).setdefault(partition.partition, [])
        replicas.append(sum(map(_count_bytes, segments)))
        counts[key] += len(segments)
    rows = [
        {
            "topic": topic,
            "partitions": len(by_number),
            "replicas": sum(map(len, by_number.values())),
            "segments": counts[topic, state],
            "bytes": sum(map(sum, by_number.values())),
            "largest_replica_bytes": sum(map(max, by_number.values())),
            "state": state,
        }
        for (topic, state), by_number in sizes.items()
    ]
    table = pa.Table.from_pylist(rows, TOPICS)
    return table.sort_by([("bytes", "descending"), ("topic", "ascending"), ("state", "ascending")])


def append_total(topics: pa.Table) -> pa.Table:
    """Return a table of topics with a row of their sums at its end, in which ``topic`` is ``total``
    and ``state`` null. Return the table itself if it has fewer than two rows.
    """
    if topics.num_rows < 2:
        return topics
    sums = {f.name: [pc.sum(topics.column(f.name)).as_py()] for f in TOPICS if f.type == pa.int64()}
    schema = pa.schema([f.with_nullable(True) for f in TOPICS])
    total = pa.table({"topic": ["total"], **sums, "state": [None]}, schema)
    return pa.concat_tables([topics.cast(schema), total])


def partition_table(partitions: Sequence[Partition]) -> pa.Table:
    """Return one row per partition and state of its segments, in the columns of :data:`PARTITIONS`
    and the order of ``partitions``. The state of the directory itself always has a row, with
    ``base_offset`` null if no segment is in it. ``base_offset`` is 0 if a file name has none.
    """
    rows = []
    for partition, state, segments in group_by_state(partitions):
        rows.append(
            {
                "topic": utf8(partition.topic),
                "partition": partition.partition,
                "segments": len(segments),
                "bytes": sum(map(_count_bytes, segments)),
                "base_offset": segments[0].base_offset if segments else None,
                "state": state,
                "directory": utf8(os.fspath(partition.directory)),
            }
        )
    return pa.Table.from_pylist(rows, PARTITIONS)


def segment_table(partitions: Sequence[Partition]) -> pa.Table:
    """Return one row per segment, in the columns of :data:`SEGMENTS`. A segment that is gone since
    it was listed has a row too, with ``modified`` null. Raise OSError if the system cannot tell the
    time of another one.
    """
    rows = [
        {
            "topic": utf8(segment.topic),
            "partition": segment.partition,
            "base_offset": segment.base_offset,
            "bytes": None if segment.problem else segment.size - segment.missing,
            "modified": _modified_ms(segment.path),
            "state": segment.state,
            "path": utf8(os.fspath(segment.path)),
        }
        for partition in partitions
        for segment in partition.segments
    ]
    return pa.Table.from_pylist(rows, SEGMENTS)


def _count_bytes(segment: Segment) -> int:
    """Return the size of a segment, 0 if it is not known."""
    return 0 if segment.problem else segment.size - segment.missing


def _modified_ms(path: Path) -> int | None:
    """Return the time of the last write to a file, None if it is gone. Raise OSError if the system
    cannot tell.
    """
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None
