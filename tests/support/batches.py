"""Batches and messages with a few records, as bytes."""

from __future__ import annotations

from kafka_codecs import LOG_ENTRY, RECORD_BATCH


def batch(
    offset: int,
    codec: str = "none",
    records: int = 3,
    size: int = 10,
    value: bytes | None = None,
    epoch: int = -1,
) -> bytes:
    """Return a batch. Its values are ``value``, or ``size`` bytes each. ``epoch`` is its leader epoch."""
    return RECORD_BATCH.build(
        {
            "base_offset": offset,
            "partition_leader_epoch": epoch,
            "attributes": {"compression": codec},
            "base_timestamp": 1000 + offset,
            "records": [
                {
                    "offset_delta": i,
                    "key": b"k%d" % i,
                    "value": bytes([i % 251]) * size if value is None else value,
                }
                for i in range(records)
            ],
        }
    )


def message(offset: int) -> bytes:
    return LOG_ENTRY.build({"magic": offset % 2, "offset": offset, "key": b"k", "value": b"v" * 9})
