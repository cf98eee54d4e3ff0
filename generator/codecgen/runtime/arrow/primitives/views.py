"""Bytes and text as columns hold them: copied one after another, or as Arrow's views of the bytes that were read.

A view has 16 bytes: the length and then, for up to 12 bytes, these bytes. A longer value has its first 4 bytes there, the number of the
buffer that it lies in, and where it begins in this buffer.
"""

from __future__ import annotations

from codecgen.runtime.arrow.primitives.compiling import inner
from codecgen.runtime.arrow.primitives.memory import copy, load_i64_le, load_u32_le, store_64

INLINED = 12
"""Max bytes of a value that lies in its view."""


@inner
def put_bytes(data: int, offsets: int, at: int, room: int, row: int, p: int, n: int) -> None:
    """Copy ``n`` bytes from the address ``p`` to ``data + at`` if the column has ``offsets``. If it
    has none, write the view of these bytes as number ``row`` of those at ``data``; ``room`` is then
    the address of a table (see :func:`put_view`).
    """
    if offsets:
        copy(data + at, p, n)
    else:
        put_view(data + 16 * row, p, n, room)


@inner
def put_view(to: int, p: int, n: int, sources: int) -> None:
    """Write the view of the ``n`` bytes at the address ``p``, which lie in one of two buffers. The
    table at ``sources`` has the addresses of the start and the end of the first buffer, and of the
    start of the second one.
    """
    head = load_u32_le(p)
    if n > INLINED:
        start = load_i64_le(sources)
        number = 0
        if p < start or p >= load_i64_le(sources + 8):
            start = load_i64_le(sources + 16)
            number = 1
        store_64(to, n | head << 32)
        store_64(to + 8, (p - start) << 32 | number)
        return
    rest = load_i64_le(p + 4)
    if n < 4:
        head &= (1 << 8 * n) - 1
        rest = 0
    elif n < INLINED:
        rest &= (1 << 8 * (n - 4)) - 1
    store_64(to, n | head << 32)
    store_64(to + 8, rest)
