"""Rows of Arrow columns as lines of text, written into memory by compiled code.

A program says what a line is made of: one entry for each column, :data:`FIELDS` numbers each. It is run row by row; a row begins
only where the most that it can take has room. :mod:`kafka_log.text.lines` makes programs, and has the same lines in plain Python.
"""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import JIT, inner, jit
from codecgen.runtime.arrow.primitives.memory import (
    load_i8,
    load_i16_le,
    load_i32_le,
    load_i64_le,
    load_u8,
    store_8,
    store_16,
    store_32,
    store_64,
)
from codecgen.runtime.arrow.primitives.text import (
    copy_bytes,
    is_text,
    put_base64,
    put_number,
    put_shown,
    put_string,
    put_time,
)

__all__ = ["FIELDS", "JIT", "format_rows"]

# An entry of a program: what it is, and the addresses and sizes of what it is made of
KIND, DATA, OFFSETS, VALIDITY, FIRST, WIDTH = 0, 8, 16, 24, 32, 40
PREFIX, PREFIX_SIZE, NULL, NULL_SIZE, PAD, MEMBERS, SUFFIX, END = 48, 56, 64, 72, 80, 88, 96, 104
FIELDS = 14
ENTRY = 8 * FIELDS

NUMBER, BOOL, TIME, BYTES, TEXT, RAW, TERM, LIST = 0, 1, 2, 3, 4, 5, 6, 7
"""Kinds. TERM is an index into texts that are written as they are, RAW such a text itself."""

# What the kernel says: rows and bytes that are done, and why it stopped
ROWS, SIZE, WANTED, TABLE = 0, 8, 16, 24


@inner
def is_there(entry: int, i: int) -> bool:
    bits = load_i64_le(entry + VALIDITY)
    return bits == 0 or load_u8(bits + (i >> 3)) >> (i & 7) & 1 == 1


@inner
def number_at(entry: int, i: int) -> int:
    data, width = load_i64_le(entry + DATA), load_i64_le(entry + WIDTH)
    if width == 8:
        return load_i64_le(data + 8 * i)
    if width == 4:
        return load_i32_le(data + 4 * i)
    return load_i16_le(data + 2 * i) if width == 2 else load_i8(data + i)


@inner
def size_at(entry: int, i: int) -> int:
    at = load_i64_le(entry + OFFSETS) + 4 * i
    return load_i32_le(at + 4) - load_i32_le(at)


@inner
def most_of(entry: int, i: int, most: int) -> int:
    """The most bytes that a value takes, with what stands around it."""
    kind = load_i64_le(entry + KIND)
    around = (
        load_i64_le(entry + PREFIX_SIZE)
        + load_i64_le(entry + NULL_SIZE)
        + load_i64_le(entry + PAD)
        + 32
    )
    if kind == TERM:
        return around + load_i64_le(entry + WIDTH)
    if kind in (BYTES, TEXT, RAW):
        size = size_at(entry, i)
        if kind == BYTES and most >= 0:
            size = min(size, most)
        return around + 40 + (size if kind == RAW else 6 * size)
    return around


@inner
def put_value(to: int, entry: int, i: int, most: int, table: int, alphabet: int) -> int:
    """A value that has no parts. 0 as in put_string."""
    if not is_there(entry, i):
        return copy_bytes(to, load_i64_le(entry + NULL), load_i64_le(entry + NULL_SIZE))
    kind = load_i64_le(entry + KIND)
    if kind == NUMBER:
        return put_number(to, number_at(entry, i), load_i64_le(entry + PAD))
    if kind in (BYTES, TEXT, RAW):
        start = load_i64_le(entry + DATA) + load_i32_le(load_i64_le(entry + OFFSETS) + 4 * i)
        size, end = size_at(entry, i), load_i64_le(entry + END)
        if kind == TEXT:
            return put_string(to, start, size, table)
        if kind == RAW:
            return copy_bytes(to, start, size)
        if most >= 0:
            return put_shown(to, start, size, end, most, table)
        if is_text(start, size, end):
            return put_string(to, start, size, table)
        return put_base64(to, start, size, alphabet)
    if kind == TERM:
        at = load_i64_le(entry + OFFSETS) + 8 * load_i32_le(load_i64_le(entry + DATA) + 4 * i)
        start = load_i64_le(at)
        return copy_bytes(to, load_i64_le(entry + SUFFIX) + start, load_i64_le(at + 8) - start)
    if kind == TIME:
        if most >= 0:
            return put_time(to, number_at(entry, i))
        store_8(to, 34)
        to = put_time(to + 1, number_at(entry, i))
        store_8(to, 34)
        return to + 1
    if load_u8(load_i64_le(entry + DATA) + (i >> 3)) >> (i & 7) & 1:
        store_32(to, 0x65757274)
        return to + 4
    store_32(to, 0x736C6166)
    store_8(to + 4, 101)
    return to + 5


@inner
def put_prefix(to: int, entry: int) -> int:
    return copy_bytes(to, load_i64_le(entry + PREFIX), load_i64_le(entry + PREFIX_SIZE))


@jit
def format_rows(
    program: int,
    columns: int,
    first: int,
    rows: int,
    out: int,
    capacity: int,
    most: int,
    alphabet: int,
    table: int,
    said: int,
) -> int:
    """Write lines for rows from ``first`` on. ``most`` is -1 for JSON, for people the bytes that are shown of a value.

    ``said`` gets the rows that are done and the bytes that they take; then what the next row takes where it has no room, or
    whether it needs the table of printable characters. Behind ``capacity`` are 64 bytes more. Returns the rows that are done.
    """
    to = out
    row = first
    wanted = needs_table = 0
    stop = program + columns * ENTRY
    while row < rows and needs_table == 0:
        # ---- the most that it takes
        bound = 8
        entry = program
        while entry < stop:
            i = row + load_i64_le(entry + FIRST)
            if load_i64_le(entry + KIND) != LIST:
                bound += most_of(entry, i, most)
                entry += ENTRY
                continue
            members = load_i64_le(entry + MEMBERS)
            bound += load_i64_le(entry + PREFIX_SIZE) + load_i64_le(entry + NULL_SIZE) + 40
            at = load_i64_le(entry + OFFSETS) + 4 * i
            for k in range(load_i32_le(at), load_i32_le(at + 4)):
                for m in range(members):
                    member = entry + (m + 1) * ENTRY
                    bound += most_of(member, k + load_i64_le(member + FIRST), most) + 4
            entry += (members + 1) * ENTRY
        if bound > capacity - (to - out):
            wanted = bound
            break
        # ---- the line
        begun = to
        entry = program
        while entry < stop:
            i = row + load_i64_le(entry + FIRST)
            if load_i64_le(entry + KIND) != LIST:
                to = put_prefix(to, entry)
                value = to
                to = put_value(to, entry, i, most, table, alphabet)
                if to == 0:
                    break
                while to - value < load_i64_le(entry + PAD):
                    store_8(to, 32)
                    to += 1
                entry += ENTRY
                continue
            members = load_i64_le(entry + MEMBERS)
            after = entry + (members + 1) * ENTRY
            at = load_i64_le(entry + OFFSETS) + 4 * i
            child, children = load_i32_le(at), load_i32_le(at + 4)
            is_null = not is_there(entry, i)
            if most >= 0 and (is_null or child == children):
                entry = after
                continue
            to = put_prefix(to, entry)
            if is_null:
                to = copy_bytes(to, load_i64_le(entry + NULL), load_i64_le(entry + NULL_SIZE))
                entry = after
                continue
            store_8(to, 91)
            to += 1
            for k in range(child, children):
                if k > child:
                    store_16(to, 0x202C)
                    to += 2
                for m in range(members):
                    member = entry + (m + 1) * ENTRY
                    to = put_prefix(to, member)
                    to = put_value(
                        to, member, k + load_i64_le(member + FIRST), most, table, alphabet
                    )
                    if to == 0:
                        break
                if to == 0:
                    break
                if load_i64_le(entry + SUFFIX):
                    store_8(to, 125)
                    to += 1
            if to == 0:
                break
            store_8(to, 93)
            to += 1
            entry = after
        if to == 0:
            to = begun
            needs_table = 1
            break
        if most < 0:
            store_8(to, 125)
            to += 1
        store_8(to, 10)
        to += 1
        row += 1
    store_64(said + ROWS, row)
    store_64(said + SIZE, to - out)
    store_64(said + WANTED, wanted)
    store_64(said + TABLE, needs_table)
    return row - first
