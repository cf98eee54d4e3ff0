"""Tables as JSON lines, CSV, Parquet and Arrow: what is written gives the values back."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import re
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from hypothesis import given

from kafka_log.text.columns import format_rows_as_json
from kafka_log.text.output import write_table
from tests.support.random_tables import KINDS, WITH_FIELDS, iso, tables


def plain(kind: Any, value: Any) -> Any:
    """A value as JSON has it, worked out from Arrow's own."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return iso(value)
    if pa.types.is_floating(kind) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if kind == pa.binary(16):
        return base64.b64encode(value, b"-_").decode().rstrip("=")
    if pa.types.is_binary(kind):
        try:
            text = str(value, "utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if all(c in "\t\r\n" or (c >= " " and c != "\x7f") for c in text):
            return text
        return {"base64": base64.b64encode(value).decode()}
    if pa.types.is_list(kind):
        return [plain(kind.value_type, item) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: plain(field.type, value[field.name]) for field in kind}
    return value


def cell(column: Any, row: int) -> Any:
    return raw(column[row])


def raw(scalar: Any) -> Any:
    """A scalar as Python objects; times are numbers, which may be in no calendar."""
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.TimestampScalar):
        return scalar.value
    if isinstance(scalar, pa.ListScalar):
        return [raw(item) for item in scalar]
    if isinstance(scalar, pa.StructScalar):
        return {name: raw(item) for name, item in scalar.items()}
    return scalar.as_py()


def expected(table: pa.Table) -> list[dict[str, Any]]:
    return [
        {f.name: plain(f.type, cell(table.column(f.name), row)) for f in table.schema}
        for row in range(table.num_rows)
    ]


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_rows_without_columns() -> None:
    rows = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert format_rows_as_json(pa.Table.from_batches([rows])) == ["{}", "{}"]


@given(tables())
def test_json_lines_give_the_values_back(table: pa.Table) -> None:
    lines = format_rows_as_json(table)
    assert [json.loads(line, parse_constant=refuse) for line in lines] == expected(table)
    assert all(line.isprintable() for line in lines)


@given(tables())
def test_csv_for_python(table: pa.Table) -> None:
    text = written(table, "csv").decode("utf-8")
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == table.column_names
    assert rows == [[in_csv(value) for value in row.values()] for row in expected(table)]


def in_csv(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, list | dict):
        return str(value)
    parsed = json.dumps(value, ensure_ascii=False)
    return re.sub(
        "[^ -~]", lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], parsed
    )


SIMPLE = [
    (kind, values)
    for kind, values in KINDS
    if not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_timestamp(kind))
    and kind != pa.binary(16)
]


@given(tables(SIMPLE))
def test_csv_for_arrow(table: pa.Table) -> None:
    """Null and empty text come back as what they were; a table of one column cannot tell them apart."""
    if table.num_columns == 1:
        table = table.append_column("more", pa.array(range(table.num_rows), pa.int64()))
    types = {f.name: plain_type(f.type) for f in table.schema}
    back = pyarrow.csv.read_csv(
        io.BytesIO(written(table, "csv")),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for name, kind in types.items():
        mine, theirs = table.column(name).cast(kind).to_pylist(), back.column(name).to_pylist()
        assert list(map(repr, mine)) == list(map(repr, theirs))


def plain_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@given(tables(WITH_FIELDS))
def test_parquet_and_arrow_are_the_table(table: pa.Table) -> None:
    parquet = pyarrow.parquet.read_table(io.BytesIO(written(table, "parquet")))
    with pa.ipc.open_stream(written(table, "arrow")) as stream:
        arrow = stream.read_all()
    for back in (parquet, arrow):
        assert back.schema.equals(table.schema)
        assert expected(back) == expected(table)


def written(table: pa.Table, output: Any) -> bytes:
    out = io.BytesIO()
    write_table(table, output, out)
    return out.getvalue()
