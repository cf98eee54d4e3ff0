"""Other clients read what we build, and we read what they build."""

from __future__ import annotations

import pytest

from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from tests.support.client_batches import (
    BASE,
    CODECS,
    READERS,
    RECORDS,
    TIME,
    UnsupportedCodecError,
    message_set,
    read,
    record_batch,
)

aiokafka_builder = pytest.importorskip("aiokafka.record.default_records")
aiokafka_legacy = pytest.importorskip("aiokafka.record.legacy_records")


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
