"""kafka-log export: files that are whole or not there, with the rows that scan gives."""

from __future__ import annotations

import csv
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_log import LogDirectory, SegmentReader, discover, read_table, write_log
from kafka_log.cli import main
from kafka_log.inspect.export import FORMATS, MANIFEST, ExportError, export
from kafka_log.text.columns import format_rows_as_json
from kafka_log.write.manifest import Manifest
from kafka_log.write.staged_output import OutputError
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"
NAMES = [f"{p.topic}-{p.partition}" for p in discover(BROKER)]


def rows_of(path: Path) -> list[str]:
    """The rows of a file, as JSON lines."""
    if path.suffix == ".parquet":
        return format_rows_as_json(pq.read_table(path))
    if path.suffix == ".arrow":
        with pa.ipc.open_file(path) as file:
            return format_rows_as_json(file.read_all())
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl"])
def test_rows_are_those_of_scan(tmp_path: Path, kind: str) -> None:
    assert main(["export", str(BROKER), "--out", str(tmp_path), "--format", kind]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [*(f"{name}.{kind}" for name in NAMES), MANIFEST]
    )
    plain = read_table(BROKER).schema.names
    for partition in discover(BROKER):
        found = rows_of(tmp_path / f"{partition.topic}-{partition.partition}.{kind}")
        assert found == format_rows_as_json(read_table(partition.directory, plain))


def test_csv(tmp_path: Path) -> None:
    where = BROKER / "codecs-1"
    assert main(["export", str(where), "--out", str(tmp_path), "--format", "csv", "--columns", "offset,key"]) == 0  # fmt: skip
    with (tmp_path / "codecs-1.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    expected = read_table(where, ["offset", "key"]).to_pylist()
    assert header == ["offset", "key"]
    assert [int(row[0]) for row in rows] == [row["offset"] for row in expected]


def test_what_is_asked_for(tmp_path: Path) -> None:
    where = BROKER / "transactions-0"
    command = ["export", str(where), "--offsets", "5:30", "--isolation", "read_committed"]
    assert main([*command, "--columns", "offset,value", "--out", str(tmp_path)]) == 0
    found = pq.read_table(tmp_path / "transactions-0.parquet")
    assert found.equals(read_table(where, ["offset", "value"], offsets=(5, 30), isolation="read_committed"))  # fmt: skip
    assert 0 < found.num_rows < 25


def test_times(tmp_path: Path) -> None:
    where = BROKER / "transactions-0"
    times = read_table(where, ["timestamp"]).column(0).to_pylist()
    begin, end = sorted(set(times))[1], sorted(set(times))[-2]
    wanted = f"{begin.isoformat()}:{end.isoformat()}"
    assert main(["export", str(where), "--time", wanted, "--out", str(tmp_path)]) == 0
    found = pq.read_table(tmp_path / "transactions-0.parquet").column("timestamp").to_pylist()
    assert found == [time for time in times if begin <= time < end]


def test_a_view(tmp_path: Path) -> None:
    assert main(["export", str(BROKER), "--view", "offsets", "--out", str(tmp_path)]) == 0
    found = pq.read_table(tmp_path / "__consumer_offsets-0.parquet")
    assert format_rows_as_json(found) == format_rows_as_json(read_table(BROKER, view="offsets"))
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_whole_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An export that stops goes on where it was."""
    broker, out = tmp_path / "broker", tmp_path / "out"
    shutil.copytree(BROKER, broker)
    partitions = discover(broker)

    class Stopped(Exception):
        pass

    def stop(partition: object, rows: int) -> None:
        if partition == partitions[4] and rows:
            raise Stopped

    with pytest.raises(Stopped):
        list(export(partitions, out, progress=stop))
    whole = sorted(out.glob("*.parquet"))
    assert len(whole) == 4
    assert not list(out.glob(".*"))
    before = {path: path.stat().st_mtime_ns for path in whole}
    assert main(["export", str(broker), "--out", str(out)]) == 0
    assert f"{len(NAMES) - 4} written, 4 already complete" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in whole} == before
    with (partitions[0].segments[-1].path).open("ab") as file:  # the log has grown since
        file.write(partitions[0].segments[0].path.read_bytes())
    with pytest.raises(ExportError, match="the result of another export"):
        list(export(discover(broker), out))
    assert [e.made for e in export(discover(broker), out, overwrite=True)].count(True) == 1


def test_what_is_whole_is_kept_when_others_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is made of its own partition, whichever are exported with it; and of the records that were asked for."""
    command = ["export", str(BROKER), "--out", str(tmp_path), "--key", "k1", "--key", "hex:00"]
    assert main([*command, "--topic", "codecs", "--partition", "0"]) == 0
    assert main([*command, "--topic", "codecs"]) == 0
    assert "4 written, 1 already complete" in capsys.readouterr().err
    assert main([*command, "--topic", "codecs", "--producer", "7"]) == 2
    assert "the result of another export" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{", '{"codecs-1.parquet": 5}'])
def test_a_manifest_that_is_cut(tmp_path: Path, text: str) -> None:
    where = discover(BROKER / "codecs-1")
    list(export(where, tmp_path))
    (tmp_path / MANIFEST).write_text(text, encoding="utf-8")
    with pytest.raises(ExportError):
        list(export(where, tmp_path))
    assert [e.made for e in export(where, tmp_path, overwrite=True)] == [True]
    assert [*Manifest(tmp_path / MANIFEST, ("made_of",))] == ["codecs-1.parquet"]


@pytest.mark.parametrize("kind", FORMATS)
def test_damage_leaves_no_file(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = tmp_path / "broker"
    shutil.copytree(BROKER / "codecs-1", broker / "codecs-1")
    shutil.copytree(BROKER / "codecs-0", broker / "codecs-0")
    (segment,) = (broker / "codecs-1").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[300] ^= 1
    segment.write_bytes(data)
    out = tmp_path / "out"
    assert main(["export", str(broker), "--out", str(out), "--format", kind]) == 1
    assert sorted(p.name for p in out.iterdir()) == sorted([f"codecs-0.{kind}", MANIFEST])
    shown = capsys.readouterr().err
    assert str(segment) in shown
    assert "1 of 2 files are complete; to continue after damage, add --policy salvage" in shown


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--columns", "ofset"], "did you mean 'offset'?"),
        (["--view", "ofsets"], "did you mean 'offsets'?"),
        (["--view", "share_states"], "the view share_states reads the topic __share_group_state"),
        (["--topic", "nothing"], "there is no topic nothing"),
    ],
)
def test_what_cannot_be(
    tmp_path: Path, options: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(BROKER), "--out", str(tmp_path / "out"), *options]) == 2
    assert shown in capsys.readouterr().err
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("option", [["--time", "noon"], ["--offsets", "5"]])
def test_ranges_that_are_none(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["export", str(BROKER), "--out", "x", *option])
    assert caught.value.code == 2
    assert "is not a range of" in capsys.readouterr().err


@pytest.mark.parametrize("again", [False, True])
def test_what_salvage_loses_is_told(
    tmp_path: Path, again: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = tmp_path / "broker"
    shutil.copytree(BROKER / "codecs-1", broker / "codecs-1")
    (segment,) = (broker / "codecs-1").glob("*.log")
    data = bytearray(segment.read_bytes())
    _, second, *_ = SegmentReader(segment)
    data[second.position + 8 : second.position + 12] = b"\xff\xff\xff\xf0"  # its length
    segment.write_bytes(data)
    command = ["export", str(broker), "--policy", "salvage", "--out", str(tmp_path / "out")]
    for _ in range(1 + again):
        assert main(command) == 1
        shown = capsys.readouterr().err
        begin = f"kafka-log: {segment}: bytes {second.position} to "
        assert [line for line in shown.splitlines() if line.startswith(begin)]
    rows = pq.read_table(tmp_path / "out" / "codecs-1.parquet").num_rows
    whole = read_table(BROKER / "codecs-1").num_rows
    assert rows == whole - len(second.records)


@pytest.mark.parametrize("again", [False, True])
def test_rows_of_damaged_batches_are_counted(
    tmp_path: Path, again: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = tmp_path / "broker"
    shutil.copytree(BROKER / "segments.small-0", broker / "segments.small-0")
    segment = min((broker / "segments.small-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    _, second, *_ = SegmentReader(segment)
    data[second.position + second.size - 2] ^= 1  # of its last value
    segment.write_bytes(data)
    command = ["export", str(broker), "--policy", "salvage", "--out", str(tmp_path / "out")]
    for _ in range(1 + again):
        assert main(command) == 1
        assert f"{len(second.records)} of them from damaged batches" in capsys.readouterr().err
    rows = pq.read_table(tmp_path / "out" / "segments.small-0.parquet")
    assert rows.num_rows == read_table(BROKER / "segments.small-0").num_rows
    assert rows["crc_ok"].to_pylist().count(False) == len(second.records)
    assert rows["damage"].null_count == rows.num_rows - len(second.records)


def test_a_partition_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    for name in ("codecs-1", "codecs-3"):
        shutil.copytree(BROKER / name, logs / name)
    (logs / "codecs-2").mkdir()
    (logs / "codecs-2" / f"{'9' * 20}.log").write_bytes(b"")
    command = ["export", str(logs), "--out", str(out), "--format", "jsonl"]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert f"{'9' * 20}.log" in said
    assert "2 of 3 files are complete" in said
    whole = ["codecs-1.jsonl", "codecs-3.jsonl"]
    assert sorted(p.name for p in out.iterdir()) == [*whole, MANIFEST]
    assert all((out / name).stat().st_size for name in whole)
    assert main(command) == 1  # again: what is whole is kept
    said = capsys.readouterr().err
    assert said.count("(already complete)") == 2 and f"{'9' * 20}.log" in said
    assert main([*command, "--policy", "salvage", "--overwrite"]) == 1
    said = capsys.readouterr().err
    assert f"{'9' * 20}.log" in said
    assert "3 files" in said
    assert (out / "codecs-2.jsonl").read_bytes() == b""


def test_replicas_would_be_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    both = [str(SAMPLES / version / "codecs-0") for version in ("kafka-2.8", "kafka-4.x")]
    assert main(["export", *both, "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert all(path in said for path in both)
    assert not out.exists()


@pytest.mark.parametrize("inner", ["lake", "codecs-1", "codecs-1/lake", "."])
def test_nothing_is_written_inside_of_what_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inner: str
) -> None:
    shutil.copytree(BROKER / "codecs-1", tmp_path / "codecs-1")
    before = sorted(tmp_path.rglob("*"))
    assert main(["export", str(tmp_path), "--out", str(tmp_path / inner)]) == 2
    assert "it lies inside" in capsys.readouterr().err
    with pytest.raises(OutputError, match="it lies inside"):
        LogDirectory(tmp_path).export(tmp_path / inner)
    if inner.startswith("codecs-1"):
        with pytest.raises(OutputError, match="it lies inside"):
            next(export(discover(tmp_path), tmp_path / inner))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_is_never_of_unknown_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest says what a file is made of before it has its name: an export that ends between both goes on."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "add", stop)
        with pytest.raises(KeyboardInterrupt):
            list(LogDirectory(BROKER, topics="codecs").export(tmp_path / "out", "jsonl"))
    found = list(LogDirectory(BROKER, topics="codecs").export(tmp_path / "out", "jsonl"))
    assert found and all(file.path.exists() for file in found)


def test_no_directory(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["export", str(BROKER), "--out", ""])
    assert caught.value.code == 2
    assert "name a directory" in capsys.readouterr().err


@pytest.mark.share(ci=4)
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
@pytest.mark.parametrize("kind", FORMATS)
def test_a_disk_that_is_full(tmp_path: Path, kind: str) -> None:
    import resource

    where, out = tmp_path / "t-0", tmp_path / "out"
    made = random.Random(7)
    write_log(tmp_path, pa.table({"value": [made.randbytes(100) for _ in range(4000)]}), topic="t")
    # -B: Python itself would leave half a file of bytecode, for all who come after.
    command = [sys.executable, "-B", "-m", "kafka_log", "export", str(where), "--out", str(out)]

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(
        [*command, "--format", kind],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=little_room,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "large" in done.stderr
    assert not out.exists()
