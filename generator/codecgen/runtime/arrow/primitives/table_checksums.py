"""The CRCs of :mod:`codecgen.runtime.checksums` that processors have no instructions for, with tables, eight bytes at a time.

A function is made when its name is first asked for: ``from ... import crc64_nvme``. It returns the checksum as a signed
number of 64 bits. No more is read than the bytes given.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from codecgen.runtime.arrow.primitives.compiling import JIT, inner
from codecgen.runtime.arrow.primitives.memory import load_i64, load_i64_le, load_u8, wrap_64
from codecgen.runtime.checksums import CHECKSUMS, Crc, checksum, first_table

_ALL = (1 << 64) - 1

Function = Callable[[int, int], int]


def __getattr__(name: str) -> Function:
    """Return the function that computes the CRC ``name`` of ``size`` bytes at ``start``. Raise
    AttributeError if there is no such CRC.
    """
    crc = CHECKSUMS.get(name)
    if not isinstance(crc, Crc):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return compile_crc(crc) if JIT else _make_plain_function(name)


@cache
def _make_plain_function(name: str) -> Function:
    """Return a function in plain Python that computes a CRC, for machines without numba."""
    compute = checksum(name)
    return lambda start, size: wrap_64(compute(ctypes.string_at(start, size)))


@cache
def make_tables(crc: Crc) -> Any:
    """Return the eight tables of a CRC as one int64 array: the number at ``256 * k + byte`` is the
    register, from 0, after ``byte`` and ``k`` zero bytes. The register is at the low end of 64 bits
    if bits are reflected, at the high end otherwise.
    """
    shift = 0 if crc.refin else 64 - crc.width
    first = [entry << shift for entry in first_table(crc)]
    tables = [first]
    for _ in range(7):
        if crc.refin:
            tables.append([first[entry & 0xFF] ^ entry >> 8 for entry in tables[-1]])
        else:
            tables.append([first[entry >> 56] ^ entry << 8 & _ALL for entry in tables[-1]])
    return np.array(tables, np.uint64).reshape(-1).view(np.int64)


@cache
def compile_crc(crc: Crc) -> Function:
    """Return a function ``compute(start, size)`` of the CRC of ``size`` bytes at address ``start``,
    as a signed 64-bit number; compiled if numba is there. It is made once for each CRC. Raise
    NotImplementedError if the CRC reflects its input or its output, but not both.
    """
    if crc.refin != crc.refout:
        raise NotImplementedError(
            f"{crc.title} reflects its input or its output, not both: kernels have no code for such a CRC"
        )
    table = make_tables(crc)
    shift = 64 - crc.width
    last, kept = _signed(crc.xorout), _signed((1 << crc.width) - 1)
    first = _signed(crc.init if crc.refin else crc.init << shift)
    if crc.refin:
        assert crc.init in (0, (1 << crc.width) - 1)  # the same with its bits reversed

        def compute(start: int, size: int) -> int:
            value = wrap_64(first)
            whole = start + (size & ~7)
            for i in range(start, whole, 8):
                x = value ^ load_i64_le(i)
                value = (
                    table[1792 + (x & 255)]
                    ^ table[1536 + (x >> 8 & 255)]
                    ^ table[1280 + (x >> 16 & 255)]
                    ^ table[1024 + (x >> 24 & 255)]
                    ^ table[768 + (x >> 32 & 255)]
                    ^ table[512 + (x >> 40 & 255)]
                    ^ table[256 + (x >> 48 & 255)]
                    ^ table[x >> 56 & 255]
                )
            for i in range(whole, start + size):
                value = table[(value ^ load_u8(i)) & 255] ^ value >> 8 & 0xFFFFFFFFFFFFFF
            return int(value ^ last)

    else:

        def compute(start: int, size: int) -> int:
            value = wrap_64(first)
            whole = start + (size & ~7)
            for i in range(start, whole, 8):
                x = value ^ load_i64(i)
                value = (
                    table[1792 + (x >> 56 & 255)]
                    ^ table[1536 + (x >> 48 & 255)]
                    ^ table[1280 + (x >> 40 & 255)]
                    ^ table[1024 + (x >> 32 & 255)]
                    ^ table[768 + (x >> 24 & 255)]
                    ^ table[512 + (x >> 16 & 255)]
                    ^ table[256 + (x >> 8 & 255)]
                    ^ table[x & 255]
                )
            for i in range(whole, start + size):
                value = table[(value >> 56 ^ load_u8(i)) & 255] ^ value << 8
            return int(value >> shift & kept ^ last)

    # numba names machine code by the function and a number, which a cached kernel brings from another process. Without names of
    # their own, one CRC would be taken for another there.
    compute.__qualname__ = f"{compute.__qualname__} of {crc.title}"
    return inner(compute)


def _signed(value: int) -> int:
    """Return a number of 64 bits with the highest one as its sign."""
    return value - (1 << 64) if value >> 63 else value
