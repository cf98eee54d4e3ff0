"""kafka-log salvage --repair: flipped bits are repaired in what is written, never in what is read, and never in silence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log import LogDirectory, SegmentReader
from kafka_log.cli import main
from kafka_log.write.staged_output import OutputError
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.salvage_rows import files, problems, said
from tests.support.segment_files import put

SOURCE = SAMPLES / "kafka-4.x" / "segments.small-0"
FILE = "00000000000000000042.log"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A broker's directory with one flipped bit in a batch, which begins at byte 383."""
    shutil.copytree(SOURCE, tmp_path / "disk" / "orders-0")
    flip(tmp_path / "disk", 500, 0x40)
    return tmp_path / "disk"


def flip(disk: Path, byte: int, bits: int) -> None:
    path = disk / "orders-0" / FILE
    data = bytearray(path.read_bytes())
    data[byte] ^= bits
    path.write_bytes(data)


def test_the_written_log_is_that_of_before(disk: Path, tmp_path: Path) -> None:
    before = files(disk, "")
    table = LogDirectory(disk).salvage(tmp_path / "out", repair=True)
    assert files(disk, "") == before
    assert files(tmp_path / "out" / "orders-0", ".log") == files(SOURCE, ".log")
    assert problems(tmp_path / "out") == []
    [row] = said(table, "repaired")
    assert (row["file"], row["byte"], row["bytes"]) == (FILE, 383, 383)
    assert (row["first_offset"], row["last_offset"], row["records"]) == (48, 53, 6)
    assert row["reason"].startswith("one bit at byte 500, 60 instead of 20 (certain:")
    assert not said(table, "lost") and not list(tmp_path.rglob(".repaired"))


def test_without_the_option_nothing_is_repaired(disk: Path, tmp_path: Path) -> None:
    table = LogDirectory(disk).salvage(tmp_path / "out")
    assert said(table, "lost") and not said(table, "repaired")
    with pytest.raises(OutputError):  # the output depends on it
        LogDirectory(disk).salvage(tmp_path / "out", repair=True)


def test_what_cannot_be_repaired_is_lost_and_told(disk: Path, tmp_path: Path) -> None:
    flip(disk, 900, 1)
    flip(disk, 1000, 1)  # two bits of the next batch
    table = LogDirectory(disk).salvage(tmp_path / "out", repair=True)
    assert [row["byte"] for row in said(table, "repaired")] == [383]
    [row] = said(table, "not repaired")
    assert (row["byte"], row["bytes"]) == (766, 383)
    [lost] = said(table, "lost")
    assert str(disk / "orders-0" / FILE) in lost["reason"]  # not the copy that was repaired
    assert ".repaired" not in lost["reason"]


def test_a_dry_run_writes_nothing(
    disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(tmp_path, "")
    command = ["salvage", str(disk), "--repair", "--dry-run"]
    assert main([*command, "--format", "jsonl"]) == 0
    [row] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (row["what"], row["byte"]) == ("repaired", 383)
    assert main(command) == 0
    assert "1 batch can be repaired" in capsys.readouterr().out
    flip(disk, 900, 1)
    flip(disk, 1000, 1)
    assert main(command) == 1
    out = capsys.readouterr().out
    assert "1 batch can be repaired, 1 cannot" in out and "not repaired" in out
    flip(disk, 900, 1)
    flip(disk, 1000, 1)
    assert files(tmp_path, "") == before
    shutil.copyfile(SOURCE / FILE, disk / "orders-0" / FILE)
    assert main(command) == 0
    assert capsys.readouterr().out == "nothing to repair\n"


def test_options_that_miss_another_one(disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["salvage", str(disk), "--dry-run"]) == 2
    assert "--repair" in capsys.readouterr().err
    assert main(["salvage", str(disk), "--repair"]) == 2
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("byte", "bits", "code", "what"),
    [
        (501, 0x40, "batch_checksum", "One bit at byte 501, "),
        (391, 0x40, "unreadable_bytes", "Wrong batch_length at byte 391, 40 instead of 00"),
        (399, 1, "batch_magic", "One bit at byte 399, in magic, 03 instead of 02"),
        (390, 2, "offsets_not_rising", "One bit at byte 390, in base_offset, 32 instead of 30"),
        (
            383,
            64,
            "batch_in_wrong_segment",
            "One bit at byte 383, in base_offset, 40 instead of 00",
        ),
    ],
)
def test_check_says_which_bit(
    byte: int, bits: int, code: str, what: str, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(disk, 500, 0x40)  # as it was
    flip(disk, byte, bits)
    assert main(["check", str(disk), "--format", "jsonl"]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [one] = [f for f in found if f["code"] == code]
    assert what in one["meaning"] and one["meaning"].endswith("salvage --repair corrects it.")


def test_check_names_the_length_of_the_last_batch(
    disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To a broker it looks as if the batch had not been written completely, and it would cut it off."""
    shutil.copyfile(SOURCE / FILE, disk / "orders-0" / FILE)
    last = max((disk / "orders-0").glob("*.log"))
    at = [batch.position for batch in SegmentReader(last)][-1]
    data = bytearray(last.read_bytes())
    data[at + 10] ^= 4
    last.write_bytes(data)
    main(["check", str(disk), "--format", "jsonl"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [one] = [f for f in found if f["code"] == "torn_tail"]
    assert "salvage --repair corrects it." in one["meaning"]


@pytest.mark.slow
@given(st.data())
@examples(20)
def test_one_fault_in_a_sample_of_a_broker(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Any bit of any version, codec and kind of batch: the log is as it was, or what is not is told."""
    tmp = tmp_path_factory.mktemp("one", numbered=True)
    sources = sorted(
        path
        for broker in ("kafka-2.8", "kafka-4.x")
        for path in (SAMPLES / broker).glob("*/*.log")
        if 0 < path.stat().st_size < 30_000 and not path.parent.name.startswith("__")
    )
    source = data.draw(st.sampled_from(sources))
    whole = source.read_bytes()
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    put(tmp / "t-0", (int(source.stem), bytes(damaged)))
    table = LogDirectory(tmp / "t-0").salvage(tmp / "out", repair=True)
    written = tmp / "out" / "t-0" / source.name
    repaired = said(table, "repaired")
    if repaired:
        assert written.read_bytes() == whole
        assert len(repaired) == 1
