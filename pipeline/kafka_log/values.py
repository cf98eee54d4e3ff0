"""The columns of the views, from the batches and records that the reference codecs read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka_codecs import Compression
from kafka_log.model import Batch

Values = Mapping[str, Callable[[Batch, Any], Any]]

OF_RECORDS: Values = {
    "offset": lambda b, r: r.offset,
    "timestamp": lambda b, r: r.timestamp,
    "timestamp_type": lambda b, r: b.timestamp_type,
    "key": lambda b, r: r.key,
    "value": lambda b, r: r.value,
    "headers": lambda b, r: [{"key": key, "value": value} for key, value in r.headers],
    "base_offset": lambda b, r: b.base_offset,
    "position": lambda b, r: b.position,
    "magic": lambda b, r: b.magic,
    "codec": lambda b, r: int(Compression[(b.compression or "none").upper()]),
    "producer_id": lambda b, r: b.producer_id,
    "producer_epoch": lambda b, r: b.producer_epoch,
    "sequence": lambda b, r: r.sequence,
    "leader_epoch": lambda b, r: b.partition_leader_epoch,
    "is_transactional": lambda b, r: b.is_transactional,
    "is_control": lambda b, r: b.is_control,
    "delete_horizon": lambda b, r: b.delete_horizon,
}
"""The columns of the view records, from what the reference codecs read."""

OF_BATCHES: Values = {
    **{name: OF_RECORDS[name] for name in ("position", "magic", "codec", "timestamp_type")},
    **{name: OF_RECORDS[name] for name in ("producer_id", "producer_epoch", "leader_epoch")},
    **{name: OF_RECORDS[name] for name in ("is_transactional", "is_control", "delete_horizon")},
    "size": lambda b, _: b.size,
    "base_offset": lambda b, _: None if b.count is None and _wraps(b) else b.base_offset,
    "last_offset": lambda b, _: b.last_offset,
    "base_timestamp": lambda b, _: b.base_timestamp,
    "max_timestamp": lambda b, _: b.max_timestamp,
    "base_sequence": lambda b, _: b.base_sequence,
    "record_count": lambda b, _: b.count,
    "crc": lambda b, _: b.crc,
}
"""Likewise those of the view batches."""


def _wraps(batch: Batch) -> bool:
    return batch.compression != Compression.NONE.label
