"""Invalid arguments are refused by the call, before any result is asked for; empty ``--columns`` by the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kafka_log
from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.segment.block_reader import BlockReader
from tests.paths import SAMPLES

LOG = SAMPLES / "kafka-4.x" / "codecs-0"


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["nope"]},
        {"columns": []},
        {"view": "nope"},
        {"view": "offsets", "columns": ["nope"]},
        {"view": "offsets", "decode": "auto"},
        {"decode": "nope"},
        {"schemas": "/nope"},
        {"schema_version": 1},
        {"format": "nope"},
        {"policy": "nope"},
    ],
    ids=str,
)
def test_export_refuses_them_when_called(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        LogDirectory(LOG).export(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options", [{"on_lost": "nope"}, {"engine": "nope"}, {"columns": []}], ids=str
)
@pytest.mark.parametrize("read", [kafka_log.scan, kafka_log.scan_batches])
def test_scans_refuse_them_when_called(read: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        read(LOG, **options)


def test_a_scan_of_batches_maps_files_or_not() -> None:
    with pytest.raises(ValueError, match="mmap"):
        kafka_log.scan_batches(LOG, mmap=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options", [{"engine": "nope"}, {"policy": "nope"}, {"tail": "nope"}], ids=str
)
def test_a_block_reader_refuses_them(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="nope"):
        BlockReader(LOG / f"{0:020d}.log", **options)


def test_a_block_reader_refuses_columns_when_called() -> None:
    reader = BlockReader(LOG / f"{0:020d}.log", engine="arrow")
    with pytest.raises(ValueError, match="nope"):
        reader.items(["nope"])


@pytest.mark.parametrize(
    "command", [["dump"], ["dump", "--format", "jsonl"], ["dump", "--batches"], ["export"]], ids=str
)
def test_empty_columns_list_the_columns(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")] if command == ["export"] else []
    assert main([*command, str(LOG), "--columns", "", *out]) == 2
    printed, error = capsys.readouterr()
    assert printed == ""
    assert "topic, partition, " in error


@pytest.mark.parametrize(
    "option",
    [
        ["--master", "local"],
        ["--partition-by", "topic"],
        ["--compression", "lz4"],
        ["--ignore-data-loss"],
        ["--catalog", "c"],
    ],
    ids=lambda option: option[0],
)
def test_options_of_spark_need_it(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["export", str(SAMPLES / "kafka-4.x"), "--out", str(out), *option]) == 2
    assert f"{option[0]} is for tables that Spark writes" in capsys.readouterr().err
    assert not out.exists()
