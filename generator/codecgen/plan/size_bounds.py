"""Compute the minimum and maximum size of layouts from the plan alone."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.schema.expression import Binary, Node, Not, Path
from codecgen.schema.scalars import find_scalar
from codecgen.schema.types import (
    ZERO_TERMINATED,
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    PaddingType,
    ScalarType,
    StructType,
    TagsType,
    held_layouts,
)


def scalar_bounds(name: str) -> tuple[int, int]:
    """Return the minimum and maximum size in bytes of a scalar type or a length prefix. Raise
    AssertionError for an unknown type.
    """
    scalar = find_scalar(name)
    assert scalar is not None
    return scalar.min_size, scalar.max_size


@dataclass(frozen=True, slots=True)
class Bounds:
    """Size of a layout without its payload.

    Attributes:
        min_size: Minimum size in bytes.
        max_size: Maximum size in bytes, or None if unknown.
        payload: Fields whose contents (bytes, elements) add to the size.
    """

    min_size: int
    max_size: int | None
    payload: tuple[str, ...]


def size_bounds(plan: Plan, layout: LayoutPlan, inside: frozenset[str] = frozenset()) -> Bounds:
    """Return the minimum and maximum size in bytes of a layout without the contents of its bytes,
    texts and arrays, and the names of the fields that have such contents. The minimum leaves out
    optional fields, except one of two neighbors with opposite conditions. The maximum is None if it
    is unknown. ``inside`` names the layouts around this one, which end a recursion.
    """
    inside |= {layout.name}
    minimum = 0
    maximum: int | None = 0
    payload = []
    before: _FieldBounds | None = None
    for fp in layout.in_order:
        low, high, carries = _field_bounds(plan, layout, fp, inside)
        if fp.field.when is not None:
            if before is not None and are_opposite(before.when, fp.field.when.node):
                # One of the two is always there.
                low = min(low, before.min_size)
                high = (
                    None
                    if high is None or before.max_size is None
                    else max(0, high - before.max_size)
                )
                before = None
            else:
                before = _FieldBounds(fp.field.when.node, low, high)
                low = 0
        else:
            before = None
        minimum += low
        maximum = None if maximum is None or high is None else maximum + high
        if carries:
            payload.append(fp.name)
    return Bounds(minimum, maximum, tuple(payload))


@dataclass(frozen=True, slots=True)
class _FieldBounds:
    """Size of an optional field and the condition under which it exists."""

    when: Node
    min_size: int
    max_size: int | None


def are_opposite(one: Node, other: Node) -> bool:
    """Return whether one of two conditions is the other negated, judged by their source text, so
    that exactly one of them holds. False for opposites that are written in another way.
    """
    return _normalize(Not(one)) == _normalize(other)


_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _normalize(node: Node) -> object:
    """Return a comparable form of a condition, without positions and with ``not`` moved inwards."""
    match node:
        case Not(Binary(op, left, right)) if op in _NEGATED:
            return (_NEGATED[op], _normalize(left), _normalize(right))
        case Not(Not(inner)):
            return _normalize(inner)
        case Not(operand):
            return ("not", _normalize(operand))
        case Binary(op, left, right):
            return (op, _normalize(left), _normalize(right))
        case Path(names):
            return names
        case _:
            return repr(node)


def _field_bounds(
    plan: Plan, layout: LayoutPlan, fp: FieldPlan, inside: frozenset[str]
) -> tuple[int, int | None, bool]:
    """Return the minimum and maximum size of a field in bytes, and whether contents add to it.
    Bytes, texts and arrays of no fixed size count their prefix, or the zero byte at their end;
    tagged fields their count; nullable layouts at least their prefix. The maximum is None (unknown)
    for layouts named in ``inside`` and choices that accept unknown cases. Conditions are ignored.
    """
    match fp.field.type:
        case ScalarType(name) | BitsType(name):
            return *scalar_bounds(name), False
        case BytesType(length):
            if isinstance(length, int):
                return length, length, False
            if fp.field.type.prefix is None:
                return *((1, 1) if length == ZERO_TERMINATED else (0, 0)), True
            return *scalar_bounds(fp.field.type.prefix), True
        case PaddingType(multiple):
            return *((0, multiple - 1) if fp.size is None else (fp.size, fp.size)), False
        case ArrayType(fixed=int()) if fp.size is not None:
            return fp.size, fp.size, False
        case ArrayType() as array:
            prefixes = [scalar_bounds(name) for name in (array.count, array.length) if name]
            return sum(low for low, _ in prefixes), sum(high for _, high in prefixes), True
        case StructType() | ChoiceType() as held_type:
            prefix = held_type.length if isinstance(held_type, ChoiceType) else held_type.present
            before, longest = scalar_bounds(prefix) if prefix is not None else (0, 0)
            refs = held_layouts(held_type)
            unknown = isinstance(held_type, ChoiceType) and (held_type.unknown or not refs)
            if unknown or any(ref.layout in inside for ref in refs):
                return before, None, True
            held = [size_bounds(plan, p, inside) for p in plan.held_by(held_type, layout)]
            highs = [b.max_size for b in held]
            maximum = None if None in highs else max(high for high in highs if high is not None)
            minimum = (
                before if held_type.null is not None else before + min(b.min_size for b in held)
            )
            maximum = None if maximum is None else maximum + longest
            return minimum, maximum, any(b.payload for b in held)
        case TagsType():
            return 1, scalar_bounds("uvarint")[1], True
