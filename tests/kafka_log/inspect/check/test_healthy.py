"""What real brokers left behind has neither errors nor warnings, whichever part of it is looked at."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_log import LogDirectory, discover
from kafka_log.inspect.check.table import CHECKS, FINDINGS
from tests.paths import SAMPLES

BROKERS = ["kafka-2.8", "kafka-4.x"]


def complaints(*paths: Path, deep: bool = False) -> list[dict[str, object]]:
    """Return the errors and warnings of a check that has read every byte of the segments."""
    told: list[int] = []
    log = LogDirectory(paths)
    table = log.check(deep=deep, advance=told.append)
    assert table.schema == FINDINGS
    assert sum(told) == sum(s.size for p in log.partitions for s in p.segments)
    return [row for row in table.to_pylist() if row["severity"] != "note"]


@pytest.mark.slow
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("broker", BROKERS)
def test_brokers(broker: str, deep: bool) -> None:
    assert LogDirectory(SAMPLES / broker).check(deep=deep).num_rows == 0
    assert complaints(SAMPLES / broker, deep=deep) == []


def test_both_brokers_at_once() -> None:
    assert complaints(*(SAMPLES / broker for broker in BROKERS)) == []


@pytest.mark.slow
@pytest.mark.parametrize("broker", BROKERS)
def test_partitions_by_themselves(broker: str, tmp_path: Path) -> None:
    """Also where nothing lies beside them that says what the broker knew."""
    partitions = discover(SAMPLES / broker)
    assert len(partitions) > 20
    for partition in partitions:
        assert complaints(partition.directory) == []
        alone = tmp_path / partition.directory.name
        shutil.copytree(partition.directory, alone)
        assert complaints(alone) == []


@pytest.mark.slow
@pytest.mark.parametrize("broker", BROKERS)
def test_segments_by_themselves(broker: str, tmp_path: Path) -> None:
    segments = [(p, segment) for p in discover(SAMPLES / broker) for segment in p.segments]
    assert len(segments) > 20
    for partition, segment in segments:
        assert complaints(segment.path) == []
        alone = tmp_path / f"{partition.topic}-{partition.partition}.log"
        shutil.copy(segment.path, alone)
        assert complaints(alone) == []


def test_a_gap_in_the_segments_that_were_asked_for_is_none_in_the_log() -> None:
    directory = SAMPLES / "kafka-4.x" / "segments.small-0"
    assert complaints(*(directory / f"{base:020d}.log" for base in (0, 84))) == []


def test_empty_directories_and_segments(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    assert complaints(tmp_path) == complaints(directory) == []
    for base in (0, 5):
        (directory / f"{base:020d}.log").touch()
    assert complaints(tmp_path) == []


def test_paths_that_are_given_once(tmp_path: Path) -> None:
    """Files beside the partitions are checked too when the paths come from an iterator."""
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "core").touch()
    log = LogDirectory(iter([tmp_path]))
    assert len(log.partitions) == 1
    assert log.check().column("code").to_pylist() == ["unknown_file"]


def test_checks_have_names_of_their_own() -> None:
    assert len(set(CHECKS.values())) == len(CHECKS) == 18
