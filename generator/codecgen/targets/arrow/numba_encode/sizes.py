"""How many bytes operations write, and how many there is room for."""

from __future__ import annotations

from collections.abc import Iterable

from codecgen.plan.write_ops import (
    Absent,
    Bytes,
    Constant,
    Count,
    Elements,
    Length,
    Number,
    Rows,
    WriteOp,
)
from codecgen.plan.write_program import WriteProgram
from codecgen.schema.lookup import integer_range, null_as_read
from codecgen.schema.scalars import SCALARS, fixed_size, is_integer
from codecgen.schema.types import BytesType
from codecgen.targets.arrow.code_tree import Expr, Num, Pick, call
from codecgen.targets.arrow.numba_encode.columns import Variables

LONGEST_VARINT = 10
MAX_BYTES = (1 << 31) - 1


def size_of_number(name: str, value: Expr) -> tuple[int, list[Expr]]:
    """The bytes of a number of a type: those that are always there, and the others."""
    if name == "bool":
        return 1, []
    if is_integer(name):
        return SCALARS[name].width, []
    if name == "compact":
        return 0, [call("size_uvarint", value + 1)]
    return 0, [call(f"size_{name}", value)]


def size_of_bytes(type_: BytesType, n: Expr) -> tuple[int, list[Expr]]:
    """The bytes of a field of bytes, likewise. ``n``: how many it holds, -1 for null."""
    content = n if type_.null is None else call("max", n, 0)
    if isinstance(type_.length, int) or type_.length == "rest":
        return 0, [content]
    null = null_of(type_)
    length = n if type_.null is None or null == -1 else Pick(n < 0, Num(null), n)
    fixed, others = size_of_number(type_.length, length)
    return fixed, [others[0] + content] if others else [content]


def size_of_null(type_: BytesType) -> tuple[int, list[Expr]]:
    """The bytes of a field of bytes that is null."""
    return size_of_number(str(type_.length), Num(null_of(type_)))


def null_of(type_: BytesType) -> int:
    """The length that means null, as it is put: one less than what is written for a compact one."""
    return null_as_read(type_) or 0


def largest(name: str) -> int:
    """The largest number of a type that lengths and counts have."""
    if is_integer(name):
        return (integer_range(name) or (0, 0))[1]
    return MAX_BYTES


def sizes_of(op: WriteOp, variables: Variables) -> tuple[int, list[Expr]]:
    """The bytes of an operation on a row: those that are always there, and the others. Not of lengths in front."""
    match op:
        case Constant(type=name, value=value):
            return size_of_number(name, Num(value))
        case Number(type=name):
            return size_of_number(name, variables.of("item", op.field.name))
        case Count(type=name):
            return size_of_number(name, count_of(op, variables))
        case Bytes(type=type_, column=leaf):
            if leaf is None:
                return size_of_null(type_)
            return size_of_bytes(type_, variables.value(leaf))
        case Elements(type=type_, column=leaf):
            many: Expr = Num(0) if leaf is None else variables.value(leaf)
            fixed, others = (0, []) if type_.count is None else size_of_number(type_.count, many)
            return fixed, others if leaf is None else [*others, variables.part(leaf, "size")]
        case Absent() | Rows():
            return 0, []
    return op.field.size or 0, []


def count_of(op: Count, variables: Variables) -> Expr:
    """The number of elements that a field of a row counts."""
    return Num(0) if op.column is None else variables.value(op.column)


# ---------------------------------------------------------------- whole entries


def fixed_size_of(op: WriteOp) -> int:
    """Return the bytes that an operation takes around rows if they never vary, else 0."""
    match op:
        case Absent() | Rows():
            return 0
        case Bytes(type=type_):
            return fixed_size(type_.length) or 0
        case Elements(type=type_):
            return fixed_size(type_.count) or 0
    return op.field.size or 0


def size_around(program: WriteProgram) -> int:
    """The most bytes of an entry beside its rows."""
    total = 0
    for op in program.around:
        fixed = fixed_size_of(op)
        total += fixed
        if not isinstance(op, Absent) and not fixed:
            total += 2 * LONGEST_VARINT
    return total


def room_for_rows(program: WriteProgram) -> int:
    """The most bytes that the rows of one entry can have, before they are compressed."""
    if not program.around:
        return MAX_BYTES
    rooms = [largest(op.type) for op in program.around if isinstance(op, Length)]
    rooms += [largest(name) for name in _of_rows(program.around, "length")]
    return min([MAX_BYTES, *rooms]) - size_around(program)


def max_rows(program: WriteProgram) -> int:
    """How many rows an entry can count."""
    counts = [op for op in program.around if isinstance(op, Count) and op.rows]
    rooms = [(integer_range(op.type) or (0, MAX_BYTES))[1] for op in counts]
    rooms += [largest(name) for name in _of_rows(program.around, "count")]
    return min([MAX_BYTES, *rooms])


def _of_rows(ops: Iterable[WriteOp], what: str) -> list[str]:
    """The types of what stands before the rows."""
    found = (getattr(op.type, what) for op in ops if isinstance(op, Rows))
    return [name for name in found if name is not None]


__all__ = [
    "LONGEST_VARINT",
    "MAX_BYTES",
    "count_of",
    "largest",
    "max_rows",
    "null_of",
    "room_for_rows",
    "size_around",
    "size_of_bytes",
    "size_of_null",
    "size_of_number",
    "sizes_of",
]
