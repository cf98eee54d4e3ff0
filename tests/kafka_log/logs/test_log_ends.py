"""Where logs end: what Kafka's own consumer says, and what files say that are cut off, empty or damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_log.logs.discovery import discover
from kafka_log.logs.replicas import LogEnd, read_log_end, select_newest_replicas
from tests.paths import SAMPLES
from tests.support.made_topics import commit, log

EXPECTED = json.loads((SAMPLES / "expected.json").read_text())
PARTITIONS = [
    (broker, name, said["read_uncommitted"]["end_offset"])
    for broker, of in EXPECTED.items()
    for name, said in of["partitions"].items()
    if "read_uncommitted" in said
]


def end(path: Path) -> LogEnd | None:
    [partition] = discover(path)
    return read_log_end(partition.segments)


@pytest.mark.parametrize(("broker", "name", "offset"), PARTITIONS)
def test_what_the_consumer_of_java_says(broker: str, name: str, offset: int) -> None:
    found = end(SAMPLES / broker / name)
    assert found is not None
    assert found.offset == offset


def test_a_batch_that_is_cut_off_is_not_there(tmp_path: Path) -> None:
    path = log(tmp_path, "t-0", commit(0, "g", 1), commit(1, "g", 1)[:-1])
    assert end(path) == LogEnd(-1, 1)


def test_segments_without_a_batch(tmp_path: Path) -> None:
    path = log(tmp_path, "t-0", commit(4, "g", 1, partition_leader_epoch=7), base=4)
    log(tmp_path, "t-0", base=9)
    assert end(path) == LogEnd(7, 9)
    assert end(path / f"{9:020}.log") == LogEnd(-1, 9)
    (tmp_path / "empty-0").mkdir()
    assert end(tmp_path / "empty-0") is None


def test_damage_is_not_taken_for_an_end(tmp_path: Path) -> None:
    assert end(log(tmp_path, "t-0", commit(0, "g", 1), b"\xff" * 200)) is None


@pytest.mark.parametrize("offset", [(1 << 63) - 1, (1 << 63) - 2])
def test_the_last_offset_that_there_is(tmp_path: Path, offset: int) -> None:
    found = end(log(tmp_path, "t-0", commit(offset, "g", 1)))
    assert found == (None if offset == (1 << 63) - 1 else LogEnd(-1, offset + 1))


def test_the_later_epoch_goes_further_than_the_larger_offset(tmp_path: Path) -> None:
    old = [commit(i, "g", 1, partition_leader_epoch=1) for i in range(5)]
    log(tmp_path / "a", "t-0", *old)
    log(tmp_path / "b", "t-0", commit(0, "g", 1, partition_leader_epoch=2))
    log(tmp_path / "c", "t-0", *old, commit(5, "g", 1, partition_leader_epoch=1))
    found = discover([tmp_path / broker for broker in "abc"])
    assert [p.directory.parent.name for p in select_newest_replicas(found)] == ["b"]
    assert [p.directory.parent.name for p in select_newest_replicas(p for p in found if "b" not in p.directory.parts)] == ["c"]  # fmt: skip
