"""Decoded columns, beside what Confluent's deserializers read, and on random schemas, values and bytes."""

from __future__ import annotations

import io
import json
import shutil
import time
import warnings
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafka_log
from kafka_log import write_log
from kafka_log.read.schemas import decoding, shapes
from kafka_log.read.schemas.avro import AvroSchema
from kafka_log.read.schemas.decoding import PartDecoder
from kafka_log.read.schemas.registry import (
    SchemaError,
    SchemaId,
    SchemaReference,
    SchemaRegistry,
    SchemaVersion,
)
from kafka_log.read.schemas.sources import read_registry
from tests.support.avro_engines import (
    HEADERS,
    decode_rows,
    encode_avro,
    framed,
    record_schema,
    registry_of,
)
from tests.support.make_schema_registry_sample import SAMPLE, from_hex, read_file

# ---------------------------------------------------------------- what others read


@pytest.mark.parametrize("topic", ["orders", "customers", "events"])
def test_what_confluents_deserializers_read(topic: str) -> None:
    """Each field that the record's own schema has; fields of other versions are null. Of ``events`` it is what the serializer
    was given.
    """
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
        "no schema with id 999 is registered: give the registry or the file that has it (--schemas),"
        " or read the bytes (--decode none)",
        "it does not begin with the id of a schema: read it as text or bytes (--decode utf8, none)",
        "it is no value of schema 2: the value ends in field status; another schema wrote it, or it"
        " is damaged: give the right schema (--schemas), or read its bytes",
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
def schemas(draw: Any, depth: int = 0, name: str = "N") -> tuple[Any, Any]:
    """A schema and a strategy of its values. Its named types have names that begin with ``name``."""
    kinds = ["scalar", "enum", "fixed", "nullable"]
    kinds += ["record", "array", "map"] if depth < 3 else []
    kind = draw(st.sampled_from(kinds))
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
        fields = [draw(schemas(depth + 1, f"{name}{i}")) for i in range(draw(st.integers(1, 3)))]
        schema = record_schema(*((f"f{i}", s) for i, (s, _) in enumerate(fields)), name=name)
        return schema, st.fixed_dictionaries({f"f{i}": v for i, (_, v) in enumerate(fields)})
    item, values = draw(schemas(depth + 1, f"{name}0"))
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


@pytest.mark.slow
@given(st.data())
def test_random_schemas(data: Any) -> None:
    schema, strategy = data.draw(schemas())
    values = data.draw(st.lists(strategy, max_size=4))
    bytes_of = [framed(1, encode_avro(schema, value)) for value in values]
    try:
        AvroSchema(registry_of(schema).versions[0], registry_of(schema))
    except SchemaError as error:
        assert "take no bytes" in str(error)
        return
    rows = decode_rows(registry_of(schema), [*bytes_of, None])
    for value, row in zip(values, rows, strict=False):
        assert row[3] is None and same(row[0], value), (value, row)
    # Any bytes give a value that has these bytes, or a reason.
    junk = data.draw(st.lists(st.binary(max_size=12), max_size=4))
    for raw, (value, _, _, problem) in zip(
        junk, decode_rows(registry_of(schema), [framed(1, x) for x in junk]), strict=True
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
        (record_schema(("a", "long")), b""),
        (record_schema(("a", "long")), b"\x80"),
        (record_schema(("a", "long")), b"\x02\x00"),
        (record_schema(("a", "long")), b"\x80\x00"),  # a longer form of 0
        (record_schema(("a", "long")), b"\xff" * 12),
        (record_schema(("a", "int")), b"\xfe\xff\xff\xff\xff\x7f"),
        (record_schema(("a", "boolean")), b"\x07"),
        (record_schema(("a", "string")), b"\x01"),
        (record_schema(("a", "string")), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (record_schema(("a", "string")), b"\x04\xff\xfe"),
        (record_schema(("a", {"type": "enum", "name": "E", "symbols": ["A"]})), b"\x01"),  # -1
        (record_schema(("a", {"type": "enum", "name": "E", "symbols": ["A"]})), b"\x02"),
        (record_schema(("a", ["null", "long"])), b"\x03"),  # -2
        (record_schema(("a", ["null", "long"])), b"\x04"),
        (record_schema(("a", {"type": "array", "items": "long"})), b"\x80\xa8\xd6\xb9\x07"),
        (record_schema(("a", {"type": "array", "items": "long"})), b"\x02\x02\x02"),  # another block
        (record_schema(("a", {"type": "array", "items": "long"})), b"\x02\x02\x02\x02\x00"),
        (record_schema(("a", {"type": "fixed", "name": "F", "size": 1 << 40})), b"abcd"),
        (record_schema(("a", {"type": "bytes", "logicalType": "decimal", "precision": 2})), b"\x04\x7f\xff"),
    ],
    ids=str,
)  # fmt: skip
def test_bytes_that_are_no_value(schema: Any, data: bytes) -> None:
    ((value, number, undecoded, problem),) = decode_rows(registry_of(schema), [framed(1, data)])
    assert (value, number, undecoded) == (None, 1, framed(1, data))
    assert problem and len(problem) > 20


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array", "items": "null"}, "take no bytes"),
        ({"type": "array", "items": record_schema()}, "take no bytes"),
        (
            ["null", "string", {"type": "array", "items": record_schema(("x", "null"))}],
            "take no bytes",
        ),
        (record_schema(("next", ["null", "R"])), "R contains itself"),
        (record_schema(("next", ["null", "string", "R"])), "R contains itself"),
        (record_schema(("next", "R")), "R contains itself"),
        (record_schema(("a", "unknown")), "unknown"),
        (record_schema(("a", "int"), ("a", "int")), "two fields of the same name|Duplicate"),
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
    ((_, _, _, problem),) = decode_rows(registry, [framed(1, b"\x02")])
    assert problem is not None


@pytest.mark.slow
def test_schemas_that_are_too_large() -> None:
    """Each name is used twice by the next one."""
    fields: list[Any] = [("f", record_schema(("x", "int"), name="R0"))]
    for i in range(1, 20):
        fields.append(
            (f"f{i}", record_schema(("a", f"R{i - 1}"), ("b", f"R{i - 1}"), name=f"R{i}"))
        )
    registry = registry_of(record_schema(*fields, name="Top"))
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
    old = record_schema(("a", "int"), ("b", "float"), ("c", "string"), ("d", "int"))
    new = record_schema(
        ("e", {"type": "map", "values": "int"}), ("a", "long"), ("b", "long"), ("c", "int")
    )
    values = [
        framed(1, encode_avro(old, {"a": 1, "b": 0.5, "c": "x", "d": 2})),
        framed(2, encode_avro(new, {"e": {"k": 1}, "a": 1 << 40, "b": 3, "c": 4})),
        framed(2, encode_avro(new, {"e": {}, "a": 1, "b": (1 << 53) + 1, "c": 4})),
    ]
    first, second, third = decode_rows(registry_of(old, new), values)
    assert first[0] == {"a": 1, "b": 0.5, "c": '"x"', "d": 2, "e": None}
    assert second[0] == {"a": 1 << 40, "b": 3.0, "c": "4", "d": None, "e": [("k", 1)]}
    assert third[0] is None and "outside of the range" in third[3]


def test_a_version_that_is_asked_for() -> None:
    """Avro's resolution: defaults for what is new, and without what is gone."""
    old = record_schema(("a", "int"), ("gone", "int"))
    new = record_schema(("a", "long"))
    new["fields"].append({"name": "b", "type": "string", "default": "none"})
    data = [framed(1, encode_avro(old, {"a": 1, "gone": 2}))]
    assert decode_rows(registry_of(old, new), data, schema_version=2)[0][0] == {"a": 1, "b": "none"}
    assert decode_rows(registry_of(old, new), data, schema_version=1)[0][0] == {"a": 1, "gone": 2}
    with pytest.raises(SchemaError, match="has no version 3"):
        decode_rows(registry_of(old, new), data, schema_version=3)


def test_a_schema_that_came_too_late() -> None:
    """Its fields have no column: the row is kept as bytes, not cut."""
    other = SchemaVersion("elsewhere", 1, 9, "AVRO", json.dumps(record_schema(("z", "int"))))
    registry = SchemaRegistry([*registry_of(record_schema(("a", "int"))).versions, other])
    ((value, _, _, problem),) = decode_rows(registry, [framed(9, b"\x02")])
    assert value is None and "fields without a column" in problem
    decoder = PartDecoder(registry, "t", "value", [SchemaId(9)])
    assert [f.name for f in decoder.fields[0].type] == ["a", "z"]


@pytest.mark.slow
def test_a_late_schema_that_is_too_wide_with_the_others() -> None:
    """Only its own rows are kept as bytes; others are read on."""
    first, late = (record_schema(*((f"{n}{i}", "null") for i in range(6_000))) for n in "ab")
    other = SchemaVersion("elsewhere", 1, 9, "AVRO", json.dumps(late))
    registry = SchemaRegistry([*registry_of(first).versions, other])
    found = decode_rows(registry, [framed(9, b""), framed(1, b"")])
    assert "fields without a column" in found[0][3] and found[1][3] is None


def test_unions_of_several_types() -> None:
    union = ["null", "int", "string", "bytes", record_schema(("x", "int"), name="A"), record_schema(("x", "int"), name="B")]  # fmt: skip
    schema = record_schema(("u", union))
    values = [None, 7, "x", b"\xff", ("A", {"x": 1}), ("B", {"x": 1})]
    rows = decode_rows(
        registry_of(schema), [framed(1, encode_avro(schema, {"u": v})) for v in values]
    )
    assert [row[0]["u"] for row in rows] == [
        None, "7", '"x"', '{"base64": "/w=="}', '["A", {"x": 1}]', '["B", {"x": 1}]',
    ]  # fmt: skip


def test_logical_types() -> None:
    def logical(kind: str, name: str, **more: Any) -> Any:
        return {"type": kind, "logicalType": name, **more}

    schema = record_schema(
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
    data = pa.array([framed(1, encode_avro(stripped, value))])
    column = decoder.decode_columns(data, pa.array([[]], HEADERS))[0]
    assert column.field("decimal")[0].as_py() == Decimal("-0.01")
    assert column.field("millis").cast(pa.int64())[0].as_py() == 1 << 62  # no time of Python


def test_references() -> None:
    inner = SchemaVersion(
        "inner", 1, 8, "AVRO", json.dumps(record_schema(("x", "int"), name="Inner"))
    )
    for kind, message in (
        ("AVRO", None),
        ("JSON", "which has another type, JSON: values of this schema are not decoded"),
    ):
        other = SchemaVersion(inner.subject, 1, 8, kind, inner.text)
        (top,) = registry_of(record_schema(("i", "Inner")), references=(SchemaReference("Inner", "inner", 1),)).versions  # fmt: skip
        ((value, _, _, problem),) = decode_rows(SchemaRegistry([top, other]), [framed(1, b"\x02")])
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
    place = SAMPLE.parent / "kafka-4.x" / "features-0"
    table = kafka_log.read_table(place, ["offset", "value"], decode="auto")
    assert table.schema.types == [pa.int64(), pa.binary()]


def test_values_whose_schemas_are_not_known_are_told(tmp_path: Any) -> None:
    """Most of them begin with an id; numbers of 8 bytes and texts do not."""
    path = tmp_path / "orders-0"
    shutil.copytree(SAMPLE / "orders-0", path)
    with pytest.warns(
        UserWarning, match=r"orders: values stay bytes: .* 8 of the first 9 .* ids 2, 1"
    ):
        table = kafka_log.read_table(path, ["value"], decode="auto")
    assert table.schema.types == [pa.binary()]
    numbers = pa.array([i.to_bytes(8, "big") for i in range(9)], pa.binary())
    for i, values in enumerate((numbers, pa.array([b"text"], pa.binary()))):
        write_log(tmp_path / f"log{i}", pa.table({"value": values}), topic="t")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kafka_log.read_table(tmp_path / f"log{i}", ["value"], decode="auto")


def test_one_schema_file_may_be_the_source(tmp_path: Any) -> None:
    path = tmp_path / "orders-value.2.avsc"
    [version] = read_registry([], SAMPLE).subject_versions("orders-value")[1:]
    path.write_text(version.text)
    table = kafka_log.read_table(SAMPLE, ["value"], topics="orders", decode="avro", schemas=path)
    assert table["value"].null_count < len(table)
    with pytest.raises(SchemaError, match=r"rename the file to SUBJECT\.ID\.avsc"):
        read_registry([], path.rename(tmp_path / "order.avsc"))


def test_a_topic_whose_schema_cannot_be_decoded(tmp_path: Any) -> None:
    """No row is passed off as one without a schema."""
    (tmp_path / "events-value.7.avsc").write_text('"nothing"')
    data = {"value": pa.array([framed(7, b"x"), None, b"y"], pa.binary())}
    write_log(tmp_path / "log", pa.table(data), topic="events")
    rows = kafka_log.read_table(
        tmp_path / "log", ["value"], decode="auto", schemas=tmp_path
    ).to_pylist()
    assert [row["value"] for row in rows] == [None] * 3
    assert [row["value_undecoded"] for row in rows] == data["value"].to_pylist()
    assert "schema 7 is invalid" in rows[0]["value_problem"] and rows[1]["value_problem"] is None


def test_subjects_by_record_name(tmp_path: Any) -> None:
    """The ids of the first records tell the schemas, also those of keys."""
    order = record_schema(("a", "int"))
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


# ---------------------------------------------------------------- hostile schemas and values


def test_times_of_day_out_of_range() -> None:
    schema = {"type": "int", "logicalType": "time-millis"}
    values = [0, 86_399_999, 86_400_000, -1, 2**31 - 1]
    found = decode_rows(registry_of(schema), [framed(1, encode_avro("int", v)) for v in values])
    assert [row[3] is None for row in found] == [True, True, False, False, False]
    assert "is not within a day" in found[2][3]


def test_a_record_without_fields_is_text() -> None:
    """Files of Parquet cannot have a struct without fields."""
    registry = registry_of(record_schema(("a", record_schema(name="S")), ("b", "int")))
    assert decode_rows(registry, [framed(1, b"\x02")])[0][0] == {"a": "{}", "b": 1}


@pytest.mark.parametrize("name", ["a\0b", "\ud800", 7])
def test_names_that_no_column_can_have(name: Any) -> None:
    (row,) = decode_rows(registry_of(record_schema((name, "int"))), [framed(1, b"\x02")])
    assert row[0] is None and "schema 1 is invalid" in row[3]


def test_texts_that_are_no_utf8() -> None:
    """Symbols of an enum come from the schema, whose JSON can have half of a surrogate pair."""
    schema = {"type": "enum", "name": "E", "symbols": ["A", "\ud800"]}
    found = decode_rows(registry_of(schema, ["int", schema]), [framed(1, b"\0"), framed(1, b"\2")])
    assert found[0][3] is None or "invalid" in found[0][3]
    assert found[1][3] is not None


@pytest.mark.slow
def test_names_make_no_more_text_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte of a value becomes the name of its record, or of all fields without bytes."""
    monkeypatch.setattr(shapes, "MAX_JSON", 1_000_000)
    wide = record_schema(*((f"{'f' * 100}{i}", "null") for i in range(900)))
    registry = registry_of({"type": "array", "items": ["int", "string", wide]})
    one, many = b"\x02\x04\0", b"\xd0\x0f" + b"\x04" * 1_000 + b"\0"
    found = decode_rows(registry, [framed(1, one), framed(1, many), framed(1, one)])
    assert [row[3] is None for row in found] == [True, False, True]
    assert "1,000,000 characters" in found[1][3]


def test_parts_of_values_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """An element of 1 byte has 2,001 parts here: 1,000 fields in each of two versions."""
    monkeypatch.setattr(decoding, "MAX_PARTS", 30_000)

    def version(prefix: str) -> Any:
        fields = [(f"{prefix}{i}", "null") for i in range(1_000)]
        return {"type": "array", "items": ["null", record_schema(*fields)]}

    registry = registry_of(version("a"), version("b"))
    rows = [framed(1, bytes([2 * n]) + b"\x02" * n + b"\0") for n in (5, 40)]
    found = decode_rows(registry, rows)
    assert found[0][3] is None and len(found[0][0]) == 5
    assert "42 bytes could have more than 30,000 parts" in found[1][3]


def test_wide_rows_are_decoded_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_MAX_PARTS", 1_000)
    registry = registry_of(record_schema(*((f"f{i}", "int") for i in range(99))))
    decoder = PartDecoder(registry, "t", "value", [])
    values = pa.array([framed(1, b"\2" * 99)] * 25 + [None, b"text"], pa.binary())
    parts = decoder.estimate_parts(values, None)
    assert parts.tolist() == [100] * 27
    assert list(decoding.split_by_parts(parts)) == [(0, 10), (10, 20), (20, 27)]
    assert list(decoding.split_by_parts(parts[:0])) == []
    assert list(decoding.split_by_parts(parts * 50)) == [(i, i + 1) for i in range(27)]


@pytest.mark.slow
def test_versions_with_too_many_fields_together() -> None:
    schemas = [record_schema(*((f"f{i}_{j}", "int") for j in range(100))) for i in range(120)]
    with pytest.raises(SchemaError, match="'t-value' together have more than 10,000 fields"):
        PartDecoder(registry_of(*schemas), "t", "value", [])


def test_defaults() -> None:
    """Those of a writer do not count, even if they are invalid. Those of a reader are limited."""

    def with_default(default: Any) -> Any:
        schema = record_schema(("a", "int"))
        schema["fields"].append({"name": "b", "type": "string", "default": default})
        return schema

    assert decode_rows(registry_of(with_default(7)), [framed(1, b"\2\2x")])[0][0] == {
        "a": 1,
        "b": "x",
    }
    for default, message in ((7, "Default value"), ("x" * 10_000, "more than 4,096 characters")):
        with pytest.raises(SchemaError, match=message):
            registry = registry_of(record_schema(("a", "int")), with_default(default))
            PartDecoder(registry, "t", "value", [], schema_version=2)


@pytest.mark.slow
def test_many_ids_take_no_quadratic_time() -> None:
    """Each row has an id of its own, none of them registered."""
    rows = [framed(i, b"") for i in range(10, 60_010)]
    began = time.process_time()
    found = decode_rows(registry_of("int"), rows)
    assert all(
        problem.startswith(f"no schema with id {i} is registered: ") for _, i, _, problem in found
    )
    assert time.process_time() - began < 30


def test_problems_are_short() -> None:
    schema = {"type": "enum", "name": "E", "symbols": ["A"]}
    registry = registry_of(record_schema(("a", schema), name="x" * 5_000))
    version = SchemaVersion("t-value", 2, 2, "AVRO", json.dumps(["y" * 100_000]))
    registry = SchemaRegistry([*registry.versions, version])
    found = decode_rows(registry, [framed(2, b"\0")])
    assert 100 < len(found[0][3]) < 600


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        ("Q", b"\2", {"a": 1}),
        (["null", "Q"], b"\2\2", {"a": 1}),
        (["P", "Q"], b"\0\2", '["P", {"q": {"a": 1}}]'),
        (["P", "Q"], b"\2\2", '["Q", {"a": 1}]'),
        ({"type": "array", "items": "Q"}, b"\4\2\4\0", [{"a": 1}, {"a": 2}]),
        ({"type": "map", "values": "P"}, b"\2\2k\2\0", [("k", {"q": {"a": 1}})]),
        (record_schema(("x", "Q"), ("y", "P")), b"\2\4", {"x": {"a": 1}, "y": {"q": {"a": 2}}}),
    ],
)
def test_types_of_references_alone(schema: Any, data: bytes, value: Any) -> None:
    """A schema can consist of names of other subjects only, as a topic of several kinds of events has it."""
    q, p = record_schema(("a", "int"), name="Q"), record_schema(("q", "Q"), name="P")
    registry = SchemaRegistry(
        [
            SchemaVersion("q", 1, 2, "AVRO", json.dumps(q)),
            SchemaVersion("p", 1, 3, "AVRO", json.dumps(p), (SchemaReference("Q", "q", 1),)),
            SchemaVersion("t-value", 1, 1, "AVRO", json.dumps(schema), (SchemaReference("P", "p", 1),)),
        ]
    )  # fmt: skip
    for options in ({}, {"schema_version": 1}):
        assert decode_rows(registry, [framed(1, data)], **options)[0][0] == value


# ---------------------------------------------------------------- what becomes of the registry's records


def key_of(version: int, subject: str = "t-value") -> bytes:
    return json.dumps({"keytype": "SCHEMA", "subject": subject, "version": version}).encode()


def value_of(number: int, schema: Any, **more: Any) -> bytes:
    fields = {"subject": "t-value", "version": number, "id": number, "schema": json.dumps(schema)}
    return json.dumps(fields | more).encode()


DELETE = json.dumps({"keytype": "DELETE_SUBJECT", "subject": "t-value"}).encode()
DELETED = json.dumps({"subject": "t-value", "version": 1}).encode()
REFERENCE = [{"name": "Q", "subject": "q", "version": 1}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([(key_of(1), value_of(1, "int"))], None),
        ([(key_of(1), value_of(1, "int")), (DELETE, DELETED)], None),  # soft
        ([(key_of(1), value_of(1, "int", deleted=True))], None),  # soft, compacted
        ([(key_of(1), value_of(1, "int")), (key_of(1), None)], None),  # hard, the text is still there
        ([(key_of(1), None), (DELETE, DELETED)], "no schema with id 1"),  # hard, compacted
        ([(b"junk", b"junk"), (None, None), (b"{}", b"[]"), (key_of(1), value_of(1, "int"))], None),
        ([(key_of(2), value_of(1, "int"))], "no schema with id 1"),
        ([(key_of(1), value_of(1, "Q", references=REFERENCE))], "subject 'q' has no version 1"),
        ([(key_of(1), value_of(1, "Q", references=REFERENCE)), (key_of(1, "q"), value_of(1, record_schema(("a", "int"), name="Q"), subject="q", id=2))], None),
        ([(key_of(1), value_of(1, "int", schemaType="THRIFT"))], "has the type THRIFT"),
    ],
)  # fmt: skip
def test_deleted_compacted_and_missing_schemas(
    records: list[tuple[bytes | None, bytes | None]], message: str | None, tmp_path: Any
) -> None:
    """In whatever order: values before the record of their schema are decoded too."""
    values = {"t": [framed(1, b"\2")]}
    rows = [{"topic": "t", "key": None, "value": framed(1, b"\2")}]
    rows += [{"topic": "_schemas", "key": key, "value": value} for key, value in records]
    kinds = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary())])
    write_log(tmp_path, pa.Table.from_pylist(rows, kinds))
    table = kafka_log.read_table(tmp_path, ["value"], topics="t", decode="auto")
    if message == "no schema with id 1":
        assert table.to_pylist() == [{"value": values["t"][0]}]  # auto: no schema, bytes
        return
    (row,) = table.to_pylist()
    assert (row["value_undecoded"] is None) == (message is None)
    assert message is None or message in row["value_problem"]


def added(kind: Any, default: Any) -> list[Any]:
    """A record, and the same with another field, which has a default."""
    new = record_schema(("a", "int"), ("b", kind))
    new["fields"][1]["default"] = default
    return [record_schema(("a", "int")), new]


INNER = record_schema(("x", "int"), ("y", "bytes"), name="I")
INNER["fields"][0]["default"] = 7
OTHER = record_schema(("z", "int"), name="J")


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("bytes", "\xff\1", b"\xff\1"),
        ({"type": "fixed", "name": "F", "size": 2}, "\xff\1", b"\xff\1"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\xff", b"\xff"),
        ({"type": "array", "items": "bytes"}, ["\xff", ""], [b"\xff", b""]),
        ({"type": "map", "values": "bytes"}, {"\xff": "\xff"}, {"\xff": b"\xff"}),
        (["bytes", "null"], "\xff", b"\xff"),
        (["null", "bytes"], None, None),
        (["bytes", "int", "null"], "\xff", b"\xff"),
        (["int", "string"], 3, 3),
        ([INNER, "null"], {"y": "\xff"}, {"x": 7, "y": b"\xff"}),
        ([INNER, OTHER, "int"], {"y": "\xff"}, ("I", {"x": 7, "y": b"\xff"})),
        (INNER, {"y": "\xff"}, {"x": 7, "y": b"\xff"}),
        ({"type": "array", "items": INNER}, [{"y": "a"}], [{"x": 7, "y": b"a"}]),
        ("boolean", True, True),
        ("float", 1, 1.0),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
    ],
)
def test_a_default_is_what_a_written_value_would_be(kind: Any, default: Any, value: Any) -> None:
    """A writer of the new schema with that value is the judge."""
    old, new = added(kind, default)
    plain = json.loads(json.dumps(new).replace("logicalType", "x"))
    values = [
        framed(1, encode_avro(old, {"a": 1})),
        framed(2, encode_avro(plain, {"a": 1, "b": value})),
    ]
    resolved, written = decode_rows(registry_of(old, new), values, schema_version=2)
    assert resolved[3] is None and resolved[0] == written[0]


def test_a_default_that_is_no_value() -> None:
    with pytest.raises(SchemaError, match="the default of a record has no field 'y'"):
        PartDecoder(registry_of(*added(INNER, {})), "t", "value", [], schema_version=2)


def test_defaults_that_grow() -> None:
    """Each level has three times the defaults of the one below."""
    schema: Any = "int"
    for depth in range(15):
        schema = record_schema(("f", {"type": "array", "items": schema}), name=f"L{depth}")
        schema["fields"][0]["default"] = [{} if depth else 1] * 3
    with pytest.raises(SchemaError, match="more than 4,096 parts"):
        PartDecoder(registry_of(*added(schema, {})), "t", "value", [], schema_version=2)


def logical(kind: str, name: str, **more: Any) -> Any:
    return {"type": kind, "logicalType": name, **more}


def decimal(precision: int, scale: int) -> Any:
    return logical("bytes", "decimal", precision=precision, scale=scale)


MILLIS, MICROS = logical("long", "timestamp-millis"), logical("long", "timestamp-micros")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (MILLIS, MICROS, "is timestamp-millis, and timestamp-micros in the version"),
        (MILLIS, logical("long", "local-timestamp-millis"), "local-timestamp-millis"),
        (logical("int", "time-millis"), logical("long", "time-micros"), "time-micros"),
        (logical("int", "date"), MILLIS, "is date, and timestamp-millis"),
        (decimal(9, 2), decimal(9, 4), "decimal with scale 2, and decimal with scale 4"),
        (["null", MILLIS], ["null", MICROS], "timestamp-micros"),
        (MILLIS, ["string", MICROS], "timestamp-micros"),
        ({"type": "array", "items": MILLIS}, {"type": "array", "items": MICROS}, "field 'f'"),
        (
            record_schema(("t", MILLIS), name="I"),
            record_schema(("t", MICROS), name="I"),
            "field 't'",
        ),
    ],
)
def test_a_number_with_another_unit_is_not_resolved(old: Any, new: Any, message: str) -> None:
    """The same digits would be another value."""
    registry = registry_of(record_schema(("f", old)), record_schema(("f", new)))
    ((value, _, _, problem),) = decode_rows(registry, [framed(1, b"\2\2\2")], schema_version=2)
    assert value is None and message in problem
    ((value, _, _, problem),) = decode_rows(registry, [framed(2, b"")], schema_version=2)
    assert "the value ends in field f" in problem


@pytest.mark.parametrize(
    ("old", "new", "data"),
    [
        (MILLIS, MILLIS, b"\2"),
        (MILLIS, "long", b"\2"),
        ("long", MICROS, b"\2"),
        (decimal(9, 2), decimal(20, 2), b"\2d"),
        (decimal(9, 2), "bytes", b"\2d"),
        (["null", MILLIS], ["null", "string", MILLIS], b"\2\2"),
    ],
)
def test_a_number_with_the_same_unit_is_resolved(old: Any, new: Any, data: bytes) -> None:
    registry = registry_of(record_schema(("f", old)), record_schema(("f", new)))
    assert decode_rows(registry, [framed(1, data)], schema_version=2)[0][3] is None
