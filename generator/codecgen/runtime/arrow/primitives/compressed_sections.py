"""What kernels that decompress share: the sections that the index names, and copies within what was written."""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import inner
from codecgen.runtime.arrow.primitives.memory import copy, load_i64_le, load_u8, store_8, store_64

NUMBERS = 16
"""How many numbers of codecs each case has in the tables of kinds and limits."""

_STATUS, _CASE, _CODEC, _SECTION, _SECTION_END = 0, 16, 40, 48, 56


@inner
def place_of(row: int) -> int:
    """Return the offset in bytes of an index row's case and codec in the tables of kinds and
    limits. Return -1 if its entry is rejected or uncompressed, and 0, where the tables hold 0, for
    a codec number that is negative or above 15.
    """
    codec = load_i64_le(row + _CODEC)
    if load_i64_le(row + _STATUS) != 0 or codec == 0:
        return -1
    if codec < 0 or codec >= NUMBERS:
        return 0  # number 0 is no compression, for which the tables have nothing
    return int(8 * (NUMBERS * load_i64_le(row + _CASE) + codec))


@inner
def limit_of(table: int, place: int) -> int:
    """Return the limit at offset ``place`` of a table."""
    return int(load_i64_le(table + place))


@inner
def section_of(row: int) -> tuple[int, int]:
    """Return the addresses of the start and the end of a row's section."""
    return load_i64_le(row + _SECTION), load_i64_le(row + _SECTION_END)


@inner
def put_section(row: int, start: int, end: int) -> None:
    """Store in an index row (at address ``row``) that its section lies decompressed from address
    ``start`` to ``end``, and set its codec to 0.
    """
    store_64(row + _CODEC, 0)
    store_64(row + _SECTION, start)
    store_64(row + _SECTION_END, end)


@inner
def repeat(to: int, offset: int, size: int) -> None:
    """Copy ``size`` bytes from ``offset`` bytes before ``to`` to the address ``to``. Both may
    overlap: then the bytes between repeat. Nothing is checked. The copy is exact if ``offset`` is
    below 8; it is rounded up to blocks of 8 bytes if it is below 32, otherwise to blocks of 32, at
    least one, so that up to 32 bytes after the copy are overwritten.
    """
    if offset >= 32:
        copy(to, to - offset, size)
        return
    if offset >= 8:
        for i in range(0, size, 8):
            store_64(to + i, load_i64_le(to - offset + i))
        return
    for i in range(size):
        store_8(to + i, load_u8(to - offset + i))
