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
    """Return the size in bytes of a number of the type ``name`` as a fixed part and a list of
    expressions to add: ``(width, [])`` for integers and bools, ``(0, [call])`` for varints and
    compact numbers.
    """
    if name == "bool":
        return 1, []
    if is_integer(name):
        return SCALARS[name].width, []
    if name == "compact":
        return 0, [call("size_uvarint", value + 1)]
    return 0, [call(f"size_{name}", value)]


def size_of_bytes(type_: BytesType, n: Expr) -> tuple[int, list[Expr]]:
    """Return the size of a bytes field, with its length prefix if it has one, as a fixed number of
    bytes and a list of expressions to add. ``n`` is the number of content bytes, -1 for null.
    """
    content = n if type_.null is None else call("max", n, 0)
    if isinstance(type_.length, int) or type_.length == "rest":
        return 0, [content]
    null = null_of(type_)
    length = n if type_.null is None or null == -1 else Pick(n < 0, Num(null), n)
    fixed, others = size_of_number(type_.length, length)
    return fixed, [others[0] + content] if others else [content]


def size_of_null(type_: BytesType) -> tuple[int, list[Expr]]:
    """Return the fixed and the varying size of a bytes field that is null."""
    return size_of_number(str(type_.length), Num(null_of(type_)))


def null_of(type_: BytesType) -> int:
    """Return the length that means null; for a compact length one less than the encoded number."""
    return null_as_read(type_) or 0


def largest(name: str) -> int:
    """Return the maximum of a type for lengths and counts."""
    if is_integer(name):
        return (integer_range(name) or (0, 0))[1]
    return MAX_BYTES


def sizes_of(op: WriteOp, variables: Variables) -> tuple[int, list[Expr]]:
    """Return the size of what a write operation of a row writes, as a fixed number of bytes and a
    list of expressions to add. Absent fields and the rows themselves take ``(0, [])``; bits,
    lengths and checksums take the fixed size of their field, 0 if it varies; a list takes its count
    and elements.
    """
    match op:
        case Constant(type=name, value=value):
            return size_of_number(name, Num(value))
        case Number(type=name):
            return size_of_number(name, variables.get("item", op.field.name))
        case Count(type=name):
            return size_of_number(name, count_of(op, variables))
        case Bytes(type=type_, column=leaf):
            if leaf is None:
                return size_of_null(type_)
            return size_of_bytes(type_, variables.value(leaf))
        case Elements(type=type_, column=leaf):
            many: Expr = Num(0) if leaf is None else variables.value(leaf)
            fixed, others = (0, []) if type_.count is None else size_of_number(type_.count, many)
            return fixed, others if leaf is None else [
                *others,
                variables.leaf_variable(leaf, "size"),
            ]
        case Absent() | Rows():
            return 0, []
    return op.field.size or 0, []


def count_of(op: Count, variables: Variables) -> Expr:
    """Return the number of elements that a count field of a row states."""
    return Num(0) if op.column is None else variables.value(op.column)


# ---------------------------------------------------------------- whole entries


def fixed_size_of(op: WriteOp) -> int:
    """Return the number of bytes that a write operation around the rows takes if it never varies,
    otherwise 0. Absent fields and the rows themselves count 0; of bytes and arrays only the length
    or count is counted.
    """
    match op:
        case Absent() | Rows():
            return 0
        case Bytes(type=type_):
            return fixed_size(type_.length) or 0
        case Elements(type=type_):
            return fixed_size(type_.count) or 0
    return op.field.size or 0


def size_around(program: WriteProgram) -> int:
    """Return an upper limit for the size in bytes of an entry without its rows. Fields of varying
    size, and the array of rows with its count and length, count 20 bytes each, two varints.
    """
    total = 0
    for op in program.around:
        fixed = fixed_size_of(op)
        total += fixed
        if not isinstance(op, Absent) and not fixed:
            total += 2 * LONGEST_VARINT
    return total


def room_for_rows(program: WriteProgram) -> int:
    """Return the maximum size in bytes of the rows of one entry before compression: the smallest
    maximum of its length fields, at most 2**31 - 1, less the bytes around the rows. Rows that are
    entries themselves have 2**31 - 1.
    """
    if not program.around:
        return MAX_BYTES
    rooms = [largest(op.type) for op in program.around if isinstance(op, Length)]
    rooms += [largest(name) for name in _of_rows(program.around, "length")]
    return min([MAX_BYTES, *rooms]) - size_around(program)


def max_rows(program: WriteProgram) -> int:
    """Return the maximum number of rows of an entry: the smallest maximum that its counts of rows
    can state, at most 2**31 - 1; without a count, 2**31 - 1.
    """
    counts = [op for op in program.around if isinstance(op, Count) and op.rows]
    rooms = [(integer_range(op.type) or (0, MAX_BYTES))[1] for op in counts]
    rooms += [largest(name) for name in _of_rows(program.around, "count")]
    return min([MAX_BYTES, *rooms])


def _of_rows(ops: Iterable[WriteOp], what: str) -> list[str]:
    """Return the types of the length or the count (``what``) before the rows."""
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
