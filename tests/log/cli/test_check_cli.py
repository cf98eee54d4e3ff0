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
from kafka_log.report.check import FINDINGS
from tests.paths import ROOT, SAMPLES
from tests.support.check_plants import FIRST, PLAIN, TX, change, flip


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
    assert f"{FIRST}.log, byte 383, offsets 6 to 11, at most 6 records at risk" in first
    assert second.startswith("note: deleted_files in features-0\n")
    assert total == "1 error, 0 warnings, 1 note"
    assert err == ""


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


def test_outputs_for_programs_say_the_same(
    damaged: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def printed(output: str) -> bytes:
        assert main(["check", str(damaged), "--output", output]) == 1
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
            [sys.executable, "-m", "kafka_log", "check", tmp_path, "--output", output],
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
