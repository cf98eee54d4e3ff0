"""What expressions mean, worked out from their trees: the laws' own reading of the language page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import getitem
from typing import Any

from codecgen.schema.expression import (
    Binary,
    EndOf,
    If,
    LookUp,
    Node,
    Not,
    Null,
    Number,
    Path,
    Truth,
)
from tests.laws.world import Facts, parsed

Look = Callable[[tuple[str, ...]], Any]
"""The value of a path; raises LookupError for what is not there in this version."""


def wrapped(value: int, bits: int) -> int:
    """A number in two's complement."""
    half = 1 << bits - 1
    return (value + half) % (1 << bits) - half


class Meaning:
    """Works out expressions over the fields of a layout.

    A sum with null is null, an order with null is false, and null is equal to nothing but itself.
    """

    def __init__(self, look: Look, words: Mapping[tuple[str, ...], Mapping[str, int]]) -> None:
        self.look = look
        self.words = words  # the values of the enum that a path has

    def of(self, text: Any) -> Any:
        return text if not isinstance(text, str) else self.value(parsed(text))

    def holds(self, text: Any) -> bool:
        return bool(self.of(text))

    def value(self, node: Node) -> Any:
        match node:
            case Number(value):
                return value
            case Truth(value):
                return value
            case Null():
                return None
            case Path(names):
                return self.look(names)
            case EndOf(end, array, path):
                return self.end_of(end, self.look(array.names), path)
            case LookUp(array, index, path):
                return self.look_up(self.look(array.names), self.value(index), path)
            case Not(operand):
                return not self.value(operand)
            case If(condition, then, otherwise):
                return self.value(then if self.value(condition) else otherwise)
            case Binary("and", left, right):
                return bool(self.value(left)) and bool(self.value(right))
            case Binary("or", left, right):
                return bool(self.value(left)) or bool(self.value(right))
            case Binary(operator, left, right):
                return _applied(operator, *self.sides(left, right))

    def sides(self, left: Node, right: Node) -> tuple[Any, Any]:
        """Both sides of an operator; beside a field with an enum a word is one of its values."""
        for path, word in ((left, right), (right, left)):
            if isinstance(path, Path) and isinstance(word, Path) and len(word.names) == 1:
                number = self.words.get(path.names, {}).get(word.names[0])
                if number is not None:
                    other = self.look(path.names)
                    return (other, number) if path is left else (number, other)
        return self.value(left), self.value(right)

    def look_up(self, items: Any, index: Any, path: Path | None) -> Any:
        if items is None or index is None:
            return None
        if index < 0:
            raise LookupError(index)
        return reduce(getitem, () if path is None else path.names, items[index])

    def end_of(self, end: str, items: Any, path: Path | None) -> Any:
        if end in ("max", "min"):
            names = path.names if path is not None else ()
            return (max if end == "max" else min)(reduce(getitem, names, item) for item in items)
        if not items:
            return None
        value = items[0 if end == "first" else -1]
        for name in path.names if path is not None else ():
            value = None if value is None else value[name]
        return value


def _applied(operator: str, a: Any, b: Any) -> Any:
    if operator == "==":
        return a == b
    if operator == "!=":
        return a != b
    if a is None or b is None:
        return None if operator in ("+", "-") else False
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def words_of(facts: Facts, layout: str) -> dict[tuple[str, ...], dict[str, int]]:
    """The enum values of each path of a layout that has an enum."""
    out: dict[tuple[str, ...], dict[str, int]] = {}
    tree = facts.layouts[layout]
    for name, type_ in tree.get("given", {}).items():
        if isinstance(type_, str) and type_ in facts.enums:
            out[name,] = facts.values(type_)
    for name, spec in {**tree["fields"], **tree.get("tagged", {})}.items():
        if isinstance(spec, str):
            continue
        if "enum" in spec:
            out[name,] = facts.values(spec["enum"])
        for member, bit in spec.get("members", {}).items():
            if "enum" in bit:
                out[name, member] = facts.values(bit["enum"])
    return out


def look_at(item: Any, names: tuple[str, ...]) -> Any:
    """What a path of an element is: `item`, `item.size`."""
    assert names[0] == "item"
    return look_in(item, None)(names[1:])


def look_in(values: Mapping[str, Any], version: int | None) -> Look:
    """Finds paths in the values of a layout."""

    def look(names: tuple[str, ...]) -> Any:
        if names == ("version",) and "version" not in values:
            return version
        value: Any = values
        for name in names:
            if value is None:
                return None
            value = value[name]
        return value

    return look
