"""JSON values in the types of JSON Schemas."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafka_log
from kafka_log.read.schemas.decoding import PartDecoder
from kafka_log.read.schemas.json_schema import JsonSchema
from kafka_log.read.schemas.registry import (
    SchemaError,
    SchemaReference,
    SchemaRegistry,
    SchemaVersion,
)
from tests.support.make_schema_registry_sample import SAMPLE, read_file


def version(schema: Any, number: int = 1, subject: str = "t-value", **more: Any) -> SchemaVersion:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return SchemaVersion(subject, number, number, "JSON", text, **more)


def decoded(schemas: Any, *texts: str | bytes) -> tuple[Any, list[Any]]:
    """The Arrow type, and (value, problem) of each text under the first schema."""
    versions = [v if isinstance(v, SchemaVersion) else version(v, i) for i, v in enumerate(schemas, 1)]  # fmt: skip
    decoder = PartDecoder(SchemaRegistry(versions), "t", "value", [], "json-schema")
    raw = [t.encode() if isinstance(t, str) else t for t in texts]
    values = pa.array([b"\0\0\0\0\1" + data for data in raw], pa.binary())
    column, _, undecoded, problems = decoder.decode_columns(values, None)
    column.validate(full=True)
    assert undecoded.is_valid() == problems.is_valid()
    return column.type, list(zip(column.to_pylist(), problems.to_pylist(), strict=True))


def test_the_sample() -> None:
    """What the serializer was given."""
    rows = kafka_log.read_table(SAMPLE, ["value"], topics="clicks", decode="auto").to_pylist()
    assert [row["value"] for row in rows] == [
        line["read"] for line in read_file() if line["topic"] == "clicks"
    ]
    assert rows[0]["value_schema_id"] == 5


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


INT, TEXT = {"type": "integer"}, {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (INT, pa.int64()),
        ({"type": "number"}, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        ({"type": "null"}, pa.null()),
        ({"type": ["null", "string"]}, pa.string()),
        ({"type": ["null"]}, pa.null()),
        ({"type": ["integer", "string"]}, "text"),
        ({"enum": ["a", "b"]}, pa.string()),
        ({"const": "a"}, pa.string()),
        ({"enum": ["a", 1]}, "text"),
        ({"type": "array", "items": INT}, pa.list_(pa.field("element", pa.int64()))),
        ({"type": "array"}, "text"),
        ({"type": "array", "items": [INT, TEXT]}, "text"),
        ({"type": "array", "prefixItems": [INT], "items": TEXT}, "text"),
        (closed(a=INT, b=TEXT), pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ({"properties": {"a": INT}}, pa.struct([("a", pa.int64())])),
        ({"type": "object"}, "text"),
        ({"type": "object", "additionalProperties": INT}, pa.map_(pa.string(), pa.int64())),
        (closed(a=INT) | {"additionalProperties": True}, "text"),
        (closed(a=INT) | {"additionalProperties": INT}, "text"),
        (closed(a=INT) | {"patternProperties": {"^x": INT}}, "text"),
        ({"oneOf": [{"type": "null"}, INT]}, pa.int64()),
        ({"anyOf": [INT, {"type": "null"}]}, pa.int64()),
        ({"anyOf": [INT, TEXT]}, "text"),
        ({"type": "integer", "anyOf": [INT, {"type": "null"}]}, "text"),
        ({"allOf": [closed(a=INT), closed(b=INT)]}, "text"),
        (True, "text"),
        ({}, "text"),
        ({"type": "no such type"}, "text"),
        ({"$ref": "#/definitions/x", "definitions": {"x": INT}}, pa.int64()),
        ({"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": INT}}, pa.int64()),
        (closed(a={"$id": "http://x/y", "$ref": "#/z"}), pa.struct([pa.field("a", pa.string(), metadata={"kafka_log": "json"})])),
        (closed(n=INT, next={"$ref": "#"}), pa.struct([("n", pa.int64()), pa.field("next", pa.struct([("n", pa.int64()), pa.field("next", pa.string())]))])),
    ],
)  # fmt: skip
def test_types(schema: Any, kind: Any) -> None:
    shape = JsonSchema(version(schema), SchemaRegistry()).shape
    assert shape.arrow == (pa.string() if kind == "text" else kind)
    assert shape.is_json == (kind == "text")


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (INT, "5", 5),
        (INT, "5.0", 5),
        (INT, "null", None),
        ({"type": "number"}, "5", 5.0),
        ({"type": "number"}, "1e-400", 0.0),
        (closed(a=INT, b=TEXT), '{"b": "x"}', {"a": None, "b": "x"}),
        (closed(a=INT), '{"a": null}', {"a": None}),
        ({"type": "object", "additionalProperties": INT}, '{"k": 1}', [("k", 1)]),
        ({}, '{"a": [1, 2.5, null, "\\u00e9"]}', '{"a": [1, 2.5, null, "é"]}'),
        (
            closed(n=INT, next={"$ref": "#"}),
            '{"n": 1, "next": {"n": 2, "next": {"n": 3}}}',
            {"n": 1, "next": {"n": 2, "next": '{"n": 3}'}},
        ),
    ],
)
def test_values(schema: Any, text: str, value: Any) -> None:
    assert decoded([schema], text)[1] == [(value, None)]


@pytest.mark.parametrize(
    ("schema", "text", "problem"),
    [
        (INT, '"5"', "the value is text, not an integer as the schema requires"),
        (INT, "5.5", "the value is 5.5, not an integer as the schema requires"),
        (INT, "9007199254740993.0", "which float64 does not hold to the last digit"),
        (INT, "-9007199254740994e0", "which float64 does not hold to the last digit"),
        (INT, "true", "the value is true or false, not an integer"),
        (INT, str(1 << 63), "cannot hold the value"),
        (INT, "9" * 5_000, "Exceeds the limit"),
        ({"type": "number"}, "true", "the value is true or false, not a number"),
        ({"type": "number"}, "1e400", "too large for float64"),
        ({"type": "number"}, str((1 << 60) + 1), "cannot hold the value"),
        ({"type": "number"}, "NaN", "NaN is not JSON"),
        ({"type": "boolean"}, "1", "the value is a number, not true or false"),
        (TEXT, "1", "the value is a number, not text"),
        (TEXT, '"\\ud800"', "cannot hold the value"),
        ({"type": "null"}, "1", "not null"),
        ({"type": "array", "items": INT}, '[1, "x"]', "field [1] is text, not an integer"),
        ({"type": "array", "items": INT}, "{}", "the value is an object, not an array"),
        (closed(a=closed(b=INT)), '{"a": {"b": "x"}}', "field a.b is text, not an integer"),
        (
            closed(a=INT),
            '{"a": 1, "c": 2}',
            "it has the field c, which the schema lacks",
        ),
        (closed(a=INT), '{"a": 1, "a": 2}', "two members of the same name"),
        ({}, '{"a": 1, "a": 2}', "two members of the same name"),
        (
            {"type": "object", "additionalProperties": INT},
            "[]",
            "the value is an array, not an object",
        ),
        (INT, "", "it is not JSON: Expecting value at character 0"),
        (INT, "1 2", "Extra data"),
        (INT, b"\xff", "it is not UTF-8 from byte 0 on"),
        (INT, "1".encode("utf-16"), "it is not UTF-8"),
        (INT, "\ufeff1", "Expecting value"),
        ({}, "[" * 100_000, "nested too deep"),
    ],
)
def test_values_of_other_types(schema: Any, text: str | bytes, problem: str) -> None:
    """Nothing is converted, and nothing is dropped."""
    _, ((value, found),) = decoded([schema], text)
    assert value is None and problem in (found or "")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("[", "the text is not JSON"),
        ("1", "neither an object"),
        (closed(a=5), "neither an object"),
        ({"type": "object", "properties": [1]}, "'properties' of the schema is not an object"),
        ({"$ref": "#/nowhere"}, "names a part that does not exist"),
        ({"$ref": "#anchor"}, "names a part that does not exist"),
        ({"$ref": "other.json"}, "names another schema that is not among its references"),
        ({"$ref": "http://[/"}, "is invalid"),
        ({"$ref": 7}, "ref' of the schema is not text"),
        (
            closed(**{"a\0": INT}),
            "is the name of a field, but cannot be the name of a column: values of this schema are not decoded",
        ),
        ('{"properties": {"a": ' * 3_000 + "{}" + "}}" * 3_000, "too deep|levels deep"),
    ],
)
def test_schemas_that_are_invalid(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        JsonSchema(version(schema), SchemaRegistry())


def test_a_schema_that_doubles_at_each_level() -> None:
    types = {f"t{i}": closed(a={"$ref": f"#/$defs/t{i + 1}"}, b={"$ref": f"#/$defs/t{i + 1}"}) for i in range(20)}  # fmt: skip
    with pytest.raises(SchemaError, match="more than 10,000 fields"):
        JsonSchema(version({"$ref": "#/$defs/t0", "$defs": types | {"t20": INT}}), SchemaRegistry())


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("address.json", "address.json"),
        ("http://x/a.json", "a.json"),
        ("a.json", "a.json#/$defs/b"),
    ],
)
def test_references_between_subjects(name: str, reference: str) -> None:
    target = closed(city=TEXT) | {"$defs": {"b": closed(city=TEXT)}}
    schema = {"$id": "http://x/root.json"} | closed(home={"$ref": reference})
    link = (SchemaReference(name, "address", 1),)
    of_address = version(target, 1, "address")
    _, rows = decoded([version(schema, references=link), of_address], '{"home": {"city": "Bern"}}')
    assert rows == [({"home": {"city": "Bern"}}, None)]
    _, rows = decoded([version(schema, references=link)], "{}")
    assert "no version 1" in rows[0][1]


def test_versions_and_other_types() -> None:
    """Versions are merged as those of Avro. A type that is not asked for has a reason."""
    kind, rows = decoded([closed(a=INT), closed(a={"type": "number"}, b=TEXT)], '{"a": 1}')
    assert kind == pa.struct([("a", pa.float64()), ("b", pa.string())])
    assert rows == [({"a": 1.0, "b": None}, None)]
    registry = SchemaRegistry([version(INT), SchemaVersion("t-value", 2, 2, "AVRO", '"long"')])
    decoder = PartDecoder(registry, "t", "value", [], "auto")
    values = pa.array([b"\0\0\0\0\1" + b"5", b"\0\0\0\0\2\x0c"], pa.binary())
    assert decoder.decode_columns(values, None)[0].to_pylist() == [5, 6]
    decoder = PartDecoder(registry, "t", "value", [], "avro")
    column, _, _, problems = decoder.decode_columns(values, None)
    assert column.to_pylist() == [None, 6]
    assert problems.to_pylist() == [
        "schema 1 has the type JSON, which is not decoded: decode (--decode) selects only AVRO",
        None,
    ]


@st.composite
def schemas(draw: Any, depth: int = 0) -> Any:
    """A schema of which each part has one type."""
    kinds = ["integer", "string", "boolean", "number"]
    kinds += ["object", "array", "map", "any"] if depth < 3 else []
    kind = draw(st.sampled_from(kinds))
    if kind == "object":
        names = draw(st.lists(st.text(max_size=3).filter(lambda n: "\0" not in n), min_size=1, max_size=3, unique=True))  # fmt: skip
        return closed(**{n: draw(schemas(depth=depth + 1)) for n in names}) | {"additionalProperties": False}  # fmt: skip
    if kind == "array":
        return {"type": "array", "items": draw(schemas(depth=depth + 1))}
    if kind == "map":
        return {"type": "object", "additionalProperties": draw(schemas(depth=depth + 1))}
    return {} if kind == "any" else {"type": kind}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)  # fmt: skip


def plain(schema: Any, found: Any) -> Any:
    """Arrow's value as JSON: maps as objects, texts of JSON parsed."""
    if found is None:
        return None
    if not schema:
        return json.loads(found)
    if schema["type"] == "array":
        return [plain(schema["items"], item) for item in found]
    if "properties" in schema:
        return {n: plain(s, found[n]) for n, s in schema["properties"].items()}
    if schema["type"] == "object":
        return {n: plain(schema["additionalProperties"], item) for n, item in found}
    return found


def expected(schema: Any, value: Any) -> Any:
    """The value with null for missing properties."""
    if not schema or value is None:
        return value
    if schema["type"] == "array":
        return [expected(schema["items"], item) for item in value]
    if "properties" in schema:
        return {n: expected(s, value.get(n)) for n, s in schema["properties"].items()}
    if schema["type"] == "object":
        return {n: expected(schema["additionalProperties"], item) for n, item in value.items()}
    return value


@given(schemas(), st.lists(JSON_VALUES, max_size=4))
def test_what_a_validator_accepts(schema: Any, values: list[Any]) -> None:
    """A value that a validator accepts is decoded, unless it is an integer that float64 rounds; a decoded one is the same value."""
    texts = [json.dumps(value) for value in values]
    for value, (found, problem) in zip(values, decoded([schema], *texts)[1], strict=True):
        if jsonschema.Draft7Validator(schema).is_valid(value):
            assert problem is None or "which float64 does not hold to the last digit" in problem
        if problem is None:
            assert plain(schema, found) == expected(schema, value)
