"""``kafka_log.write_log``: what is written is what is read again, and lies where Kafka would have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kafka_log
from kafka_log import FormatError, LogDirectory, SinkError
from kafka_log.logs.broker_files import read_leader_epochs, read_topic_id
from kafka_log.logs.names import LEADER_EPOCHS
from kafka_log.logs.partitions import DirectoryError
from tests.paths import SAMPLES
from tests.support.murmur2 import plain
from tests.support.written import CODECS, HEADERS, TIME, files, in_order, records, rows


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize(("magic", "codec"), CODECS)
def test_rows_come_back(magic: int, codec: str, tmp_path: Path) -> None:
    given = records(400, headers=magic == 2, times=magic > 0)
    for count in (400, 150):  # the second goes after the first
        written = kafka_log.write_log(
            tmp_path,
            given.slice(0, count),
            topic="t",
            partitions=3,
            magic=magic,
            codec=codec,
            batch_bytes=1000,
            segment_bytes=4000,
        )
        assert written == count
    found = rows(tmp_path)
    assert len(found) == 550
    for partition in range(3):
        here = [row for row in found if row["partition"] == partition]
        assert [row["offset"] for row in here] == list(range(len(here)))
    expected = [*given.to_pylist(), *given.slice(0, 150).to_pylist()]
    keyed = [row for row in expected if row["key"] is not None]
    for row in keyed:
        row["partition"] = (plain(row["key"]) & 0x7FFFFFFF) % 3
    for partition in range(3):
        theirs = [row for row in keyed if row["partition"] == partition]
        ours = [row for row in found if row["partition"] == partition and row["key"] is not None]
        assert [(r["key"], r["value"]) for r in ours] == [(r["key"], r["value"]) for r in theirs]
        if magic == 2:
            assert [r["headers"] for r in ours] == [r["headers"] or [] for r in theirs]
        if magic:
            times = [int(r["timestamp"].timestamp() * 1000 + 0.5) for r in theirs]
            assert [r["timestamp"] for r in ours] == times
    unkeyed = sorted(str(r["value"]) for r in expected if r["key"] is None)
    assert sorted(str(r["value"]) for r in found if r["key"] is None) == unkeyed
    table = LogDirectory(tmp_path).check()
    assert table.num_rows == 0, table.to_pylist()


@pytest.mark.slow
@pytest.mark.share(6)
@pytest.mark.parametrize("sample", ["kafka-2.8", "kafka-4.x"])
@pytest.mark.parametrize(("magic", "codec"), [(2, "none"), (2, "zstd"), (1, "gzip")])
def test_logs_of_brokers_are_written_again(
    sample: str, magic: int, codec: str, tmp_path: Path
) -> None:
    columns = [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "key",
        "value",
        "headers",
    ]
    given = kafka_log.read_table(SAMPLES / sample, columns)
    if magic < 2:
        given = given.filter(pc.equal(pc.list_value_length(given["headers"]), 0))
    kafka_log.write_log(tmp_path, given, magic=magic, codec=codec)
    there = kafka_log.read_table(tmp_path, columns)
    expected, found = in_order(given), in_order(there)
    for name in columns:
        if name != "timestamp_type":
            assert found[name].to_pylist() == expected[name].to_pylist(), name
    kinds = [max(kind, 0) for kind in expected["timestamp_type"].to_pylist()]
    assert found["timestamp_type"].to_pylist() == kinds


def test_files_are_as_a_broker_has_them(tmp_path: Path) -> None:
    kafka_log.write_log(
        tmp_path, records(90), topic="t", partitions=2, segment_bytes=900, batch_bytes=300
    )
    found = files(tmp_path)
    ids = {read_topic_id(tmp_path / f"t-{i}") for i in range(2)}
    assert len(ids) == 1
    assert ids != {None}
    for i in range(2):
        names = [name for name in found if name.startswith(f"t-{i}/")]
        segments = [name[:-4] for name in names if name.endswith(".log")]
        assert len(segments) > 1
        for name in segments:
            assert f"{name}.index" in found
            assert f"{name}.timeindex" in found
        assert read_leader_epochs(tmp_path / f"t-{i}" / LEADER_EPOCHS) == [(0, 0)]
    before = files(tmp_path)
    indexes = LogDirectory(tmp_path)
    indexes.reindex(tmp_path.parent / "again")
    for name, data in files(tmp_path.parent / "again").items():
        if name.endswith((".index", ".timeindex", ".snapshot")):
            assert before[name] == data, name
    kafka_log.write_log(tmp_path, records(10), topic="t")
    assert {name: data for name, data in files(tmp_path).items() if name in before} == before
    assert {read_topic_id(tmp_path / f"t-{i}") for i in range(2)} == ids


def test_a_log_of_a_broker_goes_on(tmp_path: Path) -> None:
    """Its epochs and offsets go on, after a log start too."""
    given = records(20)
    for sample, name in (
        ("kafka-4.x", "codecs-1"),
        ("kafka-4.x", "empty-0"),
        ("kafka-2.8", "v1-1"),
    ):
        source = SAMPLES / sample / name
        target = tmp_path / name
        target.mkdir(parents=True)
        for path in source.iterdir():
            (target / path.name).write_bytes(path.read_bytes())
    before = files(tmp_path)
    ends = {p.topic: rows(p.directory, "offset") for p in kafka_log.discover(tmp_path)}
    for topic, number in (("codecs", 1), ("empty", 0), ("v1", 1)):
        rest = given.append_column("partition", pa.array([number] * 20, pa.int32()))
        kafka_log.write_log(tmp_path, rest, topic=topic)
        found = rows(tmp_path / f"{topic}-{number}", "offset", "value")
        last = max((row["offset"] for row in ends[topic]), default=-1)
        assert [r["offset"] for r in found[-20:]] == list(range(last + 1, last + 21))
        assert [r["value"] for r in found[-20:]] == given["value"].to_pylist()
    kept = {n: d for n, d in files(tmp_path).items() if n in before and "empty-0/000" not in n}
    assert kept == {n: d for n, d in before.items() if "empty-0/000" not in n}
    epochs = kafka_log.read_table(tmp_path / "codecs-1", ["leader_epoch"])["leader_epoch"]
    said = read_leader_epochs(tmp_path / "codecs-1" / LEADER_EPOCHS)
    assert said is not None
    assert epochs.to_pylist()[-20:] == [said[-1][0]] * 20
    assert LogDirectory(tmp_path / "codecs-1").check().num_rows == 0


def test_overwriting_replaces_topics_and_no_others(tmp_path: Path) -> None:
    kafka_log.write_log(tmp_path, records(50, 1), topic="a", partitions=4)
    kafka_log.write_log(tmp_path, records(50, 2), topic="b")
    before = files(tmp_path)
    kafka_log.write_log(tmp_path, records(8, 3), topic="a", partitions=2, mode="overwrite")
    after = files(tmp_path)
    assert {n for n in after if n.startswith("b-")} == {n for n in before if n.startswith("b-")}
    assert sorted({name.split("/")[0] for name in after}) == ["a-0", "a-1", "b-0"]
    assert len(rows(tmp_path / "a-0")) + len(rows(tmp_path / "a-1")) == 8
    kafka_log.write_log(tmp_path, records(0), topic="a", mode="overwrite")
    assert len(kafka_log.discover(tmp_path)) == 3
    assert len(rows(tmp_path)) == 50
    kafka_log.write_log(
        tmp_path, records(0).append_column("topic", pa.array([], pa.string())), mode="overwrite"
    )
    assert len(rows(tmp_path)) == 50


DAMAGED = {
    "nothing": b"",
    "other text": b"version: 0\ntopic_id",
    "the nil id": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_topic_whose_id_is_hidden_is_not_written(damage: str, mode: Any, tmp_path: Path) -> None:
    """Whether another partition states it or not, and whether one is added."""
    kafka_log.write_log(tmp_path, records(9), topic="t", partitions=2)
    kafka_log.write_log(tmp_path, records(9), topic="u")
    for number in (1, 0):
        path = tmp_path / f"t-{number}" / "partition.metadata"
        path.write_bytes(DAMAGED[damage])
        before = files(tmp_path)
        for partitions in (2, 3):
            with pytest.raises(DirectoryError, match="its topic id is not known") as caught:
                kafka_log.write_log(
                    tmp_path, records(9), topic="t", partitions=partitions, mode=mode
                )
            assert caught.value.path in (path, tmp_path / "t-1" / path.name)
            assert files(tmp_path) == before
    kafka_log.write_log(tmp_path, records(9), topic="u", mode=mode)
    for path in tmp_path.glob("t-*/partition.metadata"):
        path.unlink()
    kafka_log.write_log(tmp_path, records(9), topic="t", partitions=3, mode=mode)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_partitions_with_several_ids_are_not_written(mode: Any, tmp_path: Path) -> None:
    for number in range(2):
        kafka_log.write_log(tmp_path / f"{number}", records(9), topic="t", partitions=2)
    other = tmp_path / "1" / "t-1" / "partition.metadata"
    path = tmp_path / "0" / "t-1" / "partition.metadata"
    path.write_bytes(other.read_bytes())
    before = files(tmp_path)
    with pytest.raises(DirectoryError, match=r"its topic id, .*, is not that of another") as caught:
        kafka_log.write_log(tmp_path / "0", records(9), topic="t", mode=mode)
    assert caught.value.path == path and files(tmp_path) == before


def test_timestamps_and_types(tmp_path: Path) -> None:
    times = pa.array([TIME * 1000 + 999, None, -1000], pa.timestamp("us", "UTC"))
    given = pa.table(
        {"value": ["a", "b", "c"], "key": pa.array(["k", None, "ü"]), "timestamp": times}
    )
    kafka_log.write_log(tmp_path, given, topic="t", timestamp_type="LogAppendTime")
    found = rows(tmp_path, "key", "value", "timestamp", "timestamp_type")
    assert [row["value"] for row in found] == [b"a", b"b", b"c"]
    assert [row["key"] for row in found] == [b"k", None, "ü".encode()]
    assert found[0]["timestamp"] == TIME
    assert found[1]["timestamp"] > TIME
    assert found[2]["timestamp"] == -1
    assert {row["timestamp_type"] for row in found} == {1}


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"key": ["a"]}, "no column value"),
        ({"value": ["a"], "vaule": ["a"]}, "did you mean value"),
        ({"value": [1]}, "column value: it is int64"),
        ({"value": ["a"], "partition": [-1]}, "row 0, column partition: -1 is not in"),
        ({"value": ["a", "b"], "offset": [4, 4]}, "row 1, column offset: 4 is not after 4"),
        ({"value": ["a", "b"], "offset": [4, None]}, "row 1, column offset: it is null"),
        (
            {"value": ["a", "b"], "offset": [4, (1 << 63) - 1]},
            "row 1, column offset: 9223372036854775807 is too large: no offset is left after it",
        ),
        (
            {"value": ["a"], "offset": pa.array([1 << 63], pa.uint64())},
            "row 0, column offset: 9223372036854775808 is too large",
        ),
        *(
            (
                {"value": ["a"], "timestamp": pa.array([seconds], pa.timestamp("s"))},
                f"row 0, column timestamp: {told}",
            )
            for seconds, told in (
                (1 << 62, f"{1 << 62} seconds are too many"),
                (9223372036854776, "9223372036854776 seconds are too many"),
                (-(1 << 62), "it is before 1970"),
            )
        ),
        ({"value": ["a"], "is_control": [True]}, "row 0, column is_control"),
        (
            {"value": ["a"], "timestamp": pa.array([-5], pa.timestamp("ms"))},
            "row 0, column timestamp: it is before 1970",
        ),
        (
            {
                "value": ["a", "b"],
                "headers": pa.array([[], [{"key": None, "value": b""}]], HEADERS),
            },
            "row 1, column headers",
        ),
    ],
)
def test_rows_that_cannot_be_written(columns: dict[str, object], told: str, tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(SinkError, match=told):
        kafka_log.write_log(target, pa.table(columns), topic="t")
    assert not target.exists()


@pytest.mark.parametrize("there", ["", "logs", "logs/new"])
def test_a_refusal_leaves_nothing(there: str, tmp_path: Path) -> None:
    """Before the first row, at a later one, at the commit: no directory is left that was not there, and those that were are."""
    target = tmp_path / "logs" / "new" / "topics"
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    before = sorted(tmp_path.rglob("*"))
    refused: list[dict[str, Any]] = [
        {"value": ["x"], "partition": [-1]},
        {"value": ["x", "y"], "partition": [0, -1]},
        {"value": ["x", "y"], "offset": [5, 5]},
        {"value": ["x", "y"], "topic": ["a", "../b"]},
        {"value": ["x"], "size": [1]},
    ]
    for columns in refused:
        topic = None if "topic" in columns else "t"
        with pytest.raises(SinkError):
            kafka_log.write_log(target, pa.table(columns), topic=topic)
        assert sorted(tmp_path.rglob("*")) == before, columns


def test_a_refusal_at_the_commit_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kafka_log.write.sink.commit.write_journal", refuse)
    with pytest.raises(OSError, match="No space"):
        kafka_log.write_log(tmp_path / "a" / "b", records(3), topic="t")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "b").mkdir()
    with pytest.raises(OSError, match="No space"):
        kafka_log.write_log(tmp_path / "b", records(3), topic="t")
    assert list((tmp_path / "b").iterdir()) == []


def test_topics_that_cannot_be_written(tmp_path: Path) -> None:
    for topics, told in (
        (["a", "../b"], "row 1, column topic: '../b' is not a topic name"),
        (["a", None], "row 1, column topic: it is null"),
        ([".", "a"], "row 0, column topic"),
    ):
        given = pa.table({"value": ["x", "y"], "topic": pa.array(topics, pa.string())})
        with pytest.raises(SinkError, match=told):
            kafka_log.write_log(tmp_path / "out", given)
    with pytest.raises(SinkError, match="there is no topic: give the option topic, or a column"):
        kafka_log.write_log(tmp_path / "out", pa.table({"value": ["x"]}))
    with pytest.raises(FormatError, match="'a/b' is not a topic name"):
        kafka_log.write_log(tmp_path / "out", pa.table({"value": ["x"]}), topic="a/b")


@pytest.mark.parametrize(
    "name", ["partitions", "level", "batch_bytes", "batch_records", "segment_bytes", "magic"]
)
@pytest.mark.parametrize("value", [True, "5", 1.5])
def test_numbers_that_are_none(name: str, value: Any, tmp_path: Path) -> None:
    options: Any = {"topic": "t", "codec": "gzip", name: value}
    with pytest.raises(FormatError, match=f"{name}.*{value!r} is not a whole number"):
        kafka_log.write_log(tmp_path / "out", pa.table({"value": ["x"]}), **options)


def test_fewer_partitions_than_there_are(tmp_path: Path) -> None:
    kafka_log.write_log(tmp_path, records(9), topic="t", partitions=4)
    with pytest.raises(SinkError, match="t has 4 partitions"):
        kafka_log.write_log(tmp_path, records(9), topic="t", partitions=3)


def test_offsets_after_those_that_are_there(tmp_path: Path) -> None:
    given = pa.table({"value": ["a", "b"], "offset": [5, 1 << 40]})
    kafka_log.write_log(tmp_path, given, topic="t")
    assert [row["offset"] for row in rows(tmp_path)] == [5, 1 << 40]
    before = files(tmp_path)
    with pytest.raises(SinkError, match="5 in t-0 is not after 1099511627776"):
        kafka_log.write_log(tmp_path, given, topic="t")
    assert files(tmp_path) == before
