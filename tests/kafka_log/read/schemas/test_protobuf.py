"""Protobuf values in the types of their schemas."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kafka_log
from kafka_log.read.schemas.decoding import PartDecoder
from kafka_log.read.schemas.framing import HEADERS
from kafka_log.read.schemas.protobuf import ProtobufSchema, read_indexes
from kafka_log.read.schemas.registry import (
    SchemaError,
    SchemaReference,
    SchemaRegistry,
    SchemaVersion,
)
from tests.support.make_schema_registry_sample import SAMPLE, read_file

PROTO3 = 'syntax = "proto3";\n'
KINDS = """\
package shop;
message Kinds {
  double d = 1; float f = 2; int32 i = 3; int64 l = 4; uint32 u = 5; uint64 ul = 6; sint32 si = 7; sint64 sl = 8;
  fixed32 x = 9; fixed64 xl = 10; sfixed32 sx = 11; sfixed64 sxl = 12; bool b = 13; string s = 14; bytes data = 15;
  Color color = 16; repeated int32 many = 17; map<string, int64> named = 18; map<int32, Inner> numbered = 19;
  optional int32 maybe = 20; oneof choice { string left = 21; Inner right = 22; } repeated Inner items = 23;
  map<bool, bool> flags = 24;
  enum Color { RED = 0; GREEN = 1; }
  message Inner { int32 n = 1; }
}
"""


def version(text: str, number: int = 1, subject: str = "t-value", **more: Any) -> SchemaVersion:
    return SchemaVersion(subject, number, number, "PROTOBUF", text, **more)


def decoded(versions: list[SchemaVersion], *values: bytes) -> tuple[Any, list[Any]]:
    """The Arrow type, and (value, problem) of each value after the id 1."""
    decoder = PartDecoder(SchemaRegistry(versions), "t", "value", [], "protobuf")
    column, _, undecoded, problems = decoder.decode_columns(
        pa.array([b"\0\0\0\0\1" + data for data in values], pa.binary()), None
    )
    column.validate(full=True)
    assert undecoded.is_valid() == problems.is_valid()
    return column.type, list(zip(column.to_pylist(), problems.to_pylist(), strict=True))


def message_class(text: str, name: str) -> Any:
    """The class of a message, for what the package protobuf writes and reads."""
    schema = ProtobufSchema(version(text), SchemaRegistry())
    return schema.select()[name][0]


def test_the_sample() -> None:
    """The fields that the serializer was given, in the member of their message."""
    table = kafka_log.read_table(SAMPLE, ["value"], topics="payments", decode="auto")
    lines = [line["read"] for line in read_file() if line["topic"] == "payments"]
    assert [row["value_problem"] for row in table.to_pylist()] == [None] * 3
    for row, line in zip(table.column("value").to_pylist(), lines, strict=True):
        ((name, fields),) = line.items()
        assert [n for n, value in row.items() if value is not None] == [name]
        for field, value in fields.items():
            assert row[name][field] == (int(value) if field in ("id", "payment") else value)
    assert table.column("value").type.field("shop.Payment").type.names == ["id", "method", "fee", "tags", "card"]  # fmt: skip


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "d": st.floats(allow_nan=False),
        "f": st.floats(width=32, allow_nan=False),
        **dict.fromkeys(("i", "si", "sx", "maybe"), st.integers(-(1 << 31), (1 << 31) - 1)),
        **dict.fromkeys(("l", "sl", "sxl"), st.integers(-(1 << 63), (1 << 63) - 1)),
        **dict.fromkeys(("u", "x"), st.integers(0, (1 << 32) - 1)),
        **dict.fromkeys(("ul", "xl"), st.integers(0, (1 << 64) - 1)),
        "b": st.booleans(),
        "s": st.text(max_size=4),
        "data": st.binary(max_size=4),
        "color": st.integers(-1, 3),
        "many": st.lists(st.integers(-5, 5), max_size=3),
        "named": st.dictionaries(st.text(max_size=2), st.integers(0, 9), max_size=2),
        "left": st.text(max_size=2),
    },
)
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("d", "f"), 0.0),
    **dict.fromkeys(("i", "si", "sx", "l", "sl", "sxl", "u", "x", "ul", "xl"), 0),
    **dict.fromkeys(("maybe", "left", "right")),
    "b": False,
    "s": "",
    "data": b"",
    "color": 0,
    "many": [],
    "items": [],
    "named": {},
    "numbered": {},
    "flags": {},
}


@settings(deadline=None)
@given(VALUES)
def test_what_protobuf_writes(fields: dict[str, Any]) -> None:
    """Fields without presence have their defaults, the others are null."""
    data = KINDS_CLASS(**fields).SerializeToString()
    column, _, _, problems = KINDS_DECODER.decode_columns(
        pa.array([b"\0\0\0\0\1\0" + data], pa.binary()), None
    )
    assert problems.to_pylist() == [None]
    (found,) = column.to_pylist()
    for name in ("named", "numbered", "flags"):
        found[name] = dict(found[name])
    expected = DEFAULTS | fields
    names = {0: "RED", 1: "GREEN"}
    expected["color"] = names.get(expected["color"], str(expected["color"]))
    assert found == expected


KINDS_CLASS = message_class(PROTO3 + KINDS, "shop.Kinds")
KINDS_DECODER = PartDecoder(SchemaRegistry([version(PROTO3 + KINDS)]), "t", "value", [], "protobuf")


def test_maps_and_messages() -> None:
    message = KINDS_CLASS(
        numbered={7: {"n": 1}}, right={"n": 2}, items=[{"n": 3}, {}], flags={True: False}
    )
    kind, ((found, problem),) = decoded(
        [version(PROTO3 + KINDS)], b"\0" + message.SerializeToString()
    )
    assert problem is None
    assert found["numbered"] == [("7", {"n": 1})] and found["flags"] == [("true", False)]
    assert found["right"] == {"n": 2} and found["left"] is None
    assert found["items"] == [{"n": 3}, {"n": 0}]
    assert kind.field("u").type == pa.int64() and kind.field("ul").type == pa.uint64()


ONE = PROTO3 + "message A { int32 a = 1; message In { int32 n = 1; } }\n"
TWO = ONE + "message B { int32 b = 1; }\n"


EXTENDED = """syntax = "proto2";
message A { optional int32 a = 1; optional B b = 2; extensions 100; }
message B { optional int32 n = 1; extensions 100; }
extend A { optional int32 further = 100; }
extend B { optional int32 more = 100; }
"""


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("text", "data", "value", "problem"),
    [
        (ONE, b"\0\x08\5", {"a": 5}, None),
        (ONE, b"\2\0\x08\5", {"a": 5}, None),  # the path [0], not shortened
        (ONE, b"\0", {"a": 0}, None),
        (ONE, b"", None, "ends within the message indexes"),
        (ONE, b"\2", None, "ends within the message indexes"),
        (ONE, b"\1\0", None, "message indexes before the value have -1 numbers"),
        (ONE, b"\xfe\1\0", None, "have 127 numbers"),
        (ONE, b"\x80\x80\x80\x80\x80\1", None, "longer than 5 bytes"),
        (ONE, b"\2\2\x08\5", None, "the message indexes [1] before the value name no message"),
        (ONE, b"\2\1\x08\5", None, "the message indexes [-1] before the value name no message"),
        (ONE, b"\4\0\0\x08\5", None, "message A.In, which is nested in another message"),
        (ONE, b"\0\x08", None, "the value ends in field a;"),
        (ONE, b"\0\x10\5", None, "it has the field number 2, which the schema lacks"),
        (ONE, b"\0\x0a\1x", None, "field a is not of the type int32, which the schema says"),  # another type on the wire
        (TWO, b"\0\x08\5", {"A": {"a": 5}, "B": None}, None),
        (TWO, b"\2\2\x08\5", {"A": None, "B": {"b": 5}}, None),
        (PROTO3 + "message A { string s = 1; }", b"\0\x0a\1\xff", None, "field s is text that is not UTF-8"),
        (PROTO3 + "message A { In in = 1; message In { repeated string s = 7; } }", b"\0\x0a\3\x3a\1\xff", None, "field in.s is text that is not UTF-8"),
        (PROTO3 + "message A { In in = 1; message In { fixed64 n = 7; } }", b"\0\x0a\3\x39\1\2", None, "field in.n needs 8 bytes, but 2 bytes are left"),
        (PROTO3 + "message A {}", b"\0", "{}", None),
        (PROTO3 + "message A { int32 n = 1; A next = 2; }", b"\0\x08\1\x12\2\x08\2", {"n": 1, "next": '{"n": 2, "next": null}'}, None),
        ('syntax = "proto2"; message A { required int32 a = 1; optional int32 b = 2 [default = 7]; }', b"\0\x08\1", {"a": 1, "b": None}, None),
        ('syntax = "proto2"; message A { optional group G = 1 { optional int32 n = 2; } }', b"\0\x0b\x10\5\x0c", {"g": {"n": 5}}, None),
        (EXTENDED, b"\0\x08\5", {"A": {"a": 5, "b": None}, "B": None}, None),
        (EXTENDED, b"\0\x08\5\xa0\x06\7", None, "extensions of message A"),
        (EXTENDED, b"\0\x12\3\xa0\x06\7", None, "extensions of message B"),
        (PROTO3 + 'import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp at = 1; }', b"\0\x0a\2\x08\5", {"at": {"seconds": 5, "nanos": 0}}, None),
    ],
)  # fmt: skip
def test_values(text: str, data: bytes, value: Any, problem: str | None) -> None:
    ((found, said),) = decoded([version(text)], data)[1]
    assert found == value
    assert said is None if problem is None else problem in said


def test_values_nested_too_deep() -> None:
    data = b""
    for _ in range(200):
        data = b"\x12" + _length(len(data)) + data
    text = PROTO3 + "message A { int32 n = 1; A next = 2; }"
    ((value, problem),) = decoded([version(text)], b"\0" + data)[1]
    assert value is None and problem


def _length(number: int) -> bytes:
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no schema", "protoc rejects the schema"),
        (PROTO3, "the schema declares no message, so that no value can be decoded by it"),
        (PROTO3 + "message A { Missing m = 1; }", '"Missing" is not defined'),
        (PROTO3 + 'import "other.proto"; message A {}', "other.proto"),
        (PROTO3 + 'import "/etc/passwd"; message A {}', "protoc rejects the schema"),
        (PROTO3 + 'import "../../x.proto"; message A {}', "protoc rejects the schema"),
        (PROTO3 + "message A {" * 500 + "}" * 500, "protoc rejects the schema"),
        (PROTO3 + "// " + "x" * (4 << 20), "more than 4,194,304 characters"),
        (
            PROTO3
            + "".join(f"message A{i} {{ A{i + 1} a = 1; A{i + 1} b = 2; }}\n" for i in range(20))
            + "message A20 { int32 n = 1; }",
            "more than 10,000 fields",
        ),
        (
            PROTO3
            + "".join(f"message A{i} {{ A{i + 1} a = 1; }}\n" for i in range(80))
            + "message A80 { int32 n = 1; }",
            "levels deep",
        ),
    ],
)
def test_schemas_that_are_invalid(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        ProtobufSchema(version(text), SchemaRegistry()).select()


def test_references() -> None:
    other = version("syntax = 'proto3'; package q; message Q { int32 n = 1; }", 2, "q")
    text = PROTO3 + 'import "dir/q.proto"; message A { q.Q q = 1; }'
    link = version(text, references=(SchemaReference("dir/q.proto", "q", 2),))
    assert decoded([link, other], b"\0\x0a\2\x08\5")[1] == [({"q": {"n": 5}}, None)]
    assert "no version 2" in decoded([link], b"\0")[1][0][1]


@pytest.mark.parametrize(
    "name",
    ["../q.proto", "/q.proto", "-x.proto", "a/../q.proto", "q", "a\0.proto", "a b.proto", "x" * 200 + ".proto"],
)  # fmt: skip
def test_names_of_files(name: str) -> None:
    """A reference is written to a directory for the compiler, and nowhere else."""
    other = version(PROTO3, 2, "q")
    with pytest.raises(SchemaError, match="cannot be the name of an imported file"):
        registry = SchemaRegistry([other])
        ProtobufSchema(version(ONE, references=(SchemaReference(name, "q", 2),)), registry)


def test_ids_in_headers() -> None:
    """The path of the message follows the GUID in the header, and the value has none."""
    guid = uuid.UUID(int=7)
    registry = SchemaRegistry([version(TWO, guid=str(guid))])
    decoder = PartDecoder(registry, "t", "value", [], "auto")
    rows = [(b"\0", b"\x08\5"), (b"\2\2", b"\x08\6"), (b"", b"\0\x08\7"), (b"\2", b"")]
    headers = [[{"key": HEADERS["value"], "value": b"\1" + guid.bytes + path}] for path, _ in rows]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    column, _, _, problems = decoder.decode_columns(
        pa.array([data for _, data in rows], pa.binary()), pa.array(headers, kind)
    )
    assert column.to_pylist()[:3] == [
        {"A": {"a": 5}, "B": None},
        {"A": None, "B": {"b": 6}},
        {"A": {"a": 7}, "B": None},
    ]
    assert [problem is None for problem in problems.to_pylist()] == [True, True, True, False]


def test_bytes_after_a_guid_of_another_type() -> None:
    guid = uuid.UUID(int=7)
    registry = SchemaRegistry([SchemaVersion("t-value", 1, 1, "AVRO", '"int"', guid=str(guid))])
    decoder = PartDecoder(registry, "t", "value", [], "auto")
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = [[{"key": HEADERS["value"], "value": b"\1" + guid.bytes + b"\0"}]]
    _, _, _, problems = decoder.decode_columns(
        pa.array([b"\2"], pa.binary()), pa.array(headers, kind)
    )
    assert problems.to_pylist() == [
        "the record header with the schema's GUID has more bytes after it, which only Protobuf values have: the value is not decoded"
    ]


def test_versions() -> None:
    """Fields of all versions. If one has several messages, values of all are wrapped."""
    wider = PROTO3 + "message A { int64 a = 1; string s = 2; }"
    kind, rows = decoded([version(ONE), version(wider, 2)], b"\0\x08\5")
    assert kind == pa.struct([("a", pa.int64()), ("s", pa.string())])
    assert rows == [({"a": 5, "s": None}, None)]
    _, rows = decoded([version(ONE), version(TWO, 2)], b"\0\x08\5")
    assert rows == [({"A": {"a": 5}, "B": None}, None)]


def test_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError) as raised:
        ProtobufSchema(version(ONE), SchemaRegistry())
    assert raised.value.name == "grpc_tools"


@given(st.binary(max_size=12))
def test_any_bytes(data: bytes) -> None:
    """A value or a reason. What is decoded has no fields that are left out."""
    values = pa.array([b"\0\0\0\0\1" + data], pa.binary())
    column, _, _, problems = KINDS_DECODER.decode_columns(values, None)
    column.validate(full=True)
    if problems[0].as_py() is None:
        _, start = read_indexes(data)
        message = KINDS_CLASS.FromString(data[start:])
        size = message.ByteSize()
        message.DiscardUnknownFields()
        assert message.ByteSize() == size
