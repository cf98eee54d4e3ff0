"""The field that a reason names: of a value that fastavro rejects, the first one that does not fit its schema."""

from __future__ import annotations

import io
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from kafka_log.read.schemas.avro_faults import MAX_BYTES, find_fault

LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "last", "type": ["null", "Line"]},
        {"name": "tags", "type": {"type": "map", "values": "boolean"}},
        {"name": "price", "type": "double"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID"]}},
        {"name": "note", "type": {"type": "bytes"}},
    ],
}
VALUE = {
    "id": 300,
    "lines": [{"sku": "a", "count": 1}, {"sku": "b", "count": 2}],
    "last": {"sku": "c", "count": 3},
    "tags": {"x": True},
    "price": 1.5,
    "hash": b"ab",
    "status": "PAID",
    "note": b"cd",
}


def encode(schema: Any, value: Any) -> tuple[Any, dict[str, Any], bytes]:
    """Return a parsed schema, its named types, and an encoded value."""
    named: dict[str, Any] = {}
    parsed = parse_schema(schema, named)
    out = io.BytesIO()
    schemaless_writer(out, parsed, value)
    return parsed, named, out.getvalue()


PARSED, NAMED, DATA = encode(ORDER, VALUE)
# id (2), lines: count, sku a (2), count, sku b (2), count, 0; last: branch, sku, count; tags: count, key, value, 0
FIELD_AT = (
    ["id"] * 2
    + ["lines", "lines[0].sku", "lines[0].sku", "lines[0].count"]
    + ["lines[1].sku", "lines[1].sku", "lines[1].count", "lines"]
    + ["last", "last.sku", "last.sku", "last.count"]
    + ["tags", "tags (a key)", "tags (a key)", "tags['x']", "tags"]
    + ["price"] * 8
    + ["hash"] * 2
    + ["status"]
    + ["note"] * 3
)


def test_a_value_that_fits_has_no_fault() -> None:
    assert len(FIELD_AT) == len(DATA)
    assert find_fault(PARSED, NAMED, DATA) is None


@pytest.mark.parametrize("size", range(len(DATA)))
def test_a_value_that_is_cut_off_ends_in_a_field(size: int) -> None:
    found = find_fault(PARSED, NAMED, DATA[:size])
    is_counted = found is not None and "elements by its count" in found
    assert found is not None
    assert f"field {FIELD_AT[size]} " in f"{found} " or is_counted
    assert not is_counted or FIELD_AT[size].startswith(found.split()[1])


@pytest.mark.parametrize(
    ("at", "byte", "fault"),
    [
        (2, 0x7E, "field lines has 63 elements by its count, but 30 bytes follow"),
        (4, 0xFF, "field lines[0].sku is text that is not UTF-8"),
        (6, 0x01, "field lines[1].sku has the length -1"),
        (10, 0x04, "field last has branch 2 of a union of 2 types"),
        (16, 0xFF, "field tags (a key) is text that is not UTF-8"),
        (17, 0x02, "field tags['x'] has the byte 2, which is no boolean"),
        (29, 0x04, "field status has symbol 2 of an enum of 2 symbols"),
        (30, 0x06, "field note needs 3 bytes, but 2 bytes are left"),
        (30, 0x02, "1 byte follows its last field"),
    ],
)
def test_a_changed_byte_is_a_fault_of_its_field(at: int, byte: int, fault: str) -> None:
    data = bytearray(DATA)
    data[at] = byte
    assert find_fault(PARSED, NAMED, bytes(data)) == fault


def test_numbers_and_values_without_fields() -> None:
    assert find_fault("long", {}, b"\xff" * 10) == "the value has a number of more than 64 bits"
    assert find_fault("string", {}, b"") == "the value is too short"
    assert find_fault(["null", "int"], {}, b"\6") == "the value has branch 3 of a union of 2 types"


def test_a_large_value_is_not_searched() -> None:
    assert find_fault("bytes", {}, b"\1" * (MAX_BYTES + 1)) is None
