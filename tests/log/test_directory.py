"""Log directories: what is found in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_log import DirectoryError, discover


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 3)


def test_a_broker_directory(tmp_path: Path) -> None:
    make(
        tmp_path,
        "a-b-0/00000000000000000010.log",
        "a-b-0/00000000000000000000.log",
        "a-b-0/00000000000000000000.index",
        "a-b-0/00000000000000000020.log.deleted",
        "a-b-0/00000000000000000020.log.swap",
        "a-b-10/00000000000000000000.log",
        "a-b-2/00000000000000000000.log",
        "gone-0.00112233445566778899aabbccddeeff-delete/00000000000000000000.log",
        "move-0.00112233445566778899aabbccddeeff00-future/00000000000000000000.log",
        "meta.properties",
        "empty-3/leader-epoch-checkpoint",
    )
    found = discover(tmp_path)
    assert [(p.topic, p.partition) for p in found][:3] == [("a-b", 0), ("a-b", 2), ("a-b", 10)]
    assert [s.base_offset for s in found[0].segments] == [0, 10]
    assert found[0].segments[0].size == 3
    names = {p.topic for p in found}
    assert "move" not in names
    assert next(p for p in found if p.topic == "empty").segments == ()


def test_partitions_and_single_files(tmp_path: Path) -> None:
    make(tmp_path, "t-7/00000000000000000005.log", "t-7/00000000000000000009.log", "loose/odd.log")
    (partition,) = discover(tmp_path / "t-7")
    assert (partition.topic, partition.partition, len(partition.segments)) == ("t", 7, 2)
    (single,) = discover(tmp_path / "t-7" / "00000000000000000005.log")
    assert (single.topic, single.partition, single.segments[0].base_offset) == ("t", 7, 5)
    (odd,) = discover([tmp_path / "loose" / "odd.log"])
    assert (odd.topic, odd.partition, odd.segments[0].base_offset) == ("odd", 0, 0)


def test_the_same_file_twice_is_one(tmp_path: Path) -> None:
    make(tmp_path, "t-0/00000000000000000000.log", "t-0/00000000000000000005.log")
    (partition,) = discover(
        [tmp_path, tmp_path / "t-0", tmp_path / "t-0" / "00000000000000000005.log"]
    )
    assert [s.base_offset for s in partition.segments] == [0, 5]


@pytest.mark.parametrize(("name", "reason"), [("missing", "no such file"), ("bare", "no segments")])
def test_nothing_there(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "bare").mkdir()
    with pytest.raises(DirectoryError, match=reason) as caught:
        discover(tmp_path / name)
    assert caught.value.path == tmp_path / name
