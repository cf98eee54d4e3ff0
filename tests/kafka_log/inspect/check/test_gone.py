"""Partitions of which nothing is left: what the checkpoints and the metadata of the cluster say of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from kafka_log import LogDirectory
from kafka_log.logs.names import CLEAN_SHUTDOWN, HIGH_WATERMARK, LOG_START, RECOVERY_POINT
from tests.paths import SAMPLES
from tests.support.check_plants import PLAIN, replaced

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_directory_that_is_gone_after_a_stop_in_order(root: Path) -> None:
    shutil.rmtree(root / PLAIN)
    assert told(root) == MISSING
    shutil.rmtree(root / METADATA)
    assert told(root) == MISSING
    replaced(root / LOG_START, "\n1\n", "\n2\nsegments.small 0 100\n")
    assert told(root) == [("warning", "partition_missing", (100, 143, 44))]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["delete", "stray", "future"])
def test_a_directory_in_another_state(root: Path, state: str) -> None:
    (root / PLAIN).rename(root / f"{PLAIN}.{ID}-{state}")
    assert sorted(told(root), key=str) == sorted(
        [*NOTES, ("note", f"{state}_directory", (None, None, None))], key=str
    )


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


@pytest.mark.slow
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


def without_end(directory: Path) -> None:
    for path in directory.glob(f"{126:020d}.*"):
        path.unlink()


@pytest.mark.slow
def test_a_log_that_ends_before_its_snapshots_and_epochs(root: Path) -> None:
    lost = (126, 143, 18)
    without_end(root / PLAIN)
    assert {code for _, code, _ in told(root)} == {
        "recovery_point_beyond_end",
        "high_watermark_beyond_end",
    }
    for name in (RECOVERY_POINT, HIGH_WATERMARK):
        (root / name).unlink()
    codes = ["leader_epoch_beyond_end", "snapshot_beyond_end"]
    expected = [("warning", code, lost) for code in codes]
    assert sorted(told(root)) == sorted(told(root / PLAIN)) == expected
    (root / PLAIN / f"{144:020d}.snapshot").unlink()
    assert told(root) == expected[:1]
    replaced(root / PLAIN / "leader-epoch-checkpoint", "2 144", "2 126")
    assert told(root) == []


def test_only_snapshots_are_left(root: Path) -> None:
    for name in (RECOVERY_POINT, HIGH_WATERMARK):
        (root / name).unlink()
    for path in (root / PLAIN).iterdir():
        if path.suffix != ".snapshot":
            path.unlink()
    assert told(root) == [("warning", "snapshot_beyond_end", WHOLE)]


@pytest.mark.parametrize("start", [64, 65, 66])
def test_an_epoch_that_begins_at_the_end(root: Path, start: int) -> None:
    """A leader that has written nothing yet has an epoch all the same."""
    replaced(root / "codecs-4" / "leader-epoch-checkpoint", "2 64", f"2 {start}")
    rows = LogDirectory(root / "codecs-4").check().to_pylist()
    assert [(r["code"], r["records"]) for r in rows] == [
        ("leader_epoch_beyond_end", start - 64)
    ] * (start > 64)


def test_the_id_of_a_topic_by_the_metadata(root: Path) -> None:
    """A topic of one partition has nothing else that it can be compared with."""
    path = root / "trimmed-0" / "partition.metadata"
    before = path.read_text()
    path.write_text(re.sub("topic_id: ..", "topic_id: Qw", before))
    assert path.read_text() != before
    rows = LogDirectory(root).check().to_pylist()
    found = [(r["severity"], r["code"], r["file"]) for r in rows]
    assert found == [("error", "topic_id", str(path))]
    assert "renames the directory to -stray" in rows[0]["meaning"]
    shutil.rmtree(root / METADATA)
    assert LogDirectory(root / "trimmed-0").check().num_rows == 0


@pytest.mark.slow
def test_a_high_watermark_beyond_the_end_of_a_log_that_was_truncated(root: Path) -> None:
    """A broker that is killed may not have written it since: the finding says so."""
    without_end(root / PLAIN)
    (root / RECOVERY_POINT).unlink()
    for stopped in (True, False):
        if not stopped:
            (root / CLEAN_SHUTDOWN).unlink()
        rows = LogDirectory(root).check().to_pylist()
        (row,) = (r for r in rows if r["code"] == "high_watermark_beyond_end")
        assert (row["severity"], row["first_offset"], row["records"]) == ("warning", 126, 18)
        assert ("killed right after it truncated" in row["remedy"]) == (not stopped)


def test_an_offset_that_cannot_be_is_not_the_end_of_a_log(root: Path) -> None:
    """A batch in the middle claims more than the checkpoints: they are beyond the end all the same."""
    without_end(root / PLAIN)
    path = root / PLAIN / f"{84:020d}.log"
    data = bytearray(path.read_bytes())
    data[5] ^= 1  # of the first batch
    path.write_bytes(data)
    codes = {code for _, code, _ in told(root)}
    assert {"offsets_not_rising", "high_watermark_beyond_end"} <= codes
