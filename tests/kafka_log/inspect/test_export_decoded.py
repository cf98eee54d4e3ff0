"""Exports with decoded keys and values."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.inspect import export
from tests.support.make_schema_registry_sample import SAMPLE


def test_topics_have_columns_of_their_own(tmp_path: Path) -> None:
    log = LogDirectory(SAMPLE, topics=["orders", "customers"])
    for file in log.export(tmp_path, decode="avro"):
        topic = file.partition.topic
        table = pq.read_table(file.path)
        assert "value_problem" in table.column_names
        names = table.schema.field("value").type.names
        assert ("lines" in names, "home" in names) == (topic == "orders", topic == "customers")
        assert table.num_rows == file.rows


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["export", str(SAMPLE / "orders-0"), "--out", str(tmp_path), "--format", "jsonl"]
    assert main([*base, "--decode", "avro"]) == 1
    rows = [json.loads(line) for line in (tmp_path / "orders-0.jsonl").read_text().splitlines()]
    assert rows[4]["value"]["placed"] == "2026-09-21T14:13:20.001Z"
    assert rows[8]["value_undecoded"] == "plain text"
    said = capsys.readouterr().err
    assert main([*base, "--decode", "avro"]) == 1
    again = capsys.readouterr().err
    assert "already complete" in again
    for text in (said, again):
        assert "topic orders: 1 value not decoded, bytes kept: no schema with id 999 is" in text
        assert text.count("not decoded") == 3
    assert main(base) == 2  # made of something else
    assert main([*base, "--decode", "avro", "--schema-version", "2"]) == 2
    assert main([*base, "--decode", "avro", "--schema-version", "2", "--overwrite"]) == 1
    rows = [json.loads(line) for line in (tmp_path / "orders-0.jsonl").read_text().splitlines()]
    assert rows[0]["value"]["status"] == "NEW"


def test_a_topic_that_is_decoded_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["export", str(SAMPLE / "customers-0"), "--out", str(tmp_path), "--decode", "auto"]
    assert main(base) == 0
    assert "not decoded" not in capsys.readouterr().err


def test_many_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is counted together."""
    monkeypatch.setattr(export, "MAX_REASONS", 2)
    (file,) = LogDirectory(SAMPLE, topics="orders").export(tmp_path, decode="avro")
    assert file.rows == 10
    assert sum(file.undecoded.values()) == 3
    assert len(file.undecoded) == 3 and file.undecoded["other reasons"] == 1


def test_other_schemas_make_another_export(tmp_path: Path) -> None:
    """A file is kept only if the schemas are the same too."""
    for name, text in (("1", '"string"'), ("2", '"string"')):
        (tmp_path / name).mkdir()
        for number in ("1", "2")[: int(name)]:
            (tmp_path / name / f"orders-value.{number}.avsc").write_text(text)
    base = ["export", str(SAMPLE / "orders-0"), "--out", str(tmp_path / "out"), "--decode", "avro"]
    assert main([*base, "--schemas", str(tmp_path / "1")]) == 1
    assert main([*base, "--schemas", str(tmp_path / "1")]) == 1
    assert main([*base, "--schemas", str(tmp_path / "2")]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--schemas", "x"],
            "--schemas and --schema-version are for values of a schema registry",
        ),
        (
            ["--schema-version", "1"],
            "--schemas and --schema-version are for values of a schema registry",
        ),
        (["--decode", "avro", "--topic", "clicks"], "can be decoded"),
        (["--decode", "auto", "--schema-version", "7", "--topic", "orders"], "has no version 7"),
        (["--decode", "avro", "--spark"], "--decode does not go with --spark"),
        (["--decode", "avro", "--schemas", "/nowhere"], "/nowhere"),
    ],
)
def test_wrong_options(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(SAMPLE), "--out", str(tmp_path), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_problems_of_the_registry_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("orders-0", "_schemas-0"):
        shutil.copytree(SAMPLE / name, tmp_path / "logs" / name)
    log = tmp_path / "logs" / "_schemas-0" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-9])
    out = ["--out", str(tmp_path / "out"), "--topic", "orders"]
    main(["export", str(tmp_path / "logs"), *out, "--decode", "auto"])
    assert "_schemas-0" in capsys.readouterr().err


def test_protobuf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another type that is asked for is an error."""
    base = ["export", str(SAMPLE), "--topic", "payments", "--out"]
    assert main([*base, str(tmp_path / "a"), "--decode", "auto"]) == 0
    rows = pq.read_table(tmp_path / "a" / "payments-0.parquet").to_pylist()
    assert rows[2]["value"] == {"shop.Refund": {"payment": 7}, "shop.Payment": None}
    assert main([*base, str(tmp_path / "b"), "--decode", "avro"]) == 2
    assert "of another type (PROTOBUF)" in capsys.readouterr().err


def test_json_schema(tmp_path: Path) -> None:
    base = ["export", str(SAMPLE), "--topic", "clicks", "--out", str(tmp_path)]
    assert main([*base, "--decode", "json-schema"]) == 0
    rows = pq.read_table(tmp_path / "clicks-0.parquet").to_pylist()
    assert rows[1]["value"] == {"page": "/1", "x": 1, "y": 0.5, "tags": ["t"]}
