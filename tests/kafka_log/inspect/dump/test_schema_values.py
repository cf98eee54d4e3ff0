"""Dumps of keys and values of a schema registry with ``--decode auto``, beside what a scan decodes."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kafka_log
from kafka_log import write_log
from kafka_log.cli import main
from kafka_log.inspect.browse.records import RecordView, read_batch_rows
from kafka_log.logs.discovery import discover
from kafka_log.read.schemas.sources import read_registry
from tests.paths import SAMPLES
from tests.support.avro_engines import encode_avro, framed
from tests.support.make_schema_registry_sample import SAMPLE

BROKER = SAMPLES / "kafka-4.x"
PLAIN = "it does not begin with the id of a schema: read it as text or bytes (--decode utf8, none)"
UNKNOWN = (
    "no schema with id 999 is registered: give the registry or the file that has it (--schemas),"
    " or read the bytes (--decode none)"
)


def dumped(
    capfd: pytest.CaptureFixture[str], code: int, *arguments: Any
) -> tuple[list[dict[str, Any]], str]:
    """The rows of a dump as JSON lines, and what is on stderr."""
    assert main(["dump", *map(str, arguments), "--format", "jsonl"]) == code
    printed = capfd.readouterr()
    return [json.loads(line) for line in printed.out.splitlines()], printed.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topic", "code"),
    [("orders", 1), ("customers", 0), ("events", 0), ("clicks", 0), ("payments", 0)],
)
def test_what_a_scan_decodes(topic: str, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Values, tombstones and reasons are those of a scan; undecoded ones are printed as bytes."""
    rows, _ = dumped(capfd, code, SAMPLE, "--topic", topic, "--decode", "auto")
    columns = ["offset", "value", "value_problem", "value_undecoded"]
    table = kafka_log.read_table(SAMPLE, ["offset", "value"], topics=topic, decode="auto")
    scanned = table.select(columns)
    from kafka_log.text.columns import format_rows_as_json

    expected = [json.loads(line) for line in format_rows_as_json(scanned)]
    assert len(rows) == len(expected) > 1
    for row, other in zip(rows, expected, strict=True):
        assert row["value_problem"] == other["value_problem"]
        shown = other["value"] if other["value_problem"] is None else other["value_undecoded"]
        assert (row["offset"], row["value"]) == (other["offset"], shown)
        assert "key_problem" not in row  # keys of these topics are text, without a schema


def test_undecodable_values(capfd: pytest.CaptureFixture[str]) -> None:
    rows, errors = dumped(capfd, 1, SAMPLE / "orders-0", "--decode", "auto", "--offsets", "6:")
    assert [row["value_problem"] for row in rows[:3]] == [None, UNKNOWN, PLAIN]
    assert "the value ends in field status" in rows[3]["value_problem"]
    assert [row["value"] for row in rows[:3]] == [None, {"base64": "AAAAA+cC"}, "plain text"]
    assert rows[0]["key"] == "order-10" and "3 values cannot be decoded" in errors


def test_text_has_the_reason_after_the_row(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = [str(SAMPLE / "orders-0"), "--decode", "auto", "--columns", "value"]
    assert main(["dump", *arguments, "--offsets", "6:9"]) == 1
    assert capfd.readouterr().out.splitlines() == [
        "value",
        "null",
        "0x00000003e702",
        f"!! the row above (offset 7): value not decoded: {UNKNOWN}",
        '"plain text"',
        f"!! the row above (offset 8): value not decoded: {PLAIN}",
    ]


def test_rows_without_a_frame_have_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SAMPLE / "_schemas-0", tmp_path / "_schemas-0")
    cut_off, other_magic = b"\0\0\0\1", b"\7\0\0\0\1x"
    values = pa.table({"value": pa.array([b"text", cut_off, other_magic, None], pa.binary())})
    write_log(tmp_path, values, topic="orders")
    assert main(["dump", str(tmp_path), "--topic", "orders", "--decode", "avro"]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[4] == f"!! the 3 rows above (offsets 0 to 2): value not decoded: {PLAIN}"
    assert len(lines) == 6


def test_without_the_option_values_stay_bytes(capfd: pytest.CaptureFixture[str]) -> None:
    rows, errors = dumped(capfd, 0, SAMPLE / "events-0")
    assert [row["value"] for row in rows] == [{"base64": "AngA"}, {"base64": "AngC"}]
    assert "value_problem" not in rows[0] and not errors


def test_topics_without_schemas_stay_bytes(capfd: pytest.CaptureFixture[str]) -> None:
    """``auto`` prints the same rows as no decoding of values: without a schema nothing is missing."""
    for topic in ("features", "transactions"):
        rows, errors = dumped(capfd, 0, BROKER, "--topic", topic, "--decode", "auto")
        assert not errors
        assert rows == dumped(capfd, 0, BROKER, "--topic", topic)[0]


def test_several_topics(capfd: pytest.CaptureFixture[str]) -> None:
    rows, _ = dumped(capfd, 1, SAMPLE, "--topic", "*s", "--decode", "auto")
    assert {row["topic"] for row in rows} == {
        *("_schemas", "orders", "customers", "events", "clicks", "payments")
    }
    clicks = [row["value"] for row in rows if row["topic"] == "clicks"]
    assert clicks[2] == {"page": "/2", "x": 2, "y": 1.0, "tags": ["t", "t"]}
    schemas = [row for row in rows if row["topic"] == "_schemas"]
    assert isinstance(schemas[0]["key"], str) and "value_problem" not in schemas[0]


def test_internal_topics_are_decoded_too(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = [BROKER / "__consumer_offsets-0"]
    rows, _ = dumped(capfd, 0, *arguments, "--decode", "auto")
    assert rows == dumped(capfd, 0, *arguments)[0] and "type" in rows[0]["key"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_columns_of_files(kind: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    arguments = [str(SAMPLE / "orders-0"), "--decode", "auto", "--columns", "offset,value"]
    assert main(["dump", *arguments, "--format", kind]) == 1
    data = capfdbinary.readouterr().out
    if kind == "csv":
        lines = data.decode().splitlines()
        assert lines[0] == "offset,value,value_problem" and lines[-2].startswith(
            '8,plain text,"it does'
        )
        return
    table = (
        pq.read_table(io.BytesIO(data))
        if kind == "parquet"
        else pa.ipc.open_stream(data).read_all()
    )
    assert table.column_names == ["offset", "value", "value_problem"]
    assert json.loads(table.column("value")[4].as_py())["customer"] == "customer 1"
    assert table.column("value_problem").to_pylist()[6:9] == [None, UNKNOWN, PLAIN]


def test_bytes_of_files_without_schemas(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for decode in ((), ("--decode", "auto")):
        arguments = ["dump", str(BROKER / "features-0"), *decode, "--format", "parquet"]
        assert main(arguments) == 0
        table = pq.read_table(io.BytesIO(capfdbinary.readouterr().out))
        assert table.schema.field("value").type == pa.binary()
        assert "value_problem" not in table.column_names


def test_a_version_of_the_subject(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = [SAMPLE / "orders-0", "--decode", "auto", "-n", "1", "--schema-version"]
    [row], _ = dumped(capfd, 0, *arguments, "2")
    placed = "1970-01-01T00:00:00.000Z"
    assert row["value"]["status"] == "NEW" and row["value"]["placed"] == placed
    [row], _ = dumped(capfd, 0, *arguments, "1")
    assert list(row["value"]) == ["id", "customer", "amount", "lines"]
    assert main(["dump", *map(str, arguments), "7"]) == 2
    assert "version 7" in capfd.readouterr().err


@pytest.mark.parametrize("decode", [[], ["--decode", "utf8"], ["--decode", "none"]])
@pytest.mark.parametrize("option", [["--schemas", str(SAMPLE)], ["--schema-version", "1"]])
def test_schemas_that_nothing_uses_are_refused(
    decode: list[str], option: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["dump", str(SAMPLE / "orders-0"), *decode, *option]) == 2
    assert "--schemas and --schema-version" in capfd.readouterr().err


def test_with_other_options(capfd: pytest.CaptureFixture[str]) -> None:
    orders = [SAMPLE / "orders-0", "--decode", "auto"]
    rows, errors = dumped(capfd, 1, *orders, "--last", "2")
    assert [row["offset"] for row in rows] == [8, 9] and "2 values" in errors
    rows, errors = dumped(capfd, 0, *orders, "--grep", '"customer": "customer 1"')
    assert [row["offset"] for row in rows] == [1, 4] and not errors
    rows, _ = dumped(capfd, 0, *orders, "-n", "7")
    assert len(rows) == 7
    pytest.importorskip("duckdb")
    rows, _ = dumped(capfd, 1, *orders, "--where", "offset = 7")
    assert [row["value_problem"] for row in rows] == [UNKNOWN]


def test_columns_that_are_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    rows, errors = dumped(capfd, 0, SAMPLE / "orders-0", "--decode", "auto", "--columns", "offset")
    assert rows[7] == {"offset": 7} and not errors
    rows, _ = dumped(
        capfd, 0, SAMPLE / "orders-0", "--decode", "auto", "--columns", "key", "-n", "1"
    )
    assert rows == [{"key": "order-10"}]


def test_records_that_are_appended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """``--follow`` of a topic that is known by its ids alone, and has no record at first."""
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "other.5.avsc").write_text('"string"')
    logs = tmp_path / "logs"
    values = pa.array([framed(5, encode_avro("string", "ana")), framed(6, b"x")], pa.binary())
    write_log(logs, pa.table({"value": values}), topic="names")
    arguments = [logs, "--decode", "auto", "--schemas", schemas, "--follow", "-n", "2"]
    rows, _ = dumped(capfd, 1, *arguments, "--columns", "value")
    assert rows[0] == {"value": "ana", "value_problem": None}
    assert "no schema with id 6" in rows[1]["value_problem"]


def test_explicit_type_without_any_schema(capfd: pytest.CaptureFixture[str]) -> None:
    """Each value has the reason, and the exit code says that nothing was decoded."""
    rows, errors = dumped(capfd, 1, BROKER / "codecs-1", "--decode", "value=avro", "-n", "2")
    assert {row["value_problem"] for row in rows} == {PLAIN}
    assert "2 values cannot be decoded as avro" in errors


def test_browse() -> None:
    """A page shows the same values, and counts the others."""
    found = discover([SAMPLE])
    [orders] = [partition for partition in found if partition.topic == "orders"]
    rows = read_batch_rows(orders, orders.segments[0], 0)
    assert RecordView().decode_rows(rows).values[8] == '"plain text"'
    view = RecordView("auto", False, lambda: read_registry(found), lambda topic: [orders])
    shown = view.decode_rows(rows)
    assert '"customer": "customer 1"' in str(shown.values[4])
    [failure] = shown.failures
    assert failure.startswith("3 values cannot be decoded with schemas")
    assert main(["browse", str(SAMPLE), "--schemas", str(SAMPLE), "--no-open"]) == 2


def test_vectors_and_batches_refuse_it(capfd: pytest.CaptureFixture[str]) -> None:
    for mode in (["--format", "vectors"], ["--batches"]):
        assert main(["dump", str(SAMPLE / "orders-0"), "--decode", "auto", *mode]) == 2
        assert "--decode" in capfd.readouterr().err
