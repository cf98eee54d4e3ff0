"""Sizes from the plan alone are those of the bytes that the codecs write; the KIP-98 table is the proposal's."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from construct import Container
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from codecgen.plan import LayoutPlan, Plan, make_plan
from codecgen.plan.encoded_sizes import (
    SizeError,
    encoded_size,
    length_size,
    overhead_rows,
    varint_size,
)
from codecgen.plan.size_bounds import scalar_bounds, size_bounds
from codecgen.runtime.errors import BuildError
from codecgen.runtime.primitives import Varint, Vlq
from codecgen.schema.loader import load, read_files
from codecgen.schema.lookup import integer_range
from codecgen.schema.scalars import SCALARS, VARINTS
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    FieldType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)
from codecgen.targets.live_codecs import Codecs, load_codecs
from tests.codecgen.schemas import model_of
from tests.paths import ROOT, SCHEMAS

MAIL = ROOT / "tests" / "data" / "docs" / "schemas"


@cache
def plan_of(directory: Path) -> Plan:
    model, diagnostics = load(read_files(directory))
    assert model is not None and not diagnostics
    return make_plan(model)


@cache
def codecs_of(directory: Path) -> Codecs:
    codecs, refused = load_codecs(plan_of(directory))
    assert codecs is not None and not refused
    return codecs


def layouts(directory: Path) -> list[LayoutPlan]:
    return [p for plans in plan_of(directory).versions.values() for p in plans]


OF_TOPICS = {
    *("offset_commit_key", "offset_commit_value", "group_metadata_value", "partition_record"),
    *(
        "consumer_group_member_metadata_value",
        "streams_group_topology_value",
        "client_quota_record",
    ),
}
"""Some of the layouts of Kafka's own topics, which are many and much alike."""


def is_tried(layout: LayoutPlan) -> bool:
    folder = layout.layout.span.file.partition("/")[0]
    return folder not in ("coordinator", "metadata", "remote") or layout.name in OF_TOPICS


ALL = [
    pytest.param(d, p.name, p.version, id=p.name if p.version is None else f"{p.name}@{p.version}")
    for d in (SCHEMAS, MAIL)
    for p in layouts(d)
    if is_tried(p)
]


# ---------------------------------------------------------------- values of a layout


@st.composite
def values(draw: st.DrawFn, plan: Plan, codecs: Codecs, layout: LayoutPlan, depth: int = 0) -> Any:
    """A value of a layout. What the builder works out is left out; which fields are there, the codec's own
    conditions say, so that this does not lean on what it is to test."""
    out = Container()
    for fp, codec in zip(layout.fields, codecs.layout(layout).fields, strict=True):
        f = fp.field
        if codec.when is not None and not codec.when(out):
            continue
        if f.measures or f.checksum or f.counts or f.const is not None:
            continue
        if f.is_version:
            out[f.name] = layout.version
        elif f.default is not None and (
            f.valid is not None or (f.default.text.lstrip("-").isdigit() and draw(st.booleans()))
        ):
            continue
        else:
            out[f.name] = draw(value(plan, codecs, layout, f.type, depth))
            if isinstance(f.type, BitsType):
                out[f.name] = codec.codec.filled(out[f.name], out)
    return out


def value(
    plan: Plan, codecs: Codecs, layout: LayoutPlan, type_: FieldType, depth: int
) -> st.SearchStrategy[Any]:
    match type_:
        case ScalarType(_, str(enum), only):
            names = [v.name for v in plan.model.enums[enum].values]
            return st.sampled_from([n for n in names if only is None or n in only])
        case ScalarType(name):
            return scalar(name)
        case BitsType(_, members):
            return st.fixed_dictionaries(
                {},
                optional={
                    m.name: (
                        # What is compressed has no size that could be worked out.
                        st.just("none")
                        if m.enum is not None and plan.model.enums[m.enum].values[0].name == "none"
                        else st.sampled_from([v.name for v in plan.model.enums[m.enum].values])
                        if m.enum is not None
                        else st.booleans()
                        if m.width == 1
                        else st.integers(0, 2**m.width - 1)
                    )
                    for m in members
                    if not m.reserved
                },
            )
        case BytesType(length, text, null):
            size = length if isinstance(length, int) else None
            most = size if size is not None else draw_length(length)
            some = st.text(max_size=most) if text else st.binary(min_size=size or 0, max_size=most)
            return some if null is None else st.none() | some
        case StructType(ref):
            (held,) = plan.held(ref, layout)
            return values(plan, codecs, held, depth + 1)
        case TagsType():
            found = st.dictionaries(st.integers(0, 300), st.binary(max_size=200), max_size=3)
            return found.map(lambda tags: [{"tag": tag, "data": tags[tag]} for tag in sorted(tags)])
        case ArrayType(element):
            inner: st.SearchStrategy[Any] = (
                st.one_of([values(plan, codecs, p, depth + 1) for p in plan.held(element, layout)])
                if isinstance(element, Reference)
                else value(plan, codecs, layout, element, depth)
            )
            some = st.lists(
                inner, min_size=type_.at_least, max_size=3 if depth < 3 else type_.at_least
            )
            return some if type_.null is None else st.none() | some


def draw_length(length: str | int) -> int:
    """Long enough that a varint of the length has more than one byte."""
    return 70 if length in VARINTS or length == "compact" else 20


def scalar(name: str) -> st.SearchStrategy[Any]:
    if name == "uuid":
        return st.uuids()
    if name == "bool":
        return st.booleans()
    if name == "f64":
        return st.floats(allow_nan=False)
    low, high = integer_range(name) or (0, 0)
    edges = [
        n for k in range(0, 64, 7) for n in ((1 << k) - 1, 1 << k, -(1 << k)) if low <= n <= high
    ]
    return st.integers(low, high) | st.sampled_from([low, high, *edges])


@pytest.mark.share(8, ci=8)
@pytest.mark.parametrize(("directory", "name", "version"), ALL)
@settings(suppress_health_check=[HealthCheck.filter_too_much])  # of rules that numbers break
@given(data=st.data())
def test_size_is_that_of_what_is_built_and_within_the_bounds(
    directory: Path, name: str, version: int | None, data: st.DataObject
) -> None:
    plan, codecs = plan_of(directory), codecs_of(directory)
    (layout,) = (p for p in plan.versions[name] if p.version == version)
    drawn = data.draw(values(plan, codecs, layout))
    try:
        built = codecs.layout(layout).build(drawn)
    except BuildError:
        assume(False)
        raise
    assert encoded_size(plan, layout, drawn) == len(built)
    found = size_bounds(plan, layout)
    assert len(built) >= found.min_size
    if found.max_size is not None and not found.payload:
        assert len(built) <= found.max_size


@given(st.sampled_from(VARINTS), st.data())
def test_varints(name: str, data: st.DataObject) -> None:
    n = data.draw(scalar(name))
    raw = (n << 1) ^ (n >> SCALARS[name].bits - 1) if SCALARS[name].signed else n
    expected = 1
    while raw > 0x7F:
        raw = (raw >> 7) - (SCALARS[name].kind == "bijective_vlq")
        expected += 1
    assert varint_size(name, n) == expected
    low, high = scalar_bounds(name)
    assert low <= expected <= high


EDGES = [n for k in range(64) for n in ((1 << k) - 1, 1 << k, -(1 << k), -(1 << k) - 1)]


@pytest.mark.parametrize("name", VARINTS)
def test_varints_take_the_bytes_that_they_are_written_in(name: str) -> None:
    scalar = SCALARS[name]
    codec = (
        Varint(scalar.bits, scalar.signed)
        if scalar.kind == "varint"
        else Vlq(scalar.bits, bijective=scalar.kind == "bijective_vlq")
    )
    low, high = integer_range(name) or (0, 0)
    numbers = {n for n in (*EDGES, low, high) if low <= n <= high}
    assert {0, 1, 63, 64, 127, 128, low, high} <= numbers
    for n in numbers:
        assert varint_size(name, n) == len(codec.build(n))
    for n in (low - 1, high + 1):
        with pytest.raises(SizeError, match=f"{n} does not fit {name}"):
            varint_size(name, n)


def test_lengths_take_the_bytes_that_they_are_written_in() -> None:
    for n in (-1, 0, 126, 127, 128, 16382, 16383):
        assert length_size("compact", n) == len(Varint(32, False).build(n + 1))
    for name, size in {"i8": 1, "u16": 2, "i24": 3, "u32": 4, "i64": 8}.items():
        assert length_size(name, 5) == size
    assert [length_size("varint", n) for n in (0, 63, 64)] == [1, 1, 2]


def layout_of(directory: Path, name: str, version: int | None = None) -> tuple[Plan, LayoutPlan]:
    plan = plan_of(directory)
    return plan, next(p for p in plan.versions[name] if version in (None, p.version))


@pytest.mark.parametrize(
    ("name", "value_", "message"),
    [
        ("letter", {"weight": "five"}, "a number is needed"),
        ("letter", {"text": None}, "null is not allowed"),
        ("letter", {"text": 5}, "bytes are needed"),
        ("letter", {"text": b"", "lines": 7}, "a list is needed"),
        ("letter", {"text": b"", "lines": [-1]}, "does not fit"),
        ("bag", {"letters": [3]}, "a mapping is needed"),
        (
            "capsule",
            {"packing_and_more": {"packing": "gzip"}, "letters": [{"text": b""}]},
            "compressed section is not known",
        ),
        ("capsule", {"packing_and_more": {"packing": "brotli"}}, "not a value of packing"),
    ],
)
def test_values_without_a_size(name: str, value_: dict[str, Any], message: str) -> None:
    plan, layout = layout_of(MAIL, name)
    with pytest.raises(SizeError, match=message):
        encoded_size(plan, layout, value_)


def test_a_value_called_none_is_not_one_that_is_missing() -> None:
    text = """
enums: {kind: {values: {none: 0, some: 300}}}
---
layout: thing
fields: {kind: {type: varint, enum: kind}}
"""
    plan = make_plan(model_of(text))
    thing = plan.versions["thing"][0]
    assert encoded_size(plan, thing, {"kind": "none"}) == 1
    assert encoded_size(plan, thing, {"kind": "some"}) == 2
    with pytest.raises(SizeError):
        encoded_size(plan, thing, {})


OF_ITS_OWN = """
layout: tagged
versions: 0
flexible: 0+
fields: {a: u8}
tagged:
  small: {tag: 0, type: u8}
  number: {tag: 1, type: uvarint}
  signed: {tag: 2, type: varlong}
---
layout: nullable
fields: {numbers: {array: u32, count: i8, none: -1}}
---
layout: chosen
fields: {kind: u8, body: {choice: body, given: {kind: kind}, length: uvarint}}
---
choice: body
given: {kind: u8}
by: kind
cases: {0: short, 1: long}
---
layout: short
fields: {a: u8}
---
layout: long
fields: {b: u64, text: {bytes: u16}}
"""


@pytest.mark.parametrize(
    ("name", "value_"),
    [
        ("tagged", {"a": 1}),
        ("tagged", {"a": 1, "small": 200, "number": 0, "signed": 0}),
        ("tagged", {"a": 1, "number": 127}),
        ("tagged", {"a": 1, "number": 128}),
        ("tagged", {"a": 1, "small": 1, "number": 1 << 31, "signed": -(1 << 62)}),
        ("tagged", {"a": 1, "signed": 64}),
        ("nullable", {"numbers": None}),
        ("nullable", {"numbers": []}),
        ("nullable", {"numbers": [1, 2]}),
        ("chosen", {"kind": 0, "body": {"a": 1}}),
        ("chosen", {"kind": 1, "body": {"b": 1, "text": b""}}),
        ("chosen", {"kind": 1, "body": {"b": 1, "text": bytes(200)}}),
    ],
)
def test_the_size_is_that_of_what_is_built(name: str, value_: dict[str, Any]) -> None:
    """What the layouts of Kafka and of the documents have none of: tagged numbers of any length."""
    plan = make_plan(model_of(OF_ITS_OWN))
    codecs, refused = load_codecs(plan)
    assert codecs is not None and not refused
    (layout,) = plan.versions[name]
    assert encoded_size(plan, layout, value_) == len(codecs.layout(layout).build(dict(value_)))


def test_nothing_is_compressed_when_there_is_nothing() -> None:
    plan, layout = layout_of(MAIL, "capsule", 1)
    value_ = {"packing_and_more": {"packing": "gzip"}, "letters": []}
    assert encoded_size(plan, layout, value_) == 21


# ---------------------------------------------------------------- KIP-98's space comparison


PROPOSED = {1: (34, 62), 3: (102, 96), 10: (340, 215), 50: (1700, 895), 100: (3400, 1745)}
"""The table of the proposal: messages -> bytes of the old format, bytes of the new one."""


def test_the_table_of_kip_98() -> None:
    plan, layout = layout_of(SCHEMAS, "kip_98_message_set")
    overhead = layout.layout.overhead
    assert overhead is not None
    rows = overhead_rows(plan, overhead)
    assert {row.messages: row.bytes for row in rows} == PROPOSED
    assert [column.title for column in overhead.columns] == ["Old format", "New format"]


def test_how_the_table_of_kip_98_comes_about() -> None:
    """34 a message, against 45 and 17 a message: the terms of the proposal's sums."""
    for n, (old, new) in PROPOSED.items():
        assert (old, new) == (34 * n, 45 + 17 * n)
    plan, old_layout = layout_of(SCHEMAS, "message", 1)
    assert size_bounds(plan, old_layout).min_size == size_bounds(plan, old_layout).max_size == 34
    _, message_set = layout_of(SCHEMAS, "kip_98_message_set")
    assert size_bounds(plan, message_set).min_size == size_bounds(plan, message_set).max_size == 45


def test_the_range_of_kip_98() -> None:
    """The proposal says 14 to 25 bytes a message. Its own list of fields gives 15 to 28, as the schema notes."""
    plan, message = layout_of(SCHEMAS, "kip_98_message")
    found = size_bounds(plan, message)
    assert (found.min_size, found.max_size) == (15, 28)
    assert (found.min_size, found.max_size) != (14, 25)
    notes = plan.model.layouts["kip_98_message_set"].overhead
    assert notes is not None
    for figure in ("14 to 25", f"is {found.min_size} ", f"to {found.max_size} "):
        assert figure in notes.notes


@pytest.mark.parametrize(
    ("key", "value_", "offset_delta", "expected"),
    [
        (None, None, 0, 15),
        (b"", b"", 0, 16),
        (bytes(100), bytes(924), 99, 17),
        (bytes(128), b"", 2**31, 22),
    ],
)
def test_messages_of_kip_98(
    key: bytes | None, value_: bytes | None, offset_delta: int, expected: int
) -> None:
    """What a message takes beside its key and value, worked out and built."""
    plan, message = layout_of(SCHEMAS, "kip_98_message")
    codecs = codecs_of(SCHEMAS)
    given_: dict[str, Any] = {
        "attributes": {"null_key": key is None, "null_value": value_ is None},
        "timestamp": 0,
        "offset_delta": offset_delta,
    }
    given_ |= {} if key is None else {"key": key}
    given_ |= {} if value_ is None else {"value": value_}
    carried = len(key or b"") + len(value_ or b"")
    assert encoded_size(plan, message, given_) - carried == expected
    assert len(codecs.layout(message).build(given_)) - carried == expected


def test_the_fewest_and_the_most_bytes_of_a_message() -> None:
    """Lengths of 5 bytes belong to keys of 256 MiB; their sizes come from the numbers, not from such keys."""
    plan, message = layout_of(SCHEMAS, "kip_98_message")
    long = 1 << 28
    fixed = 1 + 8 + 4  # attributes, timestamp, checksum
    most = varint_size("uvarint", long + fixed + 10) + 2 * varint_size("uvarint", long) + fixed
    assert most == size_bounds(plan, message).max_size
    small = {
        "attributes": {"null_key": True, "null_value": True},
        "timestamp": 0,
        "offset_delta": 0,
    }
    assert encoded_size(plan, message, small) == size_bounds(plan, message).min_size
