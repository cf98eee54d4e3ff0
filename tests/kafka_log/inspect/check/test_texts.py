"""Meaning and remedy of findings, by what the damage is: what they say is true, and following them loses nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.logs.broker_files import read_topic_id
from tests.paths import SAMPLES
from tests.support.check_plants import (
    ACTIVE,
    FIRST,
    PLAIN,
    SECOND,
    THIRD,
    Plant,
    change,
    copy_segment,
    flip,
    pieces,
    rename_segment,
    replaced,
    restamp,
)
from tests.support.check_plants_of_files import OF_FILES
from tests.support.check_plants_of_segments import OF_SEGMENTS
from tests.support.salvage_rows import problems

BROKER = SAMPLES / "kafka-4.x"
EPOCHS = "leader-epoch-checkpoint"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    shutil.copytree(BROKER / PLAIN, tmp_path / PLAIN)
    return tmp_path / PLAIN


def find(path: Path, code: str) -> dict[str, Any]:
    """Return the only finding of a kind."""
    (row,) = [row for row in LogDirectory(path).check().to_pylist() if row["code"] == code]
    return row


def test_a_segment_with_a_lower_name_is_renamed_back(directory: Path) -> None:
    rename_segment(directory, 42, 30)
    row = find(directory, "segments_overlap")
    name = re.search(
        r"next segment has the name (\d+), .* first batch has offset (\d+)", row["meaning"]
    )
    assert name is not None and "Its name is wrong." in row["meaning"]
    assert "Rename the .log, .index, .timeindex and .txnindex of the next segment" in row["remedy"]
    rename_segment(directory, int(name[1]), int(name[2]))
    assert not problems(directory)


def test_a_copy_of_a_segment_is_moved_away(directory: Path) -> None:
    copy_segment(directory, 42, 30, ".log", ".index", ".timeindex")
    row = find(directory, "segments_overlap")
    assert row["file"].endswith(f"{30:020d}.log")
    assert "All batches of this segment have offsets 42 to 83" in row["meaning"]
    assert "move it and its indexes away and keep them" in row["remedy"]
    for path in directory.glob(f"{30:020d}.*"):
        path.unlink()
    assert not problems(directory)


def test_batches_of_the_next_segment_are_kept_with_both(directory: Path) -> None:
    path = directory / f"{FIRST}.log"
    path.write_bytes(path.read_bytes() + pieces(directory / f"{SECOND}.log")[0])
    row = find(directory, "segments_overlap")
    text = "The last batch has offsets 42 to 47, but the next segment begins at offset 42."
    assert row["meaning"] == text
    assert "keep both segments" in row["remedy"] and "loses" in row["remedy"]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_broker_that_builds_an_index_truncates_a_damaged_segment(
    directory: Path, is_damaged: bool
) -> None:
    (directory / f"{FIRST}.index").unlink()
    if is_damaged:
        flip(directory / f"{FIRST}.log", 700)
    row = find(directory, "index_missing")
    assert row["severity"] == ("error" if is_damaged else "note")
    assert ("truncates the segment there" in row["meaning"]) == is_damaged
    assert row["first_offset"] == (6 if is_damaged else None)
    assert row["remedy"].startswith("Do not start the broker" if is_damaged else "Nothing to do if")


def test_an_index_missing_beside_a_torn_tail_is_a_note(directory: Path) -> None:
    (directory / f"{ACTIVE}.index").unlink()
    path = directory / f"{ACTIVE}.log"
    path.write_bytes(path.read_bytes()[:-5])
    assert find(directory, "index_missing")["severity"] == "note"


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [False, True])
def test_a_topic_id_of_another_topic_and_one_that_no_topic_has(
    tmp_path: Path, is_known: bool
) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    path = root / "trimmed-0" / "partition.metadata"
    right = path.read_text().split("topic_id: ")[1].strip()
    if is_known:
        shutil.copyfile(root / "codecs-0" / "partition.metadata", path)
    else:
        replaced(path, right, "Qw" + right[2:])
    row = find(root, "topic_id")
    assert ("gives to topic codecs" in row["meaning"]) == is_known
    assert ("-stray" in row["meaning"]) == (not is_known)
    assert f"topic_id: {right}" in row["remedy"] and "Do not start the broker" in row["remedy"]


def test_a_log_start_beyond_the_end_names_what_is_deleted(tmp_path: Path) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    replaced(root / "log-start-offset-checkpoint", "trimmed 0 7", "trimmed 0 70")
    row = find(root, "log_start_beyond_end")
    (last,) = [int(n) for n in re.findall(r"the last offset of the log is (\d+)", row["meaning"])]
    first = min(int(path.stem) for path in (root / "trimmed-0").glob("*.log"))
    assert (row["first_offset"], row["last_offset"]) == (first, last)
    assert row["records"] == last + 1 - first
    assert "begins an empty log at offset 70" in row["meaning"]


def test_leader_epochs_of_a_batch_and_of_the_file(directory: Path) -> None:
    flip(directory / f"{FIRST}.log", 15, 2)
    meaning = find(directory, "leader_epoch_unknown")["meaning"]
    assert "has the leader epoch 4. leader-epoch-checkpoint has the epochs 0 and 2 only." in meaning
    assert meaning.endswith("The file or the batch header is wrong: no checksum covers the epoch.")
    flip(directory / f"{FIRST}.log", 15, 2)
    replaced(directory / EPOCHS, "2 144", "2 140")
    meaning = find(directory, "leader_epoch_start")["meaning"]
    assert meaning == (
        "The batch with offsets 138 to 143 has the leader epoch 0."
        " In leader-epoch-checkpoint, epoch 0 has the offsets 0 to 139."
    )
    replaced(directory / EPOCHS, "2 140", "0 140")
    row = find(directory, "leader_epoch_checkpoint")
    text = (directory / EPOCHS).read_text().splitlines()
    assert text[3] == "0 140"
    assert row["meaning"].startswith("Line 4: epoch 0 at offset 140 follows epoch 0 at offset 0.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("high_watermark", "words"),
    [
        ("144", "Committed records are missing"),
        ("138", "none is missing"),
        (None, "Nothing to do if"),
    ],
)
def test_an_unfinished_batch_after_a_crash(
    tmp_path: Path, high_watermark: str | None, words: str
) -> None:
    """Whether it was committed, the checkpoint of high watermarks says."""
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    (root / ".kafka_cleanshutdown").unlink()
    if high_watermark is None:
        (root / "replication-offset-checkpoint").unlink()
    else:
        replaced(
            root / "replication-offset-checkpoint",
            "segments.small 0 144",
            f"segments.small 0 {high_watermark}",
        )
    path = root / PLAIN / f"{ACTIVE}.log"
    path.write_bytes(path.read_bytes()[:-5])
    row = find(root, "torn_tail")
    assert (row["severity"], row["first_offset"]) == ("note", 138) and words in row["remedy"]


REPAIRED = {
    "base offset far away",
    "offset below the segment",
    "offset below 0",
    "leader epoch of a batch",
    "leader epoch of a batch below none",
}
"""Plants in a field that no checksum covers, whose right value the remedy says."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted",
    [plant for plant in (*OF_SEGMENTS, *OF_FILES) if plant.name in REPAIRED],
    ids=lambda planted: planted.name,
)
def test_the_bytes_that_a_remedy_sets_repair_the_header(planted: Plant, tmp_path: Path) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    planted.plant(root)
    (row,) = LogDirectory(root).check().to_pylist()
    place = re.search(
        r"[Ss]et bytes? (\d+)(?: to (\d+))? of the file to ([0-9a-f ]+)",
        row["remedy"],
    )
    assert place is not None
    data = bytes.fromhex(place[3].strip().rjust(2, "0"))
    assert int(place[2] or place[1]) - int(place[1]) + 1 == len(data)
    change(Path(row["file"]), int(place[1]), int(place[1]) + len(data), data)
    assert Path(row["file"]).read_bytes() == (BROKER / planted.file).read_bytes()


def test_headers_zeros_and_index_entries_say_their_values(directory: Path) -> None:
    path = directory / f"{FIRST}.log"
    restamp(path, 766, last_offset_delta=-3)
    meaning = find(directory, "offsets_reversed")["meaning"]
    assert meaning == (
        "The batch header has the first offset 12 and the last offset 9."
        " Its checksum is valid, and it has 6 records. Brokers and consumers compute wrong offsets from it."
    )
    change(directory / f"{SECOND}.log", 383, 766, bytes(383))
    meaning = find(directory, "zeroed_bytes")["meaning"]
    assert meaning == (
        "383 bytes are zeros, from byte 383 to byte 765. Batches should be there."
        " The log continues at offset 54."
    )
    index = directory / f"{THIRD}.timeindex"
    change(index, 0, 8, bytes(8))
    meaning = find(directory, "timeindex_timestamp")["meaning"]
    assert re.search(r"has the timestamp 0, but the largest one up to that offset is \d+", meaning)


def test_an_index_entry_that_points_beyond_its_offset(directory: Path) -> None:
    index = directory / f"{FIRST}.index"
    change(index, 0, 4, (3).to_bytes(4, "big"))
    meaning = find(directory, "index_offset")["meaning"]
    assert re.search(
        r"points to byte \d+ of the segment, where the batch begins with offset \d+\. A broker",
        meaning,
    )


@pytest.mark.parametrize("kind", ["zero_tail", "torn_tail"])
@pytest.mark.parametrize("removed", [0, 1])
def test_bytes_after_the_last_batch_of_a_rolled_segment(
    directory: Path, kind: str, removed: int
) -> None:
    """They are an error, also if no offset is missing before the next segment."""
    path = directory / f"{FIRST}.log"
    found = pieces(path)
    after = bytes(4096) if kind == "zero_tail" else found[0][:100]
    path.write_bytes(b"".join(found[: len(found) - removed]) + after)
    row = find(directory, kind)
    assert row["severity"] == "error"
    offsets = row["first_offset"], row["last_offset"], row["records"]
    assert offsets == ((36, 41, 6) if removed else (None, None, None))
    assert row["meaning"].endswith(
        "Offsets 36 to 41 are missing."
        if removed
        else "No offset is missing: the next segment begins at offset 42."
    )
    assert ("the missing records are lost" in row["remedy"]) == (
        kind == "torn_tail" and removed == 1
    )


@pytest.mark.parametrize("is_damaged", [False, True])
def test_bytes_between_batches_with_no_offset_missing(directory: Path, is_damaged: bool) -> None:
    path = directory / f"{FIRST}.log"
    change(path, 383, 383, b"\xa5" * 64)
    if is_damaged:
        flip(path, 200)
    row = find(directory, "unreadable_bytes")
    assert row["records"] == (6 if is_damaged else None)
    if not is_damaged:
        assert row["meaning"] == (
            "64 bytes from this byte on cannot be read as batches. Consumers stop there."
            " No offset is missing: the log continues at offset 6."
        )


def test_unreadable_bytes_in_the_place_of_a_batch(directory: Path) -> None:
    change(directory / f"{FIRST}.log", 383, 766, b"\xa5" * 383)
    row = find(directory, "unreadable_bytes")
    assert row["meaning"].endswith("Consumers stop there. The log continues at offset 12.")
    assert (row["first_offset"], row["last_offset"], row["records"]) == (6, 11, 6)


def test_an_index_that_was_not_read_to_its_end(directory: Path) -> None:
    index = directory / f"{FIRST}.index"
    index.write_bytes(index.read_bytes() + b"\1" * 16384)
    meaning = find(directory, "index_too_long")["meaning"]
    assert meaning.endswith("Entries from this byte on were not checked.")
    assert "(at least " in find(directory, "index_position")["meaning"]


def test_a_time_index_entry_beyond_the_end(directory: Path) -> None:
    change(directory / f"{FIRST}.timeindex", 68, 72, (99).to_bytes(4, "big"))
    meaning = find(directory, "timeindex_offset")["meaning"]
    assert meaning == (
        "The entry for offset 99 is after 41, the last offset of the segment. Lookups by time may return a wrong"
        " offset."
    )


def test_a_partition_metadata_with_other_text(directory: Path) -> None:
    path = directory / "partition.metadata"
    change(path, 20, 43, b"")
    row = find(directory, "partition_metadata")
    assert row["severity"] == "error" and "log directory offline" in row["meaning"]
    path.write_text("version: 0\n")
    assert "offline" in find(directory, "partition_metadata")["meaning"]
    path.write_text("version: 0\ntopic_id")
    assert (
        "'topic_id: ' and a value are expected" in find(directory, "partition_metadata")["meaning"]
    )


def test_a_partition_metadata_with_the_topic_id_zero(directory: Path) -> None:
    """Kafka's PartitionMetadataReadBuffer refuses it."""
    path = directory / "partition.metadata"
    path.write_text(f"version: 0\ntopic_id: {'A' * 22}")
    row = find(directory, "partition_metadata")
    assert row["severity"] == "error" and "the topic id is zero" in row["meaning"]
    assert read_topic_id(directory) is None
    LogDirectory(directory).salvage(directory.parent / "out")
    assert not (directory.parent / "out/partition.metadata").exists()


def test_a_leader_epoch_beyond_the_end_names_its_file(directory: Path) -> None:
    replaced(directory / EPOCHS, "2 144", "2 150")
    meaning = find(directory, "leader_epoch_beyond_end")["meaning"]
    assert meaning.startswith("By this file, leader epoch 2 began at offset 150, but")
