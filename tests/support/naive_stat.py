"""The numbers of ``stat``, worked out one batch after the other: by plain loops over the reference reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from codecgen.runtime.compression import decompress
from codecgen.runtime.compression.snappy import XERIAL_OR_RAW
from kafka_log import Batch, Partition, Record, SegmentReader
from kafka_log.segment.model import codec_label

PERIODS = {"day": 86_400_000, "hour": 3_600_000, "minute": 60_000}
TYPES = {-1: "none", 0: "CreateTime", 1: "LogAppendTime"}
Key = tuple[Any, ...]


def stat(
    partitions: Sequence[Partition], by: Sequence[str], *, deep: bool, now: int, policy: str
) -> dict[Key, dict[str, Any]]:
    """What there is for each key, in the columns that do not depend on files. Times are in milliseconds."""
    groups: dict[Key, list[Batch]] = defaultdict(list)
    rests: dict[Key, list[Batch]] = defaultdict(list)
    sections: dict[int, tuple[int, int]] = {}
    for partition in partitions:
        for segment in partition.segments:
            data = segment.path.read_bytes()
            reader = SegmentReader(
                segment.path,
                policy=policy,
                records=deep,
                tail=segment.tail,
                size=segment.size,
            )
            for batch in reader:
                lengths = [length for name, length in PERIODS.items() if name in by]
                newest, *rest = _by_periods(batch, min(lengths)) if deep and lengths else (batch,)
                groups[tuple(_key(partition, newest, name, deep) for name in by)].append(newest)
                for one in rest:
                    rests[tuple(_key(partition, one, name, deep) for name in by)].append(one)
                sections[id(newest)] = _section(batch, data)
    return {key: _sums(groups[key], rests[key], deep, now, sections) for key in {**groups, **rests}}


def _by_periods(batch: Batch, length: int) -> list[Batch]:
    """A batch with the records of one period, for each period of its records; the newest comes first."""
    found: dict[int, list[Record]] = defaultdict(list)
    for record in batch.records:
        found[max(record.timestamp // length, -1)].append(record)
    return [replace(batch, records=found[n]) for n in sorted(found, reverse=True)] or [batch]


def _key(partition: Partition, batch: Batch, name: str, deep: bool) -> Any:
    if name == "topic":
        return partition.topic
    if name == "partition":
        return str(partition.directory)
    if name == "producer":
        return None if batch.producer_id < 0 else batch.producer_id
    if name == "codec":
        return codec_label(batch.codec) or f"unknown({batch.codec})"
    time = _largest(batch, deep) if deep else batch.max_timestamp
    return None if time < 0 or not _records(batch, deep) else time // PERIODS[name] * PERIODS[name]


def _section(batch: Batch, data: bytes) -> tuple[int, int]:
    """Bytes of the records of a batch of version 2, as they are and without compression."""
    if batch.magic != 2:
        return -1, -1
    section = data[batch.position + 61 : batch.position + batch.size]
    name = codec_label(batch.codec)
    if name in (None, "none"):
        return len(section), len(section)
    variant = XERIAL_OR_RAW if name == "snappy" else None
    return len(section), len(decompress(name, section, limit=1 << 28, variant=variant).data)


def _sums(
    whole: list[Batch],
    rest: list[Batch],
    deep: bool,
    now: int,
    sections: dict[int, tuple[int, int]],
) -> dict[str, Any]:
    """The numbers of batches. Of ``rest`` the records alone count: their batches do in another group."""
    batches = whole + rest
    data = [b for b in batches if not b.is_control]
    records = {id(b): _records(b, deep) for b in batches}
    valid = [b for b in batches if b.is_valid]
    timed = [b for b in data if b.is_valid and records[id(b)]]
    least = [n for b in timed if (n := _least(b, deep)) >= 0]
    largest = [n for b in timed if (n := _largest(b, deep)) >= 0]
    sizes = [b.size for b in whole]
    epochs = [b.leader_epoch for b in valid if b.leader_epoch >= 0]
    out: dict[str, Any] = {
        "batches": len(whole),
        "records": sum(records[id(b)] for b in data),
        "control_records": sum(records[id(b)] for b in batches if b.is_control),
        "first_offset": min(
            (b.last_offset if b.base_offset is None else b.base_offset for b in valid), default=None
        ),
        "last_offset": max((b.last_offset for b in valid), default=None),
        "first_timestamp": min(least, default=None),
        "last_timestamp": max(largest, default=None),
        "future": sum(_late(b, deep, now) for b in data),
        "first_epoch": min(epochs, default=None),
        "last_epoch": max(epochs, default=None),
        "magics": " ".join(f"v{n}" for n in sorted({b.magic for b in batches})),
        "timestamp_types": " ".join(TYPES[n] for n in sorted({b.timestamp_type for b in batches})),
        "batch_bytes": sum(sizes),
        "smallest_batch": min(sizes, default=None),
        "mean_batch": sum(sizes) / len(sizes) if sizes else None,
        "largest_batch": max(sizes, default=None),
        "producers": len({b.producer_id for b in batches if b.producer_id >= 0}),
        "transactional_batches": sum(b.is_transactional for b in whole),
        "empty_batches": sum(records[id(b)] == 0 for b in batches),
        "invalid_batches": sum(not b.is_valid for b in whole),
    }
    if deep and all(b.magic == 2 and not b.problems for b in data):
        own = [sections[id(b)] for b in whole if not b.is_control]
        out["stored_bytes"] = sum(stored for stored, _ in own)
        out["record_bytes"] = sum(plain for _, plain in own)
    return out


def _is_read(batch: Batch, deep: bool) -> bool:
    return deep or batch.record_count is None


def _records(batch: Batch, deep: bool) -> int:
    return len(batch.records) if _is_read(batch, deep) else max(batch.record_count or 0, 0)


def _least(batch: Batch, deep: bool) -> int:
    if _is_read(batch, deep) and batch.records:
        return min((r.timestamp for r in batch.records if r.timestamp >= 0), default=-1)
    if batch.timestamp_type == 0 and batch.delete_horizon is None:
        return batch.max_timestamp if batch.base_timestamp is None else batch.base_timestamp
    return batch.max_timestamp


def _largest(batch: Batch, deep: bool) -> int:
    times = [r.timestamp for r in batch.records] if _is_read(batch, deep) else []
    return max(times, default=batch.max_timestamp)


def _late(batch: Batch, deep: bool, now: int) -> int:
    if _is_read(batch, deep):
        return sum(r.timestamp > now for r in batch.records)
    return max(batch.record_count or 0, 0) if batch.max_timestamp > now else 0
