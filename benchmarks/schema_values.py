"""How fast values of a schema registry become columns: Avro, JSON Schema and Protobuf.

    python -m benchmarks.schema_values [--mib 2] [--rounds 7] [--output benchmarks/results/schema_values.md]

Records have seven fields, one of them a list of up to two records.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import fastavro
import pyarrow as pa

from benchmarks import measure
from benchmarks.measure import Candidate, Report
from codecgen.runtime.arrow.primitives.compiling import compile_ahead
from kafka_log.read.schemas import avro_kernel, decoding
from kafka_log.read.schemas.decoding import PartDecoder
from kafka_log.read.schemas.protobuf import ProtobufSchema
from kafka_log.read.schemas.registry import SchemaRegistry, SchemaVersion

NOTES = """
Thousands of values a second on one core, from medians of CPU time. *columns* is what `decode` does: frames, values, checks and Arrow
columns. Avro values are decoded by the compiled kernel, or by fastavro as without numba. *library* is the loop over the library alone, to its own objects and without checks: `fastavro.schemaless_reader`, `json.loads`,
`ParseFromString`.
""".strip()

LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}]}  # fmt: skip
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]}},
    ],
}
INTEGER, STRING = {"type": "integer"}, {"type": "string"}
JSON_LINE = {"type": "object", "properties": {"sku": STRING, "count": INTEGER}}
JSON = {
    "type": "object",
    "properties": {
        "id": INTEGER,
        "customer": STRING,
        "amount": {"type": "number"},
        "lines": {"type": "array", "items": JSON_LINE},
        "note": {"type": ["null", "string"]},
        "placed": INTEGER,
        "status": STRING,
    },
}
PROTOBUF = """\
syntax = "proto3";
message Order {
  int64 id = 1; string customer = 2; double amount = 3; repeated Line lines = 4; optional string note = 5; int64 placed = 6;
  Status status = 7; enum Status { NEW = 0; PAID = 1; } message Line { string sku = 1; int32 count = 2; }
}
"""


def orders(count: int) -> Iterator[dict[str, Any]]:
    """Orders, each another one."""
    for i in range(count):
        lines = [{"sku": f"sku-{n}", "count": n} for n in range(i % 3)]
        order = {"id": i, "customer": f"customer {i}", "amount": i * 1.5, "lines": lines}
        yield order | {"note": "gift" if i % 2 else None, "placed": 1_790_000_000_000 + i, "status": "PAID"}  # fmt: skip


def avro_values(count: int) -> tuple[list[bytes], Callable[[bytes], object]]:
    """Values, and the reader of the library."""
    schema = fastavro.parse_schema(json.loads(json.dumps(AVRO)))
    found = []
    for order in orders(count):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, order)
        found.append(out.getvalue())
    return found, lambda data: fastavro.schemaless_reader(io.BytesIO(data), schema, None)


def json_values(count: int) -> tuple[list[bytes], Callable[[bytes], object]]:
    """Values, and the reader of the library."""
    return [json.dumps(order).encode() for order in orders(count)], json.loads


def protobuf_values(count: int) -> tuple[list[bytes], Callable[[bytes], object]]:
    """Values after the path of their message, and the reader of the library."""
    version = SchemaVersion("t-value", 1, 1, "PROTOBUF", PROTOBUF)
    kind = ProtobufSchema(version, SchemaRegistry()).select()["Order"][0]
    found = [b"\0" + kind(**order).SerializeToString() for order in orders(count)]
    return found, lambda data: kind.FromString(data[1:])


def _read_all(read: Callable[[bytes], object], values: list[bytes]) -> list[object]:
    """What the library makes of all values."""
    return [read(data) for data in values]


def main() -> None:
    options = measure.parser(__doc__, rounds=7, mib=2).parse_args()
    report = Report("Values of a schema registry", measure.command("benchmarks.schema_values", options))  # fmt: skip
    report.add(NOTES)
    report.table("values", "number", "bytes", "columns", "library")
    count = options.mib * 10_000
    compile_ahead(avro_kernel)
    for name, kind, text, make in (
        ("AVRO, kernel", "AVRO", json.dumps(AVRO), avro_values),
        ("AVRO, fastavro", "AVRO", json.dumps(AVRO), avro_values),
        ("JSON", "JSON", json.dumps(JSON), json_values),
        ("PROTOBUF", "PROTOBUF", PROTOBUF, protobuf_values),
    ):
        values, read = make(count)
        array = pa.array([b"\0\0\0\0\1" + data for data in values], pa.binary())
        registry = SchemaRegistry([SchemaVersion("t-value", 1, 1, kind, text)])
        decoder = PartDecoder(registry, "t", "value", [])
        with patch.object(decoding, "use_kernel", lambda _, used=name == "AVRO, kernel": used):
            assert decoder.decode_columns(array, None)[3].null_count == count
            candidates: dict[str, Candidate] = {
                "columns": partial(decoder.decode_columns, array, None),
                "library": partial(_read_all, read, values),
            }
            found = measure.rounds(candidates, options.rounds)
        size = sum(map(len, values)) / count
        report.row(name, f"{count:,}", f"{size:.0f}", *(f"{count / found[n].median / 1000:,.0f}" for n in candidates))  # fmt: skip
    report.write(options.output)


if __name__ == "__main__":
    main()
