"""zstd: the sections of many entries in one call, by libzstd.

A section is taken when it is one frame as most writers write it. A walk over its blocks finds that out, and bounds what it
holds; :mod:`codecgen.runtime.compression.zstd` takes all others, and says what is wrong.
"""

from __future__ import annotations

import weakref

from codecgen.runtime.arrow.primitives import native
from codecgen.runtime.arrow.primitives.compiling import inner, jit
from codecgen.runtime.arrow.primitives.compressed_sections import (
    limit_of,
    place_of,
    put_section,
    section_of,
)
from codecgen.runtime.arrow.primitives.memory import load_u8, load_u32_le
from codecgen.runtime.arrow.primitives.native import Library, call_5
from codecgen.runtime.compression import zstd

_MAGIC = int.from_bytes(zstd.USUAL_START[:4], "little")
_HEADER = 6
_DESCRIPTOR = zstd.USUAL_START[4]
_FIRST_WINDOW, _LAST_WINDOW = zstd.USUAL_WINDOWS[0], zstd.USUAL_WINDOWS[-1]
_LARGEST_BLOCK = zstd.LARGEST_BLOCK
_RLE, _RESERVED = zstd.RLE, zstd.RESERVED


@inner
def is_usual(p: int, end: int) -> bool:
    """Return True if the bytes from ``p`` to ``end`` are one zstd frame without content size,
    checksum and dictionary, with a window of 128 KiB to 128 MiB, whose last block ends at ``end``.
    The blocks' headers are checked, not their contents.
    """
    if end - p < _HEADER or load_u32_le(p) != _MAGIC or load_u8(p + 4) != _DESCRIPTOR:
        return False
    window = load_u8(p + 5)
    if window < _FIRST_WINDOW or window > _LAST_WINDOW:
        return False
    p += _HEADER
    while end - p >= 3:
        header = load_u32_le(p) & 0xFFFFFF
        kind, size = header >> 1 & 3, header >> 3
        if kind == _RESERVED or size > _LARGEST_BLOCK:
            return False
        p += 3 + (1 if kind == _RLE else size)
        if header & 1:
            return p == end
    return False


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
    function: int,
    context: int,
) -> tuple[int, int]:
    """Decompress the zstd sections of index rows ``first`` to ``last`` (excluded) one after the
    other to the address ``to``, by ``ZSTD_decompressDCtx`` at ``function``, and store their new
    addresses. Skip rejected and uncompressed rows. Return the first row that is not decompressed
    (another codec by ``kinds``, unusual, damaged, larger than ``limits`` or ``to_end`` allow, or it
    would begin at ``enough`` or later; ``last`` if all are), and the address after the last byte.

    ``context`` is the address of a context of libzstd; ``kinds`` and ``limits`` are those of the
    ``sections`` of LZ4.
    """
    for i in range(first, last):
        row = table + i * row_size
        place = place_of(row)
        if place < 0:
            continue
        if limit_of(kinds, place) == 0 or to >= enough:
            return i, to
        start, end = section_of(row)
        if not is_usual(start, end):
            return i, to
        room = min(to_end - to, limit_of(limits, place))
        size = call_5(function, context, to, room, start, end - start)
        if size <= 0 or size > room:  # errors are numbers below zero
            return i, to
        put_section(row, to, to + size)
        to += size
    return last, to


def library() -> Library | None:
    """Return the zstd library that the package zstandard brings, with its own context, which is
    freed with the result. Return None if the package is missing, or its functions cannot be called
    by address.
    """
    found = native.library("zstandard._cffi", "zstandard.backend_c")
    try:
        function, make, free = (
            getattr(found, f"ZSTD_{name}") for name in ("decompressDCtx", "createDCtx", "freeDCtx")
        )
    except AttributeError:
        return None
    make.restype, free.argtypes = native.POINTER, [native.POINTER]
    context = make()
    if not context:
        return None
    made = Library((native.address(function), context))
    weakref.finalize(made, free, context).atexit = False
    return made
