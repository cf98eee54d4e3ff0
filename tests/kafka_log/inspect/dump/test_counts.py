"""`dump -n` and `--last`: the first records, and the last ones of each partition."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafka_log
from kafka_codecs import CONSUMER_OFFSETS_KEY
from kafka_log.cli import main
from kafka_log.inspect.dump import records_command
from kafka_log.read.scanning import scan
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.batches import batch

NEW = SAMPLES / "kafka-4.x"
Row = dict[str, Any]


@pytest.fixture
def dump(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> tuple[int, list[Row], str]:
        code = main(["dump", *map(str, arguments), "--format", "jsonl"])
        said = capsys.readouterr()
        return code, [json.loads(line) for line in said.out.splitlines()], said.err

    return run


@pytest.mark.slow
@pytest.mark.share(5)
@pytest.mark.parametrize("filters", [[], ["--isolation", "read_committed"], ["--control-records"]])
@pytest.mark.parametrize("count", [1, 2, 5, 60, 10_000])
def test_samples(count: int, filters: list[str], dump: Any) -> None:
    """The last records of each partition, in its order; the first of all."""
    _, every, _ = dump(NEW, *filters)
    by_partition: dict[tuple[str, int], list[Row]] = {}
    for row in every:
        by_partition.setdefault((row["topic"], row["partition"]), []).append(row)
    code, last, _ = dump(NEW, "--last", count, *filters)
    assert (code, last) == (0, [row for rows in by_partition.values() for row in rows[-count:]])
    code, first, _ = dump(NEW, "-n", count, *filters)
    assert (code, first) == (0, every[:count])


def test_both(dump: Any) -> None:
    _, last, _ = dump(NEW / "codecs-0", "--last", 5)
    code, first, _ = dump(NEW / "codecs-0", "--last", 5, "-n", 2)
    assert (code, first) == (0, last[:2])


@examples(20)
@given(st.lists(st.integers(0, 300), unique=True, max_size=25).map(sorted), st.integers(1, 12))
def test_gaps(tmp_path_factory: pytest.TempPathFactory, offsets: list[int], count: int) -> None:
    """However far apart the offsets are that compaction left."""
    path = tmp_path_factory.mktemp("gaps") / "t-0" / f"{0:020d}.log"
    path.parent.mkdir()
    rows = pa.table({"offset": offsets, "value": [b"%d" % n for n in offsets]})
    kafka_log.write_segment(path, rows, batch_bytes=80)
    out = path.with_name("out.csv")
    with pytest.MonkeyPatch.context() as patch, out.open("w+b") as file:
        patch.setattr(records_command, "binary_stdout", lambda: file)
        assert main(["dump", str(path.parent), "--last", str(count), "--columns", "offset", "--format", "csv"]) == 0  # fmt: skip
    assert out.read_text().split()[1:] == [str(n) for n in offsets[-count:]]


@pytest.mark.parametrize("count", [1, 3, 5, 7, 12, 15, 100])
@pytest.mark.parametrize("columns", ["offset", "value,offset"])
def test_misplaced_segments(count: int, columns: str, tmp_path: Path, dump: Any) -> None:
    """The last records are those with the highest offsets, whatever the files are called."""
    (tmp_path / "t-0").mkdir()
    for name, firsts in ((20, (90,)), (30, (0, 3, 6)), (40, (93,))):
        data = b"".join(map(batch, firsts))
        (tmp_path / "t-0" / f"{name:020d}.log").write_bytes(data)
    code, rows, _ = dump(tmp_path, "--last", count, "--columns", columns)
    found = [row["offset"] for row in rows]
    assert (code, sorted(found)) == (0, [*range(9), *range(90, 96)][-count:])
    assert list(rows[0]) == columns.split(",")


def test_little_is_read(monkeypatch: pytest.MonkeyPatch, dump: Any) -> None:
    asked = []

    def noted(partitions: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(options["selection"].offsets)
        return scan(partitions, *arguments, **options)

    monkeypatch.setattr(records_command, "scan", noted)
    assert len(dump(NEW / "codecs-0", "--last", 5)[1]) == 5
    assert asked == [(62, None)]


def test_damage_among_the_last_records_is_reported_once(tmp_path: Path, dump: Any) -> None:
    shutil.copytree(NEW / "codecs-0", tmp_path / "codecs-0")
    [path] = (tmp_path / "codecs-0").glob("*.log")
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    code, rows, err = dump(tmp_path / "codecs-0", "--last", 4)
    whole = dump(tmp_path / "codecs-0")
    assert (code, rows) == (1, whole[1][-4:])
    assert err.splitlines() == whole[2].splitlines()
    assert err.count("crc") == 1


@pytest.mark.parametrize("count", range(1, 8))
def test_a_record_that_cannot_be_decoded_is_named_by_its_own_file(
    count: int, tmp_path: Path, dump: Any
) -> None:
    """The last records lie in several segments."""
    key = bytes(CONSUMER_OFFSETS_KEY.build({"type": "group_metadata", "group": "g"}))
    (tmp_path / "__consumer_offsets-0").mkdir()
    path = tmp_path / "__consumer_offsets-0" / f"{0:020d}.log"
    kafka_log.write_segment(path, pa.table({"offset": [0, 1, 2], "key": [key] * 3}))
    path = path.with_name(f"{10:020d}.log")
    size = kafka_log.write_segment(path, pa.table({"offset": [10, 11], "key": [key] * 2}))
    later = path.with_name("later")
    kafka_log.write_segment(later, pa.table({"offset": [12], "key": [b"x"]}))
    path.write_bytes(path.read_bytes() + later.read_bytes())
    later.unlink()
    code, rows, said = dump(path.parent, "--last", count)
    assert (code, [row["offset"] for row in rows]) == (0, [0, 1, 2, 10, 11, 12][-count:])
    assert f"byte {size} of {path}" in said


def test_damage_before_the_last_records_is_not_read(tmp_path: Path, dump: Any) -> None:
    shutil.copytree(NEW / "codecs-0", tmp_path / "codecs-0")
    [path] = (tmp_path / "codecs-0").glob("*.log")
    data = bytearray(path.read_bytes())
    data[80] ^= 1
    path.write_bytes(data)
    assert dump(tmp_path / "codecs-0")[0] == 1
    code, rows, err = dump(tmp_path / "codecs-0", "--last", 2)
    assert (code, [row["offset"] for row in rows], err) == (0, [65, 66], "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--last", "2", "--offsets", "1:3"], "leave out --offsets"),
        (["--batches", "-n", "2"], "do not go with --batches"),
        (["--format", "vectors", "--last", "2"], "do not go with --format vectors"),
        (["--format", "vectors", "--decode", "nonsense"], "not 'nonsense'"),
        (["--format", "vectors", "--decode", "utf8"], "not 'utf8'"),
        (["--format", "vectors", "--decode", "key=none,value=avro"], "not 'key=none,value=avro'"),
        (["--batches", "--decode", "utf8"], "--decode is for records"),
        (["--digest"], "add --format vectors"),
        (["--batches", "--digest"], "add --format vectors"),
    ],
)
def test_what_does_not_go_together(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(NEW / "codecs-0"), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("option", "number"), [("-n", "0"), ("--last", "-1")])
def test_no_number(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["dump", str(NEW / "codecs-0"), option, number])
    assert f"'{number}' is not a number of records" in capsys.readouterr().err
