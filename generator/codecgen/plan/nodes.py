"""Nodes of resolved expressions, which targets emit.

Null is a value of its own: a sum with null is null, a comparison of order with null is false, and ``==`` and ``!=``
compare null as they compare numbers. Conditions are two-valued, so that ``not`` of a comparison with null is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from codecgen.plan.types import BOOL, INT, NULL, Type
from codecgen.schema.model import Column, Derived, Field
from codecgen.schema.types import BitMember, ChoiceType, StructType

Owner = str
"""Whose field it is: of the layout that the expression belongs to (``own``), of the element at hand (``item``), of the first
or the last element, or one that is looked up (``end``), of the entry around the rows that are written (``entry``), of the element of another array of
the same rows (:func:`owner_of_other_array`), or of a part of a payload (:func:`owner_of_part`)."""

End = OneOf["first", "last", "max", "min"]
Which = OneOf["row", "first", "last", "max", "min"]


def owner_of_part(name: str) -> Owner:
    """Return the owner of the fields of a payload part. It contains a blank, which no name has."""
    return f"part {name}"


def owner_of_other_array(array: str) -> Owner:
    """Return the owner of the fields of the element of another array of the same rows, ``array``.
    It contains a blank, which no name has.
    """
    return f"beside {array}"


def other_array_of(owner: Owner) -> str | None:
    """Return the array of an owner that :func:`owner_of_other_array` returned, or None for other owners."""
    what, blank, name = owner.partition(" ")
    return name if blank and what == "beside" else None


def part_of(owner: Owner) -> str | None:
    """Return the payload part of an owner, or None if the owner is not a part."""
    part, blank, name = owner.partition(" ")
    return name if blank and part == "part" else None


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, true (1) or false (0)."""

    value: int
    type: Type = INT


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes, or text."""

    value: bytes | str

    @property
    def type(self) -> Type:
        """Return text for a str, and bytes otherwise."""
        return Type("text" if isinstance(self.value, str) else "bytes")


@dataclass(frozen=True, slots=True)
class Word:
    """A value of an enum, by its name."""

    enum: str
    name: str
    value: int

    @property
    def type(self) -> Type:
        """Return the type of the enum."""
        return Type("enum", self.enum)


@dataclass(frozen=True, slots=True)
class NullValue:
    """The value null."""

    @property
    def type(self) -> Type:
        """Return the type of null."""
        return NULL


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field. ``holders`` are the fields that hold the layouts on the way to it (``inner.x``: inner)."""

    field: Field
    type: Type
    owner: Owner = "own"
    holders: tuple[Field, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the path to the field, from the outermost holder to the field."""
        return (*(f.name for f in self.holders), self.field.name)


@dataclass(frozen=True, slots=True)
class BitValue:
    """Bits of a field."""

    word: FieldValue
    member: BitMember
    type: Type

    @property
    def names(self) -> tuple[str, ...]:
        """Return the path to the bits: the path to the field, and the name of the member."""
        return (*self.word.names, self.member.name)


@dataclass(frozen=True, slots=True)
class ElementValue:
    """An element of an array of numbers, by itself."""

    type: Type
    owner: Owner = "item"


@dataclass(frozen=True, slots=True)
class EndValue:
    """A value in the first or last element of an array, or the largest or smallest value of all elements. Null
    for an empty array.
    """

    end: End
    array: FieldValue
    value: FieldValue | BitValue | ElementValue
    type: Type


@dataclass(frozen=True, slots=True)
class LookUpValue:
    """The element of an array with the number ``index``, or a value in it. Null if the array or the index is null; an index
    without an element is an error, which names it by its ``text``.
    """

    array: FieldValue
    index: Value
    value: FieldValue | BitValue | ElementValue
    type: Type
    text: str


@dataclass(frozen=True, slots=True)
class VersionValue:
    """The version of the layout; ``version`` None where the expression stands for all of them."""

    version: int | None
    field: str

    @property
    def type(self) -> Type:
        """Return the type of numbers."""
        return INT


@dataclass(frozen=True, slots=True)
class DerivedValue:
    """A derived value and the value that it is computed from. Sums wrap in ``bits`` bits."""

    derived: Derived
    value: Value
    bits: int

    @property
    def type(self) -> Type:
        """Return the type of the inner value."""
        return self.value.type


@dataclass(frozen=True, slots=True)
class PlaceValue:
    """Position of an entry in the file (``position``), its size in bytes (``size``), or the row of a payload
    (``row``).
    """

    name: OneOf["position", "size", "row"]

    @property
    def type(self) -> Type:
        """Return the type of numbers."""
        return INT


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """A column of the rows that are written: of the current, first or last row, or its largest or smallest
    value.
    """

    column: Column
    which: Which
    type: Type


@dataclass(frozen=True, slots=True)
class Sum:
    """``+`` or ``-``."""

    operator: OneOf["+", "-"]
    left: Value
    right: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two values, which is true or false."""

    operator: OneOf["==", "!=", "<", "<=", ">", ">="]
    left: Value
    right: Value

    @property
    def type(self) -> Type:
        """Return the type of conditions."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Membership:
    """A test whether a value is one of some numbers, which are in ascending order."""

    value: FieldValue | BitValue
    allowed: tuple[int, ...]

    @property
    def type(self) -> Type:
        """Return the type of conditions."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Logical:
    """``and`` or ``or`` of two conditions."""

    operator: OneOf["and", "or"]
    left: Value
    right: Value

    @property
    def type(self) -> Type:
        """Return the type of conditions."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Negation:
    """``not`` of a condition."""

    operand: Value

    @property
    def type(self) -> Type:
        """Return the type of conditions."""
        return BOOL


@dataclass(frozen=True, slots=True)
class Conditional:
    """``if condition then .. else ..``."""

    condition: Value
    then: Value
    otherwise: Value
    type: Type


Leaf = (
    Literal | Data | Word | NullValue | FieldValue | BitValue | ElementValue | EndValue | VersionValue
    | PlaceValue | ColumnValue
)  # fmt: skip
Value = (
    Leaf
    | LookUpValue
    | DerivedValue
    | Sum
    | Comparison
    | Membership
    | Logical
    | Negation
    | Conditional
)


def constant(value: int | str | bytes) -> Literal | Data:
    """Return the constant of a field as a node: a literal for numbers and booleans, data for bytes and text."""
    if isinstance(value, int):
        return Literal(int(value), BOOL if isinstance(value, bool) else INT)
    return Data(value)


ORDERS = ("<", "<=", ">", ">=")
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def children_of(value: Value) -> tuple[Value, ...]:
    """Return the direct operands of a node, or ``()`` for a leaf. The only operand of a look-up is
    its index. Fields, bits and ends of arrays (``EndValue``) are leaves.
    """
    match value:
        case DerivedValue():
            return (value.value,)
        case LookUpValue():
            return (value.index,)
        case Sum() | Comparison() | Logical():
            return (value.left, value.right)
        case Negation():
            return (value.operand,)
        case Membership():
            return (value.value,)
        case Conditional():
            return (value.condition, value.then, value.otherwise)
        case _:
            return ()


def iterate_nodes(value: Value) -> Iterator[Value]:
    """Yield a node and all nodes below it, parents first."""
    yield value
    for child in children_of(value):
        yield from iterate_nodes(child)


def map_children(value: Value, change: Callable[[Value], Value]) -> Value:
    """Return a node with ``change`` applied to each direct operand; of a look-up only to its index.
    Leaves and membership tests are returned unchanged.
    """
    match value:
        case DerivedValue():
            return replace(value, value=change(value.value))
        case LookUpValue():
            return replace(value, index=change(value.index))
        case Sum() | Comparison() | Logical():
            return replace(value, left=change(value.left), right=change(value.right))
        case Negation():
            return Negation(change(value.operand))
        case Conditional():
            parts = (change(value.condition), change(value.then), change(value.otherwise))
            return Conditional(*parts, value.type)
        case _:
            return value


def fields_read(value: Value) -> Iterator[FieldValue]:
    """Yield the fields that an expression reads, with repeats. Bits count as the field that holds
    them. For an end or extreme of an array, or a look-up, yield the array and not the field of its
    element.
    """
    for node in iterate_nodes(value):
        if isinstance(node, FieldValue):
            yield node
        elif isinstance(node, BitValue):
            yield node.word
        elif isinstance(node, EndValue | LookUpValue):
            yield node.array


def case_in(value: Value) -> FieldValue | None:
    """Return the case of a choice that ``value`` is or lies in (``body.moved`` for
    ``body.moved.to``), as a nullable field. Return None for the field that decides a choice, and
    for values that are in no case.
    """
    field = value.word if isinstance(value, BitValue) else value
    if not isinstance(field, FieldValue) or not field.holders:
        return None
    choice, case = (*field.holders, field.field)[:2]
    if not isinstance(choice.type, ChoiceType) or not isinstance(case.type, StructType):
        return None  # what decides in a choice by a field is a number
    return FieldValue(case, Type("layout", nullable=True), field.owner, (choice,))


def cases_read(value: Value) -> Iterator[tuple[FieldValue, FieldValue]]:
    """Yield (case, field) for each field that an expression reads in a case of a choice; the field
    is the case itself if that is read whole. Bits count as the field that holds them. Repeats are
    possible.
    """
    for read in fields_read(value):
        case = case_in(read)
        if case is not None:
            yield case, read


def ends_read(value: Value) -> Iterator[EndValue]:
    """Yield the ends and extremes of arrays that an expression uses."""
    return (node for node in iterate_nodes(value) if isinstance(node, EndValue))


def look_ups_in(value: Value) -> Iterator[LookUpValue]:
    """Yield the look-ups in an expression, the outer ones first."""
    return (node for node in iterate_nodes(value) if isinstance(node, LookUpValue))


def columns_read(value: Value) -> Iterator[ColumnValue]:
    """Yield the columns that an expression uses."""
    return (node for node in iterate_nodes(value) if isinstance(node, ColumnValue))


def negate(value: Value) -> Value:
    """Return the opposite condition: the operand of ``not``, the other truth, or the opposite
    comparison for ``==``, ``!=`` and sides that are never null or floats (each comparison with NaN
    is false). Wrap every other condition in ``not``.
    """
    match value:
        case Negation(operand):
            return operand
        case Literal(number, type_) if type_.kind == "bool":
            return Literal(int(not number), BOOL)
        case Comparison(operator, left, right) if operator in ("==", "!=") or not (
            left.type.nullable
            or right.type.nullable
            or "float" in (left.type.kind, right.type.kind)
        ):
            return Comparison(OPPOSITE[operator], left, right)  # type: ignore[arg-type]
        case _:
            return Negation(value)
