"""Summaries of partitions as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from kafka_log.disk.directory import Partition, utf8
from kafka_log.report.summary import Summary

_COUNT = [("name", pa.string()), ("batches", pa.int64())]

SUMMARIES = pa.schema(
    [
        pa.field("topic", pa.string(), False),
        pa.field("partition", pa.int64(), False),
        pa.field("state", pa.string(), False),
        pa.field("problems", pa.list_(pa.string()), False),
        *(
            pa.field(name, pa.int64(), False)
            for name in (
                "segments",
                "bytes",
                "batches",
                "records",
                "control_batches",
                "transactional_batches",
                "empty_batches",
                "invalid_batches",
                "trailing_bytes",
                "lost_bytes",
            )
        ),
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("first_timestamp", pa.timestamp("ms", "UTC")),
        pa.field("last_timestamp", pa.timestamp("ms", "UTC")),
        pa.field("magics", pa.list_(pa.struct(_COUNT)), False),
        pa.field("codecs", pa.list_(pa.struct(_COUNT)), False),
        pa.field("producers", pa.int64(), False),
        pa.field("directory", pa.string(), False),
    ]
)
"""A row for each partition. ``bytes`` are those of the files, ``lost_bytes`` what ``salvage`` could not read, ``trailing_bytes`` what no
reader takes at the ends of segments; timestamps are the least and the largest of what batches say is theirs."""


def summary_table(partitions: Sequence[Partition], summaries: Sequence[Summary]) -> pa.Table:
    """The summaries of partitions, in the columns of :data:`SUMMARIES`."""
    rows = [
        {
            **{name: getattr(s, name) for name in SUMMARIES.names if hasattr(s, name)},
            "topic": utf8(p.topic),
            "partition": p.partition,
            "state": p.state,
            "problems": list(map(utf8, s.problems)),
            "bytes": s.size,
            "magics": _counts(Counter({f"v{magic}": n for magic, n in s.magics.items()})),
            "codecs": _counts(s.codecs),
            "producers": len(s.producers),
            "directory": utf8(str(p.directory)),
        }
        for p, s in zip(partitions, summaries, strict=True)
    ]
    return pa.Table.from_pylist(rows, SUMMARIES)


def _counts(counter: Counter[str]) -> list[dict[str, str | int]]:
    return [{"name": name, "batches": n} for name, n in sorted(counter.items())]
