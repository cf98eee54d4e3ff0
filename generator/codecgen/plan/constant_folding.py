"""Fold values: replace known parts by constants and drop conditions that are decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from codecgen.plan import nodes
from codecgen.plan.narrowing import compare
from codecgen.plan.nodes import Value
from codecgen.plan.types import BOOL

Known = Callable[[Value], Value | None]
"""What is known of a field, of bits, of the version: a literal, or null. None: nothing."""


def known_fields(value: Value) -> Value | None:
    """Return the literal that ``value`` always is: the integer constant of an own field that is
    never null, or the version. Return None for every other value, text and bytes constants
    included.
    """
    match value:
        case nodes.FieldValue(f, type_, "own", ()) if f.const is not None and not type_.nullable:
            found = nodes.constant(f.const)
            return found if isinstance(found, nodes.Literal) else None
        case nodes.VersionValue(version) if version is not None:
            return nodes.Literal(version)
    return None


def fold(value: Value, known: Known = known_fields) -> Value:
    """Return ``value`` with known parts replaced by constants and decided conditions by their
    branch or truth. ``known`` is asked about each node, outer nodes first, and returns the
    replacement, or None if nothing is known. A sum with a null side becomes null; other sums of
    constants are not added up.
    """
    found = known(value)
    if found is not None:
        return found
    match value:
        case nodes.DerivedValue(derived, inner, bits):
            inner = fold(inner, known)
            if isinstance(inner, nodes.Literal):
                return nodes.Literal(_wrap(inner.value, bits))
            return nodes.DerivedValue(derived, inner, bits)
        case nodes.Negation(operand):
            operand = fold(operand, known)
            return (
                _truth_literal(not as_truth(operand))
                if is_known(operand)
                else nodes.Negation(operand)
            )
        case nodes.Logical(operator, left, right):
            return _fold_logical(operator, fold(left, known), fold(right, known))
        case nodes.Conditional(condition, then, otherwise, type_):
            condition = fold(condition, known)
            if is_known(condition):
                return fold(then if as_truth(condition) else otherwise, known)
            return nodes.Conditional(condition, fold(then, known), fold(otherwise, known), type_)
        case nodes.Comparison(operator, left, right):
            return _fold_comparison(operator, fold(left, known), fold(right, known))
        case nodes.Membership(of, allowed):
            inner = fold(of, known)
            return (
                _truth_literal(inner.value in allowed)
                if isinstance(inner, nodes.Literal)
                else value
            )
        case nodes.Sum(operator, left, right, type_):
            one, other = fold(left, known), fold(right, known)
            if isinstance(one, nodes.NullValue) or isinstance(other, nodes.NullValue):
                return nodes.NullValue()
            return nodes.Sum(operator, one, other, type_)
        case nodes.LookUpValue(index=index):
            index = fold(index, known)
            if isinstance(index, nodes.NullValue):
                return index
            return replace(value, index=index)
    return value


def is_known(value: Value) -> bool:
    """Return whether a value is a number, true or false, an enum value or null. False for the rest,
    bytes and text included.
    """
    return isinstance(value, nodes.Literal | nodes.Word | nodes.NullValue)


def as_number(value: Value) -> int | None:
    """Return the number of a literal (true is 1, false 0) or an enum value. Return None for null,
    bytes and text, and for values that are not known.
    """
    return value.value if isinstance(value, nodes.Literal | nodes.Word) else None


def as_truth(value: Value) -> bool:
    """Return a known condition as a bool. Null and unknown values count as false."""
    return bool(as_number(value))


def _truth_literal(holds: bool) -> nodes.Literal:
    """Return a literal of true or false."""
    return nodes.Literal(int(holds), BOOL)


def _fold_logical(operator: str, left: Value, right: Value) -> Value:
    """Return ``and`` or ``or`` of two folded sides. The first known side counts, where null is
    false: if it decides the result, return a literal of true or false; else return the other side
    unchanged, known (perhaps null) or not. If neither is known, return the operation itself.
    """
    decisive = operator == "or"
    for side, other in ((left, right), (right, left)):
        if is_known(side):
            return _truth_literal(decisive) if as_truth(side) is decisive else other
    return nodes.Logical(operator, left, right)  # type: ignore[arg-type]


def _fold_comparison(operator: str, left: Value, right: Value) -> Value:
    """Return the comparison of two folded sides as a literal if its result is known, else as a
    comparison. An order with null is false; ``==`` and ``!=`` with null are decided if both sides
    are null or the other is never null.
    """
    nulls = [isinstance(side, nodes.NullValue) for side in (left, right)]
    if any(nulls):
        if operator in nodes.ORDERS:
            return _truth_literal(False)
        other = right if nulls[0] else left
        if all(nulls):
            return _truth_literal(operator == "==")
        if not other.type.nullable:
            return _truth_literal(operator == "!=")
    a, b = as_number(left), as_number(right)
    if a is not None and b is not None:
        return _truth_literal(compare(operator, a, b))
    return nodes.Comparison(operator, left, right)  # type: ignore[arg-type]


def _wrap(value: int, bits: int) -> int:
    """Return ``value`` wrapped in two's complement of ``bits`` bits."""
    half = 1 << bits - 1
    return (value + half & (1 << bits) - 1) - half
