"""Choices whose cases are choices: the outer one decides, then the inner one."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from codecgen.diff import Side, diff
from codecgen.explain.declarations import explain
from codecgen.explain.programs import explain_program
from codecgen.plan import make_plan
from codecgen.plan.encoded_sizes import SizeError, encoded_size
from codecgen.plan.size_bounds import size_bounds
from codecgen.runtime.errors import BuildError, ParseError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.targets.registry import TARGETS
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of

SCHEMA = """
enums:
  kind: {doc: Kinds., values: {old: 0, new: 1, both: 2}}
---
layout: holder
fields:
  kind: {type: u8, enum: kind}
  version: u8
  entry: {choice: entry, length: u8, none: 255}
  body: {choice: body, given: {kind: kind}, version: version, length: u8, unknown: bytes}
  entries: {array: {choice: entry}, count: u8}
  number: {type: u8, default: entry.magic}
---
choice: entry
doc: By magic, then by kind.
by: magic
cases: {0: old, 1: new, 2-3: both}
---
choice: new
doc: New ones.
by: kind
cases: {old: new_old, new: new_new, both: deep}
---
choice: deep
by: sort
cases: {0: deep_zero, 300: deep_one}
---
choice: both
doc: The same field again.
by: magic
cases: {1-2: two, 3: three}
---
layout: old
fields: {size: u8, magic: {type: u8, const: 0}, data: {string: u8}}
---
layout: new_old
fields: {size: u8, magic: u8, kind: {type: u8, enum: kind}}
---
layout: new_new
versions: 0-1
fields:
  version: {type: u8, is: version}
  magic: u8
  kind: {type: u8, enum: kind}
  more: {type: u8, versions: 1}
---
layout: deep_zero
fields: {a: u8, magic: u8, kind: {type: u8, enum: kind}, sort: uvarint}
---
layout: deep_one
fields: {a: u8, magic: u8, kind: {type: u8, enum: kind}, sort: uvarint, more: u16}
---
layout: two
fields: {a: u8, magic: u8}
---
layout: three
fields: {a: u8, magic: u8, b: u8}
---
choice: body
given: {kind: kind}
by: kind
cases: {old: plain, new: new, both: some}
---
choice: some
doc: Of those that are given a kind.
given: {kind: kind}
by: kind
cases: {old: plain, new: plain, both: versioned}
---
layout: plain
fields: {a: u8}
---
layout: versioned
versions: 0-1
fields: {a: u8, b: {type: u8, versions: 1}}
"""

Value = dict[str, Any]
GOOD: list[tuple[Value, str]] = [
    ({"size": 9, "magic": 0, "data": "a"}, "09 00 01 61"),
    ({"size": 9, "magic": 1, "kind": 0}, "09 01 00"),
    ({"version": 0, "magic": 1, "kind": 1}, "00 01 01"),
    ({"version": 1, "magic": 1, "kind": 1, "more": 7}, "01 01 01 07"),
    ({"a": 5, "magic": 1, "kind": 2, "sort": 0}, "05 01 02 00"),
    ({"a": 5, "magic": 1, "kind": 2, "sort": 300, "more": 1}, "05 01 02 ac02 0001"),
    ({"a": 5, "magic": 2}, "05 02"),
    ({"a": 5, "magic": 3, "b": 1}, "05 03 01"),
]
BODIES: list[tuple[Value, str]] = [
    ({"kind": 0, "version": 9, "body": {"a": 1}}, "00 09 ff 01 01 00 00"),
    (
        {"kind": 1, "version": 9, "body": {"size": 9, "magic": 1, "kind": 0}},
        "01 09 ff 03 090100 00 00",
    ),
    (
        {"kind": 1, "version": 1, "body": {"version": 1, "magic": 7, "kind": 1, "more": 7}},
        "01 01 ff 04 01070107 00 00",
    ),
    ({"kind": 1, "version": 9, "body": b"\1\2\3"}, "01 09 ff 03 010203 00 00"),
    ({"kind": 2, "version": 1, "body": {"a": 1, "b": 2}}, "02 01 ff 02 0102 00 00"),
    ({"kind": 2, "version": 0, "body": {"a": 1}}, "02 00 ff 01 01 00 00"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("nested"), "made_of_nested_choices")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if name != "_io"}
    return [_plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("value", "hex_"), GOOD)
def test_the_outer_field_decides_then_the_inner_one(
    made: ModuleType, value: Value, hex_: str
) -> None:
    data = bytes.fromhex(hex_)
    assert _plain(made.ENTRY.parse(data)) == value
    assert made.ENTRY.build(value) == data
    whole = {"kind": 0, "version": 0, "entry": value, "body": {"a": 1}, "entries": [value, value]}
    inside = made.HOLDER.build(whole)
    magic = bytes([value["magic"]])
    assert inside == b"\0\0" + bytes([len(data)]) + data + b"\1\1\2" + data + data + magic
    assert _plain(made.HOLDER.parse(inside)) == whole | {"number": value["magic"]}
    assert encoded_size(PLAN, HOLDER, whole) == len(inside)


PLAN = make_plan(model_of(SCHEMA))
HOLDER = PLAN.versions["holder"][0]


@pytest.mark.parametrize(("value", "hex_"), BODIES)
def test_a_case_of_what_is_given_is_a_choice(made: ModuleType, value: Value, hex_: str) -> None:
    data = bytes.fromhex(hex_)
    whole = value | {"entry": None, "entries": [], "number": 0}
    assert _plain(made.HOLDER.parse(data)) == whole
    assert made.HOLDER.build(whole) == data
    assert encoded_size(PLAN, HOLDER, whole) == len(data)


@pytest.mark.parametrize(
    ("codec", "hex_", "reason", "path"),
    [
        ("ENTRY", "05 04", "4 is not one of 0-3", "magic"),
        ("ENTRY", "05 01 03", "3 is not one of 0-2", "kind"),
        ("ENTRY", "05 01 02 01", "1 is not one of 0, 300", "sort"),
        ("ENTRY", "05 01", "1 byte is needed", "kind"),
        ("ENTRY", "05 01 02 80", "", "sort"),
        ("ENTRY", "05", "1 byte is needed", "magic"),
        ("HOLDER", "00 00 03 050103", "3 has no case: the cases are 0-2", "entry"),
        ("HOLDER", "00 00 04 05010201", "1 has no case: the cases are 0, 300", "entry"),
        ("HOLDER", "00 00 02 0501", "1 byte is needed", "entry.kind"),
        ("HOLDER", "00 00 04 05010000", "1 byte follows", "entry"),
    ],
)
def test_bytes_without_a_case_are_refused(
    made: ModuleType, codec: str, hex_: str, reason: str, path: str
) -> None:
    with pytest.raises(ParseError) as raised:
        getattr(made, codec).parse(bytes.fromhex(hex_))
    assert reason in raised.value.reason
    assert raised.value.where.path == path


def test_values_that_do_not_say_the_inner_case_are_refused(made: ModuleType) -> None:
    for value, path in (
        ({"magic": 1, "kind": 5}, "kind"),
        ({"magic": 1}, "kind"),
        ({"magic": 1, "kind": 2, "sort": 4}, "sort"),
        ({"magic": 9}, "magic"),
    ):
        with pytest.raises(BuildError) as raised:
            made.ENTRY.build(value)
        assert raised.value.where.path == path
        whole = {"kind": 0, "version": 0, "entry": value, "body": {"a": 1}, "entries": []}
        with pytest.raises(BuildError) as raised:
            made.HOLDER.build(whole)
        assert (raised.value.where.path or "").startswith("entry")
        with pytest.raises(SizeError):
            encoded_size(PLAN, HOLDER, whole)
    with pytest.raises(BuildError, match="fields of new_old is needed"):
        made.HOLDER.build(
            {"kind": 1, "version": 0, "entry": None, "body": b"\0\0\0", "entries": []}
        )


def test_cases_are_the_choices_and_may_be_named(made: ModuleType) -> None:
    assert made.ENTRY.case_of(1) is made.NEW
    assert made.NEW.case_of(2) is made.DEEP
    assert made.ENTRY.case_of(2) is made.TWO
    assert made.BODY[made.Kind.NEW] is made.NEW
    assert made.ENTRY.build({"magic": 1, "kind": "old", "size": 3}) == b"\3\1\0"
    assert made.ENTRY.build({"magic": 1, "kind": "both", "a": 0, "sort": 0}) == b"\0\1\2\0"


def test_what_it_takes_to_know_the_layout(made: ModuleType) -> None:
    assert made.ENTRY.prefix_size == 3 + 5  # the varint of the innermost
    for hex_, size in (("0502", 2), ("0501", None), ("050100", 3), ("050102", None)):
        source = Source(bytes.fromhex(hex_), Session())
        found = made.ENTRY.frame(source) if made.ENTRY.framed else None
        assert found in (size, None)


@pytest.mark.parametrize("hex_", [one for _, one in GOOD])
def test_bytes_that_are_cut_off_raise_an_error_of_codecs(made: ModuleType, hex_: str) -> None:
    data = bytes.fromhex(hex_)
    for end in range(len(data)):
        with pytest.raises(ParseError):
            made.ENTRY.parse(data[:end])


def test_what_is_said_of_them() -> None:
    model = model_of(SCHEMA)
    assert "new" in explain(model, "entry").split()
    assert "entry" in explain(model, "new_old") or "new" in explain(model, "new_old")
    program = " ".join(explain_program(model, "holder").split())
    assert "case 1 deep_one kind 2, sort 300" in program
    page = next(
        text for name, text in TARGETS["docs"](PLAN).files.items() if name.endswith("case.md")
    )
    assert "[new](#new)" in page
    limits = size_bounds(PLAN, HOLDER)
    assert limits.min_size <= 6
    after = model_of(SCHEMA.replace("{0: deep_zero, 300: deep_one}", "{0: deep_zero, 3: deep_one}"))
    said = diff("holder", Side("old", model, None), Side("new", after, None))
    assert "- entry: case 1, kind 2, sort 300, deep_one, is removed" in said
    assert "+ entry: case 1, kind 2, sort 3, deep_one, is added" in said
