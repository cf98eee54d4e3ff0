"""Heads of entries read from a file one by one, in one call.

In Python a read of some bytes takes twice as long as the operating system needs for it. The kernel calls the ``pread`` of
the C library itself, by its address. What it reads it puts into memory as far from each other as in the file.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

from codecgen.runtime.arrow.primitives.compiling import inner, jit
from codecgen.runtime.arrow.primitives.memory import load_i64, load_i64_le, wrap_64
from codecgen.runtime.arrow.primitives.native import address, call_4


@cache
def pread() -> int | None:
    """The address of ``pread``; None where there is none that takes and gives numbers of 64 bits."""
    if sys.maxsize < 1 << 32:
        return None
    try:
        return address(ctypes.CDLL(None).pread)
    except (AttributeError, OSError, TypeError):  # no such function; no such library; Windows
        return None


@inner
def number(p: int, width: int, signed: int, little: int) -> int:
    """A number of up to eight bytes."""
    others = 64 - 8 * width  # bits of what is read with it
    value: int = wrap_64(load_i64_le(p) << others) if little else load_i64(p)
    value >>= others
    return value if signed or width == 8 else value & (1 << 8 * width) - 1


@jit
def hop(
    function: int,
    fd: int,
    to: int,
    room: int,
    position: int,
    size: int,
    least: int,
    offset: int,
    width: int,
    signed: int,
    little: int,
    before: int,
    most: int,
    trial: int,
    far: int,
) -> tuple[int, int]:
    """Read heads to where they lie in the ``room`` bytes from ``to`` on, which stand for those of the file from
    ``position`` on. Nothing is written outside of these, and at most 7 bytes after them are read.

    ``size`` bytes are read of each entry, or what room there is. An entry has ``least`` bytes or more; among these, at
    ``offset``, is the number, of ``width`` bytes, of the bytes that follow its first ``before``.

    It stops at the first entry that does not end in the room or cannot be read, after ``most`` entries, and when ``trial`` or
    more have fewer than ``far`` bytes on average. How many bytes of the room the entries before that take, and how many these are.
    """
    at = count = 0
    while count < most and room - at >= least:
        wanted = min(size, room - at)
        got = call_4(function, fd, to + at, wanted, position + at)
        if got < least:
            break
        length = number(to + at + offset, width, signed, little)
        if length < least - before or length > room - at - before:
            break
        if length < 0 and not signed:
            break  # 2**63 or more
        length += before
        if got < min(wanted, length):
            break
        at += length
        count += 1
        if count >= trial and at < count * far:
            break
    return at, count
