"""What the language cannot say: each wish of the page is answered, and what the page writes instead keeps its limits."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from codecgen.check import run
from codecgen.runtime.errors import CodecError
from codecgen.schema import loader
from tests.codecgen.generated import package_of
from tests.codecgen.language import language_pages

PAGE = language_pages.DIRECTORY / "limits.md"
HEAD = "language: 1\npackage: limits_codecs\ntitle: Limits\n"
PART = "---\nlayout: part\nfields: {x: u8}\n"
WISHES = [
    (
        "positions-and-seeks",
        "C004",
        "each field begins where",
        "  offset: u32\n  body: {layout: part, at: offset}",
    ),
    (
        "state-between-elements",
        "C014",
        'no field "events"',
        "  events: {count: u8, array: {fields: {delta: {type: u8, refuse: delta < last(events).delta}}}}",
    ),
    (
        "lengths-in-bits",
        "C004",
        "whole field measures",
        "  head: {bits: u8, members: {words: {at: 0-3, measures: rest}}}\n  options: {bytes: rest}",
    ),
    ("other-numbers-of-variable-length", "C013", "type is expected", "  size: sqlite_varint"),
    (
        "lengths-that-are-repeated",
        "C016",
        "computed from all fields",
        "  length: {type: u32, measures: {from: body}}\n  body: {bytes: rest}\n"
        "  same_length: {type: u32, default: length}",
    ),
    (
        "numbers-of-names",
        "C009",
        "no meaning in an expression",
        "  names: {array: {string: u8}, count: u8}\n  owner: {type: u8, default: 'names[\"Bob\"]'}",
    ),
    (
        "byte-order-by-a-value",
        "C006",
        "one of big, little",
        "  order: u8\n  number: {type: u32, endian: order}",
    ),
    (
        "cryptographic-hashes-and-other-texts",
        "C006",
        "a checksum is expected",
        "  hash: {bytes: 20, checksum: sha1, covers: rest}\n  data: {bytes: rest}",
    ),
]


@pytest.mark.parametrize(("section", "code", "said", "fields"), WISHES, ids=lambda one: one[:24])
def test_a_wish_is_answered(section: str, code: str, said: str, fields: str) -> None:
    files = {loader.MANIFEST: HEAD, "case.yaml": f"layout: packet\nfields:\n{fields}\n{PART}"}
    model, found = loader.load(files)
    found += run(model) if model is not None else []
    (first, *_) = found
    assert first.code == code
    assert said in first.message + first.help


def test_the_page_has_each_wish_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `.+` (?:in an element )?\| (C\d+) \| .*\(#(.+)\) \|$", text, re.MULTILINE
    )
    assert rows == [(code, section) for section, code, *_ in WISHES]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    [text] = [text for _, text in language_pages.blocks() if text.startswith("layout: cell\n")]
    return package_of(text, tmp_path_factory.mktemp("limits"), "limits_codecs")


def sqlite_varint(number: int) -> bytes:
    """Return the bytes of a number below 2**64, as SQLite's file format describes them."""
    if number >= 1 << 56:
        high = number >> 8
        return bytes(high >> 7 * k & 0x7F | 0x80 for k in range(7, -1, -1)) + bytes([number & 0xFF])
    parts = [number & 0x7F]
    while number := number >> 7:
        parts.append(number & 0x7F | 0x80)
    return bytes(reversed(parts))


EDGES = sorted(
    {max(0, min((1 << 64) - 1, (1 << k) + d)) for k in range(65) for d in (-2, -1, 0, 1)}
)


@pytest.mark.parametrize("last", [0x00, 0x7F, 0x80, 0xFF])
def test_a_varint_of_sqlite_is_read_right_or_refused(package: ModuleType, last: int) -> None:
    for number in [*EDGES, *((one & ~0xFF) | last for one in EDGES)]:
        row = sqlite_varint(number)
        data = bytes([len(row) + 1]) + row + b"a"
        if number < 1 << 56:
            parsed = package.CELL.parse(data)
            assert (parsed.row, parsed.payload) == (number, b"a")
            assert package.CELL.build(parsed) == data
        else:
            with pytest.raises(CodecError):
                package.CELL.parse(data)
