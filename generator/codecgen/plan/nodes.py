"""Expressions in which every name is settled: what the targets print.

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
or the last element (``end``), of the entry around the rows that are written (``entry``), or of a part of a payload
(:func:`owner_of_part`)."""

End = OneOf["first", "last", "max", "min"]
Which = OneOf["row", "first", "last", "max", "min"]


def owner_of_part(name: str) -> Owner:
    """The owner of the fields of a part of a payload. No name has a blank."""
    return f"part {name}"


def part_of(owner: Owner) -> str | None:
    """The part of a payload that an owner is; None for the others."""
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
        return Type("text" if isinstance(self.value, str) else "bytes")


@dataclass(frozen=True, slots=True)
class Word:
    """A value of an enum, by its name."""

    enum: str
    name: str
    value: int

    @property
    def type(self) -> Type:
        return Type("enum", self.enum)


@dataclass(frozen=True, slots=True)
class NullValue:
    @property
    def type(self) -> Type:
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
        return (*(f.name for f in self.holders), self.field.name)


@dataclass(frozen=True, slots=True)
class BitValue:
    """Bits of a field."""

    word: FieldValue
    member: BitMember
    type: Type

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.word.names, self.member.name)


@dataclass(frozen=True, slots=True)
class ElementValue:
    """An element of an array of numbers, by itself."""

    type: Type
    owner: Owner = "item"


@dataclass(frozen=True, slots=True)
class EndValue:
    """What the first or the last element of an array has, or the largest or smallest number that any has. Null where there
    is no element."""

    end: End
    array: FieldValue
    value: FieldValue | BitValue | ElementValue
    type: Type


@dataclass(frozen=True, slots=True)
class VersionValue:
    """The version of the layout; ``version`` None where the expression stands for all of them."""

    version: int | None
    field: str

    @property
    def type(self) -> Type:
        return INT


@dataclass(frozen=True, slots=True)
class DerivedValue:
    """A derived value, with what it is made of. ``bits``: the width in which its sums wrap."""

    derived: Derived
    value: Value
    bits: int

    @property
    def type(self) -> Type:
        return self.value.type


@dataclass(frozen=True, slots=True)
class PlaceValue:
    """What a reader knows of an entry beside its fields: its ``position`` in the file, and its ``size`` in bytes. Of a payload
    it is the ``row`` that it is in."""

    name: OneOf["position", "size", "row"]

    @property
    def type(self) -> Type:
        return INT


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """A column of the rows that are written: of the row at hand, of the first or last row of an entry, or the largest or
    smallest value in it."""

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
    operator: OneOf["==", "!=", "<", "<=", ">", ">="]
    left: Value
    right: Value

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class Membership:
    """Whether a value is one of some numbers (in order)."""

    value: FieldValue | BitValue
    allowed: tuple[int, ...]

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class Logical:
    operator: OneOf["and", "or"]
    left: Value
    right: Value

    @property
    def type(self) -> Type:
        return BOOL


@dataclass(frozen=True, slots=True)
class Negation:
    operand: Value

    @property
    def type(self) -> Type:
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
Value = Leaf | DerivedValue | Sum | Comparison | Membership | Logical | Negation | Conditional


def constant(value: int | str | bytes) -> Literal | Data:
    """What a field always holds."""
    if isinstance(value, int):
        return Literal(int(value), BOOL if isinstance(value, bool) else INT)
    return Data(value)


ORDERS = ("<", "<=", ">", ">=")
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def children(value: Value) -> tuple[Value, ...]:
    """The values that a value is made of."""
    match value:
        case DerivedValue():
            return (value.value,)
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


def walk(value: Value) -> Iterator[Value]:
    """The value, and all that it is made of."""
    yield value
    for child in children(value):
        yield from walk(child)


def rebuilt(value: Value, change: Callable[[Value], Value]) -> Value:
    """The value with its children changed."""
    match value:
        case DerivedValue():
            return replace(value, value=change(value.value))
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
    """The fields that must be read before a value can be worked out: also the arrays whose ends it asks for."""
    for node in walk(value):
        if isinstance(node, FieldValue):
            yield node
        elif isinstance(node, BitValue):
            yield node.word
        elif isinstance(node, EndValue):
            yield node.array


def case_in(value: Value) -> FieldValue | None:
    """The case of a choice that a value is, or that it is in (``body.moved`` of ``body.moved.to``)."""
    field = value.word if isinstance(value, BitValue) else value
    if not isinstance(field, FieldValue) or not field.holders:
        return None
    choice, case = (*field.holders, field.field)[:2]
    if not isinstance(choice.type, ChoiceType) or not isinstance(case.type, StructType):
        return None  # what decides in a choice by a field is a number
    return FieldValue(case, Type("layout", nullable=True), field.owner, (choice,))


def cases_read(value: Value) -> Iterator[tuple[FieldValue, FieldValue]]:
    """The cases of choices that a value asks for, each with what it asks for: the case itself, or a field in it."""
    for read in fields_read(value):
        case = case_in(read)
        if case is not None:
            yield case, read


def ends_read(value: Value) -> Iterator[EndValue]:
    """The ends of arrays that a value asks for."""
    return (node for node in walk(value) if isinstance(node, EndValue))


def columns_read(value: Value) -> Iterator[ColumnValue]:
    """The columns that a value is made of."""
    return (node for node in walk(value) if isinstance(node, ColumnValue))


def negated(value: Value) -> Value:
    """The opposite condition, without ``not`` where a comparison can be turned round: that is so where neither side can
    be null."""
    match value:
        case Negation(operand):
            return operand
        case Literal(number, type_) if type_.kind == "bool":
            return Literal(int(not number), BOOL)
        case Comparison(operator, left, right) if operator in ("==", "!=") or not (
            left.type.nullable or right.type.nullable
        ):
            return Comparison(OPPOSITE[operator], left, right)  # type: ignore[arg-type]
        case _:
            return Negation(value)
