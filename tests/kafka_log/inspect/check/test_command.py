"""The command kafka-log check: what it prints, and what it exits with."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.inspect.check.table import FINDINGS
from tests.paths import ROOT, SAMPLES
from tests.support.check_plants import FIRST, PLAIN, TX, change, flip, remove_segment


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A batch of one topic is damaged; beside another one lies what a broker was about to delete."""
    root = tmp_path / "broker"
    shutil.copytree(SAMPLES / "kafka-4.x", root)
    flip(root / PLAIN / f"{FIRST}.log", 700)
    (root / "features-0" / f"{FIRST}.log.deleted").write_bytes(b"gone")
    return root


def test_good_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(SAMPLES / "kafka-4.x")]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("nothing is wrong\n", "")


def test_errors_are_1(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(damaged)]) == 1
    out, err = capsys.readouterr()
    first, second, total = out.rstrip("\n").split("\n\n")
    assert first.startswith("error: batch_checksum in segments.small-0\n")
    assert f"{FIRST}.log, byte 383, offsets 6 to 11, at most 6 records lost or at risk" in first
    assert second.startswith("note: deleted_files in features-0\n")
    assert total == "1 error, 0 warnings, 1 note"
    assert err.startswith("kafka-log: segments that are not live were skipped: 1 deleted ")


def test_warnings_are_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / PLAIN
    shutil.copytree(SAMPLES / "kafka-4.x" / PLAIN, directory)
    change(directory / f"{FIRST}.index", 48, 48, b"\0")
    assert main(["check", str(directory)]) == 1
    assert capsys.readouterr().out.endswith("0 errors, 1 warning, 0 notes\n")


def test_notes_do_not_count(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(damaged), "--topic", "features"]) == 0
    assert "note: deleted_files" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["{}/none"], ["{}", "--topic", "none"]])
def test_could_not_run_is_2(
    damaged: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *(a.format(damaged) for a in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("kafka-log: ")


@pytest.mark.slow
def test_outputs_for_programs_say_the_same(
    damaged: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def printed(output: str) -> bytes:
        assert main(["check", str(damaged), "--format", output]) == 1
        return capfdbinary.readouterr().out

    lines = [json.loads(line) for line in printed("jsonl").splitlines()]
    assert [line["code"] for line in lines] == ["batch_checksum", "deleted_files"]
    with pa.ipc.open_stream(printed("arrow")) as stream:
        table = stream.read_all()
    assert table.schema == FINDINGS
    assert table.to_pylist() == lines
    rows = list(csv.DictReader(io.StringIO(printed("csv").decode())))
    assert [row["byte"] for row in rows] == ["383", ""]


@pytest.mark.slow
def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    directory = os.fsencode(tmp_path) + b"/\xff\x1b[31m-0"
    try:
        shutil.copytree(os.fsencode(SAMPLES / "kafka-4.x" / TX), directory)
    except OSError:
        pytest.skip("the file system takes UTF-8 only")
    flip(Path(os.fsdecode(directory)) / f"{FIRST}.log", 300)
    for output in ("text", "jsonl"):
        done = subprocess.run(
            [sys.executable, "-m", "kafka_log", "check", tmp_path, "--format", output],
            capture_output=True,
            env=os.environ
            | {
                "PYTHONPATH": ":".join(
                    str(ROOT / n) for n in ("generator", "generated", "pipeline")
                )
            },
        )
        assert (done.returncode, done.stderr) == (1, b"")
        assert b"\\udcff" in done.stdout and b"\x1b" not in done.stdout


def test_offsets_choose_findings(tmp_path: Path) -> None:
    """Those that concern some of them, and those that have none: what is left of all."""
    source = SAMPLES / "kafka-4.x" / "segments.small-0"
    for path in source.iterdir():
        data = bytearray(path.read_bytes())
        if path.suffix == ".log" and len(data) > 500:
            data[400] ^= 1
        (tmp_path / path.name).write_bytes(data)
    (tmp_path / "notes.txt").touch()
    every = LogDirectory(tmp_path).check().to_pylist()
    assert len(every) > 3
    for low, high in ((40, 90), (None, 50), (100, None), (1000, 2000)):
        found = LogDirectory(tmp_path).check(offsets=(low, high)).to_pylist()
        assert found == [
            row
            for row in every
            if (low is None or row["last_offset"] is None or row["last_offset"] >= low)
            and (high is None or row["first_offset"] is None or row["first_offset"] < high)
        ]
        assert found != every


REMOTE = f"{FIRST}-WTscIl6vTOe-sFdJ50q0_w.log"


@pytest.fixture
def tier(tmp_path: Path) -> Path:
    """What tiered storage has of a partition, as LocalTieredStorage keeps it."""
    directory = tmp_path / "tier" / f"{PLAIN}-WTscIl6vTOe-sFdJ50q7_w"
    directory.mkdir(parents=True)
    shutil.copy(SAMPLES / "kafka-4.x" / PLAIN / f"{FIRST}.log", directory / REMOTE)
    return directory.parent


def test_a_tier_is_not_good_before_it_is_read(
    tier: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tier)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert (
        "segments that are not live were skipped: 1 remote (2.7 kB); add --include remote to read them"
        in err
    )
    assert "no segment was checked, because none is live" in err
    assert main(["check", str(tier), "--include", "remote"]) == 0
    assert capsys.readouterr() == ("nothing is wrong\n", "")


@pytest.mark.parametrize("cut", [0, 5, 400])
def test_damage_in_a_tier(tier: Path, cut: int, capsys: pytest.CaptureFixture[str]) -> None:
    """What was copied is whole: its end is no end of a segment that is written to."""
    path = next(tier.rglob("*.log"))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - cut])
    flip(path, 700)
    assert main(["check", str(tier), "--include", "remote", "--format", "jsonl"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["file"] for row in rows} == {str(path)}
    codes = sorted((row["severity"], row["code"]) for row in rows)
    assert codes == [("error", "batch_checksum"), *[("error", "torn_tail")] * (cut > 0)]


def test_what_is_left_out_of_a_log_is_said_and_taken_in(
    damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(
        SAMPLES / "kafka-4.x" / PLAIN / f"{FIRST}.log",
        damaged / "features-0" / f"{FIRST}.log.deleted",
    )
    command = ["check", str(damaged), "--topic", "features", "--format", "jsonl"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "not checked" in json.loads(out)["meaning"]
    assert err.startswith("kafka-log: segments that are not live were skipped: 1 deleted (2.7 kB)")
    flip(damaged / "features-0" / f"{FIRST}.log.deleted", 60)
    assert main([*command, "--include", "deleted"]) == 1
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["code"] for row in rows] == ["batch_checksum", "deleted_files"]
    assert "not checked" not in rows[1]["meaning"]
    assert err == ""


def test_a_log_directory_without_segments_is_not_said_to_be_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orders-0").mkdir()
    assert main(["check", str(tmp_path)]) == 0
    said = "there is no segment yet: nothing was checked but files beside segments\n"
    assert capsys.readouterr() == (said, "")


@pytest.mark.parametrize("filters", [("--offsets", "50:60"), ("--time", "2030-01-01:")])
def test_a_finding_is_not_said_to_match_nothing(
    tmp_path: Path, filters: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAMPLES / "kafka-4.x" / PLAIN, tmp_path / PLAIN)
    remove_segment(tmp_path / PLAIN, 42)
    assert main(["check", str(tmp_path), *filters]) == 0
    out, err = capsys.readouterr()
    assert "note: segment_missing" in out
    assert f"no batch matches {filters[0]}" in err
    assert "nothing matches" not in err
