"""The fewest and the most bytes that layouts take, from the plan alone."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.schema.expression import Binary, Node, Not, Path
from codecgen.schema.scalars import find_scalar
from codecgen.schema.types import (
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
    """The fewest and the most bytes of a number, a boolean, a uuid, a length or a count."""
    scalar = find_scalar(name)
    assert scalar is not None
    return scalar.least, scalar.most


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a layout takes beside what it carries: its fewest and its most bytes. ``most`` is None where there is no
    telling. ``payload`` names the fields whose contents (bytes, elements) come on top."""

    least: int
    most: int | None
    payload: tuple[str, ...]


def bounds(plan: Plan, layout: LayoutPlan, inside: frozenset[str] = frozenset()) -> Bounds:
    """The fewest and the most bytes of a layout beside the contents of its bytes, texts and arrays.

    The fewest are those of a value without any field that may be left out. ``inside`` names the layouts that are
    being worked out already.
    """
    inside |= {layout.name}
    least = 0
    most: int | None = 0
    payload = []
    before: _FieldBounds | None = None
    for fp in layout.in_order:
        low, high, carries = _field_bounds(plan, layout, fp, inside)
        if fp.field.when is not None:
            if before is not None and opposite(before.when, fp.field.when.node):
                # One of the two is always there.
                low = min(low, before.least)
                high = None if high is None or before.most is None else max(0, high - before.most)
                before = None
            else:
                before = _FieldBounds(fp.field.when.node, low, high)
                low = 0
        else:
            before = None
        least += low
        most = None if most is None or high is None else most + high
        if carries:
            payload.append(fp.name)
    return Bounds(least, most, tuple(payload))


@dataclass(frozen=True, slots=True)
class _FieldBounds:
    """A field that may be left out."""

    when: Node
    least: int
    most: int | None


def opposite(one: Node, other: Node) -> bool:
    """Whether of two conditions exactly one holds, as can be seen from how they are written."""
    return _normal(Not(one)) == _normal(other)


_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _normal(node: Node) -> object:
    """A form in which equal conditions are equal: without places, and with ``not`` moved inwards."""
    match node:
        case Not(Binary(op, left, right)) if op in _NEGATED:
            return (_NEGATED[op], _normal(left), _normal(right))
        case Not(Not(inner)):
            return _normal(inner)
        case Not(operand):
            return ("not", _normal(operand))
        case Binary(op, left, right):
            return (op, _normal(left), _normal(right))
        case Path(names):
            return names
        case _:
            return repr(node)


def _field_bounds(
    plan: Plan, layout: LayoutPlan, fp: FieldPlan, inside: frozenset[str]
) -> tuple[int, int | None, bool]:
    match fp.field.type:
        case ScalarType(name) | BitsType(name):
            return *scalar_bounds(name), False
        case BytesType(length):
            if isinstance(length, int):
                return length, length, False
            if fp.field.type.prefix is None:
                return *((0, 0) if length == "rest" else (1, 1)), True
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
            held = [bounds(plan, p, inside) for p in plan.held_by(held_type, layout)]
            highs = [b.most for b in held]
            most = None if None in highs else max(high for high in highs if high is not None)
            least = before if held_type.null is not None else before + min(b.least for b in held)
            most = None if most is None else most + longest
            return least, most, any(b.payload for b in held)
        case TagsType():
            return 1, scalar_bounds("uvarint")[1], True
