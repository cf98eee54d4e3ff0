"""Log directories for tests: from the reference vectors, and built."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_codecs import LOG_ENTRY
from tests.paths import VECTORS
from tests.support.sums import canonical

TIME = 1_700_000_000_000


def batch(
    base_offset: int, values: list[bytes | None], *, pad: int = 0, **fields: Any
) -> dict[str, Any]:
    """A record batch with these values, one millisecond apart; keys count from 0."""
    records: list[dict[str, Any]] = [
        {
            "timestamp_delta": i,
            "offset_delta": i,
            "key": b"%d" % i,
            "value": None if value is None else value + b"." * pad,
            "headers": [],
        }
        for i, value in enumerate(values)
    ]
    head = {"base_offset": base_offset, "base_timestamp": TIME}
    return {"magic": 2, "attributes": {}, **head, "records": records, **fields}


def build(*batches: dict[str, Any]) -> bytes:
    return b"".join(LOG_ENTRY.build(b, strict=False) for b in batches)


def write(directory: Path, topic: str, partition: int, base_offset: int, data: bytes) -> Path:
    """A segment in its partition directory."""
    path = directory / f"{topic}-{partition}" / f"{base_offset:020}.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def vector(directory: Path, topic: str, name: str, base_offset: int = 0) -> Path:
    """A reference segment as the segment of a partition."""
    path = directory / f"{topic}-0" / f"{base_offset:020}.log"
    path.parent.mkdir(exist_ok=True)
    shutil.copy(VECTORS / f"{name}.log", path)
    return path


def flipped(data: bytes, at: int) -> bytes:
    """The bytes with one bit another way."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def numbered(count: int, batches: int, *, pad: int = 0) -> bytes:
    """``batches`` batches with ``count`` records each; every value says its offset."""
    return build(
        *(
            batch(b * count, [b"%d" % (b * count + i) for i in range(count)], pad=pad)
            for b in range(batches)
        )
    )


def digest(table: pa.Table) -> str:
    """SHA-256 over the records in the form of samples/expected.json."""
    out = hashlib.sha256()
    for row, millis in zip(table.to_pylist(), milliseconds(table), strict=True):
        headers = [(pair["key"], pair["value"]) for pair in row["headers"] or ()]
        out.update(canonical(row["offset"], millis, row["key"], row["value"], headers))
    return out.hexdigest()


def milliseconds(table: pa.Table) -> list[int]:
    """The timestamps as the logs have them."""
    column = table.column("timestamp")
    per = 1000 if column.type.unit == "us" else 1
    return [value // per for value in column.cast(pa.int64()).to_pylist()]
