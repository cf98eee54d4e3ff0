"""Other clients read what we build, and we read what they build."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_codecs import LOG_ENTRY, RECORD_BATCH

aiokafka_records = pytest.importorskip("aiokafka.record.memory_records")
aiokafka_builder = pytest.importorskip("aiokafka.record.default_records")
aiokafka_legacy = pytest.importorskip("aiokafka.record.legacy_records")
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


@pytest.mark.parametrize("client", READERS)
@pytest.mark.parametrize("codec", CODECS)
def test_reads_our_record_batches(client: str, codec: str) -> None:
    got = list(read(READERS[client], record_batch(codec)))
    assert got == [
        (BASE + i, TIME + 7 * i, r["key"], r["value"], r["headers"]) for i, r in enumerate(RECORDS)
    ]


@pytest.mark.parametrize("client", READERS)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS[:4])
def test_reads_our_message_sets(client: str, magic: int, codec: str) -> None:
    if (client, magic, codec) == ("aiokafka", 0, "lz4"):
        with pytest.raises(UnsupportedCodecError):  # it has no LZ4 for version 0 at all
            list(read(READERS[client], message_set(magic, codec)))
        return
    got = list(read(READERS[client], message_set(magic, codec)))
    assert [g[0] for g in got] == [BASE + i for i in range(len(RECORDS))]
    assert [(g[2], g[3]) for g in got] == [(r["key"], r["value"]) for r in RECORDS]
    if magic:
        assert [g[1] for g in got] == [TIME + 7 * i for i in range(len(RECORDS))]


@pytest.mark.parametrize("codec", range(5))
def test_we_read_the_batches_of_aiokafka(codec: int) -> None:
    builder = aiokafka_builder.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=True,
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for i, r in enumerate(RECORDS):
        builder.append(i, timestamp=TIME - i, key=r["key"], value=r["value"], headers=r["headers"])
    batch = RECORD_BATCH.parse(bytes(builder.build()))
    assert [(r.key, r.value) for r in batch.records] == [(r["key"], r["value"]) for r in RECORDS]
    assert [[(h.key, h.value) for h in r.headers] for r in batch.records] == [
        r["headers"] for r in RECORDS
    ]
    assert batch.attributes.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 1, 5)
    if codec == 0:
        assert RECORD_BATCH.build(batch) == bytes(builder.build())


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", range(4))
def test_we_read_the_message_sets_of_aiokafka(magic: int, codec: int) -> None:
    builder = aiokafka_legacy.LegacyRecordBatchBuilder(
        magic=magic, compression_type=codec, batch_size=1 << 20
    )
    for i, r in enumerate(RECORDS):
        builder.append(i, timestamp=TIME + i, key=r["key"], value=r["value"])
    if (magic, codec) == (0, 3):
        with pytest.raises(UnsupportedCodecError):
            builder.build()
        return
    data = bytes(builder.build())
    first = LOG_ENTRY.parse(data, strict=False) if codec else None
    found = [] if first is None else [(m.key, m.value) for m in first.messages]
    if first is None:
        at = 0
        while at < len(data):
            size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
            message = LOG_ENTRY.parse(data[at : at + size])
            found.append((message.key, message.value))
            at += size
    assert found == [(r["key"], r["value"]) for r in RECORDS]
