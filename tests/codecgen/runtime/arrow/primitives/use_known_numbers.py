"""Kernels whose callers know a number that an address is a sum of: prints what each computes or writes, or crashes.

A checksum of 4 bytes begins its last loop ``4 & ~7`` bytes after the first: the compiler finds out that this is 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from codecgen.runtime.arrow.primitives import memory, writing
from codecgen.runtime.arrow.primitives.compiling import inner, numba
from codecgen.targets.arrow.primitive_imports import NAMES
from tests.support.checksum_kernels import CHECKSUM_KERNELS

SIZES = (0, 4, 7, 8, 12)
DATA = bytes(range(1, 100))
STORED = 0x0102030405060708
STORES: dict[str, tuple[Any, ...]] = {
    **{name: (STORED,) for name in NAMES if name.startswith("store_")},
    **{f"fill_{bits}": (0, 2, STORED) for bits in (8, 16, 32, 64)},
    "fail": (STORED, STORED),
}
"""Functions that write, and what they are given after the address."""


def checksum_of(compute: Callable[[int, int], int], size: int) -> Callable[[int], int]:
    """The checksum of a size that the compiler finds out."""

    @numba.njit  # type: ignore[untyped-decorator]
    def known(p: int) -> int:
        end = p + size
        return compute(p, end - p)

    return known


def store_at(name: str) -> Callable[[int, int], int]:
    """A function that writes at ``p`` if ``where`` has bit 0, and 32 bytes further if it has bit 1."""
    function: Any = getattr(memory, name, None) or getattr(writing, name)
    given = STORES[name]

    @inner
    def write(start: int, step: int, where: int) -> int:
        at = start + step
        if where & 1:
            function(at, *given)
        if where & 2:
            function(at + 32, *given)
        return start * 3 + step * 5

    @numba.njit  # type: ignore[untyped-decorator]
    def known(p: int, where: int) -> int:
        end = p + 4
        return write(p, (end - p) & ~7, where)

    return known


def computed(name: str) -> list[int]:
    """The checksum of the first bytes of DATA, for each of SIZES."""
    array = np.frombuffer(DATA + bytes(64), np.uint8)
    return [checksum_of(CHECKSUM_KERNELS[name], size)(array.ctypes.data) for size in SIZES]


def written(name: str) -> list[str]:
    """The 32 bytes at the first and at the second place that a function writes to, as hexadecimal digits."""
    array = np.zeros(128, np.uint8)
    store_at(name)(array.ctypes.data, 3)
    return [array[at : at + 32].tobytes().hex() for at in (0, 32)]


if __name__ == "__main__":
    for name in CHECKSUM_KERNELS:
        print(json.dumps([name, computed(name)]), flush=True)
    for name in STORES:
        print(json.dumps([name, written(name)]), flush=True)
