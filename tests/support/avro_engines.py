"""Avro schemas and values, decoded by both engines: the kernel and fastavro."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import fastavro
import numpy as np
import pyarrow as pa

from kafka_log.read.schemas import avro_kernel, decoding
from kafka_log.read.schemas.decoding import PartDecoder
from kafka_log.read.schemas.registry import SchemaRegistry, SchemaVersion

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def registry_of(*schemas: Any, **more: Any) -> SchemaRegistry:
    """Versions of the subject ``t-value``, with the ids from 1."""
    return SchemaRegistry(
        [
            SchemaVersion("t-value", i, i, "AVRO", json.dumps(schema), **more)
            for i, schema in enumerate(schemas, 1)
        ]
    )


def framed(number: int, data: bytes) -> bytes:
    """A value with the id of its schema."""
    return b"\0" + number.to_bytes(4, "big") + data


def decode(registry: SchemaRegistry, values: Any, kernel: bool, **options: Any) -> list[Any]:
    """The columns, by the kernel where it can, or by fastavro alone."""
    few = 0 if kernel else sys.maxsize
    changed: dict[str, Any] = {"MIN_VALUES_FOR_KERNEL": few, "use_kernel": lambda _: True}
    with patch.multiple(decoding, **changed):
        decoder = PartDecoder(registry, "t", "value", [], **options)
        headers = pa.array([[]] * len(values), HEADERS)
        found = decoder.decode_columns(pa.array(values, pa.binary()), headers)
    assert [array.type for array in found] == [f.type for f in decoder.fields]
    for array in found:
        array.validate(full=True)
    return found


def assert_same(a: Any, b: Any) -> None:
    """Types, nulls, the bits of floats, and all values."""
    assert a.type == b.type
    assert a.is_null().equals(b.is_null())
    if pa.types.is_struct(a.type):
        for left, right in zip(a.flatten(), b.flatten(), strict=True):
            assert_same(left, right)
    elif pa.types.is_list(a.type) or pa.types.is_map(a.type):
        assert np.diff(a.offsets.to_numpy()).tolist() == np.diff(b.offsets.to_numpy()).tolist()
        if pa.types.is_map(a.type):
            assert_same(a.keys, b.keys)
            assert_same(a.items, b.items)
        else:
            assert_same(a.values, b.values)
    elif pa.types.is_floating(a.type):
        left, right = (x.fill_null(0).to_numpy(zero_copy_only=False) for x in (a, b))
        assert left.tobytes() == right.tobytes()
    else:
        assert a.equals(b)


def compare(registry: SchemaRegistry, values: Any, **options: Any) -> list[Any]:
    """The columns, the same by the kernel and by fastavro."""
    expected = decode(registry, values, False, **options)
    if not avro_kernel.JIT:
        return expected
    found = decode(registry, values, True, **options)
    for a, b in zip(found, expected, strict=True):
        assert_same(a, b)
    return found


def encode_avro(schema: Any, value: Any) -> bytes:
    """Return ``value`` in the binary form of ``schema``, without the id of the schema."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def decode_rows(
    registry: SchemaRegistry, values: Sequence[bytes | None], **options: Any
) -> list[Any]:
    """Return the rows (value, id, undecoded, problem) of ``values``, after checks that hold for every row."""
    columns = compare(registry, values, **options)
    found = list(zip(*(c.to_pylist() for c in columns), strict=True))
    for data, (value, _, undecoded, problem) in zip(values, found, strict=True):
        assert (undecoded is None) == (problem is None)
        assert undecoded in (None, data)
        assert data is not None or (value is None and problem is None)
        assert value is None or problem is None
    return found


def record_schema(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    """Return the schema of a record whose ``fields`` are pairs of a name and a type."""
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}
