"""Log directories: what is found in them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kafka_log import DirectoryError, discover
from kafka_log.logs.discovery import survey
from kafka_log.logs.names import STATES, State


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


ID = "00112233445566778899aabbccddeeff"
REMOTE_ID = "WTscIl6vTOe-sFdJ50q2_w"
"""A segment's or a topic's, as LocalTieredStorage writes it."""


def special(root: Path) -> None:
    make(
        root,
        "t-0/00000000000000000000.log",
        "t-0/00000000000000000000.log.deleted",
        "t-0/00000000000000000005.log.swap",
        "t-0/00000000000000000005.log.cleaned",
        "t-0/00000000000000000003-0000000002.checkpoint",
        f"gone-1.{ID}-delete/00000000000000000000.log",
        f"moved-2.{ID}-future/00000000000000000000.log",
        f"moved-2.{ID}-future/00000000000000000000.log.deleted",
        f"a.b-3.{ID}-stray/00000000000000000007.log",
        f"a-b-2-{REMOTE_ID}/00000000000000000007-{REMOTE_ID}.log",
        f"kafka-tiered-storage/remote-4-{REMOTE_ID}/00000000000000000000-{REMOTE_ID}.log",
    )


def found_in(root: Path, *include: State) -> list[tuple[str, int, State, list[tuple[int, State]]]]:
    return [
        (p.topic, p.partition, p.state, [(s.base_offset, s.state) for s in p.segments])
        for p in discover(root, include)
    ]


def test_what_is_not_live_is_left_out(tmp_path: Path) -> None:
    special(tmp_path)
    assert found_in(tmp_path) == [("t", 0, "live", [(0, "live")])]
    partitions, left_out, *_ = survey(tmp_path)
    everything = {p for p in tmp_path.rglob("*") if p.is_file()}
    assert {s.path for p in partitions for s in p.segments} | {
        s.path for s in left_out
    } == everything
    assert len(left_out) == len(everything) - 1
    # Nothing says of a copy that it is unfinished.
    assert {s.state for s in left_out} == set(STATES) - {"live", "unfinished"}


def test_what_is_not_live_is_taken_in_under_its_own_name(tmp_path: Path) -> None:
    special(tmp_path)
    assert found_in(tmp_path, "deleted", "swap") == [
        ("t", 0, "live", [(0, "live"), (0, "deleted"), (5, "swap")])
    ]
    assert found_in(tmp_path, "stray", "delete", "future", "snapshot", "cleaned") == [
        ("a.b", 3, "stray", [(7, "stray")]),
        ("gone", 1, "delete", [(0, "delete")]),
        ("moved", 2, "future", [(0, "future"), (0, "future")]),
        ("t", 0, "live", [(0, "live"), (3, "snapshot"), (5, "cleaned")]),
    ]
    assert found_in(tmp_path, "remote") == [
        ("a-b", 2, "remote", [(7, "remote")]),
        ("remote", 4, "remote", [(0, "remote")]),
        ("t", 0, "live", [(0, "live")]),
    ]
    assert survey(tmp_path, STATES)[1] == []
    with pytest.raises(ValueError, match="'gone' is not a state of segments; known: live, deleted"):
        discover(tmp_path, ["gone"])


def test_what_is_asked_for_by_its_name_is_read(tmp_path: Path) -> None:
    special(tmp_path)
    assert found_in(tmp_path / f"gone-1.{ID}-delete") == [("gone", 1, "delete", [(0, "delete")])]
    assert found_in(tmp_path / "t-0" / "00000000000000000005.log.swap") == [
        ("t", 0, "live", [(5, "swap")])
    ]
    assert found_in(tmp_path / "t-0" / "00000000000000000003-0000000002.checkpoint") == [
        ("t", 0, "live", [(3, "snapshot")])
    ]


def test_remote_segments(tmp_path: Path) -> None:
    """Two copies of one segment, files beside them, and a name that only looks like one of a tier: it ends in a number."""
    other, tier = "R-a1-F-rRk-AtkXcQWlAaQ", tmp_path / "tier"
    make(
        tier,
        f"kafka-tiered-storage/t-1-{REMOTE_ID}/00000000000000000009-{REMOTE_ID}.log",
        f"kafka-tiered-storage/t-1-{REMOTE_ID}/00000000000000000009-{other}.log",
        f"kafka-tiered-storage/t-1-{REMOTE_ID}/00000000000000000000-{other}.log",
        f"kafka-tiered-storage/t-1-{REMOTE_ID}/00000000000000000000-{other}.leader_epoch_checkpoint",
        f"kafka-tiered-storage/t-1-{REMOTE_ID}/00000000000000000000-{REMOTE_ID[:-1]}3.log",
    )
    make(tmp_path, "logs/t-1-AAAAAAAAAAAAAAAAAAA-12/00000000000000000000.log")
    remote = ("t", 1, "remote", [(0, "remote"), (9, "remote"), (9, "remote")])
    directory = tier / "kafka-tiered-storage" / f"t-1-{REMOTE_ID}"
    live = ("t-1-AAAAAAAAAAAAAAAAAAA", 12, "live", [(0, "live")])
    assert found_in(directory) == [remote]
    assert found_in(tier, "remote") == found_in(directory.parent, "remote") == [remote]
    assert found_in(tier) == []
    assert [s.state for s in survey([tmp_path / "logs", tier])[1]] == ["remote"] * 3
    assert found_in(tmp_path / "logs", "remote") == [live]
    (partition,) = discover(directory / f"00000000000000000009-{other}.log")
    assert [(s.base_offset, s.state, s.rolled) for s in partition.segments] == [(9, "remote", True)]
    with pytest.raises(DirectoryError, match="this is a leader epoch checkpoint, not a segment"):
        discover(directory / f"00000000000000000000-{other}.leader_epoch_checkpoint")


def test_only_what_is_to_be_deleted(tmp_path: Path) -> None:
    make(tmp_path, f"gone-1.{ID}-delete/00000000000000000000.log")
    assert found_in(tmp_path) == []
    assert len(survey(tmp_path)[1]) == 1


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("00000000000000000000.index", "an offset index"),
        ("00000000000000000000.timeindex.deleted", "a time index"),
        ("00000000000000000000.txnindex", "a transaction index"),
        ("00000000000000000000.snapshot", "a producer snapshot"),
        ("leader-epoch-checkpoint", "a leader epoch checkpoint"),
        ("replication-offset-checkpoint", "an offset checkpoint"),
        ("meta.properties", "the properties of a log directory"),
        ("partition.metadata", "the metadata of a partition"),
    ],
)
def test_what_is_no_segment_is_called_what_it_is(tmp_path: Path, name: str, what: str) -> None:
    make(tmp_path, name)
    with pytest.raises(DirectoryError, match=f"this is {what}, not a segment"):
        discover(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("README.md", b"# A log directory\n", "text"),
        ("server.log", b"[2026-11-24 01:38:50,123] INFO starting", "text"),
        (f"{0:020}.log.gz", gzip.compress(bytes(100), mtime=0), "compressed with gzip"),
        ("t-0.parquet", b"PAR1\x15\x04\x15" + bytes(100), "Parquet"),
    ],
    ids=["Markdown", "a log of Kafka itself", "gzip", "Parquet"],
)
def test_another_file_is_called_what_it_is(
    tmp_path: Path, name: str, content: bytes, what: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DirectoryError, match=f"this is {what}, not a segment"):
        discover(tmp_path / name)


@pytest.mark.parametrize(
    "content",
    [b"", bytes(9), bytes(100), b"\0" * 7 + b"\x07garbled bytes"],
    ids=["empty", "a piece", "zeros", "garbled"],
)
def test_any_other_name_may_be_that_of_a_segment(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "copy.bin").write_bytes(content)
    assert discover(tmp_path / "copy.bin")[0].size == len(content)


NOTHING_YET = {
    "nothing": (),
    "a disk that a broker has just got": (
        "meta.properties",
        ".lock",
        "recovery-point-offset-checkpoint",
    ),
    "a tier that has deleted all": ("kafka-tiered-storage/", f"t-0-{'A' * 22}/"),
}


@pytest.mark.parametrize("names", NOTHING_YET.values(), ids=NOTHING_YET)
def test_an_empty_directory_beside_others(tmp_path: Path, names: tuple[str, ...]) -> None:
    """No reason not to read the others; by itself, or with others like it, most likely not what was meant."""
    make(tmp_path, "logs/t-0/00000000000000000000.log")
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in names:
        (empty / name).mkdir(parents=True) if name.endswith("/") else (empty / name).touch()
    logs = tmp_path / "logs"
    assert discover([empty, logs]) == discover([logs, empty]) == discover(logs)
    for paths in (empty, [empty, empty]):
        with pytest.raises(DirectoryError, match="no segments"):
            discover(paths)
    (empty / "holiday.jpg").touch()
    with pytest.raises(DirectoryError, match="no segments"):
        discover([logs, empty])


@pytest.mark.parametrize(("name", "reason"), [("missing", "no such file"), ("bare", "no segments")])
def test_nothing_there(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "bare").mkdir()
    with pytest.raises(DirectoryError, match=reason) as caught:
        discover(tmp_path / name)
    assert caught.value.path == tmp_path / name


def test_a_segment_beside_the_partitions_hides_none(tmp_path: Path) -> None:
    for name in ("a-0", "b-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").write_bytes(b"x")
    (tmp_path / f"{7:020}.log").write_bytes(b"yy")
    found = [(p.topic, p.partition, p.size) for p in discover(tmp_path)]
    assert found == sorted([("a", 0, 1), ("b", 1, 1), (tmp_path.name, 0, 2)])
