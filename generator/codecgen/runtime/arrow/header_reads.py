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
    """Return the address of the C function ``pread``. Return None on 32-bit systems, on Windows,
    and if the C library does not have it.
    """
    if sys.maxsize < 1 << 32:
        return None
    try:
        return address(ctypes.CDLL(None).pread)
    except (AttributeError, OSError, TypeError):  # no such function; no such library; Windows
        return None


@inner
def number(p: int, width: int, signed: int, little: int) -> int:
    """Return the integer of ``width`` bytes (1 to 8) at address ``p``, little-endian if ``little``
    is set, unsigned if ``signed`` is 0. Eight bytes are read; of unsigned 64-bit numbers the result
    is their signed form.
    """
    others = 64 - 8 * width  # bits of what is read with it
    value: int = wrap_64(load_i64_le(p) << others) if little else load_i64(p)
    value >>= others
    return value if signed or width == 8 else value & (1 << 8 * width) - 1


@jit
def read_headers(
    function: int,
    fd: int,
    to: int,
    room: int,
    position: int,
    size: int,
    min_size: int,
    offset: int,
    width: int,
    signed: int,
    little: int,
    before: int,
    max_entries: int,
    trial: int,
    far: int,
) -> tuple[int, int]:
    """Read the first ``size`` bytes of each entry from a file, at its place in the buffer, and skip
    to the next by its length. Return the bytes of the buffer that whole entries take, and their
    number. Stop at an entry that cannot be read, is shorter than ``min_size`` or ends after ``room``;
    after ``max_entries`` entries; or after ``trial`` or more that are shorter than ``far`` bytes on
    average.

    The ``room`` bytes from ``to`` on stand for those of the file from ``position`` on. Nothing is written outside of
    them, and at most 7 bytes after them are read.

    ``size`` bytes are read of each entry, or fewer if the room ends. An entry has at least ``min_size`` bytes. The number
    of ``width`` bytes at ``offset`` in them counts the bytes after the entry's first ``before``.
    """
    at = count = 0
    while count < max_entries and room - at >= min_size:
        wanted = min(size, room - at)
        got = call_4(function, fd, to + at, wanted, position + at)
        if got < min_size:
            break
        length = number(to + at + offset, width, signed, little)
        if length < min_size - before or length > room - at - before:
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
