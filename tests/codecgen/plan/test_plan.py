"""Plans: where fields lie and how long they are, by version."""

from __future__ import annotations

import pytest

from codecgen.plan import LayoutPlan, make_plan, texts
from codecgen.schema.model import Field
from codecgen.schema.texts import TextValue
from codecgen.schema.types import BitsType, Reference
from tests.codecgen.schemas import model_of, our_model

OURS = make_plan(our_model())


def places(plan: LayoutPlan) -> list[tuple[str, int | None, int | None]]:
    return [(f.name, f.offset, f.size) for f in plan.fields]


def test_a_record_batch_lies_where_apache_kafka_has_it() -> None:
    """The constants of DefaultRecordBatch."""
    (batch,) = OURS.versions["record_batch"]
    assert places(batch) == [
        ("base_offset", 0, 8),
        ("batch_length", 8, 4),
        ("partition_leader_epoch", 12, 4),
        ("magic", 16, 1),
        ("crc", 17, 4),
        ("attributes", 21, 2),
        ("last_offset_delta", 23, 4),
        ("base_timestamp", 27, 8),
        ("max_timestamp", 35, 8),
        ("producer_id", 43, 8),
        ("producer_epoch", 51, 2),
        ("base_sequence", 53, 4),
        ("record_count", 57, 4),
        ("records", 61, None),
    ]
    assert (batch.min_size, batch.size, batch.version) == (61, None, None)


def test_messages_lie_where_apache_kafka_has_them() -> None:
    """The constants of LegacyRecord, and the 12 bytes of offset and size before it."""
    zero, one = OURS.versions["message"]
    assert (zero.version, one.version) == (0, 1)
    fixed = [
        ("offset", 0, 8),
        ("message_size", 8, 4),
        ("crc", 12, 4),
        ("magic", 16, 1),
        ("attributes", 17, 1),
    ]
    rest = [("value", None, None), ("messages", None, None)]
    assert places(zero) == [*fixed, ("key", 18, None), *rest]
    assert places(one) == [*fixed, ("timestamp", 18, 8), ("key", 26, None), *rest]


def test_runs_are_spelled_out() -> None:
    (record,) = OURS.versions["record"]
    length = record.field("length")
    assert length is not None
    assert length.measures is not None
    assert [f.name for f in record.field_range(length.measures)] == [
        "attributes",
        "timestamp_delta",
        "offset_delta",
        "key",
        "value",
        "headers",
    ]
    (batch,) = OURS.versions["record_batch"]
    crc = batch.field("crc")
    assert crc is not None
    assert sum(f.size or 0 for f in batch.covered(crc)) == 61 - 21


def test_a_reference_means_one_version_or_all() -> None:
    span = OURS.model.layouts["message"].span
    assert [p.version for p in OURS.of(Reference("message", None, span))] == [0, 1]
    assert [p.version for p in OURS.of(Reference("message", 1, span))] == [1]


KINDS = """
layout: kinds
versions: 0-2
fields:
  a: u8
  b: i16
  c: {type: uuid, versions: 1+}
  d: {layout: inner}
  e: {type: f64, versions: 0-1}
  f: {bytes: 5}
  g: {type: bool}
  h: varint
  i: u64
---
layout: inner
versions: 0-2
fields:
  x: u32
  y: {type: u8, versions: 2}
"""


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, {"a": (0, 1), "b": (1, 2), "d": (3, 4), "e": (7, 8), "f": (15, 5), "g": (20, 1)}),
        (
            1,
            {
                "a": (0, 1),
                "b": (1, 2),
                "c": (3, 16),
                "d": (19, 4),
                "e": (23, 8),
                "f": (31, 5),
                "g": (36, 1),
            },
        ),
        (2, {"a": (0, 1), "b": (1, 2), "c": (3, 16), "d": (19, 5), "f": (24, 5), "g": (29, 1)}),
    ],
)
def test_offsets_follow_the_versions(version: int, expected: dict[str, tuple[int, int]]) -> None:
    plan = make_plan(model_of(KINDS)).versions["kinds"][version]
    ends = {name: at + size for name, (at, size) in expected.items()}
    fixed = expected | {"h": (max(ends.values()), None), "i": (None, 8)}
    assert {f.name: (f.offset, f.size) for f in plan.fields} == fixed
    assert plan.size is None


def test_a_layout_of_fixed_fields_has_a_size() -> None:
    inner = make_plan(model_of(KINDS)).versions["inner"]
    assert [p.size for p in inner] == [4, 4, 5]


def test_nothing_has_a_fixed_place_behind_a_field_that_may_be_missing() -> None:
    text = "layout: a\nfields: {b: {type: bool}, c: {type: u8, when: b}, d: u8}\n"
    (plan,) = make_plan(model_of(text)).versions["a"]
    assert places(plan) == [("b", 0, 1), ("c", 1, 1), ("d", None, 1)]
    assert (plan.min_size, plan.size) == (2, None)


BITS = """
layout: a
versions: 0-1
fields:
  flags:
    bits: u16
    members:
      low: {at: 0-2}
      new: {at: 3, versions: 1}
      unused: {reserved: keep}
      high: {at: 15}
"""


@pytest.mark.parametrize(("version", "low", "high"), [(0, 3, 14), (1, 4, 14)])
def test_reserved_bits_are_those_that_are_left(version: int, low: int, high: int) -> None:
    plan = make_plan(model_of(BITS)).versions["a"][version]
    flags = plan.fields[0].field.type
    assert isinstance(flags, BitsType)
    assert [(m.low, m.high) for m in flags.members if m.reserved] == [(low, high)]


def test_the_one_version_of_what_is_held_is_filled_in() -> None:
    text = (
        "layout: a\nfields: {b: {layout: c}, d: {array: c, count: u8}}\n"
        "---\nlayout: c\nversions: 3\nfields: {e: u8}\n"
    )
    model = model_of(text)
    assert [str(ref) for ref in model.references(model.layouts["a"])] == ["c@3", "c@3"]
    assert make_plan(model).versions["a"][0].fields[0].size == 1


def test_a_layout_that_holds_itself_can_be_planned() -> None:
    text = "layout: a\nfields: {more: {type: bool}, next: {layout: a, when: more}}\n"
    (plan,) = make_plan(model_of(text)).versions["a"]
    assert places(plan) == [("more", 0, 1), ("next", 1, None)]


def test_the_work_for_a_text_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value becomes a field once per pass, not once for each other value."""
    made = 0
    real = texts._as_field

    def counted(value: TextValue) -> Field:
        nonlocal made
        made += 1
        return real(value)

    monkeypatch.setattr(texts, "_as_field", counted)
    keys = "".join(f"  k{i}: {{decimal: i32, valid: k{i} > 0}}\n" for i in range(200))
    make_plan(model_of(f"text: many\nproperties:\n{keys}"))
    assert 200 <= made <= 2000
