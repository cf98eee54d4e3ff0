"""Rows that were read from the files of Apache Kafka's own builder are written as that builder wrote them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from tests.paths import VECTORS
from tests.support.random_segments import entries
from tests.support.record_tables import DEFAULT, ON_REQUEST, decoded, table, written
from tests.support.view_files import FILES

EVERY = (*DEFAULT, *ON_REQUEST)
SMALL = 20_000
OTHERWISE = {
    "compacted/v2-gzip.log": "batches without records have no rows",
    "compacted/v2-lz4.log": "batches without records have no rows",
    "compacted/v2-none.log": "batches without records have no rows",
    "compacted/v2-snappy.log": "batches without records have no rows",
    "features/v2-empty-batches.log": "batches without records have no rows",
    "control/unknown-type.log": "batches with the same columns are joined",
    "control/gzip-control.log": "a largest timestamp that is none of its records'",
    "features/v0-gzip-inner-relative.log": "a wrapper's offset that is not its last message's",
    "features/v1-gzip-absolute-inner-offsets.log": "offsets that are not relative, as old clients wrote",
    "features/v1-gzip-wrapper-offset-zero.log": "a wrapper's offset that is not its last message's",
    "features/v2-gzip-offset-gaps.log": "a last offset behind the last record's",
    "features/v2-nonmonotonic-offset-deltas.log": "a last offset behind the last record's",
    "features/v2-none-timestamp-overflow.log": "a base timestamp that is not the first record's",
    "features/v2-zstd-delete-horizon-append.log": "deltas that the broker's timestamp hides",
    "matrix/v2-gzip-append.log": "deltas that the broker's timestamp hides",
    "matrix/v2-lz4-append.log": "deltas that the broker's timestamp hides",
    "matrix/v2-snappy-append.log": "deltas that the broker's timestamp hides",
    "matrix/v2-zstd-append.log": "deltas that the broker's timestamp hides",
}
"""What rows do not say, so that it cannot come back."""
AGREEING = [
    file for file in FILES if file not in OTHERWISE and (VECTORS / file).stat().st_size < SMALL
]


def parsed(data: bytes) -> list[dict[str, Any]]:
    """The entries of a segment, without what depends on how a compressor packs."""
    found = [LOG_ENTRY.parse(data[start:end]) for start, end in entries(data)]
    packed = ("crc", "batch_length", "message_size")
    return [
        {k: v for k, v in e.items() if k not in packed or not e.attributes.compression}
        for e in found
    ]


@pytest.mark.parametrize("file", AGREEING)
def test_entries_are_those_of_kafkas_builder(file: str) -> None:
    data = (VECTORS / file).read_bytes()
    again = written(decoded(data, EVERY), batch_bytes=1 << 20)
    assert parsed(again) == parsed(data)


def test_there_is_everything() -> None:
    found = [e for file in AGREEING for e in parsed((VECTORS / file).read_bytes())]
    assert {(e["magic"], int(e["attributes"].compression)) for e in found} >= {
        *((magic, codec) for magic in (0, 1) for codec in (0, 1, 2, 3)),
        *((2, codec) for codec in (0, 1, 2, 3, 4)),
    }
    assert len(AGREEING) >= 50


def test_a_delete_horizon_is_the_base_of_the_deltas() -> None:
    """MemoryRecordsBuilder: baseTimestamp is the horizon where there is one, and the deltas are counted from it."""
    rows = [
        {
            "offset": 40 + i,
            "timestamp": stamp,
            "timestamp_type": 0,
            "key": b"k",
            "value": None,
            "headers": [],
            "delete_horizon": 5000,
        }
        for i, stamp in enumerate((4000, 7000, 6000))
    ]
    batch = RECORD_BATCH.parse(written(table(rows, (*DEFAULT, "delete_horizon"))))
    assert (batch.base_timestamp, batch.max_timestamp) == (5000, 7000)
    assert batch.attributes.has_delete_horizon
    assert [r.timestamp_delta for r in batch.records] == [-1000, 2000, 1000]
    batch = RECORD_BATCH.parse(written(table(rows)))
    assert (batch.base_timestamp, batch.max_timestamp) == (4000, 7000)
    assert not batch.attributes.has_delete_horizon
    assert [r.timestamp_delta for r in batch.records] == [0, 3000, 2000]


@pytest.mark.parametrize(
    ("sequence", "base_offset", "offset", "base_sequence"),
    [
        (-1, 10, 10, -1),
        (-1, 10, 15, -1),
        (0, 10, 10, 0),
        (5, 10, 15, 0),
        (4, 10, 15, 2147483647),
        (0, 10, 11, 2147483647),
        (0, 10, 12, 2147483646),
        (2147483647, 10, 10, 2147483647),
        (2147483647, 10, 12, 2147483645),
        (1, 10, 11, 0),
    ],
)
def test_base_sequences_step_back_as_kafkas_do(
    sequence: int, base_offset: int, offset: int, base_sequence: int
) -> None:
    """``DefaultRecordBatch.decrementSequence`` of kafka-clients 4.4.0 gives these."""
    for count in (1, 3):
        sequences = [sequence if sequence < 0 else (sequence + i) % (1 << 31) for i in range(count)]
        rows = pa.table(
            {
                "offset": pa.array(range(offset, offset + count), pa.int64()),
                "base_offset": pa.array([base_offset] * count, pa.int64()),
                "sequence": pa.array(sequences, pa.int32()),
            }
        )
        batch = RECORD_BATCH.parse(written(rows))
        assert (batch.base_offset, batch.base_sequence) == (base_offset, base_sequence)
        assert batch.last_offset_delta == offset + count - 1 - base_offset
        deltas = [offset + i - base_offset for i in range(count)]
        assert [r.offset_delta for r in batch.records] == deltas


def test_columns_that_nobody_gives() -> None:
    """What -1 stands for in Kafka: no timestamp, no producer, no epoch, no sequence. Nothing is compressed."""
    for magic, size in ((2, 61 + 7), (1, 34), (0, 26)):
        rows = pa.table({"offset": pa.array([77], pa.int64())})
        data = written(rows, magic=magic)
        assert len(data) == size
        (entry,) = parsed(data)
        assert int(entry["attributes"].compression) == 0
        if magic == 2:
            names = ("base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch")  # fmt: skip
            assert [entry[name] for name in names] == [-1] * 6
            attributes = entry["attributes"]
            assert not attributes.is_transactional and not attributes.is_control
            assert (entry["base_offset"], int(attributes.timestamp_type)) == (77, 0)
        elif magic == 1:
            assert (entry["timestamp"], int(entry["attributes"].timestamp_type)) == (-1, 0)
