"""Batches that other clients build and read: aiokafka and kafka-python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_codecs import LOG_ENTRY, RECORD_BATCH

aiokafka_records = pytest.importorskip("aiokafka.record.memory_records")


UnsupportedCodecError = pytest.importorskip("aiokafka.errors").UnsupportedCodecError


kafka_python_records = pytest.importorskip("kafka.record.memory_records")


CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


READERS = {
    "aiokafka": aiokafka_records.MemoryRecords,
    "kafka-python": kafka_python_records.MemoryRecords,
}


RECORDS: list[dict[str, Any]] = [
    {"key": b"k", "value": b"v", "headers": []},
    {"key": None, "value": b"a longer value " * 40, "headers": [("h", b"1"), ("h", b"2")]},
    {"key": b"", "value": None, "headers": [("", None), ("\u65e5\u672c", b"")]},
    {"key": b"k" * 300, "value": b"", "headers": [("x" * 200, b"y" * 5000)]},
]


BASE, TIME = 1_000_000, 1_700_000_000_000


def record_batch(codec: str) -> bytes:
    records = [
        {
            "offset_delta": i,
            "timestamp_delta": i * 7,
            "key": r["key"],
            "value": r["value"],
            "headers": [{"key": k, "value": v} for k, v in r["headers"]],
        }
        for i, r in enumerate(RECORDS)
    ]
    return RECORD_BATCH.build(
        {
            "base_offset": BASE,
            "partition_leader_epoch": 3,
            "attributes": {"compression": codec},
            "base_timestamp": TIME,
            "max_timestamp": TIME + 7 * (len(RECORDS) - 1),
            "records": records,
        }
    )


def message_set(magic: int, codec: str) -> bytes:
    def message(offset: int, i: int) -> dict[str, Any]:
        out = {
            "offset": offset,
            "magic": magic,
            "key": RECORDS[i]["key"],
            "value": RECORDS[i]["value"],
        }
        return out | ({"timestamp": TIME + 7 * i} if magic else {})

    count = len(RECORDS)
    if codec == "none":
        return b"".join(LOG_ENTRY.build(message(BASE + i, i)) for i in range(count))
    inner = [message(i if magic else BASE + i, i) for i in range(count)]
    wrapper = {
        "offset": BASE + count - 1,
        "magic": magic,
        "attributes": {"compression": codec},
        "key": None,
        "messages": inner,
    }
    return LOG_ENTRY.build(wrapper | ({"timestamp": TIME + 7 * (count - 1)} if magic else {}))


def read(reader: Any, data: bytes) -> Iterator[tuple[Any, ...]]:
    records = reader(data)
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        for r in batch:
            key = None if r.key is None else bytes(r.key)
            value = None if r.value is None else bytes(r.value)
            yield (
                r.offset,
                r.timestamp,
                key,
                value,
                [(k, None if v is None else bytes(v)) for k, v in r.headers],
            )
