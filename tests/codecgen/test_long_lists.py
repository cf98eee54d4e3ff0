"""Functions that return lists of structs: on one line where there is room, and broken otherwise."""

from __future__ import annotations

import pytest

from codecgen.targets.construct.long_lists import returned_list
from codecgen.targets.python_source import WIDTH

ITEM = "(" + ", ".join(f"part.field_{i}" for i in range(3)) + ")"
LONG = "(" + ", ".join(f"(part.field_{i}, tuple(part.other_{i}))" for i in range(4)) + ")"
CASES = [
    ("value.price", 1),
    ("None if value.names is None else tuple(value.names)", 1),
    (f"tuple([{ITEM} for part in value.batches])", 1),
    (f"None if value.b_{'x' * 5} is None else tuple([{ITEM} for part in value.b_{'x' * 5}])", 3),
    (f"tuple([{ITEM} for part in value.batches_{'x' * 20}])", 3),
    (f"tuple([{ITEM} for part in value.batches_{'x' * 30}])", 6),
    (f"None if value.x is None else tuple([{LONG} for part in value.x])", 13),
]


@pytest.mark.parametrize(("code", "lines"), CASES)
def test_lines(code: str, lines: int) -> None:
    found = returned_list(code, 4)
    assert len(found) == lines
    assert all(len(line) <= WIDTH for line in found)

    class Part:
        def __getattr__(self, name: str) -> object:
            return name if name.startswith("field") else (name,)

    made = Part()

    class Value:
        def __getattr__(self, name: str) -> object:
            return [name] if name.startswith(("names", "price")) else [made, made]

    space: dict[str, object] = {}
    exec("\n".join(["def made(value):", *found]), space)
    assert space["made"](Value()) == eval(code, {"value": Value()})  # type: ignore[operator]
