"""Batches of a version that the schemas do not have: nothing reads over them without a word."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import crc32c
import pytest

import kafka_log
from codecgen.runtime.errors import CodecError
from kafka_codecs import RECORD_BATCH
from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.segment.model import Lost

NAME = f"{0:020d}.log"
RECORDS: Any = [{"key": b"k", "value": b"v"}, {"key": b"l", "value": b"w"}]


def batch(offset: int) -> bytes:
    return RECORD_BATCH.build({"base_offset": offset, "records": RECORDS})


def flipped(offset: int) -> bytes:
    """A batch whose magic byte, which no checksum covers, has another bit."""
    data = bytearray(batch(offset))
    data[RECORD_BATCH.offset_of("magic")] = 3
    return bytes(data)


def newer(offset: int) -> bytes:
    """A batch of a version with one more field before the number of records, and a valid checksum."""
    data = bytearray(flipped(offset))
    count = RECORD_BATCH.offset_of("record_count")
    data[count:count] = struct.pack(">q", 77)
    length, crc = RECORD_BATCH.offset_of("batch_length"), RECORD_BATCH.offset_of("crc")
    data[length : length + 4] = struct.pack(">i", len(data) - length - 4)
    data[crc : crc + 4] = struct.pack(">I", crc32c.crc32c(bytes(data[crc + 4 :])))
    return bytes(data)


@pytest.fixture(params=[flipped, newer])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    log = tmp_path / "in" / "t-0"
    log.mkdir(parents=True)
    (log / NAME).write_bytes(batch(0) + request.param(2) + batch(4))
    return log


@pytest.mark.slow
@pytest.mark.parametrize(
    "argv",
    [
        ["dump"],
        ["dump", "--batches"],
        ["stat"],
        ["stat", "--deep"],
        ["check"],
        ["check", "--deep"],
        ["sql", "select count(*) from records"],
        ["export", "--format", "jsonl", "--out", "OUT"],
        ["export", "--format", "jsonl", "--policy", "salvage", "--out", "OUT"],
        ["keys"],
        ["convert", "--codec", "zstd", "--out", "OUT"],
    ],
    ids=" ".join,
)
def test_every_command_names_the_version(
    directory: Path, argv: list[str], tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    verb, *rest = argv
    out = tmp_path / "out"
    options = [str(out) if word == "OUT" else word for word in rest]
    assert main([verb, str(directory), *options]) != 0
    printed = capsysbinary.readouterr()
    said = printed.out + printed.err
    if "salvage" in argv and out.is_dir():
        said += b"".join(path.read_bytes() for path in out.iterdir())
    assert b"version 3" in said


@pytest.mark.parametrize("policy", ["strict", "kafka"])
@pytest.mark.parametrize("engine", ["construct", "auto"])
def test_a_scan_ends_with_an_error(directory: Path, policy: str, engine: Any) -> None:
    with pytest.raises(CodecError, match=r"3 is unknown|3 stands where"):
        kafka_log.read_table(directory, policy=policy, engine=engine)


def test_salvage_loses_what_it_cannot_read(directory: Path, tmp_path: Path) -> None:
    data = (directory / NAME).read_bytes()
    is_newer = data[len(batch(0)) :].startswith(newer(2))
    lost: list[Lost] = []
    table = kafka_log.scan(
        directory, policy="salvage", on_lost=lambda path, range_: lost.append(range_)
    ).read_all()
    expected = [0, 1, 4, 5] if is_newer else [0, 1, 2, 3, 4, 5]
    assert table["offset"].to_pylist() == expected
    assert [(one.start, one.end) for one in lost] == [
        (len(batch(0)), len(data) - len(batch(4))) for _ in range(is_newer)
    ]
    report = LogDirectory(directory).salvage(tmp_path / "out")
    assert ("lost" in report["what"].to_pylist()) == is_newer
    assert kafka_log.read_table(tmp_path / "out")["offset"].to_pylist() == expected


def test_one_batch_is_one_finding(directory: Path) -> None:
    found = LogDirectory(directory).check(deep=True).to_pylist()
    errors = [row for row in found if row["severity"] == "error"]
    assert [row["code"] for row in errors] == ["batch_magic"]
    assert (errors[0]["byte"], errors[0]["records"]) == (len(batch(0)), 2)
