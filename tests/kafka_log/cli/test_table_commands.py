"""What commands share whose answer is a table."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from kafka_log import LogDirectory
from kafka_log.cli import main
from tests.paths import ROOT

SAMPLES = ROOT / "samples" / "kafka-2.8"


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def printed(capsys: pytest.CaptureFixture[bytes], *argv: str) -> bytes:
    assert main(["ls", str(SAMPLES), *argv]) == 0
    return capsys.readouterr().out


def test_every_output_has_the_same_table(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    table = LogDirectory(SAMPLES).ls()
    lines = printed(capsysbinary, "--format", "jsonl").splitlines()
    assert list(map(json.loads, lines)) == table.to_pylist()
    text = printed(capsysbinary, "--format", "csv").decode()
    rows = [[str(value) for value in row.values()] for row in table.to_pylist()]
    assert list(csv.reader(io.StringIO(text, newline=""))) == [table.column_names, *rows]
    parquet = printed(capsysbinary, "--format", "parquet")
    assert pyarrow.parquet.read_table(io.BytesIO(parquet)).equals(table)
    with pa.ipc.open_stream(printed(capsysbinary, "--format", "arrow")) as stream:
        assert stream.read_all().equals(table)
    shown = [line.split() for line in printed(capsysbinary).decode().splitlines()]
    assert shown == [table.column_names, *rows]


def test_topics_and_partitions_are_chosen(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    argv = ["--topic", "codecs", "--topic", "v0", "--partition", "1", "--partition", "3"]
    lines = printed(capsysbinary, *argv, "--format", "jsonl").splitlines()
    there = [(row["topic"], row["partition"]) for row in map(json.loads, lines)]
    assert there == [("codecs", 1), ("codecs", 3), ("v0", 1), ("v0", 3)]


@pytest.mark.parametrize("columns", [60, 72, 100])
def test_the_screen_is_as_wide_as_it_says(
    columns: int, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = printed(capsysbinary).decode().splitlines()
    assert max(map(len, lines)) <= columns


def test_nothing_there(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "nothing-0").mkdir()
    argv = ["ls", str(tmp_path), "--segments"]
    assert main(argv) == 0
    assert capsysbinary.readouterr().out == b"no segments\n"
    assert main([*argv, "--format", "jsonl"]) == 0
    assert capsysbinary.readouterr().out == b""
    assert main([*argv, "--format", "csv"]) == 0
    assert capsysbinary.readouterr().out.startswith(b"topic,partition,")


@pytest.mark.parametrize("argv", [["--topic", "none"], ["--partition", "77"]])
def test_what_is_not_there_is_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", str(SAMPLES), *argv]) == 2
    assert capsys.readouterr().err.startswith("kafka-log: there is no ")


@pytest.mark.slow
def test_a_name_cannot_move_the_cursor(tmp_path: Path) -> None:
    (tmp_path / "red\x1b[31m-0").mkdir()
    (tmp_path / "red\x1b[31m-0" / f"{0:020d}.log").touch()
    run = subprocess.run(
        [sys.executable, "-m", "kafka_log", "ls", tmp_path],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert b"\x1b" not in run.stdout
    assert rb"red\x1b[31m" in run.stdout
