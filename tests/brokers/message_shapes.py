"""The fields of layouts and those of Kafka's messages, in the same words, so that they can be compared.

A field is its name in Kafka's spelling and what it holds: the type of a number; text or bytes with the type of the length
and whether they may be null; an array with the type of the count, whether it may be null, and what its elements are; a
structure with whether it may be null, and its fields. Tagged fields have their number in front.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from codecgen.plan import FieldPlan, LayoutPlan, Plan, make_plan
from codecgen.runtime.construct import Layout
from codecgen.schema.loader import load, read_files
from codecgen.schema.types import (
    ArrayType,
    BytesType,
    Element,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)
from tests.paths import SCHEMAS

NAMES = {
    "AbortedTxn": "transaction_index_entry",
    "EndTxnMarker": "end_txn_marker",
    "KRaftVersionRecord": "kraft_version_record",
}
"""Layouts that are not called as Kafka calls its message."""

CONTROL = (
    *("AbortedTxn", "EndTxnMarker", "KRaftVersionRecord", "LeaderChangeMessage"),
    *("ProducerSnapshot", "SnapshotFooterRecord", "SnapshotHeaderRecord", "VotersRecord"),
)
"""Messages that are not in the values of Kafka's own topics: in control records, and files."""

SPELLED = {"kraftVersion": "kRaftVersion", "kraftVersionFeature": "kRaftVersionFeature"}
"""Names of Kafka's definitions that its classes do not bring back."""

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
Shape = tuple[Any, ...]


@cache
def plan() -> Plan:
    model, diagnostics = load(read_files(SCHEMAS))
    assert model is not None and not diagnostics
    return make_plan(model)


def layout_of(message: str) -> str:
    """Our name of a message."""
    return NAMES.get(message) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", message).lower()


def plans(message: str) -> tuple[LayoutPlan, ...]:
    """The versions of a message. One whose bytes say no version has version 0."""
    return plan().versions[layout_of(message)]


def in_version(message: str, version: int) -> LayoutPlan:
    [found] = [p for p in plans(message) if (p.version or 0) == version]
    return found


def codec(message: str, version: int) -> Layout:
    """Our codec of a version of a message."""
    suffix = "" if in_version(message, version).version is None else f"_V{version}"
    name = layout_of(message).upper() + suffix
    found: Layout = getattr(importlib.import_module("kafka_codecs"), name)
    return found


def prefix(message: str, version: int) -> bytes:
    """What stands before what Kafka's class writes: the version of a value, the type of a key."""
    if message == "EndTxnMarker":
        return b"\0\0"
    first = in_version(message, version).fields[0].field
    number = version if first.is_version else first.const
    if number is None:
        return b""
    assert isinstance(number, int) and isinstance(first.type, ScalarType)
    assert (first.type.name, first.endian) == ("i16", "big")
    return number.to_bytes(2, "big")


# ---------------------------------------------------------------- ours


def shape(message: str, version: int) -> list[Shape]:
    """The fields of our layout, but for what stands before what Kafka's class writes."""
    found = list(_fields(in_version(message, version), plan()))
    return found[1:] if prefix(message, version) else found


def shape_of(layout: LayoutPlan, of: Plan) -> list[Shape]:
    """The fields of a layout of another directory, likewise."""
    found = list(_fields(layout, of))
    first = layout.fields[0].field if layout.fields else None
    in_front = first is not None and (first.is_version or first.const is not None)
    return found[1:] if in_front else found


def _fields(layout: LayoutPlan, of: Plan) -> Iterator[Shape]:
    for fp in layout.in_order:
        tags = isinstance(fp.field.type, TagsType) or fp.name == "tagged_fields"
        if not tags and not fp.field.counts:
            yield (of.spelling(fp.name, fp.field.spelled), *_words(fp, layout, of))
    for fp in layout.tagged:
        spelled = of.spelling(fp.name, fp.field.spelled)
        yield (fp.field.tag, spelled, *_words(fp, layout, of))


def _words(fp: FieldPlan, layout: LayoutPlan, of: Plan) -> Shape:
    match fp.field.type:
        case ScalarType() | BytesType() as type_:
            return _element(type_, layout, of)
        case ArrayType(element, count=count, counted_by=by, null=null):
            number = layout.field(by) if by is not None else None
            if number is not None and isinstance(number.field.type, ScalarType):
                count = number.field.type.name
            return ("array", count, null is not None, *_element(element, layout, of))
        case StructType(ref, present):
            return ("structure", present is not None, *_element(ref, layout, of))
        case other:
            raise AssertionError(other)


def _element(type_: Element, layout: LayoutPlan, of: Plan) -> Shape:
    match type_:
        case ScalarType(name):
            return (name,)
        case BytesType(length, text, null):
            return ("text" if text else "bytes", length, null is not None)
        case Reference(name):
            found = of.versions[name]
            held = next((p for p in found if p.version == layout.version), found[0])
            return tuple(_fields(held, of))


# ---------------------------------------------------------------- Kafka's


def kafka_shape(fields: list[dict[str, Any]]) -> list[Shape]:
    """The fields of a version of Kafka's message, as :mod:`tests.brokers.messages` describes them."""
    return list(_kafka_fields(fields))


def _kafka_fields(fields: list[dict[str, Any]]) -> Iterator[Shape]:
    for field in sorted(fields, key=lambda f: f.get("tag", -1)):
        if field["type"] != "TAGGED_FIELDS":
            name = camel(field["name"])
            tag = (field["tag"],) if "tag" in field else ()
            yield (*tag, SPELLED.get(name, name), *_kafka_words(field))


def _kafka_words(field: Mapping[str, Any]) -> Shape:
    kind, nullable = str(field["type"]), bool(field.get("nullable"))
    if kind == "STRUCT":
        return ("structure", nullable, *_kafka_fields(field["fields"]))
    if kind.endswith("ARRAY"):
        count = "compact" if kind.startswith("COMPACT") else "i32"
        inner = _kafka_words(field["of"])
        return ("array", count, nullable, *(inner[2:] if inner[0] == "structure" else inner))
    if kind in NUMBERS:
        return (NUMBERS[kind],)
    text = kind.endswith("STRING")
    old = "i16" if text else "i32"
    return ("text" if text else "bytes", "compact" if "COMPACT" in kind else old, nullable)


def camel(name: str) -> str:
    """The name as Kafka's definitions and its JSON have it."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
