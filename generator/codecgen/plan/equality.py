"""Compare values by structure, and derive values from conditions that hold."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.nodes import Value, negate
from codecgen.plan.types import BOOL


def is_same(one: Value, other: Value) -> bool:
    """Return whether two values are the same expression of the same fields and columns, as
    :func:`shape` sees it. False for equal results of other expressions, such as ``a + b`` and
    ``b + a``.
    """
    return shape(one) == shape(other)


def shape(value: Value) -> object:
    """Return a comparable form of a value, without positions in the YAML and without types: equal
    forms mean equal expressions. ``not`` is resolved first where possible, as ``not a == b`` into
    ``a != b``.
    """
    match value:
        case nodes.Literal(number) | nodes.Word(value=number):
            return number
        case nodes.Data(data):
            return data
        case nodes.NullValue():
            return None
        case nodes.FieldValue():
            return ("field", value.owner, value.names)
        case nodes.BitValue(word):
            return ("field", word.owner, value.names)
        case nodes.ElementValue(_, owner):
            return ("element", owner)
        case nodes.EndValue(end, array, inner):
            return (end, array.names, shape(inner))
        case nodes.LookUpValue(array, index, inner):
            return ("[]", array.owner, array.names, shape(index), shape(inner))
        case nodes.VersionValue(version):
            return ("version", version)
        case nodes.PlaceValue(name):
            return ("place", name)
        case nodes.ColumnValue(column, which):
            return ("column", which, column.name)
        case nodes.DerivedValue(_, inner, bits):
            return ("derived", bits, shape(inner))
        case nodes.Sum(operator, left, right) | nodes.Comparison(operator, left, right):
            return (operator, shape(left), shape(right))
        case nodes.Logical(operator, left, right):
            return (operator, shape(left), shape(right))
        case nodes.Membership(of, allowed):
            return ("in", shape(of), allowed)
        case nodes.Negation(operand):
            turned = negate(operand)
            if isinstance(turned, nodes.Negation):
                return ("not", shape(turned.operand))
            return shape(turned)
        case nodes.Conditional(condition, then, otherwise):
            return ("if", shape(condition), shape(then), shape(otherwise))


def conjuncts(condition: Value) -> list[Value]:
    """Return the conditions that all hold if ``condition`` holds, in order: the operands of nested
    ``and``, and the negated operands of a negated ``or``. Return ``[condition]`` for every other
    condition.
    """
    match condition:
        case nodes.Logical("and", left, right):
            return [*conjuncts(left), *conjuncts(right)]
        case nodes.Negation(nodes.Logical("or", left, right)):
            return [*conjuncts(negate(left)), *conjuncts(negate(right))]
    return [condition]


def implied_value(holding: list[Value], value: Value) -> Value | None:
    """Return the literal that the conditions in ``holding``, all true, imply for ``value``, or None
    if they imply nothing. It is true or false if ``value`` is one of them or the opposite of one.
    It is the number or enum value on the right of an ``==`` that has ``value`` on the left. The
    first condition that implies something counts.
    """
    for condition in holding:
        if is_same(value, condition):
            return nodes.Literal(1, BOOL)
        if is_same(value, negate(condition)):
            return nodes.Literal(0, BOOL)
        match condition:
            case nodes.Comparison("==", left, nodes.Literal() | nodes.Word() as known):
                if is_same(value, left):
                    return known
    return None
