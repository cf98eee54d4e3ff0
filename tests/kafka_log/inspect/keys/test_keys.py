"""What compaction would leave of a log: held against a dictionary, on logs of brokers and on made-up ones."""

from __future__ import annotations

import json
import shutil
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log import LogDirectory, Partition, SegmentReader, discover, write_segment
from kafka_log.cli import main
from kafka_log.inspect.keys import table as keys
from kafka_log.segment.reader import damage
from tests.paths import ROOT
from tests.shares import examples

SAMPLES = [ROOT / "samples" / name for name in ("kafka-2.8", "kafka-4.x")]
KEYS = st.none() | st.sampled_from([b"", b"a", b"b", b"c"]) | st.binary(max_size=3)
VALUES = st.none() | st.binary(max_size=5)
ROWS = st.lists(st.tuples(KEYS, VALUES, st.integers(1, 9)), max_size=40)
SUMS = ["records", "no_key", "keys", "tombstones", "obsolete", "live", "bytes", "live_bytes"]


def records_of(partition: Partition, policy: str = "kafka") -> list[Any]:
    """(segment, record) of the data records, in the order of the log."""
    return [
        (segment.path, record)
        for segment in partition.segments
        for batch in SegmentReader(segment.path, policy=policy)
        for record in batch.records
        if not batch.is_control and not (policy == "salvage" and damage(batch))
    ]


def counted(partition: Partition, policy: str = "kafka") -> dict[str, int]:
    """The sums, by a dictionary of the newest record of each key."""
    records = [record for _, record in records_of(partition, policy)]
    newest = {record.key: record for record in records if record.key is not None}
    live = [record for record in newest.values() if record.value is not None]

    def size(found: list[Any]) -> int:
        return sum(len(r.key or b"") + len(r.value or b"") for r in found)

    keyed = [record for record in records if record.key is not None]
    return {
        "records": len(records),
        "no_key": len(records) - len(keyed),
        "keys": len(newest),
        "tombstones": sum(record.value is None for record in keyed),
        "obsolete": sum(record is not newest[record.key] for record in keyed),
        "live": len(live),
        "bytes": size(records),
        "live_bytes": size(live),
    }


def row_of(path: Path) -> dict[str, Any]:
    (row,) = LogDirectory(path).keys().to_pylist()
    return dict(row)


def written(directory: Path, rows: list[Any], **options: Any) -> Path:
    """A partition with these records, in two segments."""
    path = directory / "made-3"
    path.mkdir()
    offset, offsets = -1, []
    for _, _, step in rows:
        offset += step
        offsets.append(offset)
    half = len(rows) // 2
    for part in (slice(0, half), slice(half, None)):
        table = pa.table(
            {
                "offset": pa.array(offsets[part], pa.int64()),
                "key": pa.array([key for key, _, _ in rows[part]], pa.binary()),
                "value": pa.array([value for _, value, _ in rows[part]], pa.binary()),
            }
        )
        base = offsets[part][0] if offsets[part] else 0
        write_segment(path / f"{base:020d}.log", table, overwrite=True, batch_bytes=90, **options)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_logs_of_brokers(path: Path) -> None:
    rows = LogDirectory(path).keys(deleted_records=True).to_pylist()
    for partition, row in zip(discover(path), rows, strict=True):
        assert (row["topic"], row["partition"]) == (partition.topic, partition.partition)
        assert {name: row[name] for name in SUMS} == counted(partition)
        assert row["problem"] is None
        assert row["ratio"] is None or 0 <= row["ratio"] <= 1


@pytest.mark.slow
@given(ROWS, st.sampled_from([(2, "none"), (2, "zstd"), (1, "gzip"), (0, "none")]))
def test_any_records(rows: list[Any], form: tuple[int, str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = written(Path(directory), rows, magic=form[0], codec=form[1])
        (partition,) = discover(path)
        row = row_of(path)
        assert {name: row[name] for name in SUMS} == counted(partition)
        for key in {key for key, _, _ in rows if key is not None} | {b"none"}:
            of_key = [(p, r) for p, r in records_of(partition) if r.key == key]
            found = LogDirectory(path).records_of_key(key).to_pylist()
            assert [(one["offset"], one["segment"]) for one in found] == [
                (record.offset, str(segment)) for segment, record in of_key
            ]
            sizes = [None if r.value is None else len(r.value) for _, r in of_key]
            assert [one["value_bytes"] for one in found] == sizes
            assert [one["tombstone"] for one in found] == [size is None for size in sizes]
            last = len(found) - 1
            assert [one["latest"] for one in found] == [i == last for i in range(len(found))]
            assert all(one["timestamp"] is None for one in found)  # none was written


@pytest.mark.slow
@examples(200)
@given(st.lists(st.lists(st.tuples(st.binary(max_size=1), st.integers(-1, 9)), max_size=12)))
def test_newest_of_many_pieces(pieces: list[list[tuple[bytes, int]]]) -> None:
    newest, known = keys.NewestSizes(), dict[bytes, int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "MERGED", 5)
        for piece in pieces:
            known.update(piece)
            found = pa.array([key for key, _ in piece], pa.binary())
            newest.add(found, np.array([size for _, size in piece], np.int64))
        assert sorted(newest.sizes().tolist()) == sorted(known.values())


@pytest.mark.slow
def test_memory_is_what_the_page_says() -> None:
    number, step = 600_000, 1 << 16
    tracemalloc.start()
    newest = keys.NewestSizes()
    for first in range(0, number, step):
        names = [b"%d" % i for i in range(first, min(first + step, number))]
        newest.add(pa.array(names), np.ones(len(names), np.int64))
    assert len(newest.sizes()) == number
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 * number


# ---------------------------------------------------------------- damage


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A partition of a broker with a wrong byte in the value of a record amid its first segment."""
    path = tmp_path / "codecs-0"
    shutil.copytree(SAMPLES[0] / "codecs-0", path)
    (segment,) = path.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    return path


def test_what_lies_around_damage_is_counted(damaged: Path) -> None:
    (partition,) = discover(damaged)
    row = row_of(damaged)
    assert {name: row[name] for name in SUMS} == counted(partition, "salvage")
    assert 0 < row["records"] < counted(discover(SAMPLES[0] / "codecs-0")[0])["records"]
    assert "checksum" in row["problem"]
    assert str(damaged) in row["problem"]


def test_damage_is_1(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", str(damaged)]) == 1
    assert "checksum" in capsys.readouterr().out
    assert main(["keys", str(damaged), "--key", "none-key-0", "--format", "jsonl"]) == 1
    out, err = capsys.readouterr()
    assert [json.loads(line)["offset"] for line in out.splitlines()] == [0]
    assert "checksum" in err


def test_a_torn_tail_is_not_there(tmp_path: Path) -> None:
    whole = written(tmp_path, [(b"a", b"1", 1), (b"b", b"2", 1), (b"a", b"3", 1), (b"a", b"4", 1)])
    last = max(whole.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1])
    row = row_of(whole)
    (partition,) = discover(whole)
    assert {name: row[name] for name in SUMS} == counted(partition)


# ---------------------------------------------------------------- the command


def test_timestamps_of_a_key() -> None:
    path = SAMPLES[0] / "compacted-0"
    (partition,) = discover(path)
    times = LogDirectory(path).records_of_key(b"f0").column("timestamp").cast(pa.int64())
    found = [r.timestamp for _, r in records_of(partition) if r.key == b"f0"]
    assert times.to_pylist() == found
    assert len(found) == 3


def test_the_key_can_be_given_in_three_ways(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for argv in (["--key", "f0"], ["--key", "hex:66 30"], ["--key", "base64:ZjA="]):
        assert main(["keys", str(SAMPLES[0]), "--topic", "compacted", *argv]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    assert len(outputs[0].splitlines()) == 4


def test_an_empty_key_is_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [(b"", b"1", 1), (None, b"2", 1), (b"", None, 1)])
    assert main(["keys", str(path), "--key", "", "--format", "jsonl"]) == 0
    offsets = [json.loads(line)["offset"] for line in capsys.readouterr().out.splitlines()]
    assert offsets == [0, 2]
    assert main(["keys", str(path), "--key", "nobody"]) == 0
    assert capsys.readouterr().out == "no record has this key\n"


def test_brokers_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same partition of two brokers: a row each, and the directory says which."""
    places = []
    for broker in ("one", "two"):
        (tmp_path / broker).mkdir()
        places.append(str(written(tmp_path / broker, [(b"a", b"1", 1)])))
    rows = LogDirectory(places).keys().to_pylist()
    assert [row["directory"] for row in rows] == places
    assert main(["keys", *places]) == 0
    assert all(place in capsys.readouterr().out for place in places[:1])


def test_nothing_to_count(tmp_path: Path) -> None:
    (tmp_path / "empty-0").mkdir()
    (tmp_path / "blank-0").mkdir()
    (tmp_path / "blank-0" / f"{0:020d}.log").touch()
    rows = LogDirectory(tmp_path).keys().to_pylist()
    assert [[row[name] for name in SUMS] for row in rows] == [[0] * len(SUMS)] * 2
    assert [row["ratio"] for row in rows] == [None, None]
    segment = SAMPLES[0] / "compacted-0" / f"{0:020d}.log"
    assert row_of(segment)["records"] > 0


def test_bad_digits_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["keys", str(SAMPLES[0]), "--key", "hex:6"])
    assert stopped.value.code == 2
    assert "hexadecimal" in capsys.readouterr().err


def test_segments_and_replicas_that_the_command_looks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        shutil.copytree(
            ROOT / "samples" / "kafka-4.x" / "compacted-0", tmp_path / name / "compacted-0"
        )
    one = tmp_path / "a"
    assert main(["keys", str(one), "--include", "all", "--format", "jsonl"]) == 0
    alone = capsys.readouterr().out
    more = ["--replicas", "newest", "--format", "jsonl"]
    assert main(["keys", str(one), str(tmp_path / "b"), *more]) == 0
    assert capsys.readouterr().out == alone
    assert main(["keys", str(one), "--key", "nobody", "--include", "deleted"]) == 0
