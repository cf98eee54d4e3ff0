"""Which files of ``__cluster_metadata`` an answer is from, and when there is none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log import SegmentReader, read_table
from kafka_log.cli import main
from kafka_log.log_directory import LogDirectory
from kafka_log.logs.metadata_snapshots import find_snapshot_damage, list_snapshots
from kafka_log.logs.partitions import DirectoryError, NotFoundError
from tests.paths import SAMPLES
from tests.support.made_topics import entry, log, metadata, uuid

SAMPLE = SAMPLES / "kafka-4.x" / "__cluster_metadata-0"
NEWEST, OLDEST = list_snapshots(SAMPLE)


def topic(offset: int) -> bytes:
    return metadata(offset, "TOPIC_RECORD", name=f"t{offset}", topic_id=uuid(offset))


def names(path: Path, as_of: int | None = None) -> list[str]:
    return [row["topic"] for row in LogDirectory(path).metadata(as_of=as_of).to_pylist()]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return shutil.copytree(SAMPLE, tmp_path / SAMPLE.name)


def test_a_log_that_begins_at_a_snapshot(sample: Path) -> None:
    """What the log has after the snapshot, without what it had before."""
    expected = LogDirectory(sample).metadata("partitions")
    first = sample / f"{0:020}.log"
    start = next(b.position for b in SegmentReader(first) if b.base_offset == NEWEST.end_offset)
    (sample / f"{NEWEST.end_offset:020}.log").write_bytes(first.read_bytes()[start:])
    first.unlink()
    (sample / f"{0:020}.index").unlink()
    assert LogDirectory(sample).metadata("partitions") == expected
    with pytest.raises(
        DirectoryError, match=r"offset 0 to .* are missing, and no complete snapshot"
    ):
        names(sample, NEWEST.end_offset - 2)
    (sample / NEWEST.path.name).unlink()
    with pytest.raises(DirectoryError, match="the records from offset 0 to 59 are missing"):
        names(sample)


def test_a_log_that_is_all_in_a_snapshot(sample: Path) -> None:
    """So it is when a replica has fetched a snapshot, and has no record yet."""
    (sample / f"{0:020}.log").unlink()
    log(sample.parent, sample.name, base=NEWEST.end_offset)
    assert names(sample) == names(NEWEST.path)
    with pytest.raises(NotFoundError, match="the log ends at 59"):
        names(sample, 60)


def test_a_snapshot_that_was_not_written_to_its_end(sample: Path) -> None:
    expected = LogDirectory(sample).metadata("partitions")
    assert find_snapshot_damage(NEWEST) is None
    assert find_snapshot_damage(OLDEST) is None
    whole = (sample / NEWEST.path.name).read_bytes()
    for size in (0, 40, len(whole) // 2, len(whole) - 1):
        (sample / NEWEST.path.name).write_bytes(whole[:size])
        assert find_snapshot_damage(list_snapshots(sample)[0]) is not None
        assert LogDirectory(sample).metadata("partitions") == expected
    (sample / NEWEST.path.name).write_bytes(b"\xff" * 200)
    assert find_snapshot_damage(list_snapshots(sample)[0]) is not None
    with pytest.raises(DirectoryError, match="are missing"):
        names(sample / NEWEST.path.name)


def test_a_segment_that_is_missing(tmp_path: Path) -> None:
    for base in (0, 2, 4):
        log(tmp_path, "__cluster_metadata-0", topic(base), topic(base + 1), base=base)
    path = tmp_path / "__cluster_metadata-0"
    assert names(path) == [f"t{i}" for i in range(6)]
    assert names(path / f"{0:020}.log") == ["t0", "t1"]
    (path / f"{2:020}.log").unlink()
    assert names(path, 1) == ["t0", "t1"]
    with pytest.raises(DirectoryError, match="the records from offset 2 to 3 are missing"):
        names(path)


def test_one_segment_and_the_snapshots_beside_it(sample: Path) -> None:
    """A snapshot that lies after the segment that is asked for says what came later."""
    first = sample / f"{0:020}.log"
    log(sample.parent, sample.name, topic(168), base=168)
    shutil.copy(NEWEST.path, sample / f"{300:020}-{1:010}.checkpoint")
    assert "t168" not in names(first)
    assert names(first) == names(SAMPLE)
    assert names(sample) == names(NEWEST.path), "Kafka begins with the newest snapshot"


def test_damage_after_what_is_asked_for(tmp_path: Path) -> None:
    broken = bytearray(topic(2))
    broken[-1] ^= 1
    path = log(tmp_path, "__cluster_metadata-0", topic(0), topic(1), bytes(broken), topic(3))
    assert names(path, 1) == ["t0", "t1"]
    with pytest.raises(CodecError):
        names(path)


def test_bytes_that_are_no_batch(tmp_path: Path) -> None:
    path = log(tmp_path, "__cluster_metadata-0", topic(0), topic(1), b"\xff" * 200)
    assert names(path, 1) == ["t0", "t1"]
    with pytest.raises(CodecError):
        names(path)


def test_a_tail_that_is_cut_off_is_not_there(tmp_path: Path) -> None:
    path = log(tmp_path, "__cluster_metadata-0", topic(0), topic(1)[:-1])
    assert names(path) == ["t0"]
    with pytest.raises(NotFoundError, match="there is no offset 1: the log ends at 0"):
        names(path, 1)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "it has no value"),
        (b"\1\x63\0\0", "no record has the type 99"),
        (b"\1\2\x63\0", "version 99 of the type 2 is not known"),
        (b"\1\2", "value"),
        (b"\2\2\0\0", "frame_version"),
    ],
)
def test_records_that_are_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: bytes | None, reason: str
) -> None:
    path = log(tmp_path, "__cluster_metadata-0", topic(0), entry(1, None, value), topic(2))
    assert names(path, 0) == ["t0"]
    with pytest.raises(CodecError, match=f"the record at offset 1: .*{reason}"):
        names(path)
    for view in ("topics", "brokers"):
        with pytest.raises(CodecError, match=f"the record at offset 1: .*{reason}"):
            read_table(path, view=view)
        assert read_table(path, view=view, on_damage="keep").num_rows == 2 * (view == "topics")
    assert main(["metadata", str(path), "--policy", "salvage", "--format", "csv"]) == 1
    out, err = capsys.readouterr()
    assert [line.split(",")[0] for line in out.splitlines()] == ["topic", "t0", "t2"]
    assert "the record at offset 1" in err


def test_several_controllers(tmp_path: Path) -> None:
    log(tmp_path / "a", "__cluster_metadata-0", topic(0))
    log(tmp_path / "b", "__cluster_metadata-0", topic(0), topic(1))
    found = LogDirectory([tmp_path / "a", tmp_path / "b"]).metadata()
    assert found.num_rows == 2


def test_nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    with pytest.raises(DirectoryError, match="neither a segment nor a snapshot"):
        names(tmp_path)
    log(tmp_path, "__cluster_metadata-0")
    assert main(["metadata", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no topics\n"
    assert main(["metadata", str(log(tmp_path, "orders-0"))]) == 2
    assert "there are: orders" in capsys.readouterr().err


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path, "__cluster_metadata-0", topic(0), b"\xff" * 200)
    assert main(["metadata", str(path)]) == 1
    assert f"{0:020}.log" in capsys.readouterr().err
    for arguments in (["--as-of", "500"], ["--as-of=-2"], ["--changes", "0:500"]):
        assert main(["metadata", str(SAMPLE), *arguments]) == 2
    for wrong in ("5", "5:4", "a:b", "1:2:3"):
        with pytest.raises(SystemExit):
            main(["metadata", str(SAMPLE), "--changes", wrong])


@pytest.mark.slow
def test_changes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    change = {"topic_id": uuid(0), "partition_id": 0, "leader": 2}
    place = {"topic_id": uuid(0), "partition_id": 0, "leader": 1, "leader_epoch": 4, "partition_epoch": 9}  # fmt: skip
    lists = {"isr": [1, 2], "removing_replicas": [], "adding_replicas": [], "replicas": [1, 2]}
    path = log(
        tmp_path,
        "__cluster_metadata-0",
        topic(0),
        metadata(1, "PARTITION_RECORD", 1, **place, **lists, directories=[]),
        metadata(2, "PARTITION_CHANGE_RECORD", 1, **change),
        metadata(3, "REMOVE_TOPIC_RECORD", topic_id=uuid(0)),
    )

    def changes(first: int | str, last: int | str) -> list[dict[str, object]]:
        assert main(["metadata", str(path), "--what", "partitions", f"--changes={first}:{last}", "--format", "jsonl"]) == 0  # fmt: skip
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert changes(0, 0) == changes(-1, 3) == []
    [row] = changes(1, 2)
    assert (row["change"], row["topic"]) == ("changed", "t0")
    assert row["columns"] == ["leader", "leader_epoch", "partition_epoch"]
    assert json.loads(str(row["before"])) == {"leader": 1, "leader_epoch": 4, "partition_epoch": 9}
    assert json.loads(str(row["after"])) == {"leader": 2, "leader_epoch": 5, "partition_epoch": 10}
    [row] = changes(2, 3)
    assert (row["change"], row["topic"], row["after"]) == ("removed", "t0", None)
    assert changes("", 2) == changes(-1, 2) != []
    assert changes(2, "") == changes(2, 3)
    assert changes("", "") == changes(-1, 3) == []


def test_changes_since_the_oldest_snapshot(sample: Path) -> None:
    """Of a log whose first segment is gone nothing earlier can be told."""
    expected = LogDirectory(sample).metadata_changes(NEWEST.end_offset - 1, None, "partitions")
    first = sample / f"{0:020}.log"
    start = next(b.position for b in SegmentReader(first) if b.base_offset == NEWEST.end_offset)
    (sample / f"{NEWEST.end_offset:020}.log").write_bytes(first.read_bytes()[start:])
    first.unlink()
    found = LogDirectory(sample).metadata_changes(kind="partitions")
    assert found.num_rows
    assert found.equals(expected)
    assert LogDirectory(NEWEST.path).metadata_changes().num_rows == 0


def test_changes_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def setting(offset: int, name: str, value: str | None) -> bytes:
        whose: dict[str, Any] = {"resource_type": 4, "resource_name": "", "name": name}
        return metadata(offset, "CONFIG_RECORD", **whose, value=value)

    path = log(tmp_path, "__cluster_metadata-0", setting(0, "a", "1"), setting(1, "b", "2"), setting(2, "a", "3"), setting(3, "b", None), setting(4, "c", "4"))  # fmt: skip
    assert main(["metadata", str(path), "--what", "configs", "--changes", "1:4"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["change", "changed", "removed", "added"]
    assert [line[-3:] for line in lines[1:]] == [["value", "1", "3"], ["value", "2", "-"], ["value", "-", "4"]]  # fmt: skip
    assert main(["metadata", str(path), "--what", "configs", "--changes", "1:1"]) == 0
    assert capsys.readouterr().out == "no changes\n"
