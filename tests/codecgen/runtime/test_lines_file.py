"""Texts of lines: what is read, what is refused and where, what bounds there are."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from codecgen.runtime.construct import (
    Base64Uuid,
    Decimal,
    EachLine,
    LinesFile,
    LineValue,
    RestOfLine,
    Rule,
    TextLine,
    Word,
)
from codecgen.runtime.errors import (
    BuildError,
    LengthError,
    LimitError,
    ParseError,
    TrailingError,
    TruncatedError,
    ValueRefused,
)
from codecgen.runtime.located_bytes import Limits
from tests.support.cpu_time import limit_cpu_time

INT = Decimal(-(2**31), 2**31 - 1)
STOPS = LinesFile(
    "stops",
    TextLine("version", INT, line=3, const=0),
    TextLine("stop_count", INT, line=4, counts="stops", accepts=frozenset(["ends_early"])),
    EachLine(
        "stops",
        [
            LineValue("name", Word(), line=7),
            LineValue(
                "number", INT, line=8, valid=Rule("number >= 0", lambda this: this.number >= 0)
            ),
        ],
        line=5,
        separator=" ",
        counted_by="stop_count",
        accepts=frozenset(["extra_blanks"]),
    ),
    source="stops.yaml",
    accepts=["other_newlines", "any_final_newline", "other_spellings", "invalid_utf8"],
    may_be_empty=True,
)
LABELLED = LinesFile(
    "labelled",
    TextLine("id", Base64Uuid(), label="id", separator=": ", accepts=frozenset(["any_label"])),
    TextLine("note", RestOfLine(), label="note", separator=": "),
    accepts=["other_spellings", "any_final_newline", "more_lines", "extra_blanks"],
    final_newline=False,
)
STRICT = LinesFile("strict", EachLine("all", [LineValue("n", INT)]))
ID = uuid.UUID(int=1)


def test_a_text() -> None:
    data = b"0\n2\nHome 1\nTower 20\n"
    trace: list[tuple[str, int, int, bool]] = []
    found = STOPS.parse(data, position=100, trace=trace)
    stops = [{"name": "Home", "number": 1}, {"name": "Tower", "number": 20}]
    assert found == {"version": 0, "stop_count": 2, "stops": stops}
    assert STOPS.build(found) == STOPS.build({"stops": stops}) == data
    assert trace[0] == ("version", 100, 101, False)
    assert trace[-1] == ("stops[1].number", 117, 119, False)


def test_an_empty_text() -> None:
    found = STOPS.parse(b"")
    assert found == {"version": None, "stop_count": None, "stops": None}
    assert STOPS.build(found) == b""
    assert STOPS.build({}) == b"0\n0\n"
    assert STRICT.parse(b"") == {"all": []} and STRICT.build({"all": []}) == b""


REFUSED: list[tuple[bytes, type[ParseError], str | None, int, int, str | None]] = [
    (b"1\n0\n", ValueRefused, "version", 1, 0, "stops.yaml:3"),
    (b"x\n0\n", ValueRefused, "version", 1, 0, "stops.yaml:3"),
    (b" 0\n0\n", ValueRefused, "version", 1, 0, "stops.yaml:3"),
    (b"0\n-1\n", LengthError, "stop_count", 2, 2, "stops.yaml:4"),
    (b"0\n2147483648\n", ValueRefused, "stop_count", 2, 2, "stops.yaml:4"),
    (b"0\n" + b"9" * 5000 + b"\n", ValueRefused, "stop_count", 2, 2, "stops.yaml:4"),
    (b"0\n1\n", TruncatedError, "stops[0]", 3, 4, "stops.yaml:5"),
    (b"0\n2\na 1\n", TruncatedError, "stops[1]", 4, 8, "stops.yaml:5"),
    (b"0\n1\na 1\nb 2\n", TrailingError, "stops", 4, 8, "stops.yaml"),
    (b"0\n1\na 1\n\n", TrailingError, "stops", 4, 8, "stops.yaml"),
    (b"0\n1\n\n", ValueRefused, "stops[0]", 3, 4, "stops.yaml:5"),
    (b"0\n1\na\n", ValueRefused, "stops[0]", 3, 4, "stops.yaml:5"),
    (b"0\n1\na 1 2\n", ValueRefused, "stops[0]", 3, 4, "stops.yaml:5"),
    (b"0\n1\n a 1\n", ValueRefused, "stops[0]", 3, 4, "stops.yaml:5"),
    ("0\n1\né x\n".encode(), ValueRefused, "stops[0].number", 3, 7, "stops.yaml:8"),
    (b"\n", ValueRefused, "version", 1, 0, "stops.yaml:3"),
]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(("data", "error", "path", "line", "at", "schema"), REFUSED, ids=str)
def test_what_nobody_takes(
    data: bytes,
    error: type[ParseError],
    path: str | None,
    line: int,
    at: int,
    schema: str | None,
    strict: bool,
) -> None:
    with pytest.raises(error) as caught:
        STOPS.parse(data, strict=strict, file="stops.txt", position=1000)
    where = caught.value.where
    assert (where.path, where.line, where.position) == (path, line, 1000 + at)
    assert (where.schema, where.file) == (schema, "stops.txt")
    assert f"line {line}, byte {1000 + at} of stops.txt" in str(caught.value)


TOLERATED: list[tuple[bytes, bytes, int, int]] = [
    (b"0\r\n1\r\na 1\r\n", b"0\n1\na 1\n", 1, 1),
    (b"0\r1\ra 1\r", b"0\n1\na 1\n", 1, 1),
    (b"0\n1\na 1", b"0\n1\na 1\n", 3, 7),
    (b"0\n1\na\t \t1\n", b"0\n1\na 1\n", 3, 4),
    (b"0\n1\na 1  \n", b"0\n1\na 1\n", 3, 4),
    (b"0\n1\na +1\n", b"0\n1\na 1\n", 3, 6),
    (b"-0\n1\na 1\n", b"0\n1\na 1\n", 1, 0),
    (b"00\n01\na 1\n", b"0\n1\na 1\n", 1, 0),
    ("0\n1\na ٣\n".encode(), b"0\n1\na 3\n", 3, 6),
    (b"0\n", b"0\n0\n", 2, 2),
    (b"0\n1\n\xff 1\n", "0\n1\n\ufffd 1\n".encode(), 3, 4),
]


@pytest.mark.parametrize(("data", "again", "line", "at"), TOLERATED, ids=str)
def test_what_lenient_readers_take(data: bytes, again: bytes, line: int, at: int) -> None:
    with pytest.raises(ParseError) as caught:
        STOPS.parse(data)
    assert (caught.value.where.line, caught.value.where.position) == (line, at)
    noted: list[ParseError] = []
    assert STOPS.build(STOPS.parse(data, strict=False, findings=noted)) == again
    assert (noted[0].where.line, noted[0].where.position) == (line, at)
    STOPS.parse(again)


@pytest.mark.parametrize("data", [b"1\r\n", b"1", b"+1\n", b"01\n", b"\xd9\xa3\n", b"1 \n"])
def test_what_is_not_listed_is_not_taken(data: bytes) -> None:
    with pytest.raises(ParseError):
        STRICT.parse(data, strict=False)


def test_a_rule_is_noted_by_lenient_readers() -> None:
    data = b"0\n1\na -1\n"
    with pytest.raises(ValueRefused) as caught:
        STOPS.parse(data)
    assert caught.value.where.path == "stops[0].number"
    noted: list[ParseError] = []
    found = STOPS.parse(data, strict=False, findings=noted)
    assert found.stops[0].number == -1 and len(noted) == 1
    with pytest.raises(BuildError) as refused:
        STOPS.build(found)
    assert refused.value.where.path == "stops[0].number"


def test_labels_and_no_line_feed_at_the_end() -> None:
    data = b"id: AAAAAAAAAAAAAAAAAAAAAQ\nnote: a: b "
    found = LABELLED.parse(data)
    assert found == {"id": ID, "note": "a: b "}
    assert LABELLED.build(found) == data
    for other in (
        data + b"\n",
        data + b"\nmore\n",
        data.replace(b"id", b"ID"),
        data.replace(b": A", b":\t A"),
        data.replace(b"AQ", b"AR"),
        data.replace(b"AQ", b"AQ=="),
    ):
        with pytest.raises(ParseError):
            LABELLED.parse(other)
        assert LABELLED.parse(other, strict=False) == found
    for bad in (
        b"",
        b"id: \nnote: x",
        b"id: AAAA\nnote: x",
        data.replace(b"note", b"not"),
        data[:30],
    ):
        with pytest.raises(ParseError):
            LABELLED.parse(bad, strict=False)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"stops": [{"name": "a b", "number": 1}]}, "stops[0].name"),
        ({"stops": [{"name": "", "number": 1}]}, "stops[0].name"),
        ({"stops": [{"name": "a\n", "number": 1}]}, "stops[0].name"),
        ({"stops": [{"name": "\ud800", "number": 1}]}, "stops[0].name"),
        ({"stops": [{"name": "a", "number": 2**31}]}, "stops[0].number"),
        ({"stops": [{"name": "a", "number": True}]}, "stops[0].number"),
        ({"stops": [{"name": "a", "number": "1"}]}, "stops[0].number"),
        ({"stops": [{"name": "a"}]}, "stops[0].number"),
        ({"stops": [{"name": "a", "number": 1, "x": 1}]}, "stops[0]"),
        ({"stops": [3]}, "stops[0]"),
        ({"stops": 3}, "stop_count"),
        ({"stops": None}, "stop_count"),
        ({"version": 1}, "version"),
        ({"stop": []}, None),
        ([], None),
    ],
    ids=str,
)
def test_what_is_not_built(value: Any, path: str | None) -> None:
    with pytest.raises(BuildError) as caught:
        STOPS.build(value)
    assert caught.value.where.path == path


@pytest.mark.parametrize("note", ["a\nb", "a\rb", 3, "", None])
def test_a_line_that_is_not_built(note: Any) -> None:
    if note == "":
        assert LABELLED.build({"id": ID, "note": note}).endswith(b"note: ")
        return
    with pytest.raises(BuildError) as caught:
        LABELLED.build({"id": ID, "note": note})
    assert caught.value.where.path == "note"


def test_an_empty_last_line_that_nothing_ends() -> None:
    text = LinesFile("text", TextLine("a", RestOfLine()), final_newline=False)
    assert text.build({"a": "x"}) == b"x"
    with pytest.raises(BuildError):
        text.build({"a": ""})


# ---------------------------------------------------------------- bounds


def test_bounds() -> None:
    limits = Limits(text=50, line=10, elements=4)
    assert len(STRICT.parse(b"1\n" * 4, limits=limits).all) == 4
    for data, line in ((b"1\n" * 26, 1), (b"1\n" + b"1" * 11, 2), (b"1\n" * 5, 5)):
        with pytest.raises(LimitError) as caught:
            STRICT.parse(data, strict=False, limits=limits)
        assert caught.value.where.line == line


@pytest.mark.parametrize(
    "data",
    [b"0\n2147483647\n", b"0\n1\n" + b" " * 60000, b"\r" * 200_000, b"\n" * 200_000, b"0\n1\n" + b"a" * 60000],
    ids=["count", "blanks", "returns", "feeds", "letters"],
)  # fmt: skip
def test_odd_texts_end_soon(data: bytes) -> None:
    with limit_cpu_time(2), pytest.raises(ParseError):
        STOPS.parse(data, strict=False)
