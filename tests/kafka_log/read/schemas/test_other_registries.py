"""Values of the serializers of AWS Glue and Apicurio, with schemas from files."""

from __future__ import annotations

import json
import time
import uuid
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafka_log
from kafka_log import write_log
from kafka_log.read.schemas import decoding, framing
from kafka_log.read.schemas.decoding import PartDecoder, split_by_parts
from kafka_log.read.schemas.framing import HEADERS, inflate
from kafka_log.read.schemas.registry import SchemaError, SchemaId, SchemaRegistry, SchemaVersion
from kafka_log.read.schemas.sources import read_registry
from tests.support.avro_engines import HEADERS as HEADERS_TYPE
from tests.support.avro_engines import encode_avro, framed, record_schema
from tests.support.registry_frames import APICURIO, GLUE, GUID

AVRO = record_schema(("n", "long"), ("s", "string"))
JSON = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
PROTO = """\
syntax = "proto3";
package shop;
message Zebra { int64 n = 1; }
message Apple { int64 n = 1; map<string, int64> named = 2; message Inner { int64 n = 1; } }
message AppleTree { int64 n = 1; }
"""
TEXTS = {"AVRO": json.dumps(AVRO), "JSON": json.dumps(JSON), "PROTOBUF": PROTO}
SEVEN = {"n": 7, "s": "seven"}
OTHER = uuid.UUID(int=5)


def glue(data: bytes, guid: uuid.UUID = GUID, compressed: bool = False) -> bytes:
    """Return a value as Glue's serializers write it, spelled out."""
    head = (b"\3\5" if compressed else b"\3\0") + guid.bytes
    return head + (zlib.compress(data) if compressed else data)


def long_framed(number: int, data: bytes) -> bytes:
    """Return a value with an id of 8 bytes."""
    return b"\0" + number.to_bytes(8, "big") + data


def avro(kind: Any = "id", number: int = 7, guid: str | None = None, fields: Any = AVRO, part: str = "value") -> SchemaVersion:  # fmt: skip
    text = json.dumps(fields)
    return SchemaVersion(f"t-{part}", number, number, "AVRO", text, guid=guid, id_kind=kind)


def rows_of(
    registry: SchemaRegistry, values: list[bytes | None], headers: Any = None, part: str = "value"
) -> list[tuple[Any, Any, Any, Any]]:
    """Return (value, id, undecoded, problem) of each value. Undecoded values keep their bytes."""
    decoder = PartDecoder(registry, "t", part, [])
    array = pa.array(values, pa.binary())
    lists = pa.array([[]] * len(values) if headers is None else headers, HEADERS_TYPE)
    assert len(decoder.estimate_parts(array, lists)) == len(values)
    columns = decoder.decode_columns(array, lists)
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    for data, (value, _, undecoded, problem) in zip(values, rows, strict=True):
        assert (undecoded is None) == (problem is None) and undecoded in (None, data)
        assert value is None or problem is None
        assert value is not None or problem is not None or data is None
    return rows


def header(name: str, data: bytes) -> dict[str, Any]:
    return {"key": name, "value": data}


# ---------------------------------------------------------------- what serializers write


@pytest.mark.parametrize(
    "line", GLUE, ids=lambda line: f"{line['type']}-{line['compression']}-{line['message']}"
)
def test_what_glue_writes(line: dict[str, Any]) -> None:
    kind = line["type"]
    version = SchemaVersion("t-value", 0, -1, kind, TEXTS[kind], guid=str(GUID))
    ((value, number, _, problem),) = rows_of(SchemaRegistry([version]), [bytes.fromhex(line["hex"])])  # fmt: skip
    assert number is None
    if line["message"] == "shop.Apple.Inner":
        assert "shop.Apple.Inner, which is nested in another message" in problem
    elif kind == "PROTOBUF":
        assert {name: one for name, one in value.items() if one is not None}.keys() == {line["message"]}  # fmt: skip
        assert value[line["message"]]["n"] == 7
    else:
        assert value == SEVEN


@pytest.mark.parametrize("line", APICURIO, ids=lambda line: f"{line['part']}-{line['configs']}")
def test_what_apicurio_writes(line: dict[str, Any]) -> None:
    configs, part = line["configs"], line["part"]
    headers = [[header(name, bytes.fromhex(text)) for name, text in line["headers"].items()]]
    kind = configs["apicurio.registry.use-id"]
    number = {"globalId": 70, "contentId": 7}[kind]
    is_short = "apicurio.registry.as-confluent" in configs
    version = avro("id" if is_short else kind, number, part=part)
    values: list[bytes | None] = [bytes.fromhex(line["hex"])]
    ((value, found, _, problem),) = rows_of(SchemaRegistry([version]), values, headers, part)
    if "apicurio.registry.avro.encoding" in configs:
        assert "not Avro's binary encoding" in problem
    else:
        assert (value, problem) == (SEVEN, None)
    assert found == number
    # An id of another kind is another id.
    others: list[Any] = [k for k in ("id", "globalId", "contentId") if k != version.id_kind]
    if not is_short and not headers[0]:
        others = ["id"]
    for other in others:
        registry = SchemaRegistry([avro(other, number, part=part)])
        ((_, _, _, problem),) = rows_of(registry, values, headers, part)
        assert problem is not None and "is registered" in problem


# ---------------------------------------------------------------- laws

VALUES = st.fixed_dictionaries({"n": st.integers(-(1 << 63), (1 << 63) - 1), "s": st.text()})


@given(
    st.lists(st.tuples(st.sampled_from(["glue", "zlib", "long", "header", "confluent"]), VALUES))
)
def test_frames_of_several_registries(rows: list[tuple[str, Any]]) -> None:
    """Each value of a topic is decoded with the schema that its own frame names."""
    versions = [avro("id", 1), avro("globalId", 2), avro("contentId", 3), avro(number=-1, guid=str(GUID))]  # fmt: skip
    values: list[bytes | None] = []
    headers: list[Any] = []
    for form, value in rows:
        data = encode_avro(AVRO, value)
        headers.append([])
        if form == "header":
            headers[-1] = [header("apicurio.value.contentId", (3).to_bytes(8, "big"))]
            values.append(data)
        elif form == "long":
            values.append(long_framed(2, data))
        elif form == "confluent":
            values.append(framed(1, data))
        else:
            values.append(glue(data, compressed=form == "zlib"))
    found = rows_of(SchemaRegistry(versions), values, headers)
    numbers = {"confluent": 1, "long": 2, "header": 3}
    assert found == [(value, numbers.get(form), None, None) for form, value in rows]


@given(st.lists(st.none() | st.binary(max_size=40) | st.binary(max_size=30).map(lambda b: b"\3\5" + GUID.bytes + b)))  # fmt: skip
def test_any_bytes(values: list[bytes | None]) -> None:
    """No bytes fail: they are values or keep a reason."""
    version = avro(number=-1, guid=str(GUID))
    rows_of(SchemaRegistry([version, avro("contentId", 0)]), values)


# ---------------------------------------------------------------- hostile and unknown values


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\3\0" + GUID.bytes[:-1], "does not begin with the id of a schema"),
        (b"\3\1" + GUID.bytes + b"\x0e\x0aseven", "does not begin with the id of a schema"),
        (b"\4\0" + GUID.bytes + b"\x0e\x0aseven", "does not begin with the id of a schema"),
        (glue(b"\x0e\x0aseven", OTHER), f"no schema with GUID {OTHER} is registered"),
        (glue(b"\x0e\x0aseven", OTHER, True), f"no schema with GUID {OTHER} is registered"),
        (glue(b"\x0e\x0aseve"), f"it is no value of schema {GUID}"),
        (b"\3\5" + GUID.bytes, "compressed data is cut off"),
        (glue(b"\x0e\x0aseven", compressed=True)[:-1], "compressed data is cut off"),
        (glue(b"\x0e\x0aseven", compressed=True) + b"x", "other bytes follow its compressed data"),
        (b"\3\5" + GUID.bytes + b"\x0e\x0aseven", "compressed data is damaged"),
        (glue(b"", compressed=True), f"it is no value of schema {GUID}"),
    ],
)  # fmt: skip
def test_hostile_values_of_glue(value: bytes, reason: str) -> None:
    good = glue(b"\x0e\x0aseven", compressed=True)
    rows = rows_of(SchemaRegistry([avro(number=-1, guid=str(GUID))]), [good, value, None])
    assert rows[0] == (SEVEN, None, None, None)
    assert reason in rows[1][3]
    assert rows[2] == (None,) * 4


def test_the_limit_of_decompression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_INFLATED", 10_000)
    assert inflate(zlib.compress(bytes(10_000))) == bytes(10_000)
    bomb = glue(bytes(10_001), compressed=True)
    ((_, _, _, problem),) = rows_of(SchemaRegistry([avro(number=-1, guid=str(GUID))]), [bomb])
    assert "more than 10,000 bytes after decompression" in problem


def test_slices_of_compressed_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decoded at once has a limit after decompression, though each value has few cells."""
    monkeypatch.setattr(framing, "MAX_INFLATED", 10_000)
    monkeypatch.setattr(decoding, "MAX_INFLATED", 10_000)
    fields = record_schema(("s", "string"))
    value = glue(encode_avro(fields, {"s": "x" * 3000}), compressed=True)
    decoder = PartDecoder(SchemaRegistry([avro(number=-1, guid=str(GUID), fields=fields)]), "t", "value", [])  # fmt: skip
    values = pa.array([value] * 10, pa.binary())
    assert [end - start for start, end in split_by_parts(decoder.estimate_parts(values, None))] == [3, 3, 3, 1]  # fmt: skip


def test_bombs_without_a_schema_are_not_decompressed() -> None:
    bomb = glue(bytes(20 << 20), OTHER, True)
    values: list[bytes | None] = [bomb] * 200
    start = time.process_time()
    rows = rows_of(SchemaRegistry([avro(number=-1, guid=str(GUID))]), values)
    assert time.process_time() - start < 2
    assert all("is registered" in row[3] for row in rows)


@pytest.mark.parametrize("number", ["05", "ffffffff7f", "80", ""])
def test_message_numbers_of_no_message(number: str) -> None:
    version = SchemaVersion("t-value", 0, -1, "PROTOBUF", PROTO, guid=str(GUID))
    ((_, _, _, problem),) = rows_of(SchemaRegistry([version]), [glue(bytes.fromhex(number))])
    assert "number" in problem


# ---------------------------------------------------------------- which reading counts

DATA = b"\x0e\x0aseven"


def test_the_form_of_confluent_comes_first() -> None:
    """Bytes with a known id of 4 bytes are decoded with it; ids of another registry change nothing."""
    other = avro("contentId", 9)
    assert rows_of(SchemaRegistry([avro(), other]), [framed(7, DATA)])[0][:2] == (SEVEN, 7)


def test_ids_of_8_bytes_need_a_schema_of_apicurio() -> None:
    """A registry of Confluent does not have them."""
    ((_, number, _, problem),) = rows_of(SchemaRegistry([avro()]), [long_framed(7, DATA)])
    assert number == 0 and "no schema with id 0 is registered" in problem
    registry = SchemaRegistry([avro("globalId")])
    assert rows_of(registry, [long_framed(7, DATA)])[0][:2] == (SEVEN, 7)
    ((_, number, _, problem),) = rows_of(registry, [long_framed(8, DATA)])
    assert number == 0 and "no schema with id 0 is registered" in problem


def test_bytes_of_two_registries() -> None:
    registry = SchemaRegistry([avro("id", 0), avro("contentId", 7)])
    ((_, number, _, problem),) = rows_of(registry, [long_framed(7, DATA)])
    assert number == 7
    assert "the id 0 in 4 bytes" in problem and "the id 7 in 8 bytes" in problem


def test_a_number_that_is_two_ids() -> None:
    """It is decoded if both ids have the same schema."""
    one, same = avro("globalId"), avro("contentId")
    assert rows_of(SchemaRegistry([one, same]), [long_framed(7, DATA)])[0][0] == SEVEN
    other = avro("contentId", fields=record_schema(("n", "long")))
    ((_, _, _, problem),) = rows_of(SchemaRegistry([one, other]), [long_framed(7, DATA)])
    assert "globalId or contentId 7 belongs to several schemas" in problem
    name = "apicurio.value.globalId"
    headers = [[header(name, (7).to_bytes(8, "big"))]]
    assert rows_of(SchemaRegistry([one, other]), [DATA], headers)[0][0] == SEVEN


def test_which_header_counts() -> None:
    """The order of Apicurio's deserializers; the last of several; and values with a header have no frame."""
    known = [avro("globalId", 1), avro("contentId", 2), avro("id", 7)]
    one, two, nine = ((n).to_bytes(8, "big") for n in (1, 2, 9))
    g, c = "apicurio.value.globalId", "apicurio.value.contentId"
    cases: list[tuple[list[tuple[str, bytes]], bytes, int | None]] = [
        ([(g, one), (c, two)], DATA, 2),
        ([(g, nine), (g, one)], DATA, 1),
        ([(g, one), ("apicurio.value.contentHash", b"hash")], DATA, None),
        ([("apicurio.value.artifactId", b"a")], framed(7, DATA), None),
        ([("apicurio.key.globalId", one)], framed(7, DATA), 7),
        ([(g, one[1:])], framed(7, DATA), None),
        ([(g, b"")], framed(7, DATA), None),
        ([("apicurio.value.encoding", b"BINARY")], framed(7, DATA), 7),
    ]
    headers = [[header(*pair) for pair in pairs] for pairs, _, _ in cases]
    rows = rows_of(SchemaRegistry(known), [data for _, data, _ in cases], headers)
    assert [number for _, number, _, _ in rows] == [number for _, _, number in cases]
    assert [value is not None for value, *_ in rows] == [n is not None for _, _, n in cases]
    with_guid = [*headers[0], header(HEADERS["value"], b"\1" + GUID.bytes)]
    registry = SchemaRegistry([*known, avro(number=-1, guid=str(GUID))])
    assert rows_of(registry, [DATA], [with_guid])[0][:2] == (SEVEN, None)


def test_protobuf_of_apicurio_is_not_decoded() -> None:
    """Between the id and the message, its serializers write the name of the message, or nothing."""
    proto = SchemaVersion("t-value", 7, 7, "PROTOBUF", PROTO)
    values: list[bytes | None] = []
    for size in range(1, 130):
        ref = b"\x0a" + bytes([size]) + b"N" * size if size < 128 else b"\x0a" + bytes([size | 128, 1]) + b"N" * size  # fmt: skip
        length = bytes([len(ref)]) if len(ref) < 128 else bytes([len(ref) & 127 | 128, 1])
        values.append(framed(7, length + ref + b"\x08\x07"))
    assert all(row[3] for row in rows_of(SchemaRegistry([proto]), values))
    of_apicurio = SchemaVersion("t-value", 7, 7, "PROTOBUF", PROTO, id_kind="contentId")
    headers = [[header("apicurio.value.contentId", (7).to_bytes(8, "big"))]]
    ((_, _, _, problem),) = rows_of(SchemaRegistry([of_apicurio]), [b"\x08\x07"], headers)
    assert "Protobuf values of Apicurio's serializers are not decoded" in problem


# ---------------------------------------------------------------- files


def test_names_of_files(tmp_path: Path) -> None:
    names = [f"t-value.{GUID}.avsc", f"{str(OTHER).upper()}.json", "a.b.globalId-7.avsc", "contentId-123456789012.avsc", "t-value.7.avsc"]  # fmt: skip
    for name in names:
        (tmp_path / name).write_text('"int"' if name.endswith("avsc") else "{}", "utf-8")
    registry = read_registry([], tmp_path)
    assert [(v.subject, v.version, v.id, v.id_kind, v.guid) for v in registry.versions] == [
        ("", 0, -1, "id", str(OTHER)),
        ("", 123456789012, 123456789012, "contentId", None),
        ("a.b", 7, 7, "globalId", None),
        ("t-value", 0, -1, "id", str(GUID)),
        ("t-value", 7, 7, "id", None),
    ]
    assert registry.find(SchemaId(123456789012, kinds=("globalId", "contentId"))).subject == ""
    assert registry.find_by_guid(str(GUID)).label == str(GUID)


@pytest.mark.parametrize("name", ["contentid-7.avsc", "contentId-7x.avsc", f"{GUID}0.avsc", "contentId-1234567890123456789.avsc"])  # fmt: skip
def test_other_names(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('"int"', "utf-8")
    with pytest.raises(SchemaError, match="the name has no schema id"):
        read_registry([], tmp_path)


def test_versions_of_glue_have_no_number() -> None:
    registry = SchemaRegistry([SchemaVersion("t-value", 0, -1, "AVRO", '"int"', guid=str(GUID))])
    with pytest.raises(SchemaError, match="no version 1; no version of the subject is known"):
        PartDecoder(registry, "t", "value", [], schema_version=1)


def test_an_invalid_schema_is_named(tmp_path: Path) -> None:
    registry = SchemaRegistry([SchemaVersion("t-value", 0, -1, "AVRO", "{}", guid=str(GUID))])
    ((_, _, _, problem),) = rows_of(registry, [glue(DATA)])
    assert f"schema {GUID} is invalid" in problem


@pytest.fixture
def log(tmp_path: Path) -> tuple[Path, Path]:
    """Return a log directory of a topic with two schemas of Glue and one of Apicurio, and the directory of the schemas."""
    newer = record_schema(("n", "long"), ("s", "string"), ("more", ["null", "long"]))
    table = pa.table(
        {
            "value": pa.array(
                [glue(DATA), glue(encode_avro(newer, {**SEVEN, "more": 1}), OTHER, True), DATA, None, glue(b"", OTHER)],
                pa.binary(),
            ),
            "headers": pa.array([[], [], [header("apicurio.value.globalId", (7).to_bytes(8, "big"))], [], []], HEADERS_TYPE),
        }
    )  # fmt: skip
    write_log(tmp_path / "log", table, topic="t")
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    for name, schema in ((GUID, AVRO), (OTHER, newer), ("globalId-7", AVRO)):
        (schemas / f"t-value.{name}.avsc").write_text(json.dumps(schema), "utf-8")
    return tmp_path / "log", schemas


@pytest.mark.parametrize("prefix", ["t-value.", ""])
def test_a_topic(log: tuple[Path, Path], prefix: str) -> None:
    """Also without a subject in the names of the files, by the ids of the first records."""
    path, schemas = log
    for file in list(schemas.iterdir()):
        file.rename(schemas / file.name.replace("t-value.", prefix))
    rows = kafka_log.read_table(path, ["value"], topics="t", decode="auto", schemas=schemas).to_pylist()  # fmt: skip
    assert [row["value"] for row in rows] == [SEVEN | {"more": None}, SEVEN | {"more": 1}, SEVEN | {"more": None}, None, None]  # fmt: skip
    assert [row["value_schema_id"] for row in rows] == [None, None, 7, None, None]
    assert [row["value_problem"] is None for row in rows] == [True] * 4 + [False]


def test_the_table_of_schemas(log: tuple[Path, Path]) -> None:
    path, schemas = log
    (schemas / f"t-value.{OTHER}.avsc").unlink()
    rows = kafka_log.LogDirectory(path).schemas(source=schemas).to_pylist()
    shown = [(r["version"], r["id"], r["guid"], r["state"], r["records"]) for r in rows]
    assert shown == [
        (None, None, str(GUID), "registered", 1),
        (7, 7, None, "registered", 1),
        (None, None, str(OTHER), "unregistered", 2),
    ]
