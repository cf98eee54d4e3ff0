"""What there is in a partition, in the form of samples/expected.json."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kafka_log import Partition, Record, SegmentReader, discover


def blob(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def canonical(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]],
) -> bytes:
    """The bytes of a record that samples/README.md describes."""
    pairs = list(headers)
    parts = [struct.pack(">qq", offset, timestamp), blob(key), blob(value)]
    parts.append(struct.pack(">i", len(pairs)))
    for name, data in pairs:
        parts += [blob(name.encode()), blob(data)]
    return b"".join(parts)


def _canonical(record: Record) -> bytes:
    return canonical(record.offset, record.timestamp, record.key, record.value, record.headers)


def partition(directory: Path, name: str) -> Partition:
    """The partition of that name in a log directory."""
    (found,) = [p for p in discover(directory) if f"{p.topic}-{p.partition}" == name]
    return found


def sums(found: Partition, policy: str) -> dict[str, Any]:
    """The same values as `on_disk`, read by us."""
    digest = hashlib.sha256()
    codecs: Counter[str] = Counter()
    magics: Counter[str] = Counter()
    control: Counter[str] = Counter()
    batches = empty = horizons = 0
    for segment in found.segments:
        for batch in SegmentReader(segment.path, policy=policy):
            assert batch.problems == ()
            assert batch.is_valid
            batches += 1
            empty += batch.count == 0
            horizons += batch.delete_horizon is not None
            for record in batch.records:
                if record.control is not None:
                    control[str(record.control.type)] += 1
                    continue
                codecs[str(batch.compression)] += 1
                magics[str(batch.magic)] += 1
                digest.update(_canonical(record))
    return {
        "batches": batches,
        "control_records": dict(control),
        "delete_horizons": horizons,
        "empty_batches": empty,
        "records": codecs.total(),
        "records_by_codec": dict(codecs),
        "records_by_magic": dict(magics),
        "sha256": digest.hexdigest(),
    }


def consumed(found: Partition, start_offset: int) -> dict[str, Any]:
    """The same values as `read_uncommitted`, read by us."""
    digest = hashlib.sha256()
    offsets = []
    for segment in found.segments:
        for batch in SegmentReader(segment.path):
            for record in batch.records:
                if record.control is None and record.offset >= start_offset:
                    digest.update(_canonical(record))
                    offsets.append(record.offset)
    return {
        "count": len(offsets),
        "first_offset": min(offsets, default=None),
        "last_offset": max(offsets, default=None),
        "sha256": digest.hexdigest(),
    }
