"""Texts of properties: as java.util.Properties writes and reads them, in the order that they stand in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.construct import Decimal, PropertiesFile, Property, RestOfLine, Rule
from codecgen.runtime.errors import BuildError, LimitError, ParseError, ValueRefused
from codecgen.runtime.located_bytes import Limits

TOLERANCES = ["loose_properties", "duplicate_keys", "other_newlines", "any_final_newline", "invalid_utf8"]  # fmt: skip
BOAT = PropertiesFile(
    "boat",
    Property("name", "boat.name", RestOfLine(), line=3),
    Property(
        "length",
        "length",
        Decimal(0, 255),
        line=4,
        refuse=Rule("name != null and length == null", lambda this: this.name and not this.length),
        valid=Rule("length < 100", lambda this: this.length is None or this.length < 100),
    ),
    source="boat.yaml",
    accepts=TOLERANCES,
    keep_unknown=True,
)
CLOSED = PropertiesFile("closed", Property("a", "a", RestOfLine()), source="closed.yaml")
ANY = PropertiesFile("any", accepts=TOLERANCES, keep_unknown=True)


def read(data: bytes, **options: Any) -> dict[str, str]:
    return dict(ANY.parse(data, **options).unknown)


def test_a_text_is_built_as_it_was() -> None:
    data = b"#\n#Sat Nov 21\nlength=12\nx.y=\\ a\\:b c\n#! why\nboat.name=Anna\\=\n"
    found = BOAT.parse(data)
    assert found == {
        "name": "Anna=",
        "length": 12,
        "unknown": {"x.y": " a:b c"},
        "comments": ["", "Sat Nov 21", "! why"],
        "order": [None, None, "length", "x.y", None, "boat.name"],
    }
    assert BOAT.build(found) == data
    found.length = 13
    assert BOAT.build(found) == data.replace(b"12", b"13")
    found.length = found.name = None
    assert BOAT.build(found) == b"#\n#Sat Nov 21\nx.y=\\ a\\:b c\n#! why\n"


def test_an_empty_text() -> None:
    found = BOAT.parse(b"")
    assert found.name is found.length is None and found.order == []
    assert BOAT.build(found) == BOAT.build({}) == b""


def test_what_is_built_without_an_order() -> None:
    values = {"length": 3, "name": "n", "unknown": {"z": "1", "b": "2"}, "comments": ["c"]}
    assert BOAT.build(values) == b"#c\nboat.name=n\nlength=3\nz=1\nb=2\n"
    assert BOAT.build({**values, "order": ["b", None]}).startswith(b"b=2\n#c\nboat.name=n\n")
    assert BOAT.build({**values, "order": ["b"]}).endswith(b"z=1\n#c\n")


# What each line means to java.util.Properties, and how that writes it.
LOOSE: list[tuple[str, dict[str, str], str]] = [
    ("a:b\n", {"a": "b"}, "a=b\n"),
    ("a b\n", {"a": "b"}, "a=b\n"),
    ("a\tb\n", {"a": "b"}, "a=b\n"),
    ("a\n", {"a": ""}, "a=\n"),
    ("a = b\n", {"a": "b"}, "a=b\n"),
    ("  a=b\n", {"a": "b"}, "a=b\n"),
    ("a= b \n", {"a": "b "}, "a=b \n"),
    ("a : = b\n", {"a": "= b"}, "a=\\= b\n"),
    ("a=b=c\n", {"a": "b=c"}, "a=b\\=c\n"),
    ("a=b:c#d!e\n", {"a": "b:c#d!e"}, "a=b\\:c\\#d\\!e\n"),
    ("\na=b\n \n", {"a": "b"}, "a=b\n"),
    ("! no\na=b\n", {"a": "b"}, "# no\na=b\n"),
    (" # no\na=b\n", {"a": "b"}, "# no\na=b\n"),
    ("a=b\\\n  c\n", {"a": "bc"}, "a=bc\n"),
    ("a=b\\\n\nc=d\n", {"a": "b", "c": "d"}, "a=b\nc=d\n"),
    ("a=b\\\\\nc=d\n", {"a": "b\\", "c": "d"}, "a=b\\\\\nc=d\n"),
    ("a=b\\\n# c\n", {"a": "b# c"}, "a=b\\# c\n"),
    ("a\\\n =b\n", {"a": "b"}, "a=b\n"),
    ("\\\n a=b\n", {"a": "b"}, "a=b\n"),
    ("\\\n# c\n", {}, "# c\n"),
    ("\\\n", {"": ""}, "=\n"),
    ("\\\r\n", {}, ""),
    ("# c\\\na=b\n", {"a": "b"}, "# c\\\na=b\n"),
    ("\\u0041=\\u00e9\\u20ac\n", {"A": "é€"}, "A=é€\n"),
    ("a=\\ud83d\\ude00\n", {"a": "😀"}, "a=😀\n"),
    ("a=\\q\\t\\n\\r\\f\n", {"a": "q\t\n\r\f"}, "a=q\\t\\n\\r\\f\n"),
    ("a\\ b=c\n", {"a b": "c"}, "a\\ b=c\n"),
    ("a\\=b\\:=c\n", {"a=b:": "c"}, "a\\=b\\:=c\n"),
    ("=b\n", {"": "b"}, "=b\n"),
    ("a=b\r\n", {"a": "b"}, "a=b\n"),
    ("a=b", {"a": "b"}, "a=b\n"),
    ("a=b\\", {"a": "b"}, "a=b\n"),
    ("a=1\na=2\n", {"a": "2"}, "a=2\n"),
]


@pytest.mark.parametrize(("text", "found", "again"), LOOSE, ids=[repr(t[0]) for t in LOOSE])
def test_what_readers_of_properties_take(text: str, found: dict[str, str], again: str) -> None:
    data = text.encode()
    noted: list[ParseError] = []
    parsed = ANY.parse(data, strict=False, findings=noted)
    assert parsed.unknown == found
    assert ANY.build(parsed) == again.encode()
    assert read(again.encode()) == found
    if text == again:
        assert not noted
        return
    with pytest.raises(ParseError):
        ANY.parse(data)
    assert noted
    with pytest.raises(ParseError):
        CLOSED.parse(data, strict=False)


@pytest.mark.parametrize(
    ("text", "path", "line", "at"),
    [
        ("a=\\u00g0\n", None, 1, 0),
        ("x=1\na=\\u12", None, 2, 4),
        ("a=\\ud800\n", None, 1, 0),
        ("#\nlength=256\n", "length", 2, 9),
        ("#\nlength=a\n", "length", 2, 9),
        ("#\nlength=\\ 1\n", "length", 2, 9),
        ("boat.name=a\n", "length", 2, 12),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_what_nobody_takes(text: str, path: str | None, line: int, at: int, strict: bool) -> None:
    with pytest.raises(ValueRefused) as caught:
        BOAT.parse(text.encode(), strict=strict, file="boat.properties")
    where = caught.value.where
    assert (where.path, where.line, where.position) == (path, line, at)
    assert where.file == "boat.properties" and str(where.schema).startswith("boat.yaml")


def test_unknown_keys() -> None:
    with pytest.raises(ValueRefused) as caught:
        CLOSED.parse(b"a=1\nb=2\n")
    assert (caught.value.where.line, caught.value.where.path) == (2, "unknown")
    noted: list[ParseError] = []
    found = CLOSED.parse(b"a=1\nb=2\n", strict=False, findings=noted)
    assert found.unknown == {"b": "2"} and len(noted) == 1
    with pytest.raises(BuildError):
        CLOSED.build(found)


def test_a_rule_is_noted_by_lenient_readers() -> None:
    with pytest.raises(ValueRefused) as caught:
        BOAT.parse(b"length=200\n")
    assert caught.value.where.path == "length"
    noted: list[ParseError] = []
    assert BOAT.parse(b"length=200\n", strict=False, findings=noted).length == 200
    assert len(noted) == 1


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"length": 300}, "length"),
        ({"length": 200}, "length"),
        ({"name": "a"}, "length"),
        ({"name": 3, "length": 1}, "name"),
        ({"unknown": {"length": "3"}}, "unknown"),
        ({"unknown": {"x": 3}}, "unknown"),
        ({"unknown": ["x"]}, "unknown"),
        ({"unknown": {"\ud800": "x"}}, "unknown"),
        ({"comments": ["a\nb"]}, "comments"),
        ({"comments": [3]}, "comments"),
        ({"order": [None]}, "order"),
        ({"length": 1, "order": ["length", "length"]}, "order"),
        ({"lenght": 1}, None),
        (3, None),
    ],
    ids=str,
)
def test_what_is_not_built(values: Any, path: str | None) -> None:
    with pytest.raises(BuildError) as caught:
        BOAT.build(values)
    assert caught.value.where.path == path


def test_bounds() -> None:
    limits = Limits(text=60, line=10, elements=4)
    for text in ("a=b\n" * 20, "a=" + "b" * 20, "\n\n\n\n\n", "a=\\\n" + "bbbbbb\\\n" * 3):
        with pytest.raises(LimitError):
            ANY.parse(text.encode(), strict=False, limits=limits)


STRINGS = st.text(st.sampled_from("aA é€😀\t\n\r\f\\=:#!\u0000\u007f\u00a0\u2028"), max_size=6)


@given(st.dictionaries(STRINGS, STRINGS, max_size=4))
def test_any_keys_and_values_come_back(values: dict[str, str]) -> None:
    data = ANY.build({"unknown": values})
    found = ANY.parse(data)
    assert found.unknown == values
    assert ANY.build(found) == data


@given(st.text(st.sampled_from("aA é€\t\n\r\f\\=:#!u04"), max_size=20))
def test_what_is_taken_is_built_as_strict_readers_take_it(text: str) -> None:
    try:
        found = ANY.parse(text.encode(), strict=False)
    except ParseError:
        return
    data = ANY.build(found)
    assert ANY.parse(data) == found
    try:
        ANY.parse(text.encode())
    except ParseError:
        return
    assert data == text.encode()
