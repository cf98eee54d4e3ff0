"""Snappy as raw blocks, and in the framing of the xerial library, for a whole chunk in one call.

As for :mod:`codecgen.runtime.arrow.lz4`: sections that have anything odd about them are left to
:mod:`codecgen.runtime.compression.snappy`.
"""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import inner, jit
from codecgen.runtime.arrow.primitives.compressed_sections import (
    limit_of,
    place_of,
    put_section,
    repeat,
    section_of,
)
from codecgen.runtime.arrow.primitives.memory import (
    copy,
    load_i32,
    load_i64_le,
    load_u8,
    load_u16_le,
    load_u32_le,
)
from codecgen.runtime.arrow.primitives.varints import uvarint

_FIRST_EIGHT = int.from_bytes(b"\x82SNAPPY\x00", "little", signed=True)
_LARGEST_CHUNK = 512 << 20

RAW = 1
"""The kind of a section that is one block."""

FRAMED = 2
"""The kind of a section in the framing of the xerial library. Any other kind of section may be either."""


@inner
def block(p: int, end: int, to: int, to_end: int) -> int:
    """Decompress a raw snappy block from ``p`` to ``end`` to the address ``to``. Return the address
    after the written bytes; 0 if the block is damaged, does not hold exactly its declared size, or
    would write beyond ``to_end``.
    """
    declared, p, shortest = uvarint(p)
    if not shortest or p > end or declared > to_end - to:
        return 0
    start = to
    to_end = to + declared
    while p < end:
        tag = load_u8(p)
        p += 1
        if tag & 3 == 0:
            size = (tag >> 2) + 1
            if size > 60:
                more = size - 60
                size = (load_u32_le(p) & (1 << 8 * more) - 1) + 1
                p += more
            if size > end - p or size > to_end - to:
                return 0
            copy(to, p, size)
            p += size
            to += size
            continue
        if tag & 3 == 1:
            size = (tag >> 2 & 7) + 4
            offset = (tag >> 5) << 8 | load_u8(p)
            p += 1
        elif tag & 3 == 2:
            size = (tag >> 2) + 1
            offset = load_u16_le(p)
            p += 2
        else:
            size = (tag >> 2) + 1
            offset = load_u32_le(p)
            p += 4
        if p > end or offset == 0 or offset > to - start or size > to_end - to:
            return 0
        repeat(to, offset, size)
        to += size
    return to if to == to_end and p == end else 0


@inner
def stream(p: int, end: int, to: int, to_end: int, kind: int) -> int:
    """Decompress a section to the address ``to``: chunks behind a xerial header, unless ``kind`` is
    RAW (1), or one raw block, unless it is FRAMED (2). Return the address after the written bytes;
    0 if it is damaged, has an unusual header, or would write beyond ``to_end``.
    """
    if end - p < 1:
        return 0
    if kind == RAW or end - p < 16 or load_i64_le(p) != _FIRST_EIGHT:
        return 0 if kind == FRAMED else block(p, end, to, to_end)
    if load_i32(p + 8) != 1 or load_i32(p + 12) != 1:
        return 0
    p += 16
    while end - p >= 4:
        size = load_i32(p)
        p += 4
        if size <= 0 or size > _LARGEST_CHUNK or size > end - p:
            return 0
        to = block(p, p + size, to, to_end)
        if to == 0:
            return 0
        p += size
    return to if p == end else 0


@jit
def sections(
    table: int,
    row_size: int,
    first: int,
    last: int,
    kinds: int,
    limits: int,
    to: int,
    enough: int,
    to_end: int,
) -> tuple[int, int]:
    """Decompress the snappy sections of index rows ``first`` to ``last`` (excluded) one after the
    other to the address ``to``, and store their new addresses. Skip rejected and uncompressed rows.
    Return the first row that is not decompressed (another codec by ``kinds``, unusual, damaged,
    larger than ``limits`` or ``to_end`` allow, or it would begin at ``enough`` or later; ``last``
    if all are), and the address after the last byte.

    ``kinds`` and ``limits`` are those of the ``sections`` of LZ4.
    """
    for i in range(first, last):
        row = table + i * row_size
        place = place_of(row)
        if place < 0:
            continue
        kind = limit_of(kinds, place)
        if kind == 0 or to >= enough:
            return i, to
        start, end = section_of(row)
        after = stream(start, end, to, min(to_end, to + limit_of(limits, place)), kind)
        if after == 0:
            return i, to
        put_section(row, to, after)
        to = after
    return last, to
