"""Layouts of Kafka's messages, held against the message classes of Kafka itself: their fields, random values, broken bytes."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from typing import Any

import pytest
from crc32c import crc32c

from codecgen.plan import FieldPlan, LayoutPlan, make_plan
from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import CodecError
from codecgen.schema.loader import load, read_files
from codecgen.schema.types import ArrayType, BytesType, Reference, ScalarType, StructType
from tests.brokers.messages import answers, damaged, messages
from tests.paths import SCHEMAS

pytestmark = pytest.mark.broker

LAYOUTS = {
    "AbortedTxn": "transaction_index_entry",
    "EndTxnMarker": "end_txn_marker",
    "KRaftVersionRecord": "kraft_version_record",
    "LeaderChangeMessage": "leader_change_message",
    "ProducerSnapshot": "producer_snapshot",
    "SnapshotFooterRecord": "snapshot_footer_record",
    "SnapshotHeaderRecord": "snapshot_header_record",
    "VotersRecord": "voters_record",
}
"""Kafka's name of a message -> ours."""

PREFIX = {"AbortedTxn": b"\0\0", "EndTxnMarker": b"\0\0", "ProducerSnapshot": b"\0\1"}
"""What stands before what Kafka's class writes: the version."""

NUMBERS = {
    "BOOLEAN": "bool",
    "INT8": "i8",
    "INT16": "i16",
    "UINT16": "u16",
    "INT32": "i32",
    "UINT32": "u32",
    "INT64": "i64",
    "FLOAT64": "f64",
    "UUID": "uuid",
}
RANDOM, BROKEN = 60, 12
"""Messages that are made up of each version, and broken ones made of each."""

MODEL, _ = load(read_files(SCHEMAS))
assert MODEL is not None
PLAN = make_plan(MODEL)
CASES = [
    (message, plan.version or 0)
    for message, layout in LAYOUTS.items()
    for plan in PLAN.versions[layout]
]


@pytest.fixture(scope="module")
def kafka() -> dict[str, dict[str, Any]]:
    return messages()


def codec(message: str, version: int) -> Layout:
    found: Layout = getattr(
        importlib.import_module("kafka_codecs"), f"{LAYOUTS[message].upper()}_V{version}"
    )
    return found


def with_checksum(message: str, data: bytes) -> bytes:
    """What a class writes or is given, with the checksum that a broker works out for it."""
    if message != "ProducerSnapshot" or len(data) < 4:
        return data
    return crc32c(data[4:]).to_bytes(4, "big") + data[4:]


def test_kafka_has_no_other_versions(kafka: dict[str, dict[str, Any]]) -> None:
    theirs = {(name, int(v)) for name in LAYOUTS for v in kafka[name]["versions"]}
    assert theirs == set(CASES)


@pytest.mark.parametrize(("message", "version"), CASES)
def test_the_fields_are_those_of_kafka(
    kafka: dict[str, dict[str, Any]], message: str, version: int
) -> None:
    [plan] = [p for p in PLAN.versions[LAYOUTS[message]] if p.version == version]
    ours = list(shape(plan))
    if message in PREFIX:
        assert ours.pop(0)[0] == "version"
    assert ours == list(their_shape(kafka[message]["versions"][str(version)]))


def shape(plan: LayoutPlan) -> Iterator[tuple[Any, ...]]:
    """The fields of a layout as names in Kafka's spelling with types in Kafka's words; tagged fields are left out."""
    for fp in plan.fields:
        if fp.name != "unknown_tags" and fp.field.counts is None:
            yield (PLAN.spelling(fp.name, fp.field.spelled), *words(fp, plan))


def words(fp: FieldPlan, plan: LayoutPlan) -> tuple[Any, ...]:
    match fp.field.type:
        case ScalarType(name):
            return (name,)
        case BytesType(length, null=null, text=text):
            return ("text" if text else "bytes", length, null is not None)
        case ArrayType(Reference(layout), count=count, counted_by=by):
            number = plan.field(by) if by is not None else None
            if number is not None and isinstance(number.field.type, ScalarType):
                count = number.field.type.name
            return ("array", count, tuple(shape(held(layout, plan.version))))
        case ArrayType(ScalarType(name), count=count):
            return ("array", count, name)
        case StructType(Reference(layout)):
            return tuple(shape(held(layout, plan.version)))
        case other:
            raise AssertionError(other)


def held(layout: str, version: int | None) -> LayoutPlan:
    """The layout in the version of what holds it, or its only one."""
    found = PLAN.versions[layout]
    return next((p for p in found if p.version == version), found[0])


def their_shape(fields: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    for field in fields:
        assert "tag" not in field, "a tagged field that has no place in our layouts"
        if field["type"] != "TAGGED_FIELDS":
            yield (camel(field["name"]), *their_words(field))


def their_words(field: dict[str, Any]) -> tuple[Any, ...]:
    kind = field["type"]
    if kind == "STRUCT":
        return tuple(their_shape(field["fields"]))
    if kind.endswith("ARRAY"):
        count = "compact" if kind.startswith("COMPACT") else "i32"
        [*own] = their_words(field["of"])
        of = tuple(own) if field["of"]["type"] == "STRUCT" else own[0]
        return ("array", count, of)
    if kind in NUMBERS:
        return (NUMBERS[kind],)
    compact = kind.startswith("COMPACT")
    text = kind.endswith("STRING")
    length = "compact" if compact else "i16" if text else "i32"
    return ("text" if text else "bytes", length, bool(field["nullable"]))


def camel(name: str) -> str:
    """The name as Kafka's definitions have it: its classes write ``kraft_version`` where these say ``kRaftVersion``."""
    head, *rest = name.replace("kraft", "kRaft").split("_")
    return head + "".join(part.capitalize() for part in rest)


@pytest.mark.parametrize(("message", "version"), CASES)
def test_what_kafka_writes_is_read_and_written_again(message: str, version: int) -> None:
    layout, prefix = codec(message, version), PREFIX.get(message, b"")
    seeds = [{"message": message, "version": version, "random": seed} for seed in range(RANDOM)]
    found = answers(seeds)
    assert all("hex" in answer for answer in found)
    for answer in found:
        data = prefix + with_checksum(message, bytes.fromhex(answer["hex"]))
        assert layout.build(layout.parse(data)) == data


@pytest.mark.parametrize(("message", "version"), CASES)
def test_what_kafka_refuses_is_refused(message: str, version: int) -> None:
    """Bytes that were changed, cut off or inserted: both read them, with the same values, or neither does."""
    layout, prefix = codec(message, version), PREFIX.get(message, b"")
    seeds = [{"message": message, "version": version, "random": seed} for seed in range(RANDOM)]
    r = random.Random(f"{message} {version}")
    broken = [
        with_checksum(message, damaged(bytes.fromhex(answer["hex"]), r))
        for answer in answers(seeds)
        for _ in range(BROKEN)
    ]
    asked = [{"message": message, "version": version, "hex": data.hex()} for data in broken]
    refused = 0
    for data, answer in zip(broken, answers(asked), strict=True):
        try:
            value = layout.parse(prefix + data, strict=False)
        except CodecError:
            assert "error" in answer or answer["left"], data.hex()
            refused += 1
            continue
        assert "error" not in answer, (data.hex(), answer)
        if "again" not in answer:
            continue
        again = prefix + with_checksum(message, bytes.fromhex(answer["again"]))
        assert layout.parse(again) == value, data.hex()
    assert refused > len(broken) // 20
