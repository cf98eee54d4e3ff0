"""``stat``: sums by columns are those that plain loops find, whatever the rows are by, and whoever reads."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_codecs import RECORD_BATCH
from kafka_log import DirectoryError, LogDirectory, Partition, discover, read_table
from kafka_log.cli import main
from kafka_log.inspect import header_pass
from kafka_log.inspect.statistics import totals as stat_sums
from kafka_log.inspect.statistics.columns import PERIODS, By, stat_schema
from kafka_log.inspect.statistics.options import Asked, StatOptions
from kafka_log.inspect.statistics.table import Stat
from kafka_log.read.selection import Selection
from kafka_log.segment import file_groups
from kafka_log.segment.kernels import Engine
from tests.paths import SAMPLES, VECTORS
from tests.shares import draw_seeds
from tests.support import histories, naive_stat
from tests.support.check_plants_of_segments import control
from tests.support.random_segments import mutated, sources

BYS = (
    ("partition",),
    ("topic",),
    ("producer",),
    ("codec",),
    ("hour",),
    ("day",),
    ("minute",),
    ("day", "minute", "codec"),
    ("topic", "partition"),
    ("partition", "topic"),
    ("topic", "codec"),
    ("codec", "hour", "producer"),
    ("partition", "producer"),
)
ENGINES = ("construct", "arrow")
NOW = 1_795_154_420_000
"""In the middle of the samples: 2026-11-20T06:00:20Z."""


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with times as numbers."""
    for i, f in enumerate(table.schema):
        if pa.types.is_timestamp(f.type):
            table = table.set_column(i, f.name, table.column(i).cast(pa.int64()))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def same(
    partitions: Sequence[Partition], by: Sequence[Any], engine: Any, deep: bool, policy: str
) -> None:
    expected = naive_stat.stat(partitions, by, deep=deep, now=NOW, policy=policy)
    asked = Asked(deep, NOW, Selection(policy=policy, deleted_records=True), engine)
    names = {"partition": "directory", "producer": "producer_id"}
    names |= {} if deep else {name: f"batch_{name}" for name in PERIODS}
    found = {}
    for row in plain(Stat(partitions, by, asked=asked).table()):
        key = tuple(row[names.get(name, name)] for name in by)
        if row["batches"] or row["records"] or row["control_records"]:
            found[key] = row
        else:
            assert row["records"] == row["batch_bytes"] == 0 and row["mean_batch"] is None
    assert found.keys() == expected.keys()
    for key, numbers in expected.items():
        shown = {name: value for name, value in numbers.items() if name in found[key]}
        assert {name: found[key][name] for name in shown} == shown
        if not deep:
            assert found[key]["ratio"] is found[key]["record_bytes"] is None
        elif numbers.get("stored_bytes"):
            ratio = numbers["record_bytes"] / numbers["stored_bytes"]
            assert found[key]["ratio"] == pytest.approx(ratio)


@pytest.mark.slow
@pytest.mark.share(36, ci=9)
@pytest.mark.parametrize("by", BYS)
@pytest.mark.parametrize(
    ("broker", "engine", "deep"),
    list(product(("kafka-2.8", "kafka-4.x"), ENGINES, (False, True))),
)
def test_samples(broker: str, engine: str, deep: bool, by: Any) -> None:
    same(discover(SAMPLES / broker), by, engine, deep, "kafka")


GOOD = [*sources(VECTORS / "matrix", 20_000), *sources(VECTORS / "control", 20_000)]


def made(root: Path, r: random.Random) -> list[Partition]:
    """Partitions with whatever there is: every format and codec, empty and torn files, damage."""
    for n in range(r.randint(1, 4)):
        directory = root / f"{r.choice('ab')}-{n}"
        directory.mkdir()
        for i in range(r.randint(0, 4)):
            data = b"".join(r.choice(GOOD) for _ in range(r.randint(0, 3)))
            if data and r.random() < 0.4:
                kinds = (data[: r.randint(1, len(data))], data + bytes(50), mutated(data, r))
                data = r.choice(kinds)
            (directory / f"{i * 1000:020d}.log").write_bytes(data)
        (directory / f"{9_000_000:020d}.log").touch()
    return discover(root)


@pytest.mark.share(30, ci=3)
@pytest.mark.parametrize("seed", draw_seeds(30))
def test_random_directories(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(seed)
    partitions = made(tmp_path, r)
    monkeypatch.setattr(stat_sums, "ROWS", r.choice([1, 5, 1 << 16]))
    monkeypatch.setattr(stat_sums, "GROUPS", r.choice([2, 1 << 16]))
    monkeypatch.setattr(file_groups, "GROUP_FILES", r.choice([1, 2, 1024]))
    for engine in ENGINES:
        for policy in ("kafka", "salvage"):
            same(partitions, r.choice(BYS), engine, r.random() < 0.5, policy)


@pytest.mark.parametrize("seed", draw_seeds(10))
def test_histories_are_counted(seed: int, tmp_path: Path) -> None:
    """Against what was written, by nobody who reads a log: records apart from markers."""
    past = histories.history(tmp_path / "orders-0", seed)
    for deep in (False, True):
        (row,) = LogDirectory(past.directory).stat(deep=deep).to_pylist()
        there = [
            b
            for b in past.batches
            if b.base >= min(int(p.stem) for p in past.directory.glob("*.log"))
        ]
        data = [b for b in there if b.kind in ("plain", "data")]
        assert row["records"] == sum(b.count for b in data)
        assert row["control_records"] == len(there) - len(data)
        assert row["producers"] == len({b.producer for b in there if b.kind != "plain"})
        assert row["batch_bytes"] == sum(len(b.data) for b in there) == row["bytes"]


def test_the_header_lies_and_deep_does_not(tmp_path: Path) -> None:
    """A batch that says it has more records than it has: ``deep`` counts those that are there."""
    path = VECTORS / "malformed" / "v2-none-count-too-large.log"
    if not path.exists():
        path = next(iter(sorted((VECTORS / "malformed").glob("v2-*count*.log"))))
    told: list[str] = []
    shallow = LogDirectory(path).stat().to_pylist()[0]
    deep = LogDirectory(path).stat(deep=True, on_problem=told.append).to_pylist()[0]
    assert deep["records"] < shallow["records"]
    assert len(told) == deep["problems"] > 0


def test_top_has_the_most_bytes() -> None:
    log = LogDirectory(SAMPLES / "kafka-4.x")
    every = log.stat(by="topic").to_pylist()
    assert log.stat(by="topic", top=3).to_pylist() == sorted(every, key=lambda r: -r["bytes"])[:3]
    codecs = log.stat(by="codec").to_pylist()
    assert log.stat(by="codec", top=9).to_pylist() == sorted(
        codecs, key=lambda r: -r["batch_bytes"]
    )
    assert log.stat(top=0).num_rows == 0


@pytest.mark.parametrize(
    "filters",
    [
        {"offsets": (3, 9)},
        {"producers": [1, 2]},
        {"producers": -1},
        {"timestamps": (NOW, None)},
        {"timestamps": (None, NOW), "offsets": (5, None)},
    ],
)
def test_filters_choose_batches(filters: dict[str, Any]) -> None:
    """Those that have a record that is wanted, and no others where headers say enough."""
    path = SAMPLES / "kafka-4.x" / "transactions-0"
    wanted = Selection(**filters, control_records=True).to_keywords()
    from kafka_log import read_table

    rows = read_table(path, ["position"], **wanted).column("position").to_pylist()
    (row,) = LogDirectory(path).stat(deep=True, **filters).to_pylist()
    assert row["batches"] == len(set(rows)) > 0


def test_every_output_has_the_same_table(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    broker = str(SAMPLES / "kafka-2.8")
    table = LogDirectory(broker).stat(now=NOW)
    assert table.schema == stat_schema()

    def printed(output: str) -> bytes:
        assert main(["stat", broker, "--now", str(NOW), "--format", output]) == 0
        return capsysbinary.readouterr().out

    lines = [json.loads(line) for line in printed("jsonl").splitlines()]
    assert [row["problems"] for row in lines] == [0] * table.num_rows
    rows = list(csv.reader(io.StringIO(printed("csv").decode(), newline="")))
    assert rows[0] == table.column_names
    assert not any(cell.startswith(("[", "{")) for row in rows for cell in row)
    with pa.ipc.open_stream(printed("arrow")) as stream:
        assert stream.read_all().equals(table)


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("by", ["partition", "topic", "codec", "producer", "hour", "day"])
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_number_is_cut(
    width: int, by: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At any width all numbers of a column stand in the order of the rows, and the total below them."""
    monkeypatch.setenv("COLUMNS", str(width))
    broker = SAMPLES / "kafka-4.x"
    assert main(["stat", str(broker), "--by", by, "--deep"]) == 0
    tables = [table.splitlines() for table in capsys.readouterr().out.split("\n\n")]
    assert all(len(line) <= width for table in tables for line in table)
    rows = LogDirectory(broker).stat(by=by, deep=True)

    def shown(name: str) -> list[str]:
        ((header, *lines),) = (table for table in tables if name in table[0].split())
        end = header.index(name) + len(name)
        return [line[:end].split()[-1] for line in lines if line[end - 1 : end].strip()]

    for name in ("batches", "records", "stored_bytes"):
        values = rows.column(name).to_pylist()
        assert list(map(int, shown(name))) == [
            *values,
            *([sum(values)] if by not in PERIODS else []),
        ]
    joined = {"batch_sizes": ("smallest_batch", "mean_batch", "largest_batch")}
    if by == "partition":
        joined |= {"offsets": ("first_offset", "last_offset")}
        joined |= {"epochs": ("first_epoch", "last_epoch")}
    for name, parts in joined.items():
        mark = "/" if name == "batch_sizes" else ".."
        values = list(zip(*(rows.column(part).to_pylist() for part in parts), strict=True))
        cells = ["-" if None in row else mark.join(map(str, map(round, row))) for row in values]
        assert shown(name)[: len(cells)] == cells


@pytest.mark.slow
def test_largest(capsys: pytest.CaptureFixture[str]) -> None:
    """Batches and records, beside a plain sort of all of them."""
    broker = SAMPLES / "kafka-4.x"
    partitions = discover(broker)
    from kafka_log import SegmentReader

    every = [
        (-b.size, p.topic, p.partition, b.position)
        for p in partitions
        for s in p.segments
        for b in SegmentReader(s.path)
    ]
    found = LogDirectory(broker).largest(7)
    names = ("topic", "partition", "position")
    assert [(-r["bytes"], *(r[n] for n in names)) for r in found.to_pylist()] == sorted(every)[:7]
    records = [
        (-_bytes(r), p.topic, p.partition, r.offset)
        for p in partitions
        for s in p.segments
        for b in SegmentReader(s.path)
        if not b.is_control
        for r in b.records
    ]
    deep = LogDirectory(broker).largest(40, deep=True).to_pylist()
    shown = [(-r["bytes"], r["topic"], r["partition"], r["offset"]) for r in deep]
    assert shown == sorted(records)[:40]
    assert main(["stat", str(broker), "--largest", "2", "--deep", "--format", "jsonl"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("period", "hour"), PERIODS.items())
def test_periods_of_records_and_of_batches(
    period: str, hour: int, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --deep each record counts in its own period; without it all of a batch in that of the newest, and the column says so."""
    start = NOW // hour * hour
    times = [-1, start, start + hour, start + hour + 1, start + 3 * hour]
    records = [
        {
            "timestamp_delta": time - start,
            "offset_delta": i,
            "key": None,
            "value": b"v",
            "headers": [],
        }
        for i, time in enumerate(times)
    ]
    head = {"base_timestamp": start, "max_timestamp": times[-1], "last_offset_delta": 4}
    one = {"base_offset": 0, "records": records, **head}
    two = {**one, "base_offset": 5, "records": records[1:2], "max_timestamp": start}
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    data = RECORD_BATCH.build(one), RECORD_BATCH.build(two)
    path.write_bytes(b"".join(data))
    sizes = list(map(len, data))
    argv = ["stat", str(path.parent), "--by", period, "--engine", engine, "--format", "jsonl"]

    def rows(*more: str) -> list[tuple[Any, ...]]:
        assert main([*argv, *more]) == 0
        found = list(map(json.loads, capsys.readouterr().out.splitlines()))
        return [
            (
                row[period if more else f"batch_{period}"],
                row["records"],
                row["batches"],
                row["batch_bytes"],
            )
            for row in found
        ]

    def text(time: int) -> str:
        return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%dT%H:%M:00.000Z")

    assert rows() == [(text(start), 1, 1, sizes[1]), (text(times[-1]), 5, 1, sizes[0])]
    assert rows("--deep") == [
        (text(start), 2, 1, sizes[1]),
        (text(start + hour), 2, 0, 0),
        (text(times[-1]), 1, 1, sizes[0]),
        (None, 1, 0, 0),
    ]
    assert main(argv[:-2]) == 0
    assert capsys.readouterr().out.split()[0] == f"batch_{period}"


@pytest.mark.slow
@pytest.mark.parametrize("by", [("topic",), ("partition",), ("producer",), ("codec",), ("hour",), ("day", "minute"), ("codec", "topic")])  # fmt: skip
@pytest.mark.parametrize("deep", [False, True])
def test_largest_of_each(by: tuple[By, ...], deep: bool) -> None:
    """So many of each are those that come first among all."""
    log = LogDirectory(SAMPLES / "kafka-4.x")
    every = log.largest(1_000_000, deep=deep).to_pylist()

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        time = row["timestamp"]
        said = {"topic": row["topic"], "partition": (row["topic"], row["partition"]), "producer": row["producer_id"], "codec": row["codec"], **{name: time and time.timestamp() * 1000 // length for name, length in PERIODS.items()}}  # fmt: skip
        return tuple(said[name] for name in by)

    expected: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in every:
        expected.setdefault(key(row), []).append(row)
    found = log.largest(2, by=by, deep=deep).to_pylist()
    groups = [key(row) for row in found]
    assert len(set(groups)) == len(list(groupby(groups)))  # fmt: skip
    for name, rows in expected.items():
        assert [row for row in found if key(row) == name] == rows[:2]
    assert len(found) == sum(min(2, len(rows)) for rows in expected.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen", [{"offsets": (2, 9)}, {"offsets": (-2, None)}, {"producers": 4}, {"timestamps": (NOW - 10_000, NOW)}, {"deleted_records": True}]
)  # fmt: skip
@pytest.mark.parametrize("deep", [False, True])
def test_largest_of_what_is_chosen(chosen: dict[str, Any], deep: bool) -> None:
    """They are of the batches, or records, that ``stat`` counts and ``scan`` gives."""
    log = LogDirectory(SAMPLES / "kafka-4.x")
    found = log.largest(1_000_000, deep=deep, **chosen)
    if deep:
        expected = read_table(SAMPLES / "kafka-4.x", ["offset"], **chosen)
    else:
        expected = log.stat(by=("topic", "partition"), **chosen)
    count = expected.num_rows if deep else sum(expected["batches"].to_pylist())
    assert 0 < count == found.num_rows


@pytest.mark.parametrize("option", ["--top", "--largest"])
def test_no_rows_are_not_asked_for(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty table would say that there are no batches."""
    with pytest.raises(SystemExit) as ended:
        main(["stat", str(SAMPLES / "kafka-4.x" / "codecs-0"), option, "0"])
    assert ended.value.code == 2
    out, errors = capsys.readouterr()
    assert not out and "a number of rows" in errors


def test_largest_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    broker = str(SAMPLES / "kafka-4.x")
    assert main(["stat", broker, "--largest", "1", "--by", "topic", "--format", "jsonl"]) == 0
    topics = [json.loads(line)["topic"] for line in capsys.readouterr().out.splitlines()]
    assert len(topics) == len(set(topics)) > 5
    assert main(["stat", broker, "--largest", "1", "--top", "1"]) == 2
    assert "--top does not go with --largest" in capsys.readouterr().err
    assert main(["stat", broker, "--largest", "1", "--by", "color"]) == 2
    assert "there are no totals by 'color'" in capsys.readouterr().err
    assert LogDirectory(SAMPLES / "kafka-4.x").largest(0, by="topic").num_rows == 0
    with pytest.raises(ValueError, match="no totals by 'color'"):
        LogDirectory(SAMPLES / "kafka-4.x").largest(1, by="color")


@pytest.mark.slow
@pytest.mark.share(ci=2)
@pytest.mark.parametrize("engine", ["construct", "arrow"])
@pytest.mark.parametrize("policy", ["kafka", "strict", "salvage"])
def test_the_largest_records_have_the_problems_of_all(
    policy: str, engine: Engine, tmp_path: Path
) -> None:
    """Whatever is wrong with a file: reading its records for the largest reports what their sums report."""
    for kind in ("malformed", "truncated"):
        for i, file in enumerate(sorted((VECTORS / kind).glob("*.log"))):
            (tmp_path / f"{kind}-{i}").mkdir()
            shutil.copy(file, tmp_path / f"{kind}-{i}" / f"{0:020d}.log")
    data = bytearray(next((SAMPLES / "kafka-4.x" / "codecs-0").glob("*.log")).read_bytes())
    data[17] ^= 1
    (tmp_path / "flipped-0").mkdir()
    (tmp_path / "flipped-0" / f"{0:020d}.log").write_bytes(data)
    log = LogDirectory(tmp_path)
    options = StatOptions(deep=True, policy=policy, engine=engine)
    sums, largest = list[str](), list[str]()
    log.stat(on_problem=sums.append, **options)
    log.largest(1, on_problem=largest.append, **options)
    assert largest == sums
    assert [line for line in largest if "flipped-0" in line and "stored checksum" in line]


@pytest.mark.parametrize("engine", ["construct", "arrow"])
@pytest.mark.parametrize("policy", ["kafka", "salvage"])
def test_a_control_record_that_cannot_be_read_is_a_problem(
    policy: str, engine: Engine, tmp_path: Path
) -> None:
    """The value of a leader change says that it has 126 voters, and ends."""
    shutil.copytree(SAMPLES / "kafka-4.x" / "__cluster_metadata-0", tmp_path / "t-0")
    unreadable = b"\x08\0\0\0\2\x26\0\0\0\0\0\1\x7f"
    control(f"t-0/{0:020d}.log", 0, unreadable)(tmp_path)
    log = LogDirectory(tmp_path)
    options = StatOptions(deep=True, policy=policy, engine=engine)
    sums, largest = list[str](), list[str]()
    assert log.stat(on_problem=sums.append, **options).column("problems").to_pylist() == [1]
    log.largest(1, on_problem=largest.append, **options)
    assert largest == sums
    assert sums[0].startswith("control record at offset 0: ")


def _bytes(record: Any) -> int:
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def test_what_cannot_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no totals by 'color'; known: topic, partition, "):
        LogDirectory(SAMPLES / "kafka-4.x").stat(by="color")
    assert main(["stat", str(SAMPLES / "kafka-4.x"), "--by", "topic,color"]) == 2
    assert "there are no totals by 'color'" in capsys.readouterr().err


def test_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "empty-0").mkdir()
    (row,) = LogDirectory(tmp_path).stat(deep=True).to_pylist()
    assert (row["segments"], row["batches"], row["first_offset"], row["codecs"]) == (0, 0, None, "")
    assert LogDirectory(tmp_path).stat(by="codec").num_rows == 0
    assert LogDirectory(tmp_path).largest(3).num_rows == 0


def test_the_same_partition_of_two_brokers(tmp_path: Path) -> None:
    source = SAMPLES / "kafka-4.x" / "codecs-0" / f"{0:020d}.log"
    for broker in ("one", "two"):
        (tmp_path / broker / "orders-0").mkdir(parents=True)
        (tmp_path / broker / "orders-0" / source.name).write_bytes(source.read_bytes())
    log = LogDirectory([tmp_path / "one", tmp_path / "two"])
    assert log.stat().column("records").to_pylist() == [67, 67]
    with pytest.raises(DirectoryError, match="--replicas"):
        log.stat(by="topic")
    kept = LogDirectory(log.path, replicas="keep")
    assert kept.stat(by="topic").column("records").to_pylist() == [134]


def test_small_segments_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them by one decoder; the one that is damaged by itself, and no other."""
    good = (VECTORS / "matrix" / "v2-gzip-create.log").read_bytes()
    for i in range(40):
        directory = tmp_path / f"orders-{i}"
        directory.mkdir()
        data = good[:-1] + bytes([good[-1] ^ 1]) if i == 17 else good * (i % 3)
        (directory / f"{0:020d}.log").write_bytes(data)
    alone: list[str] = []
    single = header_pass.HeaderPass._read_segment

    def noted(self: Any, segment: Any) -> Any:
        alone.append(segment.path.parent.name)
        return single(self, segment)

    monkeypatch.setattr(header_pass.HeaderPass, "_read_segment", noted)
    rows = LogDirectory(tmp_path).stat(engine="arrow").to_pylist()
    assert alone == ["orders-17"]
    assert [row["partition"] for row in rows if row["problems"]] == [17]
    assert {row["batches"] % 3 for row in rows} <= {
        0,
        rows[1]["batches"] % 3,
        rows[2]["batches"] % 3,
    }
    assert sum(row["bytes"] for row in rows) == sum(row["batch_bytes"] for row in rows)


def test_a_file_whose_name_is_no_offset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """More than 64 bits can hold: it is named, and all else is there."""
    source = SAMPLES / "kafka-4.x" / "codecs-0" / f"{0:020d}.log"
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-1").mkdir()
    for name in (source.name, "99999999999999999999.log"):
        (tmp_path / "orders-0" / name).write_bytes(source.read_bytes())
    (tmp_path / "orders-1" / source.name).write_bytes(source.read_bytes())
    wrong = str(tmp_path / "orders-0" / "99999999999999999999.log")
    for command in (["ls"], ["ls", "--segments"], ["stat"], ["check"]):
        assert main([*command, str(tmp_path), "--format", "jsonl"]) == 1
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert wrong in (printed.out if command == ["check"] else printed.err)
        if command != ["check"]:
            rows = [json.loads(line) for line in printed.out.splitlines()]
            assert [row["partition"] for row in rows] == [0, 1]
    assert main(["ls", wrong]) == 2
    assert "exceeds the largest offset" in capsys.readouterr().err
    assert main(["txn", str(tmp_path)]) == 1
    assert wrong in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["stat", "largest"])
def test_keywords_that_there_are_not(verb: str) -> None:
    log = LogDirectory(SAMPLES / "kafka-2.8" / "codecs-0")
    with pytest.raises(TypeError, match="nothing"):
        getattr(log, verb)(nothing=1)
    with pytest.raises(ValueError, match="offsets is"):
        getattr(log, verb)(offsets=(2, 1))


def test_several_things_to_sum_up_by(capsys: pytest.CaptureFixture[str]) -> None:
    where = str(SAMPLES / "kafka-4.x" / "codecs-0")
    assert main(["stat", where, "--by", "topic,codec", "--format", "jsonl"]) == 0
    expected = capsys.readouterr().out
    assert main(["stat", where, "--by", "topic", "--by", "codec", "--format", "jsonl"]) == 0
    assert capsys.readouterr().out == expected != ""


def test_the_api_says_what_it_counts_as_the_command_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = (
        "batches below the log start offset were skipped: trimmed-0 before 7; the batch with this offset counts as a whole;"
        " add --deleted-records to include them"
    )
    log = LogDirectory(SAMPLES / "kafka-4.x", topics="trimmed")
    with pytest.warns(UserWarning, match=said):
        log.stat()
    assert main(["stat", str(SAMPLES / "kafka-4.x"), "--topic", "trimmed"]) == 0
    assert capsys.readouterr().err.splitlines() == [f"kafka-log: {said}"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log.stat(offsets=(7, None))
        log.stat(deleted_records=True)


@pytest.mark.parametrize("deep", [False, True])
def test_a_batch_without_records_has_no_time(deep: bool, tmp_path: Path) -> None:
    """Compaction keeps the header of a batch whose records it removes, with its times."""
    day = 86_400_000
    value = [{"timestamp": 3 * day, "value": b"v"}]
    batches = [
        {"base_offset": 0, "base_timestamp": 3 * day, "records": value},
        {
            "base_offset": 1,
            "base_timestamp": 9 * day,
            "max_timestamp": 9 * day,
            "last_offset_delta": 0,
            "records": [],
        },
    ]
    log = tmp_path / "t-0"
    log.mkdir()
    (log / f"{0:020d}.log").write_bytes(b"".join(map(RECORD_BATCH.build, batches)))
    table = LogDirectory(log).stat(deep=deep)
    assert (table["batches"][0].as_py(), table["records"][0].as_py()) == (2, 1)
    ends = table["first_timestamp"][0].value, table["last_timestamp"][0].value
    assert ends == (3 * day, 3 * day)
    days = LogDirectory(log).stat(by="day", deep=deep)
    found = [
        None if start is None else start.timestamp() * 1000 for start in days.column(0).to_pylist()
    ]
    assert found == [3 * day, None]
