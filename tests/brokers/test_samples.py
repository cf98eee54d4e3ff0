"""The committed samples are whole, small, and what expected.json says, as far as headers alone can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .expected import METADATA, partitions
from .headers import CONTROL, walk_partition

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
NAMES = ("kafka-4.x", "kafka-2.8")
SIZE_LIMIT = 1_700_000


def expected(name: str) -> dict[str, Any]:
    listing = json.loads((SAMPLES / "expected.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = listing[name]["partitions"]
    return found


def test_samples_stay_small() -> None:
    files = [path for path in SAMPLES.rglob("*") if path.is_file()]
    assert len(files) > 100
    assert sum(path.stat().st_size for path in files) < SIZE_LIMIT


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_running_broker_is_left(name: str) -> None:
    unwanted = {".lock", ".deleted", ".cleaned", ".swap"}
    assert not [path for path in (SAMPLES / name).rglob("*") if {path.name, path.suffix} & unwanted]


@pytest.mark.parametrize("name", NAMES)
def test_every_partition_is_expected(name: str) -> None:
    assert partitions(SAMPLES / name) == sorted(expected(name))


@pytest.mark.parametrize("name", NAMES)
def test_headers_agree_with_what_kafka_read(name: str) -> None:
    for partition, facts in expected(name).items():
        headers = walk_partition(SAMPLES / name / partition)
        on_disk = facts["on_disk"]
        assert len(headers) == on_disk["batches"], partition
        assert {str(header.magic) for header in headers if header.count != 0} >= set(
            on_disk["records_by_magic"]
        ), partition
        if all(header.magic == 2 for header in headers):
            data = sum(h.count or 0 for h in headers if not h.attributes & CONTROL)
            control = sum(h.count or 0 for h in headers if h.attributes & CONTROL)
            assert data == on_disk["records"], partition
            assert control == sum(on_disk["control_records"].values()), partition
        if partition != METADATA and headers:
            end = facts["read_uncommitted"]["end_offset"]
            assert headers[-1].last_offset + 1 == end, partition
