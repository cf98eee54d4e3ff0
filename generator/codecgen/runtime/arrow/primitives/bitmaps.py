"""Bitmaps of Arrow."""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import inlined, inner
from codecgen.runtime.arrow.primitives.memory import load_u8, store_8


@inner
def clear_bit(bitmap: int, i: int) -> None:
    """Clear bit ``i`` of an Arrow bitmap."""
    address = bitmap + (i >> 3)
    store_8(address, load_u8(address) & ~(1 << (i & 7)))


@inner
def fill_false(to: int, first: int, count: int) -> None:
    """Clear ``count`` consecutive bits of an Arrow bitmap, from bit ``first`` on."""
    for i in range(first, first + count):
        clear_bit(to, i)


@inlined
def load_bit(bitmap: int, i: int) -> int:
    """Return bit ``i`` of an Arrow bitmap."""
    return int(load_u8(bitmap + (i >> 3)) >> (i & 7) & 1)


@inlined
def is_null(validity: int, i: int) -> bool:
    """Return True if value ``i`` of an Arrow array is null; a bitmap at address 0 has no nulls."""
    return validity != 0 and load_bit(validity, i) == 0
