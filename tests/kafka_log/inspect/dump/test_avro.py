"""Dumps of values of a schema registry."""

from __future__ import annotations

import json

import pytest

from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.make_schema_registry_sample import SAMPLE


def rows_of(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0
) -> tuple[list[dict[str, object]], str]:
    assert main(["dump", *arguments, "--format", "jsonl"]) == code
    printed = capsys.readouterr()
    return [json.loads(line) for line in printed.out.splitlines()], printed.err


def test_values(capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be decoded is printed as bytes, and counted with the first reason."""
    arguments = [str(SAMPLE / "orders-0"), "--decode", "key=utf8,value=avro"]
    rows, errors = rows_of(capsys, *arguments, code=1)
    assert rows[4]["key"] == "order-21"
    assert rows[4]["value"] == {
        "id": 21,
        "customer": "customer 1",
        "amount": 1.5,
        "lines": [{"sku": "sku-0", "count": 1}],
        "note": "gift",
        "placed": "2026-09-21T14:13:20.001Z",
        "status": "PAID",
    }
    assert [row["value"] for row in rows[6:9]] == [None, {"base64": "AAAAA+cC"}, "plain text"]
    assert "3 values cannot be decoded as avro" in errors and "id 999" in errors


def test_ids_in_headers_and_other_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Headers are read though they are not printed."""
    arguments = [str(SAMPLE / "events-0"), "--decode", "value=avro", "--columns", "value"]
    rows, errors = rows_of(capsys, *arguments)
    found = [{"sku": "x", "count": i} for i in range(2)]
    assert rows == [{"value": value, "value_problem": None} for value in found] and not errors
    rows, errors = rows_of(capsys, *arguments[:-1], "offset")
    assert rows == [{"offset": 0}, {"offset": 1}]


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["dump", str(SAMPLE / "events-0"), "--decode", "value=avro", "--columns", "value"])
        == 0
    )
    assert capsys.readouterr().out.splitlines()[1] == '{"sku": "x", "count": 0}'


def test_a_misspelled_format_has_a_suggestion(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(SAMPLE / "orders-0"), "--decode", "value=avor"]) == 2
    assert capfd.readouterr().err.rstrip().endswith("; did you mean avro?")


@pytest.mark.parametrize("decoding", ["confluent", "__consumer_offsets"])
def test_reasons_name_the_field_and_no_schema(
    decoding: str, capfd: pytest.CaptureFixture[str]
) -> None:
    main(["dump", str(SAMPLES / "kafka-4.x" / "codecs-1"), "--decode", decoding, "-n", "1"])
    errors = capfd.readouterr().err
    assert "the first: field " in errors and ".yaml" not in errors and "stream" not in errors
