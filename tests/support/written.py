"""Tables to write into logs, and what is in these afterwards."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa

import kafka_log

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TIME = 1_700_000_000_000
CODECS = [
    (magic, codec)
    for magic in (0, 1, 2)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    if magic == 2 or codec != "zstd"
]
CODE_PATHS = [(2, "zstd"), (1, "gzip"), (0, "snappy"), (2, "none")]
"""Of each version and codec that is written in a way of its own one."""


def records(count: int, seed: int = 1, *, headers: bool = True, times: bool = True) -> pa.Table:
    """Records of all kinds: null and empty keys and values, headers with and without values."""
    made = random.Random(seed)

    def bytes_of() -> bytes | None:
        return made.choice(
            [None, b"", made.randbytes(made.randrange(1, 60)), b"key%d" % made.randrange(9)]
        )

    columns: dict[str, Any] = {
        "key": pa.array([bytes_of() for _ in range(count)], pa.binary()),
        "value": pa.array([bytes_of() for _ in range(count)], pa.binary()),
    }
    if headers:
        of_row = [
            None if not i % 3 else [{"key": f"h{j}", "value": bytes_of()} for j in range(i % 4)]
            for i in range(count)
        ]
        columns["headers"] = pa.array(of_row, HEADERS)
    if times:
        columns["timestamp"] = pa.array(
            [TIME + made.randrange(-500, 500) for _ in range(count)], pa.timestamp("ms", "UTC")
        )
    return pa.table(columns)


def rows(path: Path, *columns: str) -> list[dict[str, Any]]:
    """What is read again, by topics, partitions and offsets."""
    names = columns or ("topic", "partition", "offset", "key", "value", "headers", "timestamp")
    found = kafka_log.read_table(
        path, list(dict.fromkeys([*names, "topic", "partition", "offset"]))
    )
    table = in_order(found).select(list(names))
    if "timestamp" in names:
        at = table.schema.get_field_index("timestamp")
        table = table.set_column(at, "timestamp", table["timestamp"].cast(pa.int64()))
    return table.to_pylist()


def files(path: Path) -> dict[str, bytes]:
    """All that readers and brokers look at, with its bytes."""
    return {
        p.relative_to(path).as_posix(): p.read_bytes()
        for p in path.rglob("*")
        if p.is_file() and not p.relative_to(path).parts[0].startswith(".")
    }


def in_order(table: pa.Table) -> pa.Table:
    """Rows by their topics, partitions and offsets."""
    at = table.schema.get_field_index("topic")
    table = table.set_column(at, "topic", table["topic"].cast(pa.string()))
    return table.sort_by([(name, "ascending") for name in ("topic", "partition", "offset")])
