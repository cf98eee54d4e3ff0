"""Choices in the place of a field and as elements: which case it is, in which version, and what has none."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from codecgen.plan import make_plan
from codecgen.plan.encoded_sizes import encoded_size
from codecgen.plan.size_bounds import size_bounds
from codecgen.runtime.errors import BuildError, CodecError, LimitError, ParseError
from tests.codecgen.generated import package_of
from tests.codecgen.language.chosen import SCHEMA
from tests.codecgen.schemas import model_of

GOOD: list[tuple[str, dict[str, Any], str]] = [
    ("RECORD", {"kind": 2, "version": 1, "body": {"name": "a", "id": 7}}, "02 01 0161 07"),
    ("RECORD", {"kind": 2, "version": 0, "body": {"name": "a"}}, "02 00 0161"),
    ("RECORD", {"kind": 3, "version": 5, "body": {"id": 7}}, "03 05 0007"),
    ("RECORD", {"kind": 9, "version": 5, "body": b"ab"}, "09 05 6162"),
    ("RECORD", {"kind": 8, "version": 5, "body": b""}, "08 05"),
    ("RECORD", {"kind": 2, "version": 2, "body": b"\1\2"}, "02 02 0102"),
    ("PAIR", {"key": None, "value": None}, "01 ffff"),
    ("PAIR", {"key": None, "value": b""}, "01 0000"),
    ("PAIR", {"key": {"version": 1, "name": "a"}, "value": {"data": b""}}, "08 0001 0161 0000"),
    ("PAIR", {"key": {"version": 0, "name": ""}, "value": {"data": b"xy"}}, "06 0000 00 0002 7879"),
    ("PAIR", {"key": {"version": 2, "name": ""}, "value": {"id": 1}}, "06 0002 00 0002 0001"),
    ("NODE", {"kind": 1, "next": {"kind": 0, "next": {"id": 9}}}, "01 00 0009"),
    (
        "SEVERAL_V1",
        {
            "kind": 2,
            "ks": [{"version": 2, "name": ""}, {"version": 1, "name": "a"}],
            "vs": [{"id": 1}, None],
            "bodies": [{"name": "", "id": 3}, {"name": "", "id": 4}],
        },
        "02 02 000200 00010161 02 020001 ff 0003 0004",
    ),
    (
        "SEVERAL_V0",
        {"kind": 1, "ks": [], "vs": [{"data": b"a"}], "bodies": [{"name": "b"}]},
        "01 00 01 0161 0162",
    ),
    (
        "TOLD",
        {
            "version": 1,
            "size": 3,
            "topic": {"name": "", "id": 2},
            "commit": {"version": 1, "name": ""},
        },
        "01 03 01 00 02 0001 00",
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(SCHEMA, tmp_path_factory.mktemp("chosen"), "made_of_choices")


@pytest.mark.parametrize(("layout", "value", "hex_"), GOOD)
def test_parse_and_build(made: ModuleType, layout: str, value: dict[str, Any], hex_: str) -> None:
    codec, data = getattr(made, layout), bytes.fromhex(hex_)
    parsed = codec.parse(data)
    assert _plain(parsed) == value
    assert codec.build(value) == codec.build(parsed) == data


def _plain(value: Any) -> Any:
    """Without what Construct adds to mappings and lists."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if name != "_io"}
    return [_plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("layout", "value", "hex_"), GOOD)
def test_the_size_is_known_without_building(layout: str, value: dict[str, Any], hex_: str) -> None:
    plan = make_plan(model_of(SCHEMA))
    name, _, version = layout.lower().partition("_v")
    found = next(p for p in plan.versions[name] if p.version in (None, int(version or 0)))
    assert encoded_size(plan, found, value) == len(bytes.fromhex(hex_))
    limits = size_bounds(plan, found)
    assert limits.min_size <= len(bytes.fromhex(hex_))


BAD_BYTES: list[tuple[str, str, str, str, int | None]] = [
    ("PAIR", "04 0007", "7 has no case: the cases are 0-2", "key", 1),
    ("PAIR", "05 0001 0161", "null is written as -1, not as -3", "key", 0),
    ("PAIR", "0a 0001 0161 00", "1 byte follows", "key", 5),
    ("PAIR", "28 0001", "length is 20, but 2 bytes are left", "key", 0),
    ("PAIR", "02 00", "2 bytes are needed, 1 is left", "key.version", 1),
    ("NODE", "07 00", "7 has no case: the cases are 0, 1", "next", 1),
    ("SEVERAL_V0", "07 00 00 01", "7 has no case", "bodies[0]", 3),
    ("SEVERAL_V0", "02 01 0007", "7 has no case", "ks[0]", 2),
    ("SEVERAL_V1", "01 ff 00", "count is 255", "ks", 1),
    ("STRICT", "02 05 00", "version 5 is not known: there are 0, 1", "body", 2),
    ("STRICT", "09 05 00", "gone (9) has no case: the cases are topic (2), broker (3)", "body", 2),
    ("TOLD", "05 02 01 00", "version 5 is not known: there are 0, 1", "topic", 3),
    ("TOLD", "00 02 01 00 0001 00", "it is in version 1, where version 0 is told", "commit", 4),
]


@pytest.mark.parametrize(("layout", "hex_", "reason", "path", "position"), BAD_BYTES)
def test_bytes_without_a_case_are_refused(
    made: ModuleType, layout: str, hex_: str, reason: str, path: str, position: int | None
) -> None:
    with pytest.raises(ParseError) as raised:
        getattr(made, layout).parse(bytes.fromhex(hex_))
    where = raised.value.where
    assert reason in raised.value.reason
    assert (where.path, where.position) == (path, position)
    assert (where.schema or "").startswith("case.yaml")


BAD_VALUES: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "RECORD",
        {"version": 1, "body": {"name": "a"}},
        "a value is needed",
        "kind",
    ),
    (
        "RECORD",
        {"kind": 2, "version": 1, "body": b"ab"},
        "a dict with the fields of topic",
        "body",
    ),
    ("RECORD", {"kind": 2, "version": 7, "body": {"name": ""}}, "version 7 is not known", "body"),
    ("RECORD", {"kind": 2, "version": 0, "body": {"name": "", "id": 1}}, "no field 'id'", "body"),
    ("RECORD", {"kind": 2, "version": 0, "body": None}, "null is not allowed", "body"),
    ("RECORD", {"kind": 2, "version": 0, "body": 7}, "a dict", "body"),
    ("RECORD", {"kind": 2, "version": 0}, "a value is needed", "body"),
    (
        "PAIR",
        {"key": {"name": "a"}, "value": None},
        "a value is needed",
        "key.version",
    ),
    ("PAIR", {"key": {"version": 7}, "value": None}, "7 has no case", "key"),
    ("PAIR", {"key": b"ab", "value": None}, "not bytes", "key"),
    ("PAIR", {"key": None, "value": {"id": 1}}, "the case is not known", "value"),
    ("PAIR", {"key": {"version": 2, "name": ""}, "value": b"a"}, "fields of broker", "value"),
    ("SEVERAL_V0", {"kind": 7, "bodies": [{"name": ""}]}, "7 has no case", "bodies[0]"),
    ("TOLD", {"version": 2, "topic": {"name": ""}}, "version 2 is not known", "topic"),
    ("TOLD", {"version": 0, "topic": None, "commit": {"version": 1}}, "version 1, where", "commit"),
]


@pytest.mark.parametrize(("layout", "value", "reason", "path"), BAD_VALUES)
def test_values_that_do_not_fit_are_refused(
    made: ModuleType, layout: str, value: dict[str, Any], reason: str, path: str
) -> None:
    with pytest.raises(BuildError) as raised:
        getattr(made, layout).build(value)
    assert reason in raised.value.reason
    assert raised.value.where.path == path


def test_given_by_name_and_by_label(made: ModuleType) -> None:
    value = {"kind": "topic", "version": 1, "body": {"name": "a", "id": 7}}
    assert made.RECORD.build(value) == bytes.fromhex("02 01 0161 07")


def test_bits_decide_and_a_choice_may_be_left_out(made: ModuleType) -> None:
    body = {"name": "a"}
    data = made.STRICT.build({"flags": {"kind": "topic"}, "held": 0, "body": body})
    assert data.hex(" ") == "02 00 01 61 00"
    assert made.STRICT.parse(data).spare is None
    value = {"name": "a", "id": 1}
    both = {"flags": {"kind": 2}, "held": 1, "body": value, "spare": value}
    assert made.STRICT.build(both).hex(" ") == "02 01 01 61 01 01 61 01 01"


def test_lenient_readers(made: ModuleType) -> None:
    findings: list[ParseError] = []
    parsed = made.PAIR.parse(bytes.fromhex("03 ffff"), strict=False, findings=findings)
    assert parsed.key is None
    assert [f.where.path for f in findings] == ["key"]
    findings.clear()
    data = bytes.fromhex(
        "08 0002 00 ff 0002 0001"
    )  # a byte after the last field, which that layout takes
    parsed = made.PAIR.parse(data, strict=False, findings=findings)
    assert (parsed.key.name, parsed.value.id) == ("", 1)
    assert [(f.where.path, f.where.position) for f in findings] == [("key", 4)]
    with pytest.raises(CodecError):
        made.PAIR.parse(data)


def test_a_choice_that_holds_itself_goes_as_deep_as_parsers_do(made: ModuleType) -> None:
    with pytest.raises(LimitError, match="32 deep"):
        made.NODE.parse(b"\1" * 5000)
    with pytest.raises(LimitError, match="32 deep"):
        made.NODE.parse(b"\1" * 40 + b"\0\1")
    value: dict[str, Any] = {"kind": 0, "next": {"id": 1}}
    for _ in range(40):
        value = {"kind": 1, "next": value}
    with pytest.raises(BuildError, match="32 deep"):
        made.NODE.build(value)


@pytest.mark.parametrize("layout", ["RECORD", "PAIR", "SEVERAL_V1", "TOLD", "STRICT"])
def test_bytes_that_are_cut_off_raise_an_error_of_codecs(made: ModuleType, layout: str) -> None:
    for name, _, hex_ in GOOD:
        if name == layout:
            data = bytes.fromhex(hex_)
            for end in range(len(data)):
                try:
                    parsed = getattr(made, layout).parse(data[:end])
                except ParseError:
                    continue
                assert getattr(made, layout).build(parsed) == data[:end]
