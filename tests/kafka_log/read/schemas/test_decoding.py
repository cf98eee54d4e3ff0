"""Decoded columns, beside what Confluent's deserializers read, and on random schemas, values and bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafka_log
from kafka_log import write_log
from kafka_log.read.schemas.avro import AvroSchema
from kafka_log.read.schemas.decoding import PartDecoder
from kafka_log.read.schemas.framing import SchemaId
from kafka_log.read.schemas.registry import (
    SchemaError,
    SchemaReference,
    SchemaRegistry,
    SchemaVersion,
)
from tests.support.make_schema_registry_sample import SAMPLE, from_hex, read_file

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
    return b"\0" + number.to_bytes(4, "big") + data


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def decoded(registry: SchemaRegistry, values: Sequence[bytes | None], **options: Any) -> list[Any]:
    """The rows (value, id, undecoded, problem). What holds for all of them is checked."""
    decoder = PartDecoder(registry, "t", "value", [], **options)
    array = pa.array(values, pa.binary())
    columns = decoder.decode_columns(array, pa.array([[]] * len(values), HEADERS))
    assert [c.type for c in columns] == [f.type for f in decoder.fields]
    for value in columns[0:1]:
        value.validate(full=True)
    found = list(zip(*(c.to_pylist() for c in columns), strict=True))
    for data, (value, _, undecoded, problem) in zip(values, found, strict=True):
        assert (undecoded is None) == (problem is None)
        assert undecoded in (None, data)
        assert data is not None or (value is None and problem is None)
        assert value is None or problem is None
    return found


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


# ---------------------------------------------------------------- what others read


@pytest.mark.parametrize("topic", ["orders", "customers", "events"])
def test_what_confluents_deserializers_read(topic: str) -> None:
    """Each field that the record's own schema has; fields of other versions are null."""
    lines = [line for line in read_file() if line["topic"] == topic]
    rows = kafka_log.read_table(SAMPLE / f"{topic}-0", ["value"], decode="avro").to_pylist()
    assert len(rows) == len(lines)
    for line, row in zip(lines, rows, strict=True):
        data = from_hex(line["value"])
        if "read" not in line:
            assert row["value"] is None
            assert row["value_undecoded"] == data
            assert (row["value_problem"] is None) == (data is None)
            continue
        assert row["value_problem"] is None and row["value_undecoded"] is None
        value = row["value"]
        if "tags" in value:
            value["tags"] = dict(value["tags"])
        if value.get("placed") is not None:
            value["placed"] = value["placed"].isoformat(" ")
        value = json.loads(json.dumps(value, default=str))
        expected = dict.fromkeys(value) | line["read"]
        if "placed" in expected and expected["placed"] is not None:
            assert expected["placed"][:19] == value["placed"][:19]
            expected["placed"] = value["placed"]
        assert value == expected


def test_the_reasons() -> None:
    rows = kafka_log.read_table(SAMPLE, ["value"], topics="orders", decode="auto").to_pylist()
    assert [row["value_problem"] for row in rows[6:]] == [
        None,  # a tombstone
        "no schema with id 999 is registered",
        "it does not begin with the id of a schema",
        "it is no value of schema 2: EOFError",
    ]
    assert [row["value_schema_id"] for row in rows] == [1, 1, 1, 2, 2, 2, None, 999, None, 2]


# ---------------------------------------------------------------- random schemas

SCALARS: dict[str, Any] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=5),
    "string": st.text(max_size=5),
}


@st.composite
def schemas(draw: Any, depth: int = 0) -> tuple[Any, Any]:
    """A schema and a strategy of its values."""
    kinds = ["scalar", "enum", "fixed", "nullable"]
    kinds += ["record", "array", "map"] if depth < 3 else []
    kind = draw(st.sampled_from(kinds))
    name = f"N{draw(st.integers(0, 10**12))}"
    if kind == "scalar":
        scalar = draw(st.sampled_from(list(SCALARS)))
        return scalar, SCALARS[scalar]
    if kind == "enum":
        return {"type": "enum", "name": name, "symbols": ["A", "B"]}, st.sampled_from(["A", "B"])
    if kind == "fixed":
        size = draw(st.integers(1, 4))
        return {"type": "fixed", "name": name, "size": size}, st.binary(
            min_size=size, max_size=size
        )
    if kind == "nullable":
        scalar = draw(st.sampled_from([s for s in SCALARS if s != "null"]))
        order = draw(st.permutations(["null", scalar]))
        return order, st.none() | SCALARS[scalar]
    if kind == "record":
        fields = [draw(schemas(depth=depth + 1)) for _ in range(draw(st.integers(1, 3)))]
        schema = record(*((f"f{i}", s) for i, (s, _) in enumerate(fields)), name=name)
        return schema, st.fixed_dictionaries({f"f{i}": v for i, (_, v) in enumerate(fields)})
    item, values = draw(schemas(depth=depth + 1))
    if kind == "array":
        return {"type": "array", "items": item}, st.lists(values, max_size=3)
    return {"type": "map", "values": item}, st.dictionaries(st.text(max_size=3), values, max_size=3)


def same(found: Any, value: Any) -> bool:
    """Whether Arrow's value is that one: maps come as pairs."""
    if isinstance(value, dict) and isinstance(found, list):
        return len(found) == len(value) and all(same(v, value[k]) for k, v in found)
    if isinstance(value, dict):
        return isinstance(found, dict) and all(same(found[k], v) for k, v in value.items())
    if isinstance(value, list):
        return len(found) == len(value) and all(map(same, found, value))
    return bool(found == value and type(found) is type(value))


@given(st.data())
def test_random_schemas(data: Any) -> None:
    schema, strategy = data.draw(schemas())
    values = data.draw(st.lists(strategy, max_size=4))
    bytes_of = [framed(1, encoded(schema, value)) for value in values]
    try:
        AvroSchema(registry_of(schema).versions[0], registry_of(schema))
    except SchemaError as error:
        assert "take no bytes" in str(error)
        return
    rows = decoded(registry_of(schema), [*bytes_of, None])
    for value, row in zip(values, rows, strict=False):
        assert row[3] is None and same(row[0], value), (value, row)
    # Any bytes give a value that has these bytes, or a reason.
    junk = data.draw(st.lists(st.binary(max_size=12), max_size=4))
    for raw, (value, _, _, problem) in zip(
        junk, decoded(registry_of(schema), [framed(1, x) for x in junk]), strict=True
    ):
        assert problem is not None or encodes_to(schema, value, raw)


def encodes_to(schema: Any, value: Any, raw: bytes) -> bool:
    """Whether fastavro reads the same value from ``raw``, to the end."""
    source = io.BytesIO(raw)
    found = fastavro.schemaless_reader(source, fastavro.parse_schema(schema), None)
    is_same = found != found or repr(found).count("nan") > 0 or same(value, found)
    return source.tell() == len(raw) and is_same


# ---------------------------------------------------------------- bytes that fastavro takes, and others


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (record(("a", "long")), b""),
        (record(("a", "long")), b"\x80"),
        (record(("a", "long")), b"\x02\x00"),
        (record(("a", "long")), b"\x80\x00"),  # a longer form of 0
        (record(("a", "long")), b"\xff" * 12),
        (record(("a", "int")), b"\xfe\xff\xff\xff\xff\x7f"),
        (record(("a", "boolean")), b"\x07"),
        (record(("a", "string")), b"\x01"),
        (record(("a", "string")), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (record(("a", "string")), b"\x04\xff\xfe"),
        (record(("a", {"type": "enum", "name": "E", "symbols": ["A"]})), b"\x01"),  # -1
        (record(("a", {"type": "enum", "name": "E", "symbols": ["A"]})), b"\x02"),
        (record(("a", ["null", "long"])), b"\x03"),  # -2
        (record(("a", ["null", "long"])), b"\x04"),
        (record(("a", {"type": "array", "items": "long"})), b"\x80\xa8\xd6\xb9\x07"),
        (record(("a", {"type": "fixed", "name": "F", "size": 1 << 40})), b"abcd"),
        (record(("a", {"type": "bytes", "logicalType": "decimal", "precision": 2})), b"\x04\x7f\xff"),
    ],
    ids=str,
)  # fmt: skip
def test_bytes_that_are_no_value(schema: Any, data: bytes) -> None:
    ((value, number, undecoded, problem),) = decoded(registry_of(schema), [framed(1, data)])
    assert (value, number, undecoded) == (None, 1, framed(1, data))
    assert problem and len(problem) > 20


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array", "items": "null"}, "take no bytes"),
        ({"type": "array", "items": record()}, "take no bytes"),
        (["null", "string", {"type": "array", "items": record(("x", "null"))}], "take no bytes"),
        (record(("next", ["null", "R"])), "R has itself as a part"),
        (record(("next", ["null", "string", "R"])), "R has itself as a part"),
        (record(("next", "R")), "R has itself as a part"),
        (record(("a", "unknown")), "unknown"),
        (record(("a", "int"), ("a", "int")), "two fields with one name|Duplicate"),
        ({"type": "fixed", "name": "F", "size": -1}, "size"),
        ({"type": "zzz"}, "zzz"),
        (7, "is invalid"),
        ({}, "is invalid"),
    ],
)
def test_schemas_that_are_not_decoded(schema: Any, message: str) -> None:
    registry = registry_of(schema)
    with pytest.raises(SchemaError, match=message):
        AvroSchema(registry.versions[0], registry)
    ((_, _, _, problem),) = decoded(registry, [framed(1, b"\x02")])
    assert problem is not None


def test_schemas_that_are_too_large() -> None:
    """Each name is used twice by the next one."""
    fields: list[Any] = [("f", record(("x", "int"), name="R0"))]
    for i in range(1, 20):
        fields.append((f"f{i}", record(("a", f"R{i - 1}"), ("b", f"R{i - 1}"), name=f"R{i}")))
    registry = registry_of(record(*fields, name="Top"))
    with pytest.raises(SchemaError, match="more than 10,000 fields"):
        AvroSchema(registry.versions[0], registry)
    deep: Any = "int"
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    registry = registry_of(deep)
    with pytest.raises(SchemaError, match="nested more than 60 levels"):
        AvroSchema(registry.versions[0], registry)
    text = '{"type":"array","items":' * 100_000
    registry = SchemaRegistry([SchemaVersion("t-value", 1, 1, "AVRO", text)])
    with pytest.raises(SchemaError, match="nested too deep"):
        AvroSchema(registry.versions[0], registry)


# ---------------------------------------------------------------- versions


def test_versions_that_differ() -> None:
    """Columns hold each version; numbers are widened, and JSON texts hold what differs otherwise."""
    old = record(("a", "int"), ("b", "float"), ("c", "string"), ("d", "int"))
    new = record(
        ("e", {"type": "map", "values": "int"}), ("a", "long"), ("b", "long"), ("c", "int")
    )
    values = [
        framed(1, encoded(old, {"a": 1, "b": 0.5, "c": "x", "d": 2})),
        framed(2, encoded(new, {"e": {"k": 1}, "a": 1 << 40, "b": 3, "c": 4})),
        framed(2, encoded(new, {"e": {}, "a": 1, "b": (1 << 53) + 1, "c": 4})),
    ]
    first, second, third = decoded(registry_of(old, new), values)
    assert first[0] == {"a": 1, "b": 0.5, "c": '"x"', "d": 2, "e": None}
    assert second[0] == {"a": 1 << 40, "b": 3.0, "c": "4", "d": None, "e": [("k", 1)]}
    assert third[0] is None and "outside of the range" in third[3]


def test_a_version_that_is_asked_for() -> None:
    """Avro's resolution: defaults for what is new, and without what is gone."""
    old = record(("a", "int"), ("gone", "int"))
    new = record(("a", "long"))
    new["fields"].append({"name": "b", "type": "string", "default": "none"})
    data = [framed(1, encoded(old, {"a": 1, "gone": 2}))]
    assert decoded(registry_of(old, new), data, schema_version=2)[0][0] == {"a": 1, "b": "none"}
    assert decoded(registry_of(old, new), data, schema_version=1)[0][0] == {"a": 1, "gone": 2}
    with pytest.raises(SchemaError, match="has no version 3"):
        decoded(registry_of(old, new), data, schema_version=3)


def test_a_schema_that_came_too_late() -> None:
    """Its fields have no column: the row is kept as bytes, not cut."""
    other = SchemaVersion("elsewhere", 1, 9, "AVRO", json.dumps(record(("z", "int"))))
    registry = SchemaRegistry([*registry_of(record(("a", "int"))).versions, other])
    ((value, _, _, problem),) = decoded(registry, [framed(9, b"\x02")])
    assert value is None and "fields without a column" in problem
    decoder = PartDecoder(registry, "t", "value", [SchemaId(9)])
    assert [f.name for f in decoder.fields[0].type] == ["a", "z"]


def test_unions_of_several_types() -> None:
    union = ["null", "int", "string", "bytes", record(("x", "int"), name="A"), record(("x", "int"), name="B")]  # fmt: skip
    schema = record(("u", union))
    values = [None, 7, "x", b"\xff", ("A", {"x": 1}), ("B", {"x": 1})]
    rows = decoded(registry_of(schema), [framed(1, encoded(schema, {"u": v})) for v in values])
    assert [row[0]["u"] for row in rows] == [
        None, "7", '"x"', '{"base64": "/w=="}', '["A", {"x": 1}]', '["B", {"x": 1}]',
    ]  # fmt: skip


def test_logical_types() -> None:
    def logical(kind: str, name: str, **more: Any) -> Any:
        return {"type": kind, "logicalType": name, **more}

    schema = record(
        ("decimal", logical("bytes", "decimal", precision=4, scale=2)),
        ("odd", logical("bytes", "decimal", precision=0)),
        ("date", logical("int", "date")),
        ("millis", logical("long", "timestamp-millis")),
        ("local", logical("long", "local-timestamp-micros")),
        ("time", logical("int", "time-millis")),
        ("uuid", logical("string", "uuid")),
        ("wrong", logical("string", "date")),
    )
    stripped = json.loads(json.dumps(schema).replace("logicalType", "x"))
    value = {"decimal": b"\xff", "odd": b"a", "date": 1, "millis": 1 << 62, "local": 5, "time": 6, "uuid": "not one", "wrong": "w"}  # fmt: skip
    decoder = PartDecoder(registry_of(schema), "t", "value", [])
    assert [str(f.type) for f in decoder.fields[0].type] == [
        "decimal128(4, 2)", "binary", "date32[day]", "timestamp[ms, tz=UTC]", "timestamp[us]", "time32[ms]", "string", "string",
    ]  # fmt: skip
    data = pa.array([framed(1, encoded(stripped, value))])
    column = decoder.decode_columns(data, pa.array([[]], HEADERS))[0]
    assert column.field("decimal")[0].as_py() == Decimal("-0.01")
    assert column.field("millis").cast(pa.int64())[0].as_py() == 1 << 62  # no time of Python


def test_references() -> None:
    inner = SchemaVersion("inner", 1, 8, "AVRO", json.dumps(record(("x", "int"), name="Inner")))
    for kind, message in (("AVRO", None), ("JSON", "refers to a schema of type JSON")):
        other = SchemaVersion(inner.subject, 1, 8, kind, inner.text)
        (top,) = registry_of(record(("i", "Inner")), references=(SchemaReference("Inner", "inner", 1),)).versions  # fmt: skip
        ((value, _, _, problem),) = decoded(SchemaRegistry([top, other]), [framed(1, b"\x02")])
        assert value == ({"i": {"x": 1}} if message is None else None)
        assert (problem is None) == (message is None) and (message or "") in (problem or "")


# ---------------------------------------------------------------- scans


def test_scans_of_wrong_arguments() -> None:
    for keywords, message in (
        ({"decode": "avro"}, "are read"),
        ({"decode": "avro", "topics": "clicks"}, "can be decoded"),
        ({"decode": "x", "topics": "orders"}, "must be one of auto, avro"),
        ({"decode": "auto", "topics": "orders", "schema_version": 9}, "has no version 9"),
        ({"schemas": "x"}, "need decode"),
        ({"decode": "auto", "view": "offsets"}, "does not go with a view"),
    ):
        with pytest.raises(ValueError, match=message):
            kafka_log.scan(SAMPLE, **keywords)


def test_a_topic_without_schemas() -> None:
    table = kafka_log.read_table(SAMPLE / "clicks-0", ["offset", "value"], decode="auto")
    assert table.schema.types == [pa.int64(), pa.binary()]


def test_subjects_by_record_name(tmp_path: Any) -> None:
    """The ids of the first records tell the schemas, also those of keys."""
    order = record(("a", "int"))
    registry = SchemaRegistry(
        [
            SchemaVersion("shop.Order", 1, 5, "AVRO", json.dumps(order)),
            SchemaVersion("keys", 1, 6, "AVRO", '"string"'),
        ]
    )
    data = {"key": pa.array([framed(6, b"\x02k")]), "value": pa.array([framed(5, b"\x02")])}
    write_log(tmp_path, pa.table(data), topic="t")
    (row,) = kafka_log.read_table(
        tmp_path, ["value", "key"], decode="auto", schemas=registry
    ).to_pylist()
    assert (row["value"], row["key"], row["key_schema_id"]) == ({"a": 1}, "k", 6)
