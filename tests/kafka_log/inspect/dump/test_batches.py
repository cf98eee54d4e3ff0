"""``kafka-log dump --batches``: which batches it shows, in which order, and what it says of damage."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from crc32c import crc32c

from kafka_log import SegmentReader
from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.batches import batch, message

ENGINES = ("construct", "arrow")
OUTPUTS = (["--format", "text"], ["--format", "jsonl"], ["--columns", "last_offset"])


def put(directory: Path, *segments: bytes) -> Path:
    """Segments of ten offsets each."""
    directory.mkdir()
    for i, data in enumerate(segments):
        (directory / f"{10 * i:020d}.log").write_bytes(data)
    return directory


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[int], str]:
    """Return the exit code, the last offsets of the batches in their order, and all that was said."""
    code = main(["dump", "--batches", *map(str, arguments)])
    out, err = capsys.readouterr()
    offsets = re.findall(
        r'(?:lastOffset: |^offset: |"last_offset": |^ *)(\d+)\b', out, re.MULTILINE
    )
    return code, list(map(int, offsets)), out + err


@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_batches_below_the_log_start_offset_are_named(
    output: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka's tool prints them too; ``dump`` skips their records."""
    log = SAMPLES / "kafka-4.x" / "trimmed-0"
    line = "batches below the log start offset are printed too: trimmed-0 before 7;"
    code, offsets, said = shown(capsys, log, *output)
    assert (code, offsets) == (0, [4, 9, 14])
    assert said.count("kafka-log: ") == said.count(line) == 1
    for more in (["--deleted-records"], ["--offsets", "7:"]):
        code, offsets, said = shown(capsys, log, *output, *more)
        assert code == 0 and offsets[-2:] == [9, 14]
        assert line not in said


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_damage_is_said_in_every_output(
    output: list[str], engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the end of a segment, instead of a whole one, and between batches; what lies before it is shown."""
    good = [batch(0), batch(3)]
    place = f"byte {len(good[0])}"
    lost = f"lost: bytes {len(good[0])} to {len(good[0]) + 80}, "
    for name, data, policy, offsets, code, said in [
        ("torn-0", b"".join(good)[:-5], "kafka", [2], 1, "bytes at the end"),
        ("zeros-0", bytes(100), "kafka", [], 1, "zero"),
        ("wrong-0", good[0] + b"\xff" * 80 + good[1], "kafka", [2], 1, place),
        ("strict-0", good[0] + b"\xff" * 80 + good[1], "strict", [2], 1, place),
        ("salvage-0", good[0] + b"\xff" * 80 + good[1], "salvage", [2, 5], 1, lost),
    ]:
        path = put(tmp_path / name, data, batch(10))
        found = shown(capsys, path, "--policy", policy, "--engine", engine, *output)
        assert found[:2] == (code, [*offsets, 12]), (name, found)
        assert said in found[2], (name, found[2])


@pytest.mark.parametrize("engine", ["auto", *ENGINES])
@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_a_segment_without_a_batch(
    output: list[str], engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the largest one too, whose first batch says which engine reads."""
    empty = put(tmp_path / "empty-0", b"")
    code, offsets, said = shown(capsys, empty, "--engine", engine, *output)
    assert (code, offsets) == (0, []) and "lost" not in said
    wrong = put(tmp_path / "wrong-0", b"\xff" * 80)
    code, offsets, said = shown(capsys, wrong, "--engine", engine, *output)
    assert (code, offsets) == (1, []) and str(wrong / f"{0:020d}.log") in said


@pytest.mark.parametrize("engine", ENGINES)
def test_damage_behind_a_range_is_not_read(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path / "t-0", batch(0) + batch(3) + b"\xff" * 80, batch(10))
    assert shown(capsys, path, "--offsets", "0:3", "--engine", engine)[:2] == (0, [2])
    code, offsets, said = shown(capsys, path, "--offsets", "0:8", "--engine", engine)
    assert (code, offsets) == (1, [2, 5])
    assert said.count("Dumping ") == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_segments_outside_of_a_range_are_not_named(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path / "t-0", batch(0), batch(10) + batch(13), batch(20))
    code, offsets, said = shown(capsys, path, "--offsets", "13:16", "--engine", engine)
    assert (code, offsets) == (0, [15])
    assert re.findall(r"^Dumping (.*)$", said, re.M) == [str(path / f"{10:020d}.log")]


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_decompressed(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch whose payload is no gzip, with a checksum that fits, is damage to who reads its records only."""
    data = bytearray(batch(0, "gzip", records=20))
    data[61:] = b"\xa5" * (len(data) - 61)
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    path = put(tmp_path / "t-0", bytes(data) + batch(20))
    assert shown(capsys, path, "--engine", engine)[:2] == (0, [19, 22])
    assert main(["dump", str(path), "--engine", engine]) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_versions_that_alternate_stay_in_their_order(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Headers of old messages have no count of records, those of batches have one."""
    data = b"".join([message(0), message(1), batch(2), message(5), batch(6), batch(9), message(12)])
    path = put(tmp_path / "t-0", data)
    columns = ["--columns", "base_offset,last_offset,magic,record_count", "--format", "jsonl"]
    assert main(["dump", "--batches", str(path), "--engine", engine, *columns]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = [
        (one.magic, one.last_offset, one.count)
        for one in SegmentReader(path / f"{0:020d}.log", records=False)
    ]
    assert [magic for magic, _, _ in expected] == [0, 1, 2, 1, 2, 2, 0]
    assert [(r["magic"], r["last_offset"], r.get("record_count")) for r in rows] == expected
    assert shown(capsys, path, "--engine", engine)[1] == [0, 1, 4, 5, 8, 11, 12]
