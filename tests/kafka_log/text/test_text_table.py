"""Tables as text for people: no line is too long, no number is cut, and nothing moves the cursor."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kafka_log.text.folding import fold_cell
from kafka_log.text.text_table import format_table, lay_out, make_column
from tests.support.random_tables import NUMBERS, TEXT, iso, tables


def numbers_of(table: pa.Table) -> list[str]:
    """The numbers and times of columns that have nothing else, as they are to be read."""
    out = []
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.int64())
            found = [iso(value) for value in column.to_pylist() if value is not None]
        elif field.type in NUMBERS:
            found = [str(value) for value in column.to_pylist() if value is not None]
        elif field.type == pa.list_(pa.int32()):
            found = [str(n) for value in column.to_pylist() if value is not None for n in value]
        else:
            continue
        out += [{"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(n, n) for n in found]
    return out


@given(tables(), st.integers(60, 140))
def test_no_line_is_longer_than_the_screen(table: pa.Table, width: int) -> None:
    for line in format_table(table, width).split("\n"):
        assert cell_len(line) <= width


@given(tables(), st.none() | st.integers(60, 140))
def test_nothing_reaches_the_terminal_but_text(table: pa.Table, width: int | None) -> None:
    assert all(line.isprintable() for line in format_table(table, width).split("\n"))


@given(tables(), st.none() | st.integers(60, 140))
def test_numbers_and_times_are_whole(table: pa.Table, width: int | None) -> None:
    words = re.split(r"[\s,]+", format_table(table, width))
    for number in set(numbers_of(table)):
        assert words.count(number) >= numbers_of(table).count(number)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4), st.integers(60, 90))
def test_texts_are_told_apart_and_whole(rows: list[tuple[str, str]], width: int) -> None:
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    wide, narrow = format_table(table), format_table(table, width)
    blanks = re.compile(r"\s+")
    letters = sorted(blanks.sub("", wide))
    if narrow.count("\n\n"):  # a paragraph for each row names the columns anew
        letters = sorted(letters + ["a", "b"] * (len(rows) - 1))
    assert sorted(blanks.sub("", narrow)) == letters


@given(TEXT.map(lambda text: "".join(c for c in text if c.isprintable())), st.integers(12, 60))
def test_pieces_of_a_text_are_the_text(text: str, size: int) -> None:
    pieces = fold_cell(text, size)
    assert "".join(pieces) == text
    assert all(cell_len(piece.rstrip(" ")) <= size for piece in pieces)


@pytest.mark.parametrize(
    "value, shown",
    [
        (None, "-"),
        ("", '""'),
        ("-", '"-"'),
        ('""', r'"\"\""'),
        (" a", '" a"'),
        ("a ", '"a "'),
        ("a-", "a-"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x1b ", '"\\u001b "'),
    ],
)
def test_null_and_empty_text_are_told_apart(value: str | None, shown: str) -> None:
    table = pa.table({"a": pa.array([value, "x"], pa.string()), "b": [1, 2]})
    assert format_table(table).split("\n")[1].rstrip("1").rstrip(" ") == shown


@pytest.mark.parametrize(
    "value, shown",
    [(None, "-"), ([], "[]"), ([None], "-"), (["", "a, b"], '"", "a, b"'), (["a", "b"], "a, b")],
)
def test_lists(value: list[str | None] | None, shown: str) -> None:
    table = pa.table({"a": pa.array([value], pa.list_(pa.string()))})
    assert format_table(table).split("\n")[1] == shown


def test_wide_characters_do_not_shift_what_follows() -> None:
    table = pa.table({"a": ["漢字漢字", "e\u0301", "👍🏽"], "b": ["x", "x", "x"]})
    assert {cell_len(line) for line in format_table(table).splitlines()} == {11}


@given(st.lists(st.lists(st.integers(-(2**63), 2**63), min_size=9, max_size=9), max_size=4), st.integers(60, 160))  # fmt: skip
def test_several_tables_have_each_column_once_and_the_key_in_all(
    rows: list[list[int]], width: int
) -> None:
    names = [f"n{i}" for i in range(9)]
    keys = [f"key-{i}" for i in range(len(rows))]
    columns = [make_column("row", keys)]
    for name, i in zip(names, range(9), strict=True):
        columns.append(make_column(name, [str(row[i]) for row in rows], right=True, whole=True))
    blocks = [block.splitlines() for block in lay_out(columns, width, keys=1).split("\n\n")]
    assert [name for block in blocks for name in block[0].split()[1:]] == names
    found = {key: [] for key in keys}
    for header, *lines in blocks:
        assert header.split()[0] == "row"
        assert [line.split()[0] for line in lines] == keys
        for line in (header, *lines):
            assert len(line) <= width
        for key, *numbers in map(str.split, lines):
            found[key] += numbers
    assert list(found.values()) == [list(map(str, row)) for row in rows]


def test_spaces_after_a_word_that_is_divided_are_no_line() -> None:
    assert [line.rstrip() for line in fold_cell("abcdef    x", 3)] == ["abc", "def", "x"]
