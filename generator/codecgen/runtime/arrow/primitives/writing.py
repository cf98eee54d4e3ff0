"""What is written: numbers in big-endian order, varints, copies from memory that ends sharply.

Stores may go up to ``SLACK`` bytes beyond what they fill, since what follows is written later; reads from Arrow buffers
never go beyond their end, for nobody knows what lies there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from codecgen.runtime.arrow.primitives.compiling import JIT, inlined, inner, intrinsic, ir, types
from codecgen.runtime.arrow.primitives.memory import (
    load_i64_le,
    load_u8,
    store_8,
    store_16,
    store_64,
)

if JIT:
    from codecgen.runtime.arrow.primitives.memory import _move32, _move_rest, pointer

    def _storer_be(bits: int) -> Any:
        """Return an intrinsic that stores a number of ``bits`` in big-endian order."""

        @intrinsic  # type: ignore[untyped-decorator]
        def store(typing: Any, address: Any, value: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                word = ir.IntType(32 if bits == 24 else bits)  # the sizes that bswap has
                number = args[1] if bits == 64 else builder.trunc(args[1], word)
                if bits == 24:
                    number = builder.shl(number, word(8))
                number = builder.bswap(number)
                if bits == 24:
                    number = builder.trunc(number, ir.IntType(bits))
                builder.store(number, pointer(builder, args[0], ir.IntType(bits)), align=1)
                return context.get_dummy_value()

            return types.void(types.int64, types.int64), code

        return store

    store_16_be, store_24_be = _storer_be(16), _storer_be(24)
    store_32_be, store_64_be = _storer_be(32), _storer_be(64)

    @intrinsic  # type: ignore[untyped-decorator]
    def bit_length(typing: Any, value: Any) -> Any:
        """Return the number of bits of ``value`` as an unsigned 64-bit number."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            zeros = builder.ctlz(args[0], ir.IntType(1)(0))
            return builder.sub(ir.IntType(64)(64), zeros)

        return types.int64(types.int64), code

    @inlined
    def zigzag(value: int) -> int:
        """Return the zigzag encoding of ``value``, its sign in the lowest bit, as an unsigned 64-bit number."""
        return (value << 1) ^ (value >> 63)

    @inner
    def _copy_exactly(to: int, start: int, size: int) -> None:
        """Copy bytes, and read no other."""
        whole = size & ~7
        for i in range(0, whole, 8):
            store_64(to + i, load_i64_le(start + i))
        for i in range(whole, size):
            store_8(to + i, load_u8(start + i))

    @inlined
    def copy_from(to: int, start: int, size: int, end: int) -> None:
        """Copy bytes from memory that may be read up to ``end``."""
        if start + size + 32 <= end:
            _move32(to, start)
            _move_rest(to, start, size)
        else:
            _copy_exactly(to, start, size)

else:

    def _writer_be(size: int) -> Callable[[int, int], None]:
        mask = (1 << 8 * size) - 1

        def store(address: int, value: int) -> None:
            ctypes.memmove(address, (value & mask).to_bytes(size, "big"), size)

        return store

    store_16_be, store_24_be = _writer_be(2), _writer_be(3)
    store_32_be, store_64_be = _writer_be(4), _writer_be(8)

    def bit_length(value: int) -> int:
        """Return the number of bits of ``value``."""
        return value.bit_length()

    def zigzag(value: int) -> int:
        """Return the zigzag encoding of ``value``, with its sign in the lowest bit."""
        return (value << 1) ^ (value >> 63)

    def copy_from(to: int, start: int, size: int, end: int) -> None:
        """Copy bytes."""
        ctypes.memmove(to, start, size)


@inlined
def size_uvarlong(value: int) -> int:
    """Return the size in bytes of an unsigned varint of up to 64 bits."""
    if 0 <= value < 0x4000:
        return 1 + int(value > 0x7F)  # a sum is cheaper than a guess
    return int((bit_length(value) * 9 + 64) >> 6)


@inlined
def size_uvarint(value: int) -> int:
    """Return the size in bytes of an unsigned 32-bit varint."""
    return size_uvarlong(value)


@inlined
def size_varlong(value: int) -> int:
    """Return the size in bytes of a zigzag varint of 64 bits."""
    return size_uvarlong(zigzag(value))


@inlined
def size_varint(value: int) -> int:
    """Return the size in bytes of a zigzag varint of 32 bits."""
    return size_uvarlong(zigzag(value))


@inner
def _put_long(p: int, value: int) -> int:
    """Write ``value``, taken as an unsigned 64-bit number (negative ones are above 2**63), as a
    varint to address ``p``. Return the address after it.
    """
    while value < 0 or value > 0x7F:  # below 0 the highest bit is set
        store_8(p, (value & 0x7F) | 0x80)
        value = value >> 7 & 0x01FFFFFFFFFFFFFF
        p += 1
    store_8(p, value)
    return p + 1


@inlined
def put_uvarlong(p: int, value: int) -> int:
    """Write ``value``, taken as an unsigned 64-bit number, as a varint to address ``p``. Return the
    address after it.
    """
    if 0 <= value < 0x80:
        store_8(p, value)
        return p + 1
    if 0 <= value < 0x4000:
        store_16(p, (value & 0x7F) | 0x80 | (value >> 7) << 8)
        return p + 2
    return int(_put_long(p, value))


@inlined
def put_uvarint(p: int, value: int) -> int:
    """Write ``value`` as an unsigned 32-bit varint to address ``p``. Return the address after it."""
    return put_uvarlong(p, value)


@inlined
def put_varlong(p: int, value: int) -> int:
    """Write ``value`` as a zigzag 64-bit varint to address ``p``. Return the address after it."""
    return put_uvarlong(p, zigzag(value))


@inlined
def put_varint(p: int, value: int) -> int:
    """Write ``value`` as a zigzag 32-bit varint to address ``p``. Return the address after it."""
    return put_uvarlong(p, zigzag(value))
