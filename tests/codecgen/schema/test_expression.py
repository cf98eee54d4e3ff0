"""The expression language: what it takes, what it refuses, and laws."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.schema.expression import (
    MAX_DEPTH,
    MAX_TOKENS,
    Binary,
    EndOf,
    Expression,
    ExpressionError,
    If,
    LookUp,
    Node,
    Not,
    Null,
    Number,
    Path,
    parse,
    source,
)

_names = st.sampled_from(["a", "b_2", "attributes", "flags", "item", "version"])
_paths = st.builds(Path, st.lists(_names, min_size=1, max_size=3).map(tuple))
_atoms = (
    st.builds(Number, st.integers(-(10**20) + 1, 10**20 - 1))
    | st.builds(Null)
    | _paths
    | st.builds(EndOf, st.sampled_from(["first", "last"]), _paths, st.none() | _paths)
)


def _grow(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    operators = st.sampled_from(["+", "-", "==", "!=", "<", "<=", ">", ">=", "and", "or"])
    return (
        st.builds(Binary, operators, inner, inner)
        | st.builds(Not, inner)
        | st.builds(If, inner, inner, inner)
        | st.builds(LookUp, _paths, inner, st.none() | _paths)
    )


NODES: st.SearchStrategy[Node] = st.recursive(_atoms, _grow, max_leaves=10)


def bare(node: Node) -> Node:
    """The node without the places of its paths."""
    match node:
        case Path(names):
            return Path(names)
        case EndOf(end, array, path):
            return EndOf(end, Path(array.names), None if path is None else Path(path.names))
        case LookUp(array, index, path):
            inner = None if path is None else Path(path.names)
            return LookUp(Path(array.names), bare(index), inner)
        case Binary(operator, left, right):
            return Binary(operator, bare(left), bare(right))
        case Not(operand):
            return Not(bare(operand))
        case If(condition, then, otherwise):
            return If(bare(condition), bare(then), bare(otherwise))
        case _:
            return node


@given(NODES)
def test_what_is_written_out_parses_to_the_same(node: Node) -> None:
    assert bare(parse(source(node)).node) == bare(node)


@pytest.mark.parametrize(
    "text",
    [
        "a - (b - c) + 1",
        "not a and (b or c)",
        "not (a == b)",
        "(not a) == b",
        "(a == b) == c",
        "(if a then 1 else 2) + 3",
        "if a then b else if c then d else e",
        "last(x).y - -1 >= first(z)",
    ],
)
def test_no_parentheses_are_lost_or_added(text: str) -> None:
    assert source(parse(text).node) == text.replace("not (a == b)", "not a == b")


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused_with_a_place(text: str) -> None:
    try:
        parse(text)
    except ExpressionError as error:
        assert error.reason
        assert 0 <= error.column <= len(text)
        assert error.width >= 1


@given(
    st.lists(
        st.sampled_from(
            [
                "if",
                "then",
                "else",
                "and",
                "or",
                "not",
                "null",
                "first",
                "last",
                "(",
                ")",
                ".",
                "+",
                "-",
            ]
        )
        | st.sampled_from(["==", "<", "a", "7", "_x", "é", "²", "٣", "\x00", "'", '"', "\n"]),
        max_size=30,
    )
)
def test_any_words_parse_or_are_refused(words: list[str]) -> None:
    text = " ".join(words)
    with suppress(ExpressionError):
        parse(text)


@given(NODES)
def test_paths_have_their_columns(node: Node) -> None:
    """As all words in the text that are no keywords, in their order."""
    text = source(node)
    words = re.finditer(
        r"(?<![.\w])(?!(?:if|then|else|and|or|not|null|first|last)\b)[a-z][\w.]*", text
    )
    expected = [(word.start(), word.group()) for word in words]
    paths = parse(text).paths()
    assert sorted((path.column, str(path)) for path in paths) == expected


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a - b - c", Binary("-", Binary("-", Path(("a",)), Path(("b",))), Path(("c",)))),
        ("a - (b - c)", Binary("-", Path(("a",)), Binary("-", Path(("b",)), Path(("c",))))),
        ("a - -1", Binary("-", Path(("a",)), Number(-1))),
        ("not a and b", Binary("and", Not(Path(("a",))), Path(("b",)))),
        ("a or b and c", Binary("or", Path(("a",)), Binary("and", Path(("b",)), Path(("c",))))),
        ("a + 1 == b", Binary("==", Binary("+", Path(("a",)), Number(1)), Path(("b",)))),
        ("last(x.y).z.w", EndOf("last", Path(("x", "y")), Path(("z", "w")))),
        (
            "a + x.y[i + 1].z",
            Binary(
                "+",
                Path(("a",)),
                LookUp(Path(("x", "y")), Binary("+", Path(("i",)), Number(1)), Path(("z",))),
            ),
        ),
        ("x[y[0]]", LookUp(Path(("x",)), LookUp(Path(("y",)), Number(0), None), None)),
        ("first(x)", EndOf("first", Path(("x",)), None)),
        (
            "if a then b else if c then 1 else null",
            If(Path(("a",)), Path(("b",)), If(Path(("c",)), Number(1), Null())),
        ),
    ],
)
def test_precedence(text: str, node: Node) -> None:
    assert bare(parse(text).node) == node


@pytest.mark.parametrize(
    ("text", "reason", "column", "width"),
    [
        ("", "the expression ends too early", 0, 1),
        ("a ==", "the expression ends too early", 3, 1),
        ("a == b == c", "'==' does not belong here", 7, 2),
        ("a b", "'b' does not belong here", 2, 1),
        ("a * b", "'*' has no meaning in an expression", 2, 1),
        ("a[0", "']' is missing", 1, 1),
        ("a[]", "a field is expected, not ']'", 2, 1),
        ("a[0)", "']' is expected, not ')'", 3, 1),
        ("a[0]]", "']' does not belong here", 4, 1),
        ("[0]", "a field is expected, not '['", 0, 1),
        ("a[0][1]", "'[' does not belong here", 4, 1),
        ("a.1", "a field is expected, not '1'", 2, 1),
        ("first(a", "the expression ends too early", 6, 1),
        ("first a", "'(' is expected, not 'a'", 6, 1),
        ("if a then b", "the expression ends too early", 10, 1),
        ("- a", "a number is expected after '-'", 2, 1),
        ("1" * 21, "a number has at most 20 digits, and this one 21", 0, 21),
    ],
)
def test_refusals_say_where(text: str, reason: str, column: int, width: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert (caught.value.reason, caught.value.column, caught.value.width) == (reason, column, width)


@pytest.mark.parametrize("text", ["(" * 10_000, "not " * 10_000, "if a then b else " * 10_000])
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(ExpressionError, match=f"nested more than {MAX_DEPTH} deep|has more than"):
        parse(text + "a")


def test_length_is_bounded() -> None:
    parse(" + ".join(["a"] * (MAX_TOKENS // 2)))
    with pytest.raises(ExpressionError, match=f"more than {MAX_TOKENS} words"):
        parse(" + ".join(["a"] * MAX_TOKENS))


def test_an_expression_keeps_its_place() -> None:
    found = parse("a ==\n  b", "x.yaml", 7, 3)
    assert found == Expression(found.node, "a ==\n  b", "x.yaml", 7, 3)
    assert str(found) == "a == b"
    assert [str(path) for path in replace(found, text="").paths()] == ["a", "b"]
