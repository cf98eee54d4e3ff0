"""Converted logs: the same records with all that they have, the same headers, and bytes that are the same where nothing is to be done."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import LOG_ENTRY
from kafka_codecs.arrow.batches import BATCHES
from kafka_codecs.arrow.records import RECORDS
from kafka_log import LogDirectory, SegmentReader, discover, encode, scan
from kafka_log.cli import main
from kafka_log.segment.scanner import header_scanner
from kafka_log.write.rewrite import conversion
from kafka_log.write.staged_output import OutputError
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.judged import CASES
from tests.support.partition_logs import write_log
from tests.support.replicas import logs, write
from tests.support.segment_files import put

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MORE = [pytest.param(codec, marks=pytest.mark.slow) for codec in ("gzip", "snappy", "lz4")]
PLACES = {"position", "codec", "magic", "base_offset"}
"""What may change of a record: where its batch lies and begins, and how it is compressed."""
KEPT = [column.name for column in RECORDS.columns if column.name not in PLACES]
OF_HEADER = [
    column.name
    for column in BATCHES.columns
    if column.name not in {"position", "size", "codec", "crc", "attributes"}
]


def rows(path: Path) -> list[dict[str, Any]]:
    """All records; those without a kind of timestamp have that of record batches."""
    table = scan(path, [*KEPT, "topic", "partition"], control_records=True).read_all()
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.int64()))
    found: list[dict[str, Any]] = table.to_pylist()
    return [row | {"timestamp_type": max(row["timestamp_type"], 0)} for row in found]


def headers(path: Path) -> list[dict[str, Any]]:
    """Headers of record batches, but for what says how they are compressed."""
    return [
        row
        for partition in discover(path)
        for segment in partition.segments
        for batch in header_scanner(segment.path, OF_HEADER)
        for row in batch.to_pylist()
        if row["magic"] == 2
    ]


@pytest.mark.share(ci=8)
@pytest.mark.slow
@pytest.mark.parametrize("sample", ["kafka-2.8", "kafka-4.x"])
@pytest.mark.parametrize("codec", [None, "none", "zstd", *MORE])
def test_samples_keep_their_records(sample: str, codec: str | None, tmp_path: Path) -> None:
    said = LogDirectory(SAMPLES / sample).convert(tmp_path / "out", codec=codec).to_pylist()
    assert rows(tmp_path / "out") == rows(SAMPLES / sample)
    written = {s.path.name for p in discover(tmp_path / "out") for s in p.segments}
    assert written == {s.path.name for p in discover(SAMPLES / sample) for s in p.segments}
    for partition in discover(SAMPLES / sample):
        source, made = partition.directory, tmp_path / "out" / partition.directory.name
        if all(h["magic"] == 2 for s in partition.segments for h in _all(s.path)):
            assert headers(made) == headers(source)
    found = LogDirectory(tmp_path / "out").check(deep=True).to_pylist()
    assert found == []
    verdicts = LogDirectory(SAMPLES / sample).diff(tmp_path / "out").column("verdict").to_pylist()
    assert len(verdicts) == len(discover(SAMPLES / sample))
    assert set(verdicts) <= {"batches", "same"}
    snapshots = [*(SAMPLES / sample).glob("*/*.checkpoint")]
    assert [row["what"] for row in said].count("left out") == len(snapshots)
    for row in said:
        if row["what"] == "left out":
            continue
        name = Path(f"{row['topic']}-{row['partition']}", f"{row['base_offset']:020d}.log")
        both = [SAMPLES / sample / name, tmp_path / "out" / name]
        assert [row["bytes"], row["bytes_out"]] == [path.stat().st_size for path in both]
        batches = [sum(1 for _ in SegmentReader(path)) for path in both]
        assert [row["batches"], row["batches_out"]] == batches


def _all(path: Path) -> list[dict[str, Any]]:
    return [row for batch in header_scanner(path, ["magic", "codec"]) for row in batch.to_pylist()]


@pytest.mark.slow
def test_codecs_are_those_that_were_asked_for(tmp_path: Path) -> None:
    for sample in ("kafka-2.8", "kafka-4.x"):
        LogDirectory(SAMPLES / sample).convert(tmp_path / sample, codec="lz4")
        segments = [s.path for p in discover(tmp_path / sample) for s in p.segments]
        batches = [batch for path in segments for batch in SegmentReader(path)]
        assert len(batches) > 100
        for batch in batches:
            plain = batch.is_control or not batch.records
            assert (batch.magic, batch.compression) == (2, "none" if plain else "lz4")


@pytest.mark.slow
def test_what_is_converted_to_what_it_is_keeps_its_bytes(tmp_path: Path) -> None:
    LogDirectory(SAMPLES / "kafka-4.x").convert(tmp_path / "out")
    for partition in discover(SAMPLES / "kafka-4.x"):
        for segment in partition.segments:
            made = tmp_path / "out" / partition.directory.name / segment.path.name
            assert made.read_bytes() == segment.path.read_bytes()


@pytest.mark.slow
@pytest.mark.share(ci=4)
@pytest.mark.parametrize("codec", ["zstd", *MORE])
def test_there_and_back(codec: str, tmp_path: Path) -> None:
    """Record batches without compression are the same bytes again, whatever lay between."""
    LogDirectory(SAMPLES / "kafka-4.x").convert(tmp_path / "first", codec="none")
    LogDirectory(tmp_path / "first").convert(tmp_path / "there", codec=codec, level=None)
    LogDirectory(tmp_path / "there").convert(tmp_path / "back", codec="none")
    paths = sorted((tmp_path / "first").glob("*/*.log"))
    assert len(paths) > 30
    for path in paths:
        assert (tmp_path / "back" / path.parent.name / path.name).read_bytes() == path.read_bytes()


@pytest.mark.slow
@given(seed=st.integers(0, 1 << 32), codec=st.sampled_from([None, *CODECS]))
@examples(12)
def test_logs_of_all_versions(
    seed: int, codec: str | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """v0, v1 and v2 with gaps as compaction leaves them."""
    place = tmp_path_factory.mktemp("logs")
    source = write_log(place / "t-0", random.Random(seed))
    LogDirectory(source).convert(place / "out", codec=codec)
    assert rows(place / "out" / "t-0") == rows(source)
    assert headers(source) == [
        row for row in headers(place / "out" / "t-0") if row in headers(source)
    ]
    assert [len(list(SegmentReader(p))) for p in (place / "out").glob("*/*.log")]
    verdict = LogDirectory(source).diff(place / "out" / "t-0").to_pylist()[0]
    assert set(verdict["findings"]) <= {"batches"}
    assert (verdict["start_a"], verdict["end_a"]) == (verdict["start_b"], verdict["end_b"])


@pytest.mark.slow
@given(logs(), st.lists(st.integers(1, 12), max_size=3), st.sampled_from(CODECS))
@examples(10)
def test_transactions_and_epochs(log: Any, rolls: list[int], codec: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        source = write(Path(made, "t-0"), log, rolls)
        LogDirectory(source).convert(Path(made, "out"), codec=codec)
        out = Path(made, "out", "t-0")
        assert rows(out) == rows(source)
        assert headers(out) == headers(source)
        committed = [
            scan(path, ["offset"], isolation="read_committed").read_all() for path in (source, out)
        ]
        assert committed[0].equals(committed[1])


def test_small_messages_share_batches_within_a_limit(tmp_path: Path) -> None:
    LogDirectory(SAMPLES / "kafka-2.8", topics="v1").convert(tmp_path / "out")
    (single,) = discover(tmp_path / "out" / "v1-0")
    batches = list(SegmentReader(single.segments[0].path))
    assert len(batches) == 4
    for batch in batches:
        size = sum(len(r.key or b"") + len(r.value or b"") for r in batch.records)
        assert len(batch.records) == 1 or size <= 2 * 16384


@pytest.mark.slow
def test_segments_that_become_too_large_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some begin with a record at time 0 then, whose entry in the time index is all zeros."""
    monkeypatch.setattr(conversion, "MAX_SEGMENT", 2000)
    for sample in ("kafka-2.8", "kafka-4.x"):
        LogDirectory(SAMPLES / sample).convert(tmp_path / sample, codec="none")
        assert rows(tmp_path / sample) == rows(SAMPLES / sample)
        found = LogDirectory(tmp_path / sample).check(deep=True).to_pylist()
        assert found == []
        for partition in discover(tmp_path / sample):
            for segment in partition.segments:
                assert segment.size <= 2000 or len(list(SegmentReader(segment.path))) == 1


# ------------------------------------------------------------ what is refused


def flipped(source: Path, target: Path) -> Path:
    """A copy of a partition with another bit in its only segment, which is given back."""
    shutil.copytree(source, target)
    (path,) = target.glob("*.log")
    content = bytearray(path.read_bytes())
    content[400] ^= 1
    path.write_bytes(content)
    return path


def test_damage_is_not_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = flipped(SAMPLES / "kafka-4.x" / "codecs-1", tmp_path / "codecs-1")
    arguments = ["convert", str(tmp_path / "codecs-1"), "--out", str(tmp_path / "out")]
    assert main([*arguments, "--codec", "zstd"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("kafka-log: not converted: codecs-1: ")
    assert "salvage it first" in error and str(path) in error
    assert list((tmp_path / "out").iterdir()) == []


def test_damage_in_one_partition_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is converted are the bytes that come of a directory without the damaged one; when it is mended the same command goes on."""
    four, disk = SAMPLES / "kafka-4.x", tmp_path / "disk"
    for name in ("codecs-0", "codecs-2", "features-0"):
        shutil.copytree(four / name, disk / name)
    LogDirectory(disk).convert(tmp_path / "expected", codec="zstd")
    path = flipped(four / "codecs-1", disk / "codecs-1")
    (disk / "codecs-3").mkdir()
    (disk / "codecs-3" / f"{1 << 63:020d}.log").write_bytes(b"")  # no offset is so large
    arguments = ["convert", str(disk), "--out", str(tmp_path / "out"), "--codec", "zstd"]
    assert main([*arguments, "--format", "jsonl"]) == 1
    out, err = capsys.readouterr()
    said = {f"{r['topic']}-{r['partition']}": r for r in map(json.loads, out.splitlines())}
    refused = {name for name, row in said.items() if row["what"] == "refused"}
    assert refused == {"codecs-1", "codecs-3"} and len(said) == 5
    assert str(path) in said["codecs-1"]["reason"]
    assert [line.split(":")[2].strip() for line in err.splitlines()] == sorted(refused)

    def files(root: Path) -> dict[Path, bytes]:
        return {p.relative_to(root): p.read_bytes() for p in root.glob("*/*")}

    assert files(tmp_path / "out") == files(tmp_path / "expected")
    assert not [p for p in (tmp_path / "out").iterdir() if p.name.endswith(".partial")]
    assert main([*arguments[:-2], "--codec", "zstd"]) == 1  # text
    assert "refused" in capsys.readouterr().out
    path.write_bytes((four / "codecs-1" / path.name).read_bytes())
    shutil.rmtree(disk / "codecs-3")
    assert main(arguments) == 0
    assert rows(tmp_path / "out" / "codecs-1") == rows(four / "codecs-1")


def test_a_torn_batch_at_the_end_is_left_out(tmp_path: Path) -> None:
    """As a broker cuts it off when it starts."""
    source = SAMPLES / "kafka-4.x" / "codecs-1"
    shutil.copytree(source, tmp_path / "codecs-1")
    (path,) = (tmp_path / "codecs-1").glob("*.log")
    data = path.read_bytes()
    path.write_bytes(data + data[:100])
    LogDirectory(tmp_path / "codecs-1").convert(tmp_path / "out", codec="none")
    assert rows(tmp_path / "out" / "codecs-1") == rows(source)


def test_the_same_job_goes_on_and_another_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["convert", str(SAMPLES / "kafka-2.8"), "--out", str(out), "--format", "jsonl"]
    assert main([*arguments, "--topic", "v0", "--codec", "zstd"]) == 0
    first = capsys.readouterr().out
    stamps = {p: p.stat().st_mtime_ns for p in out.rglob("*.log")}
    assert main([*arguments, "--topic", "v0", "--topic", "v1", "--codec", "zstd"]) == 0
    second = capsys.readouterr().out
    assert second.startswith(first) and len(json.loads(second.splitlines()[-1])) == 11
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps
    with pytest.raises(OutputError):
        LogDirectory(SAMPLES / "kafka-2.8", topics="v0").convert(out, codec="lz4")
    with pytest.raises(OutputError):
        LogDirectory(SAMPLES / "kafka-2.8").convert(SAMPLES / "kafka-2.8" / "v0-0" / "x")


@pytest.mark.parametrize("more", [["--level", "3"], ["--codec", "lz4", "--level", "99"]])
def test_levels_that_there_are_not(more: list[str], tmp_path: Path) -> None:
    source = str(SAMPLES / "kafka-2.8" / "v0-0")
    assert main(["convert", source, "--out", str(tmp_path / "out"), *more]) == 2
    assert not (tmp_path / "out").exists()


def test_a_level_compresses_anew(tmp_path: Path) -> None:
    source = LogDirectory(SAMPLES / "kafka-4.x" / "codecs-4")
    kept = source.convert(tmp_path / "kept", codec="zstd").to_pylist()
    anew = source.convert(tmp_path / "anew", codec="zstd", level=19).to_pylist()
    assert [row["what"] for row in (*kept, *anew)] == ["kept", "converted"]
    assert rows(tmp_path / "anew") == rows(tmp_path / "kept")


def test_offsets_that_fall_are_refused(tmp_path: Path) -> None:
    source = SAMPLES / "kafka-4.x" / "idempotent-0"
    data = next(source.glob("*.log")).read_bytes()
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(data + data)
    (row,) = LogDirectory(tmp_path / "t-0").convert(tmp_path / "out", codec="none").to_pylist()
    assert row["what"] == "refused" and "not above those of the batch before" in row["reason"]


def test_a_stream_that_may_end_early_is_refused(tmp_path: Path) -> None:
    """What follows a block of LZ4 that holds nothing is read by some, and not by others."""
    source = tmp_path / "t-0"
    source.mkdir()
    path = source / f"{0:020d}.log"
    path.write_bytes(CASES["a record after nothing in a block"].entry)
    (row,) = LogDirectory(source).convert(tmp_path / "out", codec="none").to_pylist()
    assert row["what"] == "refused" and str(path) in row["reason"]
    assert "may end at byte" in row["reason"]


def test_empty_segments_and_partitions_stay(tmp_path: Path) -> None:
    source = tmp_path / "t-0"
    source.mkdir()
    (source / f"{7:020d}.log").write_bytes(b"")
    LogDirectory(source).convert(tmp_path / "out", codec="gzip")
    (found,) = discover(tmp_path / "out")
    assert [(s.base_offset, s.size) for s in found.segments] == [(7, 0)]


def test_a_writer_that_loses_the_codec_of_messages_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[dict[str, Any]] = [{"magic": 1, "offset": i, "value": b"v"} for i in range(3)]
    wrapper: Any = {"magic": 1, "offset": 2, "attributes": {"compression": "gzip"}}
    source = put(tmp_path / "t-0", (0, LOG_ENTRY.build(wrapper | {"messages": messages})))
    (row,) = LogDirectory(source).convert(tmp_path / "whole").to_pylist()
    assert row["what"] == "converted"
    monkeypatch.setattr(
        "kafka_log.write.rewrite.conversion.encode",
        lambda *args, **options: encode(*args, **options | {"codec": "none"}),
    )
    (row,) = LogDirectory(source).convert(tmp_path / "out").to_pylist()
    assert row["what"] == "refused" and "codec" in row["reason"]
