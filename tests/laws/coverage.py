"""Which constructs of the language random schemas use, and which ones there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from codecgen.schema import grammar, key_types
from codecgen.schema.expression import (
    Binary,
    EndOf,
    ExpressionError,
    If,
    LookUp,
    Node,
    Not,
    Null,
    Number,
    Path,
    Truth,
)
from codecgen.schema.expression import parse as parse_expression
from tests.laws.none import spoken
from tests.laws.world import World

EXPRESSIONS = (
    "number",
    "true",
    "false",
    "null",
    "path",
    "path in bits",
    "item",
    "first",
    "last",
    "max",
    "min",
    "[]",
    "not",
    "if",
    "and",
    "or",
    "+",
    "-",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
)
SHAPES: Mapping[str, Callable[[Any], bool]] = {
    "layout: two compressed arrays": lambda tree: sum("compressed" in f for f in _fields(tree)) > 1,
    "field.counts: two arrays": lambda tree: any(
        isinstance(f.get("counts"), list) for f in _fields(tree)
    ),
    "layout.given: an array": lambda tree: any(
        isinstance(t, dict) for t in tree.get("given", {}).values()
    ),
}
"""Layouts that no single key tells: name -> whether a layout is one."""
NOT_ASKED = frozenset({"manifest.package", "manifest.title", "manifest.language"})
"""Constructs that each directory has, and that say nothing."""


def constructs() -> frozenset[str]:
    """All constructs of the language: each key of each form, each word that a key can have, each kind of expression."""
    out = {f"expression: {name}" for name in EXPRESSIONS} | set(SHAPES)
    for form, spec in grammar.FORMS.items():
        for key, value in spec.keys.items():
            out.add(f"{form}.{key}")
            out |= {f"{form}.{key}: {word}" for word in _words(value.kind)}
    return frozenset(out - NOT_ASKED)


def _words(kind: key_types.Kind) -> Iterator[str]:
    match kind:
        case key_types.OneOf(words):
            yield from words
        case key_types.Either(kinds):
            for one in kinds:
                yield from _words(one)
        case key_types.ByVersion(_):
            yield "by version"
        case key_types.Amount():
            yield "plus or minus"
        case key_types.ListOf(item) | key_types.MapOf(item):
            yield from _words(item)
        case _:
            return


def used(world: World) -> frozenset[str]:
    """The constructs that a directory uses."""
    out: set[str] = set()
    _form("manifest", world.manifest, out)
    for document in world.documents():
        _form(next(kind for kind in grammar.DOCUMENTS if kind in document), spoken(document), out)
    return frozenset(out)


def _fields(tree: Any) -> list[Any]:
    return [spec for spec in tree["fields"].values() if isinstance(spec, dict)]


def _form(form: str, tree: Any, out: set[str]) -> None:
    spec = grammar.FORMS[form]
    for key, value in tree.items():
        known = spec.keys.get(key)
        if known is not None:
            out.add(f"{form}.{key}")
            _value(f"{form}.{key}", known.kind, value, out)
    if form == "layout":
        out |= {name for name, is_one in SHAPES.items() if is_one(tree)}
        for value in tree.get("derived", {}).values():
            for derived in [value] if "is" in value else value.values():
                _form("derived", derived, out)


def _value(place: str, kind: key_types.Kind, value: Any, out: set[str]) -> None:
    match kind:
        case key_types.OneOf(words):
            if value in words:
                out.add(f"{place}: {value}")
        case key_types.Use(form):
            if isinstance(value, dict):
                _form(form, value, out)
        case key_types.ListOf(item):
            for part in value if isinstance(value, list) else [value]:
                _value(place, item, part, out)
        case key_types.MapOf(item):
            for part in value.values() if isinstance(value, dict) else ():
                _value(place, item, part, out)
        case key_types.ByVersion(item):
            if isinstance(value, dict):
                out.add(f"{place}: by version")
                for part in value.values():
                    _value(place, item, part, out)
        case key_types.Either(kinds):
            for one in kinds:
                _value(place, one, value, out)
        case key_types.Amount():
            if isinstance(value, str) and " " in value:
                out.add(f"{place}: plus or minus")
        case key_types.Code() | key_types.Default():
            if isinstance(value, str):
                try:
                    _expression(parse_expression(value).node, out)
                except ExpressionError:
                    return
        case _:
            return


def _expression(node: Node, out: set[str]) -> None:
    match node:
        case Number():
            out.add("expression: number")
        case Truth(value):
            out.add(f"expression: {str(value).lower()}")
        case Null():
            out.add("expression: null")
        case Path(names):
            out.add("expression: path")
            if names[0] == "item":
                out.add("expression: item")
            elif len(names) > 1:
                out.add("expression: path in bits")
        case EndOf(end, _, _):
            out.add(f"expression: {end}")
        case LookUp(_, index, _):
            out.add("expression: []")
            _expression(index, out)
        case Not(operand):
            out.add("expression: not")
            _expression(operand, out)
        case If(condition, then, otherwise):
            out.add("expression: if")
            for part in (condition, then, otherwise):
                _expression(part, out)
        case Binary(operator, left, right):
            out.add(f"expression: {operator}")
            _expression(left, out)
            _expression(right, out)
