"""Offsets by time: held against all records of the samples, looked at one by one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import kafka_log
from kafka_log import Partition, discover
from kafka_log.read.offsets_by_time import offset_at
from tests.paths import SAMPLES

PARTITIONS = [
    partition
    for broker in ("kafka-2.8", "kafka-4.x")
    for partition in discover(SAMPLES / broker)
    if sum(segment.size for segment in partition.segments) < 1 << 19
]


def name(partition: Partition) -> str:
    return f"{partition.directory.parent.name}/{partition.directory.name}"


def naive(records: list[tuple[int, int]], timestamp: int, first: int) -> int | None:
    found = [offset for offset, time in records if time >= timestamp and offset >= first]
    return min(found, default=None)


@pytest.mark.slow
@pytest.mark.share(9)
@pytest.mark.parametrize("partition", PARTITIONS, ids=name)
def test_as_all_records_say(partition: Partition) -> None:
    holds(partition)


@pytest.mark.share(5)
@pytest.mark.parametrize("partition", [p for p in PARTITIONS if len(p.segments) > 1], ids=name)
def test_without_indexes(partition: Partition, tmp_path: Path) -> None:
    copy = tmp_path / partition.directory.name
    copy.mkdir()
    for segment in partition.segments:
        shutil.copy(segment.path, copy)
    (partition,) = discover(copy)
    holds(partition)


def holds(partition: Partition) -> None:
    table = kafka_log.read_table(
        partition.directory, ["offset", "timestamp"], control_records=True, deleted_records=True
    )
    times_ms = table["timestamp"].cast(pa.int64()).to_pylist()
    records = [
        (offset, -1 if time is None else time)
        for offset, time in zip(table["offset"].to_pylist(), times_ms, strict=True)
    ]
    times = sorted({time for _, time in records}) or [0]
    asked = {0, *(t + d for t in {times[0], times[len(times) // 2], times[-1]} for d in (0, 1))}
    offsets = [offset for offset, _ in records]
    for timestamp in sorted(asked) if records else []:
        for first in (0, offsets[len(offsets) // 2], offsets[-1] + 1):
            assert offset_at(partition, timestamp, first=first) == naive(records, timestamp, first)
