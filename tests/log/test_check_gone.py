"""Partitions of which nothing is left: what the checkpoints and the metadata of the cluster say of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_log import LogDirectory
from kafka_log.disk.names import CLEAN_SHUTDOWN, HIGH_WATERMARK, LOG_START, RECOVERY_POINT
from tests.log.check_plants import PLAIN, replaced
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"
METADATA = "__cluster_metadata-0"
ID = "00112233445566778899aabbccddeeff"
WHOLE = (0, 143, 144)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(BROKER, tmp_path / "broker")
    return tmp_path / "broker"


Told = list[tuple[str, str, tuple[int | None, int | None, int | None]]]


def told(root: Path) -> Told:
    """Severity, code, and the first offset, the last one, and the records, of what is said of one partition."""
    return [
        (r["severity"], r["code"], (r["first_offset"], r["last_offset"], r["records"]))
        for r in LogDirectory(root).check().to_pylist()
        if (r["topic"], r["partition"]) == ("segments.small", 0)
    ]


NOTES: Told = [("note", "checkpoint_unknown_partition", (None, None, None))] * 2
MISSING: Told = [("warning", "partition_missing", WHOLE)]


def empty(directory: Path) -> None:
    for path in directory.iterdir():
        path.unlink()


def test_a_directory_without_files(root: Path) -> None:
    empty(root / PLAIN)
    assert told(root) == told(root / PLAIN) == [("error", "segment_missing", WHOLE)]
    # A broker that is killed does not take them away either.
    (root / CLEAN_SHUTDOWN).unlink()
    assert told(root) == [("error", "segment_missing", WHOLE)]
    (root / RECOVERY_POINT).unlink()
    assert told(root) == [("error", "segment_missing", WHOLE)]
    replaced(root / LOG_START, "\n1\n", "\n2\nsegments.small 0 100\n")
    assert told(root) == [("error", "segment_missing", (100, 143, 44))]
    (root / HIGH_WATERMARK).unlink()
    assert told(root) == []


def test_a_directory_without_files_of_an_empty_log(root: Path) -> None:
    """There was nothing in it, or all of it was deleted."""
    for name in (RECOVERY_POINT, HIGH_WATERMARK):
        replaced(root / name, "segments.small 0 144", "segments.small 0 0")
    empty(root / PLAIN)
    assert told(root) == []
    shutil.rmtree(root / PLAIN)
    assert told(root) == NOTES


def test_a_copy_of_a_directory_has_no_checkpoints(root: Path) -> None:
    """A directory with another name, and one that moves, are not what the checkpoints are about."""
    empty(root / PLAIN)
    (root / PLAIN).rename(root / f"{PLAIN}.{ID}-future")
    assert told(root / f"{PLAIN}.{ID}-future") == []


def test_a_directory_that_is_gone_after_a_stop_in_order(root: Path) -> None:
    shutil.rmtree(root / PLAIN)
    assert told(root) == MISSING
    shutil.rmtree(root / METADATA)
    assert told(root) == MISSING
    replaced(root / LOG_START, "\n1\n", "\n2\nsegments.small 0 100\n")
    assert told(root) == [("warning", "partition_missing", (100, 143, 44))]


@pytest.mark.parametrize("state", ["delete", "stray", "future"])
def test_a_directory_in_another_state(root: Path, state: str) -> None:
    (root / PLAIN).rename(root / f"{PLAIN}.{ID}-{state}")
    assert told(root) == NOTES


def test_a_partition_that_the_recovery_points_do_not_name(root: Path) -> None:
    """Before it stops a broker leaves high watermarks of directories as they are where nothing is left."""
    shutil.rmtree(root / PLAIN)
    replaced(root / RECOVERY_POINT, "segments.small 0 144\n", "")
    replaced(root / RECOVERY_POINT, "\n23\n", "\n22\n")
    assert told(root) == NOTES[:1]


def test_a_log_directory_without_partitions(root: Path) -> None:
    """Brokers before 3.0 left the checkpoint as it was when the last partition was deleted."""
    for path in root.glob("*-[0-9]"):
        shutil.rmtree(path)
    log = LogDirectory([root, BROKER / PLAIN])
    codes = {row["code"] for row in log.check().to_pylist()}
    assert codes == {"checkpoint_unknown_partition"}


def test_the_metadata_says_what_belongs_here(root: Path) -> None:
    shutil.rmtree(root / PLAIN)
    (root / CLEAN_SHUTDOWN).unlink()
    assert told(root) == MISSING
    shutil.rmtree(root / METADATA)
    assert told(root) == NOTES


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("node.id=1", "node.id=2"),
        ("directory.id=BgammrzGS7qE8XpdsXphBg", "directory.id=AgammrzGS7qE8XpdsXphBg"),
        ("directory.id=BgammrzGS7qE8XpdsXphBg\n", ""),
    ],
)
def test_the_metadata_of_another_place(root: Path, old: str, new: str) -> None:
    shutil.rmtree(root / PLAIN)
    (root / CLEAN_SHUTDOWN).unlink()
    replaced(root / "meta.properties", old, new)
    assert told(root) == NOTES
