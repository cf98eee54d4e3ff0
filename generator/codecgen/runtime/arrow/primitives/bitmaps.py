"""Bitmaps of Arrow."""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import inlined, inner
from codecgen.runtime.arrow.primitives.memory import load_u8, store_8


@inner
def clear_bit(bitmap: int, i: int) -> None:
    """Clear a bit of an Arrow bitmap."""
    address = bitmap + (i >> 3)
    store_8(address, load_u8(address) & ~(1 << (i & 7)))


@inner
def fill_false(to: int, first: int, count: int) -> None:
    """Clear bits one after the other."""
    for i in range(first, first + count):
        clear_bit(to, i)


@inlined
def load_bit(bitmap: int, i: int) -> int:
    """A bit of an Arrow bitmap."""
    return int(load_u8(bitmap + (i >> 3)) >> (i & 7) & 1)


@inlined
def is_null(validity: int, i: int) -> bool:
    """Whether a value of an Arrow array is null; without a bitmap none is."""
    return validity != 0 and load_bit(validity, i) == 0
