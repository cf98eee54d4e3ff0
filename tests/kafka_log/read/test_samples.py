"""Log directories that real brokers wrote, against what real consumers read from those brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_log import discover
from tests.paths import SAMPLES
from tests.support.sums import consumed, partition, sums

EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text("utf-8"))
CASES = [
    (broker, name) for broker, found in EXPECTED.items() for name in sorted(found["partitions"])
]


@pytest.mark.share(2)
@pytest.mark.parametrize("policy", ["kafka", "strict"])
@pytest.mark.parametrize(("broker", "name"), CASES)
def test_reads_what_the_broker_wrote(broker: str, name: str, policy: str) -> None:
    assert (
        sums(partition(SAMPLES / broker, name), policy)
        == EXPECTED[broker]["partitions"][name]["on_disk"]
    )


@pytest.mark.parametrize(("broker", "name"), CASES)
def test_reads_what_a_consumer_reads(broker: str, name: str) -> None:
    consumer = EXPECTED[broker]["partitions"][name].get("read_uncommitted")
    if consumer is None:
        pytest.skip("consumers do not read this topic")
    ours = consumed(partition(SAMPLES / broker, name), consumer["start_offset"])
    assert ours == {key: consumer[key] for key in ours}


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
