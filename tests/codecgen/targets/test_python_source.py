"""Printed Python means the same on one line and on several."""

from __future__ import annotations

import pytest

from codecgen.targets.python_source import Code, call, listing, return_statement, tuple_of


def returned(code: Code) -> object:
    """Return what a function with the printed statement returns."""
    scope: dict[str, object] = {}
    text = "\n".join(["def f():", *return_statement(code, 4), "found = f()"])
    exec(text, scope)
    return scope["found"]


@pytest.mark.parametrize("width", [1, 90, 91, 92, 100, 200])
@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_statement_returns_what_it_says(number: int, width: int) -> None:
    words = ["x" * width] * number
    items: list[Code] = [repr(word) for word in words]
    assert returned(tuple_of(items)) == tuple(words)
    assert returned(listing(items)) == words
    assert returned(call("dict", a=tuple_of(items))) == {"a": tuple(words)}
