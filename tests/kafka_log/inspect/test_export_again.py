"""kafka-log export into a directory that has files already: of another log, of the same one, and with times told from the present."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_log import LogDirectory, discover, write_log
from kafka_log.cli import main
from kafka_log.cli.ranges import TimeRange
from kafka_log.inspect.export import MANIFEST, NOTES, ExportError, export
from kafka_log.logs.log_identity import identify_log, identify_segment
from kafka_log.write.manifest import Manifest
from kafka_log.write.output_lock import OutputLockedError
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"
PROPERTIES = "#\nversion=1\ncluster.id={}\nnode.id={}\ndirectory.id={}\n"
CLUSTER, DISK = "a2Fma2EtY29kZWNzLTRYWA", "BgammmvLRoThHXpdsXphBg"
METADATA = "version: 0\ntopic_id: 0CrBeaM8T1Kn5gPKLQYXUQ"
OTHER_DISK = "BgammmvLRoThHXpdsXphBw"


def made(root: Path, text: str, properties: str | None = None, topic: str = "t") -> Path:
    """A log whose values have a text: another text of the same length is a file of the same name and size."""
    values = [f"{text}-{i}".encode() for i in range(300)]
    stamps = pa.array([1_000] * len(values), pa.timestamp("ms", "UTC"))
    rows = pa.table({"value": values, "timestamp": stamps})
    write_log(root, rows, topic=topic)
    (root / f"{topic}-0" / "partition.metadata").unlink()
    if properties is not None:
        (root / "meta.properties").write_text(properties)
    return root


def sizes(root: Path) -> list[tuple[str, int]]:
    return [(s.path.name, s.size) for p in discover(root) for s in p.segments]


def values(out: Path) -> set[bytes]:
    found: list[bytes] = pq.read_table(out / "t-0.parquet")["value"].to_pylist()
    return {value.rpartition(b"-")[0] for value in found}


PAIRS = {
    "no ids": (None, None),
    "of two brokers": (PROPERTIES.format(CLUSTER, 1, DISK), PROPERTIES.format(CLUSTER, 2, OTHER_DISK)),
    "of two disks": (PROPERTIES.format(CLUSTER, 1, DISK), PROPERTIES.format(CLUSTER, 1, OTHER_DISK)),
    "of a copy that has gone its own way": (PROPERTIES.format(CLUSTER, 1, DISK),) * 2,
    "before there were ids of disks": ("#\nversion=0\nbroker.id=1\ncluster.id=x\n", "#\nversion=0\nbroker.id=2\ncluster.id=x\n"),
}  # fmt: skip


@pytest.mark.share(5)
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("has_topic_id", [False, True])
def test_two_logs_are_not_taken_for_one(
    tmp_path: Path, pair: str, has_topic_id: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = PAIRS[pair]
    a = made(tmp_path / "a", "one", first)
    b = made(tmp_path / "b", "two", second)
    assert sizes(a) == sizes(b)
    for root in (a, b) if has_topic_id else ():
        (root / "t-0" / "partition.metadata").write_text(METADATA)
    out = tmp_path / "out"
    assert main(["export", str(a), "--out", str(out)]) == 0
    assert main(["export", str(b), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "t-0.parquet: the file exists and is the result of another export" in said
    assert "choose another --out, or add --overwrite" in said
    if "copy" not in pair:
        assert f"of the log in {a / 't-0'}" in said and str(b / "t-0") in said
    assert values(out) == {b"one"}
    assert main(["export", str(b), "--out", str(out), "--overwrite"]) == 0
    assert values(out) == {b"two"}


def test_replicas_with_the_same_bytes_are_two_logs(tmp_path: Path) -> None:
    """Where one lies alone, nothing tells of which broker it is but the place."""
    a = made(tmp_path / "a", "one")
    b = Path(shutil.copytree(a, tmp_path / "b"))
    list(LogDirectory(a).export(tmp_path / "out"))
    with pytest.raises(ExportError, match=r"another log, or the same one in another place"):
        list(LogDirectory(b).export(tmp_path / "out"))


def moved(source: Path, target: Path) -> Path:
    return source.rename(target)


def copied(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


def mounted(source: Path, target: Path) -> Path:
    target.symlink_to(source)
    return target


@pytest.mark.parametrize("how", [moved, copied, mounted])
@pytest.mark.parametrize("alone", [False, True])
def test_a_log_directory_in_another_place_is_the_same(
    tmp_path: Path, how: Callable[[Path, Path], Path], alone: bool
) -> None:
    """The broker's ids go along; also where one partition of it is given."""
    a = made(tmp_path / "a", "one", PROPERTIES.format(CLUSTER, 1, DISK))
    place = a / "t-0" if alone else a
    assert [file.made for file in LogDirectory(place).export(tmp_path / "out")] == [True]
    b = how(a, tmp_path / "b")
    place = b / "t-0" if alone else b
    assert [file.made for file in LogDirectory(place).export(tmp_path / "out")] == [False]


def test_without_ids_a_path_is_one_however_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = made(tmp_path / "a", "one")
    list(LogDirectory(a).export(tmp_path / "out"))
    link = mounted(a, tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    for place in ("a", "a/../a", link, a / "t-0", link / "t-0"):
        assert [f.made for f in LogDirectory(place).export(tmp_path / "out")] == [False], place


def test_a_topic_that_was_made_anew_is_another_log(tmp_path: Path) -> None:
    a = made(tmp_path / "a", "one", PROPERTIES.format(CLUSTER, 1, DISK))
    metadata = a / "t-0" / "partition.metadata"
    metadata.write_text(METADATA)
    (partition,) = discover(a)
    before = identify_log(partition)
    metadata.write_text("version: 0\ntopic_id: 0CrBeaM8T1Kn5gPKLQYXUg")
    after = identify_log(partition)
    assert before != after and before | {"topic_id": ""} == after | {"topic_id": ""}
    assert before.keys() == {"cluster", "node", "disk", "topic_id"}


def test_ids_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    a = made(tmp_path / "a", "one", "version=7\ncluster.id")
    (partition,) = discover(a)
    assert identify_log(partition) == {"path": str((a / "t-0").resolve())}


@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_bytes_of_a_segment_tell(tmp_path: Path, where: float) -> None:
    a = made(tmp_path / "a", "one" * 1000)
    (partition,) = discover(a)
    (segment,) = partition.segments
    before = identify_segment(segment)
    data = bytearray(segment.path.read_bytes())
    data[int((len(data) - 1) * where)] ^= 1
    segment.path.write_bytes(data)
    after = identify_segment(segment)
    assert before[:2] == after[:2] and before != after
    segment.path.unlink()
    assert identify_segment(segment) == [*before[:2], None]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["salvage", "cut", "reindex", "convert"])
def test_what_writes_logs_tells_them_apart_too(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = made(tmp_path / "a", "one"), made(tmp_path / "b", "two")
    more = {"cut": ["--offsets", "0:5"], "convert": ["--codec", "zstd"]}.get(verb, [])
    assert main([verb, str(a), "--out", str(tmp_path / "out"), *more]) == 0
    assert main([verb, str(b), "--out", str(tmp_path / "out"), *more]) == 2
    assert f"(of the log in {a / 't-0'}" in capsys.readouterr().err
    assert main([verb, str(a), "--out", str(tmp_path / "out"), *more]) == 0


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--offsets", "0:5"], "other options: offsets"),
        (["--columns", "offset"], "other options: columns"),
        (["--isolation", "read_committed"], "other options: isolation"),
    ],
)
def test_what_was_asked_for_is_told(
    tmp_path: Path, more: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    a = made(tmp_path / "a", "one")
    command = ["export", str(a), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert main([*command, *more]) == 2
    assert why in capsys.readouterr().err


def test_a_log_that_has_grown_is_told(tmp_path: Path) -> None:
    a = made(tmp_path / "a", "one")
    list(LogDirectory(a).export(tmp_path / "out"))
    (segment,) = (a / "t-0").glob("*.log")
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(bytes(16))
    with pytest.raises(ExportError) as raised:
        list(LogDirectory(a).export(tmp_path / "out"))
    assert f"1 with {size} bytes, and now 1 with {size + 16} bytes" in str(raised.value)


def test_a_second_export_waits_for_the_first_and_keeps_its_files(tmp_path: Path) -> None:
    a = made(tmp_path / "a", "one", topic="a")
    b = made(tmp_path / "b", "two", topic="b")
    refused: list[OutputLockedError] = []

    def other(partition: Any, rows: int) -> None:
        with pytest.raises(OutputLockedError) as raised:
            list(export(discover(b), tmp_path / "out"))
        refused.append(raised.value)

    list(export(discover(a), tmp_path / "out", progress=other))
    assert refused and not (tmp_path / "out" / "b-0.parquet").exists()
    list(export(discover(b), tmp_path / "out"))
    known = Manifest(tmp_path / "out" / MANIFEST, ("made_of",))
    assert {*known} == {"a-0.parquet", "b-0.parquet"}
    assert [f.made for f in export(discover(b), tmp_path / "out")] == [False]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_that_was_cut_off_since_is_not_complete(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = made(tmp_path / "in", "one"), tmp_path / "out"
    command = ["export", str(log), "--out", str(out), "--format", kind]
    assert main(command) == 0
    (path,) = out.glob(f"*.{kind}")
    whole = path.read_bytes()
    assert main(command) == 0
    path.write_bytes(whole[:-100])
    capsys.readouterr()
    assert main(command) == 2
    assert f"{len(whole) - 100} bytes, but {len(whole)} were written" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    assert path.read_bytes() == whole


def test_an_overwritten_file_is_never_taken_for_the_one_before(tmp_path: Path) -> None:
    """The process dies after the new file has its name, and before the manifest says so."""
    a = made(tmp_path / "a", "one")
    b = made(tmp_path / "b", "two")
    out = tmp_path / "out"
    list(export(discover(a), out))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        add, lines = Manifest.add, []

        def dies(manifest: Manifest, name: str, said: Any) -> None:
            lines.append(said)
            if len(lines) == 2:
                raise KeyboardInterrupt
            add(manifest, name, said)

        patch.setattr(Manifest, "add", dies)
        list(export(discover(b), out, overwrite=True))
    assert values(out) == {b"two"}
    for logs in (a, b):
        with pytest.raises(ExportError, match="its origin is unknown"):
            list(export(discover(logs), out))
    assert [f.made for f in export(discover(b), out, overwrite=True)] == [True]
    assert [f.made for f in export(discover(b), out)] == [False]


# ---------------------------------------------------------------- times that are told from the present


@pytest.fixture
def young(tmp_path: Path) -> Path:
    """Three partitions with records of the last hours, one a minute."""
    now = time.time_ns() // 1_000_000
    stamps = pa.array([now - i * 60_000 for i in range(240, 0, -1)], pa.timestamp("ms", "UTC"))
    for topic in ("a", "b", "c"):
        rows = pa.table({"value": [b"x"] * len(stamps), "timestamp": stamps})
        write_log(tmp_path / "logs", rows, topic=topic)
    return tmp_path / "logs"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the present, as minutes from now."""
    real = time.time_ns()

    def later(minutes: int) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: real + minutes * 60_000_000_000)

    return later


def stopped_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Ctrl-C while the file of a topic is written."""
    from kafka_log.inspect import export as module

    plain = module._write_rows

    def written(partition: Any, *rest: Any) -> Any:
        stream = plain(partition, *rest)
        yield next(stream)
        if partition.topic == name:
            raise KeyboardInterrupt
        yield from stream

    monkeypatch.setattr(module, "_write_rows", written)


def test_what_was_stopped_goes_on_with_its_times(
    tmp_path: Path,
    young: Path,
    clock: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    command = ["export", str(young), "--time", "-1h:", "--out", str(out)]
    clock(0)
    with pytest.MonkeyPatch.context() as patch:
        stopped_at(patch, "b")
        assert main(command) == 2
    assert "1 of 3 files are complete" in capsys.readouterr().err
    assert sorted(p.name for p in out.iterdir()) == ["a-0.parquet", NOTES, MANIFEST]
    clock(30)
    assert main(command) == 0
    said = capsys.readouterr().err
    assert re.search(r"continues the export that began at 20\S+Z: --time -1h: is relative to", said)
    assert said.count("continues the export") == 1
    assert "3 files, 180 rows: 2 written, 1 already complete" in said or "3 files, 177 rows" in said
    counts = {pq.read_table(path).num_rows for path in out.glob("*.parquet")}
    assert len(counts) == 1  # all are of the same hour
    assert not (out / NOTES).exists()


def test_a_finished_one_is_not_begun_anew_over_its_files(
    tmp_path: Path,
    young: Path,
    clock: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its rows may be gone from the log: only --overwrite makes it anew, for the hour that is the last one now."""
    out = tmp_path / "out"
    command = ["export", str(young), "--time", "-1h:", "--out", str(out)]
    clock(0)
    assert main(command) == 0
    before = pq.read_table(out / "a-0.parquet").num_rows
    clock(30)
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "other options: timestamps" in said and "--overwrite" in said
    assert "continues the export" not in said
    assert not (out / NOTES).exists()
    assert pq.read_table(out / "a-0.parquet").num_rows == before
    assert main([*command, "--overwrite"]) == 0
    assert pq.read_table(out / "a-0.parquet").num_rows < before
    assert "continues the export" not in capsys.readouterr().err


def test_one_that_overwrites_goes_on_too(
    tmp_path: Path,
    young: Path,
    clock: Callable[[int], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    command = ["export", str(young), "--time", "-1h:", "--out", str(out)]
    clock(0)
    assert main(command) == 0
    clock(30)
    with pytest.MonkeyPatch.context() as patch:
        stopped_at(patch, "b")
        assert main([*command, "--overwrite"]) == 2
    clock(60)
    assert main([*command, "--overwrite"]) == 0
    assert "2 written, 1 already complete" in capsys.readouterr().err
    assert len({pq.read_table(path).num_rows for path in out.glob("*.parquet")}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("other", [["--topic", "a"], ["--columns", "offset"], ["--time", "-2h:"]])
def test_another_export_does_not_go_on_with_it(
    tmp_path: Path,
    young: Path,
    clock: Callable[[int], None],
    other: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    command = ["export", str(young), "--time", "-1h:", "--out", str(out)]
    clock(0)
    with pytest.MonkeyPatch.context() as patch:
        stopped_at(patch, "b")
        main(command)
    clock(30)
    assert main([*command, *other]) == 2
    assert "continues the export" not in capsys.readouterr().err
    assert main(command) == 0
    assert "continues the export" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "[]", "{", "[5]", '[{"asked": 1}]'])
def test_notes_that_are_cut(tmp_path: Path, young: Path, text: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / NOTES).write_text(text)
    assert main(["export", str(young), "--time", "-1h:", "--out", str(out)]) == 0
    assert len(list(out.glob("*.parquet"))) == 3


def test_what_cannot_be_asked_for_leaves_no_note(tmp_path: Path, young: Path) -> None:
    out = tmp_path / "out"
    command = ["export", str(young), "--time", "-1h:", "--out", str(out)]
    assert main([*command, "--columns", "ofset"]) == 2
    assert not (out / NOTES).exists()


@pytest.mark.parametrize(
    ("text", "is_relative"),
    [
        ("-1h:", True),
        (":now", True),
        ("2026-11-21:-1m", True),
        ("2026-11-21:2026-11-22", False),
        ("1795154401000:", False),
        (":", False),
    ],
)
def test_which_times_are_told_from_the_present(text: str, is_relative: bool) -> None:
    assert TimeRange.parse(text).is_relative == is_relative


def test_a_log_in_a_store_is_known_again(tmp_path: Path) -> None:
    """By its URL, and when its objects were written."""
    import fsspec

    store = fsspec.filesystem("memory")
    for name, text in (("a", "one"), ("b", "two")):
        store.put(str(made(tmp_path / name, text)), f"/again/{name}", recursive=True)
    out = tmp_path / "out"
    assert [f.made for f in LogDirectory("memory://again/a").export(out)] == [True]
    assert [f.made for f in LogDirectory("memory://again/a").export(out)] == [False]
    with pytest.raises(ExportError, match="memory://again/b"):
        list(LogDirectory("memory://again/b").export(out))
    store.rm("/again", recursive=True)


def test_a_file_in_the_place_of_the_directory(
    tmp_path: Path, young: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_bytes(b"")
    command = ["export", str(young), "--out", str(tmp_path / "out")]
    for more in ([], ["--time", "-1h:"]):
        assert main([*command, *more]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(f"{str(tmp_path / 'out')!r}")
