"""Operations of write programs: what kernels write for each field, and from which values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.plan import nodes
from codecgen.plan.columns import Leaf
from codecgen.plan.layouts import FieldPlan, LayoutPlan
from codecgen.plan.nodes import Value
from codecgen.plan.value_ranges import Range
from codecgen.schema.types import ArrayType, BitMember, BytesType, FieldRange


@dataclass(frozen=True, slots=True)
class Limits:
    """Checks on a number before it is written. None stands for a check that is not needed."""

    low: int | None = None
    high: int | None = None
    allowed: tuple[int, ...] | None = None

    def __bool__(self) -> bool:
        return (self.low, self.high, self.allowed) != (None, None, None)

    def allows(self, number: int) -> bool:
        """Return whether a number passes the checks."""
        inside = self.allowed is None or number in self.allowed
        low = self.low is None or number >= self.low
        return inside and low and (self.high is None or number <= self.high)


def needed_limits(found: Range, room: Range, allowed: tuple[int, ...] | None = None) -> Limits:
    """Return the checks that a number in the range ``found`` needs: against a lower or upper end of
    ``room`` only if it can pass that end. ``allowed``, not empty, replaces ``room``: check against
    these numbers, as a range if they have no gaps. Ends are included.
    """
    if allowed is not None:
        room = (min(allowed), max(allowed))
        if len(allowed) != room[1] - room[0] + 1:
            return Limits(allowed=tuple(sorted(allowed)))
    low = room[0] if found[0] < room[0] else None
    return Limits(low, room[1] if found[1] > room[1] else None)


@dataclass(frozen=True, slots=True)
class Constant:
    """Write a number that is always the same."""

    field: FieldPlan
    type: str
    value: int


@dataclass(frozen=True, slots=True)
class Number:
    """Write a number. ``running``: it changes with every row of the entry."""

    field: FieldPlan
    type: str
    value: Value
    limits: Limits
    running: bool


@dataclass(frozen=True, slots=True)
class Member:
    """Bits of a word, their value, and the checks on it."""

    bits: BitMember
    value: Value
    limits: Limits


@dataclass(frozen=True, slots=True)
class Bits:
    """Write a word of bits; those of no member are 0."""

    field: FieldPlan
    type: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Bytes:
    """Write the bytes of a column (None: null)."""

    field: FieldPlan
    type: BytesType
    column: Leaf | None


@dataclass(frozen=True, slots=True)
class Elements:
    """Write the elements of a column of lists (None: there are none), each by ``each``."""

    field: FieldPlan
    type: ArrayType
    column: Leaf | None
    layout: LayoutPlan | None
    each: tuple[Constant | Bytes, ...]


@dataclass(frozen=True, slots=True)
class Length:
    """Write the length of the fields of ``field_range``: before them (``ahead``), or later into the place that is kept."""

    field: FieldPlan
    type: str
    field_range: FieldRange
    ahead: bool


@dataclass(frozen=True, slots=True)
class Count:
    """Write how many elements there are: of the rows, of a column of lists (``column``), or none."""

    field: FieldPlan
    type: str
    rows: bool
    column: Leaf | None


@dataclass(frozen=True, slots=True)
class Checksum:
    """Write the checksum of the fields of ``field_range`` into the place that is kept."""

    field: FieldPlan
    field_range: FieldRange


@dataclass(frozen=True, slots=True)
class Rows:
    """Write the rows of the entry, compressed as ``codec`` says."""

    field: FieldPlan
    type: ArrayType
    codec: Value | None


@dataclass(frozen=True, slots=True)
class Absent:
    """A field that is not there in these rows."""

    field: FieldPlan


WriteOp = Constant | Number | Bits | Bytes | Elements | Length | Count | Checksum | Rows | Absent


def values_of(op: WriteOp) -> Iterator[Value]:
    """Yield the values that an operation computes: of a ``Number``, or of each member of ``Bits``.
    Yield nothing for other operations.
    """
    match op:
        case Number(value=value):
            yield value
        case Bits(members=members):
            yield from (member.value for member in members)


def columns_of(op: WriteOp) -> Iterator[nodes.ColumnValue]:
    """Yield the columns whose numbers an operation computes with; nothing for operations that copy
    bytes or lists. Repeats are possible.
    """
    for value in values_of(op):
        yield from nodes.columns_read(value)


def leaf_of(op: WriteOp) -> Leaf | None:
    """Return the column of bytes or lists that an operation copies. Return None for other
    operations, and if it writes null or an empty array instead of a column.
    """
    return op.column if isinstance(op, Bytes | Elements) else None


__all__ = [
    "Absent",
    "Bits",
    "Bytes",
    "Checksum",
    "Constant",
    "Count",
    "Elements",
    "Length",
    "Limits",
    "Member",
    "Number",
    "Rows",
    "WriteOp",
    "columns_of",
    "leaf_of",
    "needed_limits",
    "values_of",
]
