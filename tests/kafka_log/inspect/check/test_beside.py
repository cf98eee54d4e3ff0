"""Damage beside segments: snapshots of the metadata, quorum-state, ids of topics, directories of one partition."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.inspect.check.quorum_state import find_problem
from tests.paths import SAMPLES
from tests.support.check_plants import Plant, copied, pieces, put

BROKER = SAMPLES / "kafka-4.x"
METADATA = "__cluster_metadata-0"
OLDER = f"{METADATA}/{0:020d}-{0:010d}.checkpoint"
NEWEST = f"{METADATA}/{60:020d}-{1:010d}.checkpoint"
QUORUM = f"{METADATA}/quorum-state"
LOG = f"codecs-0/{0:020d}.log"
WHOLE = 1 << 20
"""More than there is in a small file."""
DAMAGED, INCOMPLETE = "metadata_snapshot_damaged", "metadata_snapshot_incomplete"


def only(file: str, *kept: int) -> Plant:
    """A snapshot with some of its three batches."""

    def plant(root: Path) -> None:
        found = pieces(root / file)
        (root / file).write_bytes(b"".join(found[i] for i in kept))

    found = pieces(BROKER / file)
    sizes = [len(found[i]) for i in kept]
    byte = 0 if 0 not in kept else sizes[0] if 1 not in kept else sum(sizes)
    return Plant(f"snapshot with batches {kept}", plant, INCOMPLETE, file, byte)


def of_id(file: str, other: str) -> Plant:
    """The file of another partition in the place of its own."""
    names = f"{file}/partition.metadata", f"{other}/partition.metadata"
    return Plant(
        f"topic id of {other} in {file}",
        lambda root: copied(root / names[1], root / names[0]),
        "topic_id",
        names[0],
        None,
    )


def state(name: str, data: bytes, byte: int | None = None) -> Plant:
    return Plant(
        f"quorum-state {name}",
        put(QUORUM, 0, WHOLE, data),
        "quorum_state",
        QUORUM,
        byte,
    )


PLANTS = [
    Plant("newest snapshot", put(NEWEST, 300, 304, b"oops"), DAMAGED, NEWEST, 166),
    Plant("older snapshot", put(OLDER, 300, 304, b"oops"), DAMAGED, OLDER, 166, "warning"),
    Plant("torn snapshot", put(NEWEST, 3590, 3595, b""), DAMAGED, NEWEST, 3520),
    Plant("bytes after a snapshot", put(NEWEST, 3595, 3595, b"oops"), DAMAGED, NEWEST, 3595),
    Plant("zeros after a snapshot", put(NEWEST, 3595, 3595, bytes(100)), DAMAGED, NEWEST, 3595),
    Plant("empty snapshot", put(NEWEST, 0, 3595, b""), INCOMPLETE, NEWEST, 0),
    *(only(NEWEST, *kept) for kept in ((0, 1), (0, 2), (1, 2), (0,))),
    Plant(
        "empty meta.properties",
        put("meta.properties", 0, WHOLE, b""),
        "meta_properties",
        "meta.properties",
        None,
    ),
    Plant(
        "meta.properties of comments",
        put("meta.properties", 0, WHOLE, b"#\n#\n"),
        "meta_properties",
        "meta.properties",
        None,
    ),
    Plant("epoch", put(LOG, 12, 13, b"\x80"), "leader_epoch_negative", LOG, 0, "warning"),
    Plant(
        "epoch -2",
        put(LOG, 12, 16, b"\xff\xff\xff\xfe"),
        "leader_epoch_negative",
        LOG,
        0,
        "warning",
    ),
    state("torn", b"{\n", 1),
    state("empty", b""),
    state("list", b"[1]", 0),
    state("list in list", b"[" * 100_000, 0),
    state("deep", b'{"a":' * 100_000),
    state("version", b'{"leaderId":1,"leaderEpoch":2,"votedId":-1,"data_version":2}'),
    of_id("codecs-1", "compacted-0"),
    of_id("empty-0", "codecs-0"),
    of_id("empty-0", "trimmed-0"),
    Plant(
        "two spellings",
        lambda root: copied(root / "codecs-1", root / "codecs-01"),
        "partition_twice",
        "codecs-01",
        None,
    ),
]


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("planted", PLANTS, ids=lambda planted: planted.name)
def test_damage_is_found_where_it_is(planted: Plant, tmp_path: Path) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    planted.plant(root)
    rows = [row for row in LogDirectory(root).check().to_pylist() if row["severity"] != "note"]
    found = {(row["severity"], row["code"], row["file"], row["byte"]) for row in rows}
    assert (planted.severity, planted.code, str(root / planted.file), planted.byte) in found
    assert {row["code"] for row in rows} == {planted.code}
    for row in rows:
        assert row["meaning"].endswith(".") and row["remedy"].endswith(".")


def test_who_has_the_wrong_id(tmp_path: Path) -> None:
    """The fewer partitions; both where there are as many."""

    def blamed() -> set[str]:
        rows = LogDirectory(tmp_path).check().to_pylist()
        return {Path(row["file"]).parent.name for row in rows if row["code"] == "topic_id"}

    for name in ("codecs-0", "codecs-1", "trimmed-0", "empty-0"):
        shutil.copytree(BROKER / name, tmp_path / name)
    assert blamed() == set()
    file = "partition.metadata"
    shutil.copy(BROKER / "codecs-0" / file, tmp_path / "empty-0" / file)
    assert blamed() == {"empty-0"}
    shutil.copy(BROKER / "trimmed-0" / file, tmp_path / "empty-0" / file)
    assert blamed() == {"empty-0", "trimmed-0"}
    (tmp_path / "empty-0" / file).unlink()
    assert blamed() == set()


def test_a_selection_hides_no_wrong_id(tmp_path: Path) -> None:
    """Ids are compared with those of partitions and topics that are not selected."""

    def blamed(**options: Any) -> set[str]:
        rows = LogDirectory(tmp_path, **options).check().to_pylist()
        return {Path(row["file"]).parent.name for row in rows if row["code"] == "topic_id"}

    for name in ("codecs-0", "codecs-1", "codecs-2", "trimmed-0"):
        shutil.copytree(BROKER / name, tmp_path / name)
    file = "partition.metadata"
    shutil.copy(BROKER / "trimmed-0" / file, tmp_path / "codecs-2" / file)
    assert blamed() == {"codecs-2", "trimmed-0"}
    assert blamed(topics="trimmed") == {"trimmed-0"}
    assert blamed(topics="codecs", partitions=2) == blamed(partitions=2) == {"codecs-2"}
    assert blamed(topics="codecs", partitions=1) == set()


def test_one_partition_in_two_log_directories_is_two_replicas(tmp_path: Path) -> None:
    for name in ("a/codecs-1", "b/codecs-1", "c/codecs-01"):
        shutil.copytree(BROKER / "codecs-1", tmp_path / name)
    paths = [tmp_path / name for name in "abc"]
    assert LogDirectory(paths).check().num_rows == 0


def test_ids_of_several_log_directories(tmp_path: Path) -> None:
    """One topic cannot have two ids in a cluster, wherever the directories lie."""

    def blamed() -> set[str]:
        rows = LogDirectory([tmp_path / "a", tmp_path / "b"]).check().to_pylist()
        rows = [row for row in rows if row["code"] != "not_stopped"]
        assert {row["code"] for row in rows} <= {"topic_id"}
        return {str(Path(row["file"]).parent.relative_to(tmp_path)) for row in rows}

    file = "partition.metadata"
    for name in "ab":
        shutil.copytree(BROKER / "codecs-1", tmp_path / name / "codecs-1")
    assert blamed() == set()
    shutil.copy(BROKER / "trimmed-0" / file, tmp_path / "b/codecs-1" / file)
    assert blamed() == {"a/codecs-1", "b/codecs-1"}
    shutil.copytree(BROKER / "codecs-0", tmp_path / "a/codecs-0")
    assert blamed() == {"b/codecs-1"}
    properties = (BROKER / "meta.properties").read_text(encoding="utf-8")
    cluster = next(line for line in properties.splitlines() if line.startswith("cluster.id="))
    for name, line in (("a", cluster), ("b", "cluster.id=another")):
        changed = properties.replace(cluster, line)
        (tmp_path / name / "meta.properties").write_text(changed, encoding="utf-8")
    assert blamed() == set()


@pytest.mark.slow
def test_the_metadata_of_one_log_directory_is_that_of_the_others(tmp_path: Path) -> None:
    """A broker with several log directories keeps the metadata in one of them."""
    shutil.copytree(BROKER, tmp_path / "a")
    (tmp_path / "b").mkdir()
    shutil.copy(BROKER / "meta.properties", tmp_path / "b")
    for name in ("trimmed-0", "empty-0"):
        shutil.move(tmp_path / "a" / name, tmp_path / "b" / name)
    paths = [tmp_path / "a", tmp_path / "b"]
    file = tmp_path / "b/trimmed-0/partition.metadata"
    assert "topic_id" not in {row["code"] for row in LogDirectory(paths).check().to_pylist()}
    shutil.copy(tmp_path / "b/empty-0/partition.metadata", file)
    rows = [row for row in LogDirectory(paths).check().to_pylist() if row["code"] == "topic_id"]
    assert [row["file"] for row in rows] == [str(file)]
    assert str(tmp_path / "a") in rows[0]["meaning"]


def test_no_epoch_is_right(tmp_path: Path) -> None:
    shutil.copytree(BROKER / "codecs-0", tmp_path / "codecs-0")
    put(LOG, 12, 16, b"\xff" * 4)(tmp_path)
    assert LogDirectory(tmp_path).check().num_rows == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "severity"),
    [
        ({}, "error"),
        ({"leaderId": 2, "votedId": 3}, "error"),
        ({"leaderId": 2}, "warning"),  # an observer has such a file too
        ({"clusterId": "", "appliedOffset": 0, "data_version": 0}, "warning"),
    ],
)
def test_voters_and_partitions_are_known_by_the_ids_of_directories(
    tmp_path: Path, change: dict[str, object], severity: str
) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    state = json.loads((root / QUORUM).read_bytes())
    assert (state["leaderId"], state["votedId"], state["data_version"]) == (1, -1, 1)
    (root / QUORUM).write_text(json.dumps(state | change), encoding="utf-8")
    assert LogDirectory(root).check().num_rows == 0
    path = root / "meta.properties"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    left = [line for line in lines if not line.startswith("directory.id")]
    path.write_text("".join(left), encoding="utf-8")
    (row,) = LogDirectory(root).check().to_pylist()
    assert (row["severity"], row["code"], row["file"]) == (severity, "meta_properties", str(path))


@pytest.mark.parametrize(
    ("text", "reason", "byte"),
    [
        ("#\nversion=one\nnode.id=1\n", "line 2: 'one' is not a decimal number", 10),
        ("version=1\nnode.id=\\u12\n", "line 2: four hexadecimal digits follow \\u", 10),
        ("version=1\ncluster.id=c\n", "it has no line with node.id", 23),
        ("version=1\nnode.id=1\n", "it has no line with cluster.id", 20),
        ("version=1\nnode.id=", "line 2: ", 18),
    ],
)
def test_the_line_of_a_file_of_ids(tmp_path: Path, text: str, reason: str, byte: int) -> None:
    path = tmp_path / "meta.properties"
    path.write_text(text, encoding="utf-8")
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").touch()
    (row,) = [r for r in LogDirectory(tmp_path).check().to_pylist() if r["severity"] == "error"]
    assert (row["code"], row["file"], row["byte"]) == ("meta_properties", str(path), byte)
    assert row["meaning"].startswith(f"The file cannot be read: {reason}")
    assert row["remedy"].startswith("Correct the file, or restore it from a backup")


def test_states_of_quorums() -> None:
    told: dict[str, object] = {"leaderId": 1, "leaderEpoch": 2, "votedId": -1}
    old = told | {"clusterId": "", "appliedOffset": 0, "currentVoters": [{"voterId": 1}]}
    new = told | {"votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA"}
    for version, fields in enumerate((old, new)):
        whole: dict[str, object] = fields | {"data_version": version}
        assert find_problem(json.dumps(whole).encode()) is None
        assert find_problem(json.dumps(whole).encode() + b"\nmore lines are not read") is None
        for name in whole.keys() - {"currentVoters"}:
            for wrong in ({k: v for k, v in whole.items() if k != name}, whole | {name: True}):
                found = find_problem(json.dumps(wrong).encode())
                assert found is not None and name in found[0]
    assert find_problem(b"\xff{") == ("its first line does not begin with {", 0)
    assert find_problem(b"  [1]") == ("its first line does not begin with {", 2)
    invalid = find_problem(b'{"a" 1}')
    assert invalid is not None and "not valid JSON" in invalid[0] and invalid[1] == 5
    assert find_problem(b'{"a": 1' + b"0" * 5000 + b"}") is not None


@pytest.mark.slow
@pytest.mark.parametrize("how", ["flipped", "noise", "a directory", "cut"])
def test_metadata_that_is_damaged_is_not_compared(tmp_path: Path, how: str) -> None:
    """With --topic the metadata log is not among the checked ones: what it may say of the topic is unknown, and that is told."""
    for name in ("codecs-0", METADATA):
        shutil.copytree(BROKER / name, tmp_path / name)
    log = tmp_path / METADATA / f"{0:020d}.log"
    for snapshot in (tmp_path / METADATA).glob("*.checkpoint"):
        snapshot.unlink()
    assert LogDirectory(tmp_path, topics="codecs").check().num_rows == 0
    shutil.copy(BROKER / "features-0" / "partition.metadata", tmp_path / "codecs-0")
    assert "topic_id" in LogDirectory(tmp_path, topics="codecs").check()["code"].to_pylist()
    data = bytearray(log.read_bytes())
    if how == "flipped":
        data[len(data) // 2] ^= 1
    elif how == "noise":
        data += b"\xff" * 300
    log.unlink()
    if how == "a directory":
        log.mkdir()
    else:
        log.write_bytes(data[400:] if how == "cut" else data)
    for options in ({"topics": "codecs"}, {"partitions": [0], "topics": ["codecs"]}):
        (row,) = LogDirectory(tmp_path, **options).check().to_pylist()
        assert (row["code"], row["severity"]) == ("metadata_unknown", "warning")
        assert row["file"] == str(tmp_path / METADATA) and METADATA in row["meaning"]
    (row,) = LogDirectory(tmp_path / "codecs-0").check().to_pylist()
    assert row["code"] == "metadata_unknown"
    found = LogDirectory(tmp_path).check()["code"].to_pylist()
    assert found and "metadata_unknown" not in found
