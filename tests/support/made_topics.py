"""Segments of Kafka's own topics, made record by record."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from kafka_codecs import (
    CONTROL_RECORD_KEY,
    END_TXN_MARKER,
    LOG_ENTRY,
    METADATA_RECORD,
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_VALUE,
)

TIME = 1_700_000_000_000


def entry(
    offset: int, key: bytes | None, value: bytes | None, time: int = TIME, **batch: Any
) -> bytes:
    """A batch of one record."""
    record = {"timestamp_delta": 0, "offset_delta": 0, "key": key, "value": value, "headers": []}
    head = {"base_offset": offset, "base_timestamp": time, "max_timestamp": time}
    fields = {"magic": 2, "attributes": {}, **head, "records": [record], **batch}
    data: bytes = LOG_ENTRY.build(fields)
    return data


def within(producer: int) -> dict[str, Any]:
    """What a batch of a transaction has."""
    return {
        "attributes": {"is_transactional": True},
        "producer_id": producer,
        "producer_epoch": 0,
        "base_sequence": 0,
    }


def marker(offset: int, producer: int, kind: str, time: int = TIME) -> bytes:
    """The end of a transaction: ``commit`` or ``abort``."""
    key = CONTROL_RECORD_KEY.build({"type": kind})
    value = END_TXN_MARKER[0].build({"version": 0, "coordinator_epoch": 0})
    attributes = {"is_transactional": True, "is_control": True}
    return entry(
        offset, key, value, time, attributes=attributes, producer_id=producer, producer_epoch=0
    )


def commit(
    offset: int,
    group: str,
    committed: int | None,
    *,
    topic: str = "t",
    partition: int = 0,
    time: int = TIME,
    **batch: Any,
) -> bytes:
    """A commit of an offset, or (None) its deletion."""
    key = OFFSET_COMMIT_KEY.build({"group": group, "topic": topic, "partition": partition})
    fields = {"version": 3, "offset": committed, "metadata": "m", "commit_timestamp": time}
    value = None if committed is None else OFFSET_COMMIT_VALUE.build(fields)
    return entry(offset, key, value, time, **batch)


def metadata(offset: int, kind: str, version: int = 0, **body: Any) -> bytes:
    """A record of the metadata log."""
    fields = {"frame_version": 1, "api_key": kind, "version": version, "body": body}
    return entry(offset, None, METADATA_RECORD.build(fields))


def uuid(number: int) -> UUID:
    return UUID(int=number)


def log(directory: Path, name: str, *batches: bytes, base: int = 0) -> Path:
    """A segment in the directory of a partition, which is returned."""
    partition = directory / name
    partition.mkdir(parents=True, exist_ok=True)
    (partition / f"{base:020}.log").write_bytes(b"".join(batches))
    return partition
