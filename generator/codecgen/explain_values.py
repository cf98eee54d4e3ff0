"""Settled values as text, as YAML would have them."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.nodes import Value, part_of
from codecgen.schema.expression import data_text

_BINDS = {"or": 1, "and": 2}
_ALONE = 6


def said(value: Value) -> str:
    """What a value is, with no more parentheses than that takes."""
    return _said(value)[0]


def span(low: int, high: int) -> str:
    """Numbers from one to another."""
    return str(low) if low == high else f"{low}..{high}"


def _said(value: Value) -> tuple[str, int]:
    """The text, and how tightly it holds together."""
    match value:
        case nodes.Literal(number, type_):
            return (str(number) if type_.kind != "bool" else str(bool(number)).lower()), _ALONE
        case nodes.Data(data):
            return data_text(data), _ALONE
        case nodes.Word(name=name):
            return name, _ALONE
        case nodes.NullValue():
            return "null", _ALONE
        case nodes.FieldValue() | nodes.BitValue():
            word = value.word if isinstance(value, nodes.BitValue) else value
            owner = {"item": ("item",), "entry": ("entry",)}.get(word.owner, ())
            owner = (part,) if (part := part_of(word.owner)) is not None else owner
            return ".".join((*owner, *value.names)), _ALONE
        case nodes.ElementValue():
            return "item", _ALONE
        case nodes.EndValue(end, array, inner):
            of = "" if isinstance(inner, nodes.ElementValue) else f".{'.'.join(inner.names)}"
            return f"{end}({'.'.join(array.names)}){of}", _ALONE
        case nodes.VersionValue(version):
            return ("version" if version is None else str(version)), _ALONE
        case nodes.PlaceValue(name):
            return name, _ALONE
        case nodes.ColumnValue(column, which):
            return column.name if which == "row" else f"{which}({column.name})", _ALONE
        case nodes.DerivedValue(_, inner, bits):
            return f"i{bits}({said(inner)})", _ALONE
        case nodes.Sum(operator, left, right):
            return f"{_side(left, 5)} {operator} {_side(right, 6)}", 5
        case nodes.Comparison(operator, left, right):
            return f"{_side(left, 5)} {operator} {_side(right, 5)}", 4
        case nodes.Membership(of, allowed):
            whole = len(allowed) == allowed[-1] - allowed[0] + 1
            numbers = span(allowed[0], allowed[-1]) if whole else ", ".join(map(str, allowed))
            return f"{_side(of, 5)} in {numbers}", 4
        case nodes.Logical(operator, left, right):
            own = _BINDS[operator]
            return f"{_side(left, own)} {operator} {_side(right, own + 1)}", own
        case nodes.Negation(operand):
            return f"not {_side(operand, 3)}", 3
        case nodes.Conditional(condition, then, otherwise):
            parts = said(condition), said(then), said(otherwise)
            return f"if {parts[0]} then {parts[1]} else {parts[2]}", 0


def _side(value: Value, least: int) -> str:
    text, binds = _said(value)
    return text if binds >= least else f"({text})"
