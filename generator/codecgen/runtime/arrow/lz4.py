"""LZ4 frames of a whole chunk in one call.

Python's libraries take a call for each block, and for sections of some KiB the calls take longer than the blocks. These
kernels read frames that have nothing odd about them; about all others :mod:`codecgen.runtime.compression.lz4` has its say.
They refuse whatever liblz4 refuses: bytes and matches beyond their ends, and the ends of blocks that it does not take.
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
    load_i64_le,
    load_u8,
    load_u16_le,
    load_u32_le,
)

CHECKED, UNCHECKED = 1, 2
"""Kinds of sections: the checksum in the header of the frame must be right, or it has no say."""

_MAGIC = 0x184D2204
_STORED = 0x80000000
_MASK = 0xFFFFFFFF


@inner
def header_checksum(p: int, size: int) -> int:
    """Return the checksum byte of an LZ4 frame header: byte 1 (the second lowest) of XXH32 with
    seed 0 over the ``size`` bytes (fewer than 16) at address ``p``.
    """
    value = 0x165667B1 + size
    at = p
    while p + size - at >= 4:
        value = (value + load_u32_le(at) * 0xC2B2AE3D) & _MASK
        value = (value << 17 | value >> 15) & _MASK
        value = value * 0x27D4EB2F & _MASK
        at += 4
    while at < p + size:
        value = (value + load_u8(at) * 0x165667B1) & _MASK
        value = (value << 11 | value >> 21) & _MASK
        value = value * 0x9E3779B1 & _MASK
        at += 1
    value = (value ^ value >> 15) * 0x85EBCA77 & _MASK
    value = (value ^ value >> 13) * 0xC2B2AE3D & _MASK
    value ^= value >> 16
    return value >> 8 & 255


@inner
def more_length(p: int, end: int) -> tuple[int, int]:
    """Return the sum of the bytes at address ``p`` that extend a length of 15 (up to the first one
    below 255), and the address after them. Return (0, 0) if ``end`` comes first.
    """
    length = 0
    while p < end:
        byte = load_u8(p)
        p += 1
        length += byte
        if byte < 255:
            return length, p
    return 0, 0


@inner
def block(p: int, end: int, to: int, to_end: int) -> int:
    """Decompress an LZ4 block from ``p`` to ``end`` to the address ``to``. Return the address after
    the written bytes; 0 if the block has no bytes, is damaged or would write beyond ``to_end``.
    """
    start = to
    while p < end:
        token = load_u8(p)
        p += 1
        size = token >> 4
        if size == 15:
            more, p = more_length(p, end)
            if p == 0:
                return 0
            size += int(more)
        if size > end - 8 - p or size > to_end - 12 - to:
            # Only the last bytes of a block come that close to an end.
            if size != end - p or size > to_end - to:
                return 0
            copy(to, p, size)
            return int(to + size)
        copy(to, p, size)
        p += size
        to += size
        offset = load_u16_le(p)
        p += 2
        if offset == 0 or offset > to - start:
            return 0
        size = token & 15
        if size == 15:
            more, p = more_length(p, end - 5)
            if p == 0:
                return 0
            size += more
        size += 4
        if size > to_end - 5 - to:
            return 0
        repeat(to, offset, size)
        to += size
    return 0


@inner
def frame(p: int, end: int, to: int, to_end: int, kind: int) -> int:
    """Decompress a section that is exactly one LZ4 frame to the address ``to``. Return the address
    after the written bytes; 0 if it is damaged, would write beyond ``to_end``, or has linked
    blocks, block checksums or empty blocks. A content checksum is not verified. With ``kind`` 2 the
    header checksum may be the one of old Kafka clients.
    """
    if end - p < 11 or load_u32_le(p) != _MAGIC:
        return 0
    flags, sizes = load_u8(p + 4), load_u8(p + 5)
    if flags & 0xF3 != 0x60 or sizes & 0x8F or sizes >> 4 < 4:
        return 0
    max_block = 1 << 8 + 2 * (sizes >> 4)
    header = p + 4
    p += 6
    declared = -1
    if flags & 8:
        if end - p < 13:
            return 0
        declared = load_i64_le(p)
        p += 8
    right = load_u8(p) == header_checksum(header, p - header)
    if not right and kind == UNCHECKED:  # old writers have the magic number in the checksum
        right = load_u8(p) == header_checksum(header - 4, p - header + 4)
    if not right:
        return 0
    p += 1
    start = to
    while end - p >= 4:
        word = load_u32_le(p)
        p += 4
        if word == 0:
            if flags & 4:
                p += 4
            if p != end or (flags & 8 and declared != to - start):
                return 0
            return to
        size = word & ~_STORED
        if size == 0 or size > max_block or size > end - p:
            return 0
        if word & _STORED:
            if size > to_end - to:
                return 0
            copy(to, p, size)
            to += size
        else:
            before = to
            to = block(p, p + size, to, min(to_end, to + min(max_block, 255 * size)))
            if to == 0 or to == before:
                return 0
        p += size
    return 0


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
    """Decompress the LZ4 sections of index rows ``first`` to ``last`` (excluded) one after the
    other to the address ``to``, and store their new addresses. Skip rejected and uncompressed rows.
    Return the first row that is not decompressed (another codec by ``kinds``, unusual, damaged,
    larger than ``limits`` or ``to_end`` allow, or it would begin at ``enough`` or later; ``last``
    if all are), and the address after the last byte.

    ``kinds`` and ``limits`` are the tables with the kind of a section (0 for other codecs) and its max bytes, for each case and
    number of a codec.
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
        after = frame(start, end, to, min(to_end, to + limit_of(limits, place)), kind)
        if after == 0:
            return i, to
        put_section(row, to, after)
        to = after
    return last, to
