"""Made-up partitions of __transaction_state, and partitions that transactions write to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kafka_codecs import (
    CONTROL_RECORD_KEY,
    END_TXN_MARKER,
    LOG_ENTRY,
    TRANSACTION_LOG_VALUE,
    TRANSACTION_STATE_KEY,
)

TIME = 1_700_000_000_000


def batch(offset: int, records: list[tuple[bytes | None, bytes | None]], **more: Any) -> bytes:
    built = [
        {"timestamp_delta": 0, "offset_delta": i, "key": key, "value": value, "headers": []}
        for i, (key, value) in enumerate(records)
    ]
    of = {"magic": 2, "base_offset": offset, "base_timestamp": TIME, "max_timestamp": TIME}
    data: bytes = LOG_ENTRY.build({**of, "records": built, **more})
    return data


def data_of(offset: int, producer: int, epoch: int = 0, time: int = TIME) -> bytes:
    """A batch of one record of a transaction; with ``producer`` -1 of none."""
    whose = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": 0}
    times = {"base_timestamp": time, "max_timestamp": time}
    attributes = {"is_transactional": producer >= 0}
    return batch(offset, [(None, b"v")], **whose, **times, attributes=attributes)


def marker_of(offset: int, producer: int, kind: str, epoch: int = 0) -> bytes:
    key = CONTROL_RECORD_KEY.build({"type": kind})
    value = END_TXN_MARKER[0].build({"version": 0, "coordinator_epoch": 1})
    attributes = {"is_transactional": True, "is_control": True}
    whose = {"producer_id": producer, "producer_epoch": epoch}
    return batch(offset, [(key, value)], **whose, attributes=attributes)


def state_of(
    name: str,
    status: str | None,
    producer: int = 7,
    partitions: Iterable[tuple[str, int]] = (),
    *,
    timeout: int = 60_000,
    start: int = TIME,
    version: int = 0,
    **tagged: Any,
) -> tuple[bytes, bytes | None]:
    """Key and value of a state; without a status the id is forgotten."""
    key = TRANSACTION_STATE_KEY.build({"type": "transaction_log", "transactional_id": name})
    if status is None:
        return key, None
    value = TRANSACTION_LOG_VALUE.build(
        {
            "version": version,
            "producer_id": producer,
            "producer_epoch": 0,
            "transaction_timeout_ms": timeout,
            "transaction_status": status,
            "transaction_partitions": [
                {"topic": topic, "partition_ids": [number]} for topic, number in partitions
            ],
            "transaction_last_update_timestamp_ms": start,
            "transaction_start_timestamp_ms": start,
            **tagged,
        }
    )
    return key, value


def log(root: Path, name: str, batches: Iterable[bytes], base: int = 0) -> Path:
    """A partition's directory with one segment."""
    directory = root / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{base:020}.log").write_bytes(b"".join(batches))
    return directory


def states(root: Path, *records: tuple[bytes, bytes | None], number: int = 0) -> Path:
    """A partition of the topic with these states, one after the other."""
    batches = [batch(offset, [record]) for offset, record in enumerate(records)]
    return log(root, f"__transaction_state-{number}", batches)
