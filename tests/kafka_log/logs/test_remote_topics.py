"""Copies of a deleted topic in tiered storage are not read as those of a new topic of the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_log import DirectoryError, LogDirectory, read_table
from kafka_log.cli import main
from kafka_log.segment.positioned_reads import UnreadableError
from tests.support.tiers import IDS, TIER, local, write

pytest.importorskip("pyspark")

from pyspark_kafka_log.options import parse
from pyspark_kafka_log.splits.plan import plan

OLD, NEW = IDS[0], IDS[1]


def copy(root: Path, topic: str, number: int, first: int, end: int, epoch: int) -> None:
    write(root / TIER / f"t-0-{topic}" / f"{first:020d}-{IDS[number]}.log", first, end, epoch)


def values(root: Path | list[Path], **options: Any) -> list[bytes]:
    found = read_table(root, ["value"], include="remote", **options)["value"]
    values: list[bytes] = found.to_pylist()
    return values


@pytest.fixture
def created_again(tmp_path: Path) -> Path:
    """A topic whose copies overlap with larger ones of an earlier topic of the same name."""
    copy(tmp_path, OLD, 2, 0, 100, epoch=1)
    copy(tmp_path, NEW, 3, 0, 20, epoch=7)
    local(tmp_path, 20, 30, epoch=7)
    (tmp_path / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {NEW}\n")
    return tmp_path


def test_copies_of_an_earlier_topic_are_skipped(created_again: Path) -> None:
    with pytest.warns(UserWarning, match=f"t-0-{OLD} .*an earlier topic with this name"):
        assert values(created_again) == [b"%d of 7" % n for n in range(30)]
    with pytest.warns(UserWarning, match=f"t-0-{OLD} .*an earlier topic with this name"):
        tasks = plan(parse({"path": str(created_again), "include": "remote"}))
    assert not [task for task in tasks if OLD in repr(task)]
    assert values(created_again / TIER / f"t-0-{OLD}") == [b"%d of 1" % n for n in range(100)]


def test_a_path_that_is_given_is_skipped_too(created_again: Path) -> None:
    paths = [created_again / "t-0", created_again / TIER / f"t-0-{OLD}"]
    with pytest.warns(UserWarning, match="an earlier topic with this name"):
        assert values(paths) == [b"%d of 7" % n for n in range(20, 30)]


def test_it_is_unknown_which_topic_exists(
    created_again: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (created_again / "t-0" / "partition.metadata").unlink()
    said = "copies of several topics with the name t"
    with pytest.raises(UnreadableError, match=said):
        values(created_again)
    with pytest.raises(UnreadableError, match=said):
        values(created_again / TIER)
    with pytest.raises(UnreadableError, match=said):
        plan(parse({"path": str(created_again), "include": "remote"}))
    for command in ("dump", "txn", "producers", "keys"):
        assert main([command, str(created_again), "--include", "remote"]) == 1
        shown = capsys.readouterr()
        assert f"{shown.out}{shown.err}".count(said) == 1 + (command == "keys")
        assert " of 1" not in shown.out
    assert LogDirectory(created_again, include="remote").check().num_rows == 3  # of the live log
    assert LogDirectory(created_again, include="remote").ls().num_rows == 3


def test_the_newest_replica_counts(created_again: Path, tmp_path: Path) -> None:
    """A replica that still has the earlier topic adds its copies."""
    other = tmp_path / "other"
    local(other, 0, 3, epoch=1)
    with pytest.warns(UserWarning, match="an earlier topic with this name"):
        found = values([created_again, other], replicas="newest")
    assert found == [b"%d of 7" % n for n in range(30)]
    with pytest.raises(DirectoryError), pytest.warns(UserWarning, match="an earlier topic"):
        values([created_again, other])


def test_damage_hides_which_topic_exists(
    created_again: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Copies of one topic id alone may be those of an earlier topic too."""
    for path in (created_again / TIER / f"t-0-{NEW}").iterdir():
        path.unlink()
    (created_again / "t-0" / "partition.metadata").write_text("version: 0\n")
    said = "the topic id of the live partition is not known"
    with pytest.raises(UnreadableError, match=said):
        values(created_again)
    with pytest.raises(UnreadableError, match=said):
        plan(parse({"path": str(created_again), "include": "remote"}))
    assert main(["dump", str(created_again), "--include", "remote"]) == 1
    shown = capsys.readouterr()
    assert said in shown.out + shown.err and " of 1" not in shown.out
    (created_again / "t-0" / "partition.metadata").unlink()
    assert len(values(created_again)) == 30
