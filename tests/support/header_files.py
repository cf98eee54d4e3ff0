"""Segments whose batch headers contradict their records."""

from __future__ import annotations

from pathlib import Path

from kafka_codecs import RECORD_BATCH
from tests.support.lying_headers import (
    START,
    good_vectors,
    with_header,
)

VECTORS = good_vectors()


def file_of(folder: str, data: bytes, topic: str = "t") -> Path:
    path = Path(folder) / f"{topic}-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(data)
    return path


def batch_of(base_offset: int, **fields: int) -> bytes:
    """Three records, a second from each other."""
    records = [
        {"timestamp_delta": 1000 * i, "offset_delta": i, "key": b"k", "value": b"v", "headers": []}
        for i in range(3)
    ]
    head = {"base_timestamp": START, "max_timestamp": START + 2000, "last_offset_delta": 2}
    whole = RECORD_BATCH.build({"base_offset": base_offset, "records": records, **head})
    return with_header(whole, **fields)
