"""Log directories that real brokers wrote, against what real consumers read from those brokers."""

from __future__ import annotations

import hashlib
import json
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafka_log import Partition, Record, SegmentReader, discover
from tests.paths import SAMPLES

EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
CASES = [
    (broker, name) for broker, found in EXPECTED.items() for name in sorted(found["partitions"])
]


def blob(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def canonical(record: Record) -> bytes:
    """The bytes that samples/README.md describes."""
    parts = [
        struct.pack(">qq", record.offset, record.timestamp),
        blob(record.key),
        blob(record.value),
    ]
    parts.append(struct.pack(">i", len(record.headers)))
    for key, value in record.headers:
        parts += [blob(key.encode()), blob(value)]
    return b"".join(parts)


def partition(broker: str, name: str) -> Partition:
    (found,) = [p for p in discover(SAMPLES / broker) if f"{p.topic}-{p.partition}" == name]
    return found


def sums(found: Partition, policy: str) -> dict[str, Any]:
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
                digest.update(canonical(record))
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


@pytest.mark.parametrize("policy", ["kafka", "strict"])
@pytest.mark.parametrize(("broker", "name"), CASES)
def test_reads_what_the_broker_wrote(broker: str, name: str, policy: str) -> None:
    assert sums(partition(broker, name), policy) == EXPECTED[broker]["partitions"][name]["on_disk"]


@pytest.mark.parametrize(("broker", "name"), CASES)
def test_reads_what_a_consumer_reads(broker: str, name: str) -> None:
    consumer = EXPECTED[broker]["partitions"][name].get("read_uncommitted")
    if consumer is None:
        pytest.skip("consumers do not read this topic")
    digest = hashlib.sha256()
    offsets = []
    for segment in partition(broker, name).segments:
        for batch in SegmentReader(segment.path):
            for record in batch.records:
                if record.control is None and record.offset >= consumer["start_offset"]:
                    digest.update(canonical(record))
                    offsets.append(record.offset)
    assert len(offsets) == consumer["count"]
    if offsets:
        assert (min(offsets), max(offsets)) == (consumer["first_offset"], consumer["last_offset"])
    assert digest.hexdigest() == consumer["sha256"]


def test_the_samples_hold_what_they_should() -> None:
    """Every codec and version, and what only brokers make: compaction's leftovers, aborts, several segments."""
    everything = [
        part["on_disk"] for found in EXPECTED.values() for part in found["partitions"].values()
    ]
    codecs = {c for e in everything for c in e["records_by_codec"]}
    magics = {m for e in everything for m in e["records_by_magic"]}
    control = {c for e in everything for c in e["control_records"]}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert magics == {"0", "1", "2"}
    assert {"COMMIT", "ABORT"} <= control
    assert sum(e["empty_batches"] for e in everything) > 0
    assert sum(e["delete_horizons"] for e in everything) > 0
    assert max(len(p.segments) for p in discover(SAMPLES / "kafka-4.x")) > 2


def test_the_samples_are_small() -> None:
    files = [p for p in SAMPLES.rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in files) < 2_000_000
    assert not any(Path(p).name == ".lock" for p in files)
