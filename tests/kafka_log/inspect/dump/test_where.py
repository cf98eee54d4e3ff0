"""``kafka-log dump --where`` selects the records for which an expression of DuckDB is true."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_log import read_table
from kafka_log.cli import main
from kafka_log.read.output import record_columns
from kafka_log.read.sql.condition import ConditionError, RowCondition
from tests.paths import SAMPLES

pytest.importorskip("duckdb")

NEW = SAMPLES / "kafka-4.x"

Row = dict[str, Any]

CONDITIONS: list[tuple[str, Callable[[Row], bool]]] = [
    ("offset > 5 and offset < 20", lambda row: 5 < row["offset"] < 20),
    (
        "partition = 1 or topic like 'tr%'",
        lambda row: row["partition"] == 1 or row["topic"][:2] == "tr",
    ),
    ("key is null", lambda row: row["key"] is None),
    ("try(decode(value)) like '%gamma%'", lambda row: b"gamma" in (row["value"] or b"")),
    (
        "headers[1].key = 'trace'",
        lambda row: bool(row["headers"]) and row["headers"][0]["key"] == "trace",
    ),
    (
        "timestamp >= '2026-11-20 06:01:00'",
        lambda row: row["timestamp"].isoformat() >= "2026-11-20T06:01:00",
    ),
    ("producer_id >= 0 and not is_control", lambda row: row["producer_id"] >= 0),
    ("octet_length(value) > (select 100)", lambda row: len(row["value"] or b"") > 100),
    ("damage is null and crc_ok -- a comment", lambda row: True),
    ("false", lambda row: False),
]


@pytest.mark.slow
@pytest.mark.parametrize(("expression", "is_true"), CONDITIONS)
def test_the_same_records_as_by_python(
    expression: str, is_true: Callable[[Row], bool], capsys: pytest.CaptureFixture[str]
) -> None:
    topics = ["codecs", "transactions"]
    columns = [
        "topic",
        "partition",
        "offset",
        "key",
        "value",
        "headers",
        "timestamp",
        "producer_id",
    ]
    rows = read_table(NEW, columns, topics=topics).to_pylist()
    wanted = [[row[name] for name in columns[:3]] for row in rows if is_true(row)]
    command = ["dump", str(NEW), "--topic", ",".join(topics), "--format", "jsonl"]
    assert main([*command, "--where", expression, "--columns", ",".join(columns[:3])]) == 0
    out, errors = capsys.readouterr()
    assert [list(json.loads(line).values()) for line in out.splitlines()] == wanted
    assert ("nothing matches --where" in errors) == (not wanted)


def test_other_options_count_the_records_that_match(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["dump", str(NEW / "codecs-0"), "--format", "jsonl", "--columns", "offset"]
    for more, wanted in ((["--last", "2"], [63, 66]), (["-n", "2"], [0, 3])):
        assert main([*command, "--where", "offset % 3 = 0", *more]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line)["offset"] for line in lines] == wanted


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("nope = 1", 'Referenced column "nope" not found'),
        ("offset >", "syntax error"),
        ("count(*) > 1", "aggregates"),
        ("row_number() over () = 1", "window functions"),
        ("true); select (true", "syntax error"),
        ("offset = 3) or (1 = 1", "syntax error"),
        ("true; select true", "more than one expression"),
        ("decode(value)::int = 1", "Conversion Error"),
        ("offset in (select offset from records)", "records"),
    ],
)
def test_errors_of_duckdb_name_the_expression(
    expression: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(NEW / "codecs-0"), "--where", expression]) == 2
    errors = capsys.readouterr().err
    assert repr(expression) in errors
    assert message in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize("others_match", [True, False])
def test_an_error_at_a_late_row_is_that_of_the_first_row(others_match: bool) -> None:
    """DuckDB fails at the call, or, after the first 8,192 matching rows, while they are read."""
    schema = pa.schema([("value", pa.string())])
    condition = RowCondition(f"value::int > {0 if others_match else 1}", schema)
    messages = []
    for at in (0, 8_191, 8_192, 19_999):
        values = ["x" if i == at else "1" for i in range(20_000)]
        batch = pa.RecordBatch.from_pydict({"value": values}, schema=schema)
        with pytest.raises(ConditionError) as caught:
            condition.filter(batch)
        messages.append(str(caught.value))
    assert set(messages) == {messages[0]}
    good = pa.RecordBatch.from_pydict({"value": ["2", "0"] * 10_000}, schema=schema)
    assert condition.filter(good).column(0).to_pylist() == ["2"] * 10_000


def test_only_the_columns_of_the_expression_are_needed() -> None:
    schema = read_table(NEW / "codecs-0", record_columns(), offsets=(0, 1)).schema
    assert RowCondition("offset > 1", schema).columns == ["offset"]
    assert RowCondition("key = 'a' and partition = 1", schema).columns == ["partition", "key"]
    assert not RowCondition("true", schema).columns
    assert len(RowCondition("columns(*) is null", schema).columns) == len(schema)


def test_python_variables_are_no_tables() -> None:
    secret = pa.table({"a": [1]})
    with pytest.raises(ConditionError, match="secret"):
        RowCondition("exists (select * from secret)", secret.schema)


def test_without_duckdb_a_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for name in [name for name in sys.modules if name.startswith("kafka_log.read.sql.")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["dump", str(NEW / "codecs-0"), "--where", "true"]) == 2
    assert 'pip install "kafka-codecs[sql]"' in capsys.readouterr().err


def test_batches_have_no_such_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(NEW / "codecs-0"), "--where", "true", "--batches"]) == 2
    assert "--where is for records" in capsys.readouterr().err


def test_an_expression_of_other_bytes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(SAMPLES / "kafka-4.x" / "codecs-0"), "--where", "key = '\udcff'"]) == 2
    assert "is not UTF-8: write bytes as" in capsys.readouterr().err
