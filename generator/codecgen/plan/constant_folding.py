"""Values of which something is known, with what follows from that settled."""

from __future__ import annotations

from collections.abc import Callable

from codecgen.plan import nodes
from codecgen.plan.narrowing import compare
from codecgen.plan.nodes import Value
from codecgen.plan.types import BOOL

Known = Callable[[Value], Value | None]
"""What is known of a field, of bits, of the version: a literal, or null. None: nothing."""


def settled_fields(value: Value) -> Value | None:
    """What a strict reader knows of fields once it has read them: constants and versions."""
    match value:
        case nodes.FieldValue(f, type_, "own", ()) if f.const is not None and not type_.nullable:
            found = nodes.constant(f.const)
            return found if isinstance(found, nodes.Literal) else None
        case nodes.VersionValue(version) if version is not None:
            return nodes.Literal(version)
    return None


def fold(value: Value, known: Known = settled_fields) -> Value:
    """The value without what need not be asked any more."""
    found = known(value)
    if found is not None:
        return found
    match value:
        case nodes.DerivedValue(derived, inner, bits):
            inner = fold(inner, known)
            if isinstance(inner, nodes.Literal):
                return nodes.Literal(_wrapped(inner.value, bits))
            return nodes.DerivedValue(derived, inner, bits)
        case nodes.Negation(operand):
            operand = fold(operand, known)
            return _truth(not truth(operand)) if is_known(operand) else nodes.Negation(operand)
        case nodes.Logical(operator, left, right):
            return _logical(operator, fold(left, known), fold(right, known))
        case nodes.Conditional(condition, then, otherwise, type_):
            condition = fold(condition, known)
            if is_known(condition):
                return fold(then if truth(condition) else otherwise, known)
            return nodes.Conditional(condition, fold(then, known), fold(otherwise, known), type_)
        case nodes.Comparison(operator, left, right):
            return _comparison(operator, fold(left, known), fold(right, known))
        case nodes.Membership(of, allowed):
            inner = fold(of, known)
            return _truth(inner.value in allowed) if isinstance(inner, nodes.Literal) else value
        case nodes.Sum(operator, left, right, type_):
            one, other = fold(left, known), fold(right, known)
            if isinstance(one, nodes.NullValue) or isinstance(other, nodes.NullValue):
                return nodes.NullValue()
            return nodes.Sum(operator, one, other, type_)
    return value


def is_known(value: Value) -> bool:
    """Whether nothing has to be read to know a value."""
    return isinstance(value, nodes.Literal | nodes.Word | nodes.NullValue)


def number(value: Value) -> int | None:
    """A value that is known, as a number; None for one that is not, and for null."""
    return value.value if isinstance(value, nodes.Literal | nodes.Word) else None


def truth(value: Value) -> bool:
    """A condition that is known."""
    return bool(number(value))


def _truth(holds: bool) -> nodes.Literal:
    return nodes.Literal(int(holds), BOOL)


def _logical(operator: str, left: Value, right: Value) -> Value:
    decisive = operator == "or"
    for side, other in ((left, right), (right, left)):
        if is_known(side):
            return _truth(decisive) if truth(side) is decisive else other
    return nodes.Logical(operator, left, right)  # type: ignore[arg-type]


def _comparison(operator: str, left: Value, right: Value) -> Value:
    nulls = [isinstance(side, nodes.NullValue) for side in (left, right)]
    if any(nulls):
        if operator in nodes.ORDERS:
            return _truth(False)
        other = right if nulls[0] else left
        if all(nulls):
            return _truth(operator == "==")
        if not other.type.nullable:
            return _truth(operator == "!=")
    a, b = number(left), number(right)
    if a is not None and b is not None:
        return _truth(compare(operator, a, b))
    return nodes.Comparison(operator, left, right)  # type: ignore[arg-type]


def _wrapped(value: int, bits: int) -> int:
    half = 1 << bits - 1
    return (value + half & (1 << bits) - 1) - half
