"""gzip: the sections of many entries in one call, by the library that the codec uses.

A section is taken when it is one member with nothing odd about it: a header without flags, and after the data their checksum
and size. :mod:`codecgen.runtime.compression.gzip` takes all others, and says what is wrong.
"""

from __future__ import annotations

import ctypes
import weakref
import zlib
from typing import Any

import numpy as np

from codecgen.runtime.arrow.decompressor import CODEC, COUNT, SECTION, SECTION_END
from codecgen.runtime.arrow.primitives import native
from codecgen.runtime.arrow.primitives.checksums import crc32
from codecgen.runtime.arrow.primitives.compiling import inner, jit
from codecgen.runtime.arrow.primitives.compressed_sections import (
    limit_of,
    place_of,
    put_section,
    section_of,
)
from codecgen.runtime.arrow.primitives.memory import (
    SLACK,
    load_i64_le,
    load_u32_le,
    store_32,
    store_64,
)
from codecgen.runtime.arrow.primitives.native import Library, address, call_1, call_2
from codecgen.runtime.compression import gzip

_START = int.from_bytes(gzip.USUAL_HEADER, "little")
_BEFORE, _AFTER = len(gzip.HEADER), gzip.TRAILER.size
_MOST = (1 << 31) - 1  # the libraries count bytes in 32 bits
_FINISH, _STREAM_END = 4, 1  # of zlib

ISAL, ZLIB = 0, 1
_SIZES = (1 << 18, 112)
"""Bytes for the state of a stream, of which the libraries change all or a part: isal takes about 100 KiB."""


@inner
def inflated(
    which: int, begin: int, inflate: int, state: int, p: int, end: int, to: int, size: int
) -> bool:
    """Inflate the deflate data from address ``p`` to the address ``to`` by the library's functions
    at ``begin`` and ``inflate``, with the stream state at ``state``; ``which`` is ISAL (0) or ZLIB
    (1). Return True if it yields exactly ``size`` bytes and ends exactly at ``end``; else False.
    """
    # Places in the state of what comes next, of what goes out next, and of how many bytes there are for each.
    if which == ISAL:
        source, sink, left, room = state + 16, state, state + 32, state + 8
    else:
        source, sink, left, room = state, state + 24, state + 8, state + 32
    if call_1(begin, state) != 0 and which == ZLIB:  # isal's has no result
        return False
    store_64(source, p)
    store_64(sink, to)
    store_32(left, end - p)
    store_32(room, size)
    if which == ISAL:
        ended = call_1(inflate, state) == 0
    else:
        ended = call_2(inflate, state, _FINISH) == _STREAM_END
    return bool(ended and load_i64_le(source) == end and load_i64_le(sink) == to + size)


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
    which: int,
    begin: int,
    inflate: int,
    state: int,
) -> tuple[int, int]:
    """Decompress the gzip sections of index rows ``first`` to ``last`` (excluded) one after the
    other to the address ``to``, and store their new addresses. Skip rejected and uncompressed rows.
    Return the first row that is not decompressed (another codec by ``kinds``, unusual, damaged,
    larger than ``limits`` or ``to_end`` allow, or it would begin at ``enough`` or later; ``last``
    if all are), and the address after the last byte.

    The library is given by ``which``, ``begin``, ``inflate`` and ``state`` as in :func:`inflated`;
    ``kinds`` and ``limits`` are those of the ``sections`` of LZ4.
    """
    for i in range(first, last):
        row = table + i * row_size
        place = place_of(row)
        if place < 0:
            continue
        if limit_of(kinds, place) == 0 or to >= enough:
            return i, to
        start, end = section_of(row)
        if end - start <= _BEFORE + _AFTER or end - start > _MOST or load_u32_le(start) != _START:
            return i, to
        trailer = end - _AFTER
        size = load_u32_le(trailer + 4)
        if size > min(_MOST, to_end - to, limit_of(limits, place)):
            return i, to
        if not inflated(which, begin, inflate, state, start + _BEFORE, trailer, to, size):
            return i, to
        if crc32(to, size) != load_u32_le(trailer):
            return i, to
        put_section(row, to, to + size)
        to += size
    return last, to


def library() -> Library | None:
    """Return the first library (ISA-L, then zlib) whose inflate function kernels can call by
    address and that decompresses a trial section correctly, with its own stream state. Return None
    if there is none.
    """
    for made in (_isal(), _zlib()):
        if made is not None and _works(made):
            return made
    return None


def _isal() -> Library | None:
    """Return ISA-L's inflate functions with a stream state. Return None if the package isal is not
    installed, or its library does not export them.
    """
    found = native.library("isal.isal_zlib")
    try:
        begin, inflate = found.isal_inflate_init, found.isal_inflate_stateless  # type: ignore[union-attr]
    except AttributeError:
        return None
    state = np.zeros(_SIZES[ISAL], np.uint8)
    return Library((ISAL, address(begin), address(inflate), int(state.ctypes.data)), state)


def _zlib() -> Library | None:
    """Return zlib's inflate functions with a stream state, which is freed with the result. Return
    None if the library does not export them, or refuses the state's size.
    """
    found = native.library("zlib")
    try:
        version, make, free, begin, inflate = (
            getattr(found, name)
            for name in ("zlibVersion", "inflateInit2_", "inflateEnd", "inflateReset", "inflate")
        )
    except AttributeError:
        return None
    state = np.zeros(_SIZES[ZLIB], np.uint8)
    place = native.POINTER(int(state.ctypes.data))
    version.restype = ctypes.c_char_p
    make.argtypes = [native.POINTER, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    if make(place, -zlib.MAX_WBITS, version(), _SIZES[ZLIB]) != 0:
        return None
    made = Library((ZLIB, address(begin), address(inflate), int(state.ctypes.data)), state)
    weakref.finalize(made, _end, free, place, state).atexit = False
    return made


def _end(free: Any, place: Any, state: Any) -> None:
    """Free the stream state at ``place`` by the library's function ``free``; the argument ``state``
    keeps its memory alive until then.
    """
    free(place)  # the state lives until here


def _works(library: Library) -> bool:
    """Return True if the library decompresses a trial section correctly. That verifies the assumed
    layout of its stream state.
    """
    text = b"places in memory, " * 9
    section, out = (
        gzip.CODEC.write(memoryview(text), None, None),
        np.zeros(len(text) + SLACK, np.uint8),
    )
    source = np.frombuffer(section + bytes(SLACK), np.uint8)
    start, to = int(source.ctypes.data), int(out.ctypes.data)
    row, ones = np.zeros(COUNT + 1, np.int64), np.full(2, len(text), np.int64)
    row[[CODEC, SECTION, SECTION_END]] = 1, start, start + len(section)
    end = to + len(text)
    tables = int(row.ctypes.data), row.nbytes, 0, 1, int(ones.ctypes.data), int(ones.ctypes.data)
    done = sections(*tables, to, end, end, *library.arguments)
    return done == (1, end) and bytes(out[: len(text)]) == text
