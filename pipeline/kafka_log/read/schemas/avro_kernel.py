"""Kernel that reads Avro values by a program, and writes Arrow columns.

A program is a table of instructions, compiled from a schema by :mod:`kafka_log.read.schemas.avro_programs`. One kernel runs all programs, so a
new schema compiles nothing. The kernel takes only what fastavro would write: shortest numbers, one block for each array and map, keys
that occur once. It rejects other values, and those that end too early or too late. Their reason is for the caller to find.

An instruction has :data:`FIELDS` numbers of 64 bits. Field 0 is its code. Field 1 is the address of a counter: the index of the current element in
the arrays of its level (rows, or the elements of one list). Field 2 is the address of what it writes: 0 to check the value only. Values that are
not written stay as they are, so the caller fills the memory with zeros. The other fields depend on the code.

No bytes are read beyond ``SLACK`` after the values, and none are written beyond ``SLACK`` after a column.
"""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import JIT, inner, jit
from codecgen.runtime.arrow.primitives.memory import (
    copy,
    load_i32_le,
    load_i64_le,
    load_u8,
    load_u32_le,
    store_8,
    store_32,
    store_64,
    wrap_64,
)
from codecgen.runtime.arrow.primitives.utf8 import is_utf8
from codecgen.runtime.arrow.primitives.varints import varlong

__all__ = ["JIT", "read_values"]

FIELDS = 8
"""Numbers of an instruction."""

SIZE = 8 * FIELDS
"""Bytes of an instruction."""

(
    END,
    INTEGER,  # 3, 4: minimum and maximum; 5: bytes of a value in the column, 4 or 8
    BOOLEAN,  # a byte, 0 or 1
    FLOAT,
    DOUBLE,
    BYTES,  # 3: address of the number of bytes in all values; 4: address of these bytes
    TEXT,  # as BYTES
    FIXED,  # as BYTES, 5: number of bytes
    DECIMAL,  # 3: address of the limits, 10**precision and its negative, each low and high word; 5: number of bytes, -1: the value has it
    NULLABLE,  # 5: the branch of null, 0 or 1; 6: the instruction after the value. Writes a byte 1 if the value is not null
    BRANCH,  # the only branch of a union
    LIST,  # 3: unused; 6: the instruction after the elements. Writes the number of elements
    KEY,  # as BYTES: a key of a map
    NEXT,  # end of an element; the counter is that of the elements
) = range(14)

MAX_KEYS = 64
"""Maximum number of keys of a map: each is compared with all others."""

MAX_LISTS = 64
"""Maximum number of lists within each other."""

FRAME = 32
"""Bytes for each list that is open: its first instruction, elements left, number of keys."""

KEYS = 16 * MAX_KEYS
"""Bytes for the keys of each list that is open: address and size of each."""

_LOWEST = -(1 << 63)


@inner
def _is_below(a: int, b: int) -> bool:
    """Return whether ``a`` is below ``b``, both taken as unsigned numbers."""
    return (a ^ _LOWEST) < (b ^ _LOWEST)


@inner
def _read_decimal(start: int, size: int, limits: int, to: int) -> bool:
    """Read the big-endian number of ``size`` bytes at address ``start``, and write it as 16
    little-endian bytes to ``to``, unless ``to`` is 0. Return False, and write nothing, if it is not
    between the two numbers at ``limits`` (both excluded).
    """
    sign = -(load_u8(start) >> 7) if size > 0 else 0
    high = low = sign
    for i in range(size):
        byte = load_u8(start + i)
        if size - i > 16:
            if byte != sign & 0xFF:
                return False
        else:
            high = wrap_64(wrap_64(high << 8) | low >> 56 & 0xFF)
            low = wrap_64(wrap_64(low << 8) | byte)
    if high >> 63 != sign:
        return False
    most_low, most_high = load_i64_le(limits), load_i64_le(limits + 8)
    least_low, least_high = load_i64_le(limits + 16), load_i64_le(limits + 24)
    if high > most_high or (high == most_high and not _is_below(low, most_low)):
        return False
    if high < least_high or (high == least_high and not _is_below(least_low, low)):
        return False
    if to != 0:
        store_64(to, low)
        store_64(to + 8, high)
    return True


@inner
def _is_new_key(keys: int, count: int, start: int, size: int) -> bool:
    """Return whether none of the ``count`` keys in the table at ``keys`` has the same bytes, and
    add the key (``size`` bytes at ``start``) if so. The table must have room.
    """
    for k in range(count):
        if load_i64_le(keys + 16 * k + 8) == size:
            other = load_i64_le(keys + 16 * k)
            i = 0
            while i < size and load_u8(other + i) == load_u8(start + i):
                i += 1
            if i == size:
                return False
    store_64(keys + 16 * count, start)
    store_64(keys + 16 * count + 8, size)
    return True


@inner
def _append(pc: int, at: int, start: int, size: int) -> None:
    """Append the ``size`` bytes at address ``start`` to the column of the instruction at ``pc``, as
    its value ``at``; count them only if the column has no memory yet; do nothing if the values are
    not kept.
    """
    counter = load_i64_le(pc + 24)
    if counter != 0:
        used = load_i64_le(counter)
        to = load_i64_le(pc + 16)
        if to != 0:
            copy(load_i64_le(pc + 32) + used, start, size)
            store_32(to + 4 * at, size)
        store_64(counter, used + size)


@inner
def _read_value(program: int, p: int, end: int, frames: int, keys: int) -> bool:
    """Read the Avro value from address ``p`` to ``end`` by the instructions at ``program`` into
    their columns, or only count it if these have no memory. ``frames`` and ``keys`` are scratch
    memory. Return False if the bytes are not those of one value, not as fastavro would write it, or
    a map has more than 64 keys; then what was written is without meaning.
    """
    pc = program
    depth = -1
    while True:
        code = load_i64_le(pc)
        if code == END:
            return p == end
        at = load_i64_le(load_i64_le(pc + 8))
        to = load_i64_le(pc + 16)
        if code == INTEGER:
            value, p, shortest = varlong(p)
            if not shortest or p > end:
                return False
            if value < load_i64_le(pc + 24) or value > load_i64_le(pc + 32):
                return False
            if to != 0:
                if load_i64_le(pc + 40) == 8:
                    store_64(to + 8 * at, value)
                else:
                    store_32(to + 4 * at, value)
        elif code in (TEXT, BYTES, KEY):
            size, p, shortest = varlong(p)
            if not shortest or size < 0 or size > end - p:
                return False
            if code != BYTES and not is_utf8(p, size):
                return False
            if code == KEY:
                frame = frames + FRAME * depth
                count = load_i64_le(frame + 16)
                if count == MAX_KEYS or not _is_new_key(keys + KEYS * depth, count, p, size):
                    return False
                store_64(frame + 16, count + 1)
            _append(pc, at, p, size)
            p += size
        elif code == NULLABLE:
            if p >= end:
                return False
            branch = load_u8(p)
            p += 1
            if branch != 0 and branch != 2:
                return False
            if branch >> 1 == load_i64_le(pc + 40):
                pc = program + SIZE * load_i64_le(pc + 48)
                continue
            if to != 0:
                store_8(to + at, 1)
        elif code == DOUBLE:
            if end - p < 8:
                return False
            if to != 0:
                store_64(to + 8 * at, load_i64_le(p))
            p += 8
        elif code == NEXT:
            store_64(load_i64_le(pc + 8), at + 1)
            frame = frames + FRAME * depth
            left = load_i64_le(frame + 8) - 1
            if left > 0:
                store_64(frame + 8, left)
                pc = load_i64_le(frame)
                continue
            if p >= end or load_u8(p) != 0:
                return False  # another block follows
            p += 1
            depth -= 1
        elif code == LIST:
            count, p, shortest = varlong(p)
            if not shortest or count < 0 or count > end - p:
                return False
            if to != 0:
                store_32(to + 4 * at, count)
            if count == 0:
                pc = program + SIZE * load_i64_le(pc + 48)
                continue
            depth += 1
            frame = frames + FRAME * depth
            store_64(frame, pc + SIZE)
            store_64(frame + 8, count)
            store_64(frame + 16, 0)
        elif code == BOOLEAN:
            if p >= end:
                return False
            byte = load_u8(p)
            if byte > 1:
                return False
            if to != 0:
                store_8(to + at, byte)
            p += 1
        elif code == FLOAT:
            if end - p < 4:
                return False
            bits = load_u32_le(p)
            if bits & 0x7FC00000 == 0x7F800000 and bits & 0x3FFFFF != 0:
                return False  # a signaling NaN, which Python changes
            if to != 0:
                store_32(to + 4 * at, bits)
            p += 4
        elif code == FIXED:
            size = load_i64_le(pc + 40)
            if size > end - p:
                return False
            _append(pc, at, p, size)
            p += size
        elif code == DECIMAL:
            size = load_i64_le(pc + 40)
            if size < 0:
                size, p, shortest = varlong(p)
                if not shortest or size < 0:
                    return False
            if size > end - p:
                return False
            if not _read_decimal(p, size, load_i64_le(pc + 24), 0 if to == 0 else to + 16 * at):
                return False
            p += size
        else:  # BRANCH
            if p >= end or load_u8(p) != 0:
                return False
            p += 1
        pc += SIZE


@jit
def read_values(
    program: int,
    data: int,
    offsets: int,
    rows: int,
    row_counter: int,
    rejected: int,
    frames: int,
    keys: int,
) -> int:
    """Read the Avro values of ``rows`` rows, except those marked before in the bytes at
    ``rejected``, mark each invalid one there, and return the number of all marked ones. All
    arguments except ``rows`` are addresses. Values are written to the columns, or only counted if
    these have no memory yet.

    Args:
        program: Address of the instructions.
        data: Address of the bytes.
        offsets: Address of the 32-bit offsets of the values in ``data``, one more than rows.
        rows: Number of rows.
        row_counter: Address of the counter of the level of rows.
        rejected: Address of a byte for each row, 1 for those that are rejected. They are not read if it is 1 before.
        frames: Address of ``MAX_LISTS`` times ``FRAME`` bytes for the kernel.
        keys: Address of ``MAX_LISTS`` times ``KEYS`` bytes for the kernel.
    """
    count = 0
    for row in range(rows):
        if load_u8(rejected + row) == 0:
            store_64(row_counter, row)
            start = data + load_i32_le(offsets + 4 * row)
            end = data + load_i32_le(offsets + 4 * row + 4)
            if not _read_value(program, start, end, frames, keys):
                store_8(rejected + row, 1)
        count += load_u8(rejected + row)
    return count
