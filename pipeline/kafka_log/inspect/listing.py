"""Partitions and their segments, by names, sizes and batch headers at the ends: nothing else is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from kafka_log.logs.partitions import Partition, group_by_state
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
                "doc": "Base offset in the name of the first segment; null if the name has none."
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
            "base_offset", pa.int64(), False, {"doc": "Base offset in the name of the segment."}
        ),
        pa.field("bytes", pa.int64(), False, {"doc": "Size of the file."}),
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


def partition_table(partitions: Sequence[Partition]) -> pa.Table:
    """Return one row per partition and state of its segments, in the columns of
    :data:`PARTITIONS`.
    """
    rows = []
    for partition, state, segments in group_by_state(partitions):
        rows.append(
            {
                "topic": utf8(partition.topic),
                "partition": partition.partition,
                "segments": len(segments),
                "bytes": sum(segment.size for segment in segments),
                "base_offset": segments[0].base_offset if segments else None,
                "state": state,
                "directory": utf8(os.fspath(partition.directory)),
            }
        )
    return pa.Table.from_pylist(rows, PARTITIONS)


def segment_table(partitions: Sequence[Partition]) -> pa.Table:
    """Return one row per segment, in the columns of :data:`SEGMENTS`, also for segments that are gone
    since they were listed.
    """
    rows = [
        {
            "topic": utf8(segment.topic),
            "partition": segment.partition,
            "base_offset": segment.base_offset,
            "bytes": segment.size,
            "modified": _modified_ms(segment.path),
            "state": segment.state,
            "path": utf8(os.fspath(segment.path)),
        }
        for partition in partitions
        for segment in partition.segments
    ]
    return pa.Table.from_pylist(rows, SEGMENTS)


def _modified_ms(path: Path) -> int | None:
    """Return the time of the last write to a file, None if it is gone. Raise OSError if the system
    cannot tell.
    """
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None
