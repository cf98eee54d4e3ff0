"""XXH64 and XXH3 of 64 bits with the seed 0, as signed numbers of 64 bits. No more is read than the bytes given.

The steps and the constants are those of the specification of xxHash (doc/xxhash_spec.md, version 0.2.0). Numbers are
unsigned, whose products wrap. Without a compiler the package xxhash computes the hashes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from codecgen.runtime.arrow.primitives.compiling import JIT, inlined, inner, intrinsic, ir, types
from codecgen.runtime.arrow.primitives.memory import load_i64_le, load_u8, load_u32_le, wrap_64
from codecgen.runtime.checksums import checksum

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
"""The default secret of XXH3."""


def _words() -> Any:
    """Return the numbers of 64 bits at each byte of the secret."""
    numbers = [int.from_bytes(_SECRET[i : i + 8], "little") for i in range(len(_SECRET) - 7)]
    return np.array(numbers, np.uint64)


if JIT:
    _U = np.uint64
    _P1, _P2, _P3 = _U(0x9E3779B185EBCA87), _U(0xC2B2AE3D27D4EB4F), _U(0x165667B19E3779F9)
    _P4, _P5 = _U(0x85EBCA77C2B2AE63), _U(0x27D4EB2F165667C5)
    _Q1, _Q2, _Q3 = _U(0x9E3779B1), _U(0x85EBCA77), _U(0xC2B2AE3D)
    _MX1, _MX2 = _U(0x165667919E3779F9), _U(0x9FB21C651E98DF25)
    _LOW = _U(0xFFFFFFFF)
    _KEY = _words()

    @intrinsic  # type: ignore[untyped-decorator]
    def _fold(typing: Any, one: Any, other: Any) -> Any:
        """Return the two halves of the product of two unsigned numbers, by exclusive or."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide, word = ir.IntType(128), ir.IntType(64)
            product = builder.mul(*(builder.zext(number, wide) for number in args))
            high = builder.trunc(builder.lshr(product, wide(64)), word)
            return builder.xor(builder.trunc(product, word), high)

        return types.uint64(types.uint64, types.uint64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def _swapped(typing: Any, value: Any) -> Any:
        """Return an unsigned number with its bytes in the other order."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bswap(args[0])

        return types.uint64(types.uint64), code

    @inlined
    def _u64(address: int) -> Any:
        return np.uint64(load_i64_le(address))

    @inlined
    def _u32(address: int) -> Any:
        return np.uint64(load_u32_le(address))

    @inlined
    def _rotated(value: Any, bits: int) -> Any:
        """Return a number rotated to the left."""
        return value << np.uint64(bits) | value >> np.uint64(64 - bits)

    @inlined
    def _shifted(value: Any, bits: int) -> Any:
        """Return a number and its upper bits, by exclusive or."""
        return value ^ value >> np.uint64(bits)

    # ------------------------------------------------------------ XXH64

    @inlined
    def _round(value: Any, word: Any) -> Any:
        return _rotated(value + word * _P2, 31) * _P1

    @inlined
    def _merged(value: Any, lane: Any) -> Any:
        return (value ^ _round(np.uint64(0), lane)) * _P1 + _P4

    @inner
    def xxh64(start: int, size: int) -> int:
        """Return the XXH64 of ``size`` bytes at ``start``."""
        end = start + size
        if size >= 32:
            a, b, c, d = _P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1
            while end - start >= 32:
                a = _round(a, _u64(start))
                b = _round(b, _u64(start + 8))
                c = _round(c, _u64(start + 16))
                d = _round(d, _u64(start + 24))
                start += 32
            value = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
            value = _merged(_merged(_merged(_merged(value, a), b), c), d)
        else:
            value = _P5
        value += np.uint64(size)
        while end - start >= 8:
            value = _rotated(value ^ _round(np.uint64(0), _u64(start)), 27) * _P1 + _P4
            start += 8
        if end - start >= 4:
            value = _rotated(value ^ _u32(start) * _P1, 23) * _P2 + _P3
            start += 4
        while start < end:
            value = _rotated(value ^ np.uint64(load_u8(start)) * _P5, 11) * _P1
            start += 1
        value = _shifted(_shifted(value, 33) * _P2, 29) * _P3
        return int(np.int64(_shifted(value, 32)))

    # ------------------------------------------------------------ XXH3

    @inlined
    def _avalanche(value: Any) -> Any:
        return _shifted(_shifted(value, 37) * _MX1, 32)

    @inlined
    def _avalanche64(value: Any) -> Any:
        """Return the last steps of XXH64."""
        return _shifted(_shifted(_shifted(value, 33) * _P2, 29) * _P3, 32)

    @inlined
    def _mixed(start: int, key: int) -> Any:
        """Return 16 bytes mixed with the secret from the byte ``key`` on."""
        return _fold(_u64(start) ^ _KEY[key], _u64(start + 8) ^ _KEY[key + 8])

    @inner
    def _up_to_16(start: int, size: int) -> Any:
        """Return the XXH3 of at most 16 bytes."""
        end = start + size
        if size > 8:
            low = _u64(start) ^ (_KEY[24] ^ _KEY[32])
            high = _u64(end - 8) ^ (_KEY[40] ^ _KEY[48])
            return _avalanche(np.uint64(size) + _swapped(low) + high + _fold(low, high))
        if size >= 4:
            both = _u32(end - 4) + (_u32(start) << np.uint64(32))
            value = both ^ (_KEY[8] ^ _KEY[16])
            value ^= _rotated(value, 49) ^ _rotated(value, 24)
            value *= _MX2
            value ^= (value >> np.uint64(35)) + np.uint64(size)
            value *= _MX2
            return _shifted(value, 28)
        if size:
            first, middle, last = load_u8(start), load_u8(start + (size >> 1)), load_u8(end - 1)
            word = np.uint64(first << 16 | middle << 24 | last | size << 8)
            return _avalanche64(word ^ (_KEY[0] ^ _KEY[4]) & _LOW)
        return _avalanche64(_KEY[56] ^ _KEY[64])

    @inner
    def _up_to_240(start: int, size: int) -> Any:
        """Return the XXH3 of 17 to 240 bytes."""
        end = start + size
        value = np.uint64(size) * _P1
        if size <= 128:
            for i in range((size - 1) // 32, -1, -1):
                value += _mixed(start + 16 * i, 32 * i)
                value += _mixed(end - 16 * (i + 1), 32 * i + 16)
            return _avalanche(value)
        for i in range(8):
            value += _mixed(start + 16 * i, 16 * i)
        value = _avalanche(value)
        for i in range(8, size // 16):
            value += _mixed(start + 16 * i, 16 * (i - 8) + 3)
        return _avalanche(value + _mixed(end - 16, 119))

    @inlined
    def _lane(own: Any, word: Any, key: Any) -> Any:
        """Return what a word of a stripe adds to its lane; the word itself is added to the lane beside."""
        mixed = word ^ key
        return own + (mixed & _LOW) * (mixed >> np.uint64(32))

    @inlined
    def _scrambled(lane: Any, key: Any) -> Any:
        return (_shifted(lane, 47) ^ key) * _Q1

    @inner
    def _long(start: int, size: int) -> Any:
        """Return the XXH3 of more than 240 bytes."""
        a, b, c, d, e, f, g, h = _Q3, _P1, _P2, _P3, _P4, _Q2, _P5, _Q1
        end = start + size
        stripe, key = start, 0
        left = (
            size - 1
        ) >> 6  # whole stripes; the last 64 bytes are one more, which may begin earlier
        while left >= 0:
            at, k = (stripe, key) if left else (end - 64, 121)
            w0, w1, w2, w3 = _u64(at), _u64(at + 8), _u64(at + 16), _u64(at + 24)
            w4, w5, w6, w7 = _u64(at + 32), _u64(at + 40), _u64(at + 48), _u64(at + 56)
            a, b = _lane(a, w0, _KEY[k]) + w1, _lane(b, w1, _KEY[k + 8]) + w0
            c, d = _lane(c, w2, _KEY[k + 16]) + w3, _lane(d, w3, _KEY[k + 24]) + w2
            e, f = _lane(e, w4, _KEY[k + 32]) + w5, _lane(f, w5, _KEY[k + 40]) + w4
            g, h = _lane(g, w6, _KEY[k + 48]) + w7, _lane(h, w7, _KEY[k + 56]) + w6
            stripe += 64
            key += 8
            if key == 128 and left:  # after 1,024 bytes
                a, b = _scrambled(a, _KEY[128]), _scrambled(b, _KEY[136])
                c, d = _scrambled(c, _KEY[144]), _scrambled(d, _KEY[152])
                e, f = _scrambled(e, _KEY[160]), _scrambled(f, _KEY[168])
                g, h = _scrambled(g, _KEY[176]), _scrambled(h, _KEY[184])
                key = 0
            left -= 1
        value = np.uint64(size) * _P1
        value += _fold(a ^ _KEY[11], b ^ _KEY[19]) + _fold(c ^ _KEY[27], d ^ _KEY[35])
        value += _fold(e ^ _KEY[43], f ^ _KEY[51]) + _fold(g ^ _KEY[59], h ^ _KEY[67])
        return _avalanche(value)

    @inner
    def xxh3_64(start: int, size: int) -> int:
        """Return the XXH3 of 64 bits of ``size`` bytes at ``start``."""
        if size <= 16:
            return int(np.int64(_up_to_16(start, size)))
        if size <= 240:
            return int(np.int64(_up_to_240(start, size)))
        return int(np.int64(_long(start, size)))

else:

    def xxh64(start: int, size: int) -> int:
        """Return the XXH64 of ``size`` bytes at ``start``. Raise UnsupportedCodec if the package xxhash
        is not installed.
        """
        return int(wrap_64(checksum("xxh64")(ctypes.string_at(start, size))))

    def xxh3_64(start: int, size: int) -> int:
        """Return the XXH3 of 64 bits of ``size`` bytes at ``start``. Raise UnsupportedCodec if the
        package xxhash is not installed.
        """
        return int(wrap_64(checksum("xxh3_64")(ctypes.string_at(start, size))))
