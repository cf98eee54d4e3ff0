"""CRC-32C and CRC-32, by the instructions of the processor where it has them. No more is read than the bytes given."""

from __future__ import annotations

import ctypes
import importlib
import zlib
from typing import Any

import numpy as np

from codecgen.runtime.arrow.primitives.compiling import JIT, inner, intrinsic, ir, numba, types
from codecgen.runtime.arrow.primitives.memory import (
    load_i64_le,
    load_u8,
    wrap_64,
)
from codecgen.runtime.arrow.primitives.table_checksums import compile_crc, make_tables
from codecgen.runtime.checksums import CHECKSUMS, Crc, Mask, function_of

_CRCS = {name: kind for name, kind in CHECKSUMS.items() if isinstance(kind, Crc)}


def _moved(distance: int) -> int:
    """Return x to the power ``distance`` modulo the CRC-32 polynomial, with its 32 bits reversed
    and shifted left by one, as carry-less multiplication needs it.
    """
    value = 1
    for _ in range(distance):
        value = value << 1 ^ (0x104C11DB7 if value >> 31 else 0)
    return int(f"{value:032b}"[::-1], 2) << 1


_DISTANCES = {n: (_moved(8 * n + 32), _moved(8 * n - 32)) for n in (16, 32, 48, 64)}
"""What takes the two halves of 16 bytes so many bytes further on."""

_POLYNOMIAL, _QUOTIENT = 0x1DB710641, 0x1F7011641
"""The polynomial of CRC-32 with the highest power lowest, and x to the power 64 divided by it."""

_LANE = 128
_ONE_LANE, _TWO_LANES = 0x0D3B6092, 0xB9E02B86
# x to the power 8 n - 33 modulo the polynomial of CRC-32C, the highest power in the lowest bit: what a remainder is
# multiplied by to move it on by the n bytes of one and of two lanes. Longer lanes are slower on what is not in the cache.

_AHEAD = 4096
"""How far before a checksum the bytes are asked for: what comes from memory page by page comes sooner."""

if JIT:
    from codecgen.runtime.arrow.primitives.memory import _fetch, pointer

    _CRC32 = make_tables(_CRCS["crc32"])
    _crc32_by_tables = compile_crc(_CRCS["crc32"])
    _crc32c_by_tables = compile_crc(_CRCS["crc32c"])

    def _surely(feature: str) -> bool:
        """Return True if code is compiled for this processor and the processor has ``feature``."""
        if numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None:
            return False
        try:
            features = importlib.import_module("llvmlite.binding").get_host_cpu_features()
        except RuntimeError:  # LLVM does not know
            return False
        return bool(features.get(feature))

    _PERHAPS_NO_CRC32C = not _surely("sse4.2")

    def _has(context: Any, feature: str) -> bool:
        """Return True if the processor that code is compiled for has ``feature``."""
        features = getattr(context.codegen(), "_tm_features", "") or ""
        return f"+{feature}" in features.split(",")

    @intrinsic  # type: ignore[untyped-decorator]
    def _has_crc32c(typing: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return ir.IntType(1)(int(_has(context, "sse4.2")))

        return types.boolean(), code

    @intrinsic  # type: ignore[untyped-decorator]
    def _crc32c_8(typing: Any, crc: Any, value: Any) -> Any:
        """Extend a CRC-32C by eight bytes with the processor's instruction."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if not _has(context, "sse4.2"):
                return args[0]  # never called there
            i64 = ir.IntType(64)
            function = builder.module.declare_intrinsic(
                "llvm.x86.sse42.crc32.64.64", fnty=ir.FunctionType(i64, [i64, i64])
            )
            return builder.call(function, args)

        return types.int64(types.int64, types.int64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def _crc32c_1(typing: Any, crc: Any, value: Any) -> Any:
        """Extend a CRC-32C by one byte with the processor's instruction."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if not _has(context, "sse4.2"):
                return args[0]
            i32, i8 = ir.IntType(32), ir.IntType(8)
            function = builder.module.declare_intrinsic(
                "llvm.x86.sse42.crc32.32.8", fnty=ir.FunctionType(i32, [i32, i8])
            )
            crc = builder.call(function, [builder.trunc(args[0], i32), builder.trunc(args[1], i8)])
            return builder.zext(crc, ir.IntType(64))

        return types.int64(types.int64, types.int64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def _has_multiply(typing: Any) -> Any:
        """Return, in compiled code, True if the target has carry-less multiplication."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return ir.IntType(1)(int(_has(context, "pclmul")))

        return types.boolean(), code

    _PAIR = ir.VectorType(ir.IntType(64), 2)

    def _pair(builder: Any, low: Any, high: Any) -> Any:
        """Return a 128-bit register that holds two numbers."""
        i32 = ir.IntType(32)
        vector = builder.insert_element(ir.Constant(_PAIR, ir.Undefined), low, i32(0))
        return builder.insert_element(vector, high, i32(1))

    def _multiplier(builder: Any) -> Any:
        kind = ir.FunctionType(_PAIR, [_PAIR, _PAIR, ir.IntType(8)])
        return builder.module.declare_intrinsic("llvm.x86.pclmulqdq", fnty=kind)

    @intrinsic  # type: ignore[untyped-decorator]
    def _multiply(typing: Any, one: Any, other: Any) -> Any:
        """Return the carry-less product of two 32-bit numbers."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if not _has(context, "pclmul"):
                return args[0]  # never called there
            zero = ir.IntType(64)(0)
            vectors = [_pair(builder, number, zero) for number in args]
            product = builder.call(_multiplier(builder), [*vectors, ir.IntType(8)(0)])
            return builder.extract_element(product, ir.IntType(32)(0))

        return types.int64(types.int64, types.int64), code

    def _fold(builder: Any, lane: Any, distance: int) -> Any:
        """Return a 16-byte lane of a CRC-32 folded ``distance`` bytes forward."""
        multiply, i8 = _multiplier(builder), ir.IntType(8)
        by = ir.Constant(_PAIR, [ir.IntType(64)(n) for n in _DISTANCES[distance]])
        low = builder.call(multiply, [lane, by, i8(0x00)])
        return builder.xor(low, builder.call(multiply, [lane, by, i8(0x11)]))

    def _remainder(builder: Any, lane: Any) -> Any:
        """Return the CRC-32 of 16 bytes: fold them to 96 and to 64 bits, then divide, all without tables."""
        multiply, i8, i32, i64 = _multiplier(builder), ir.IntType(8), ir.IntType(32), ir.IntType(64)
        words = ir.VectorType(i32, 4)
        zero, low = ir.Constant(_PAIR, [i64(0)] * 2), ir.Constant(_PAIR, [i64(0xFFFFFFFF), i64(0)])

        def multiply_low(value: Any, number: int) -> Any:
            """Return the carry-less product of the low 32 bits of ``value`` and ``number``."""
            factor = ir.Constant(_PAIR, [i64(number), i64(0)])
            return builder.call(multiply, [builder.and_(value, low), factor, i8(0)])

        def words_of(value: Any) -> Any:
            return builder.bitcast(value, words)

        factor = ir.Constant(_PAIR, [i64(_DISTANCES[16][1]), i64(0)])
        first = builder.call(multiply, [lane, factor, i8(0)])
        order = ir.Constant(ir.VectorType(i32, 2), [i32(1), i32(2)])
        lane = builder.xor(first, builder.shuffle_vector(lane, zero, order))
        order = ir.Constant(words, [i32(n) for n in (1, 2, 3, 4)])
        shifted = builder.shuffle_vector(words_of(lane), words_of(zero), order)
        lane = builder.xor(multiply_low(lane, _moved(64)), builder.bitcast(shifted, _PAIR))
        whole = builder.xor(multiply_low(multiply_low(lane, _QUOTIENT), _POLYNOMIAL), lane)
        return builder.zext(builder.extract_element(words_of(whole), i32(1)), i64)

    @intrinsic  # type: ignore[untyped-decorator]
    def _fold_lanes(
        typing: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, p: Any, n: Any
    ) -> Any:
        """Fold four lanes of 16 bytes over ``n`` blocks of 64 bytes from ``p`` on, and return the CRC-32."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if not _has(context, "pclmul"):
                return args[0]  # never called there
            i64 = ir.IntType(64)
            state = [_pair(builder, args[i], args[i + 1]) for i in range(0, 8, 2)]
            before = builder.block
            loop, done = builder.append_basic_block("fold"), builder.append_basic_block("folded")
            builder.cbranch(builder.icmp_signed(">", args[9], i64(0)), loop, done)
            builder.position_at_end(loop)
            count, address = builder.phi(i64), builder.phi(i64)
            looped = [builder.phi(_PAIR) for _ in state]
            folded = []
            for i, lane in enumerate(looped):
                place = pointer(builder, builder.add(address, i64(16 * i)), _PAIR)
                folded.append(builder.xor(_fold(builder, lane, 64), builder.load(place, align=1)))
            left, further = builder.sub(count, i64(1)), builder.add(address, i64(64))
            phis = [count, address, *looped]
            starts, nexts = [args[9], args[8], *state], [left, further, *folded]
            for phi, start, again in zip(phis, starts, nexts, strict=True):
                phi.add_incoming(start, before)
                phi.add_incoming(again, loop)
            builder.cbranch(builder.icmp_signed(">", left, i64(0)), loop, done)
            builder.position_at_end(done)
            ends = [builder.phi(_PAIR) for _ in state]
            for phi, start, again in zip(ends, state, folded, strict=True):
                phi.add_incoming(start, before)
                phi.add_incoming(again, loop)
            whole = ends[3]
            for i in range(3):
                whole = builder.xor(whole, _fold(builder, ends[i], 48 - 16 * i))
            return _remainder(builder, whole)

        return types.int64(*[types.int64] * 10), code

    @inner
    def masked(value: int, width: int, rotate: int, add: int, keep: int) -> int:
        """Return what is stored for a checksum of ``width`` bits: rotated to the right, with a number
        added, and with the bits of ``keep``.
        """
        all_bits = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - width)
        number = np.uint64(value) & all_bits
        if rotate:
            number = number >> np.uint64(rotate) | number << np.uint64(width - rotate)
        number = (number & all_bits) + np.uint64(add)
        return int(np.int64(number & all_bits & np.uint64(keep)))

    @inner
    def _crc32c_lanes(crc: int, start: int) -> int:
        """Extend a CRC-32C by three lanes at once, which the processor computes in parallel."""
        second = 0
        third = 0
        for line in range(start + _AHEAD, start + _AHEAD + 3 * _LANE, 64):
            _fetch(line)
        for i in range(start, start + _LANE, 8):
            crc = _crc32c_8(crc, load_i64_le(i))
            second = _crc32c_8(second, load_i64_le(i + _LANE))
            third = _crc32c_8(third, load_i64_le(i + 2 * _LANE))
        moved = _multiply(crc, _TWO_LANES) ^ _multiply(second, _ONE_LANE)
        return int(third ^ _crc32c_8(0, moved))

    @inner
    def crc32c(start: int, size: int) -> int:
        """Return the CRC-32C of ``size`` bytes."""
        if _PERHAPS_NO_CRC32C and not _has_crc32c():  # the compiler is spared what is surely not
            return int(_crc32c_by_tables(start, size))
        crc = wrap_64(0xFFFFFFFF)  # as any number: the lanes are compiled once
        end = start + size
        if _has_multiply():
            while end - start >= 3 * _LANE:
                crc = _crc32c_lanes(crc, start)
                start += 3 * _LANE
        while end - start >= 8:
            crc = _crc32c_8(crc, load_i64_le(start))
            start += 8
        while start < end:
            crc = _crc32c_1(crc, load_u8(start))
            start += 1
        return int(crc ^ 0xFFFFFFFF)

    @inner
    def crc32(start: int, size: int) -> int:
        """Return the CRC-32 of ``size`` bytes."""
        if size < 32 or not _has_multiply():
            return int(_crc32_by_tables(start, size))
        # Zeros in front change nothing once the initial value is in the first bytes: so there is no odd end.
        end = start + size
        first = size & 15
        if first < 4:
            crc = 0xFFFFFFFF
            for i in range(first):
                crc = _CRC32[(crc ^ load_u8(start + i)) & 255] ^ crc >> 8
            start += first
            low, high = load_i64_le(start) ^ crc, load_i64_le(start + 8)
            start += 16
        else:
            low, high = load_i64_le(start) ^ 0xFFFFFFFF, load_i64_le(start + 8)
            start += first
            shift = 8 * (16 - first)
            if shift >= 64:
                low, high = 0, low << (shift - 64)
            else:
                high = high << shift | (low >> (64 - shift)) & ((1 << shift) - 1)
                low <<= shift
        a, b, c, d, e, f, g, h = 0, 0, 0, 0, 0, 0, low, high
        for _ in range((end - start) >> 4 & 3):  # so many lanes that only runs of 64 bytes follow
            a, b, c, d, e, f = c, d, e, f, g, h
            g, h = load_i64_le(start), load_i64_le(start + 8)
            start += 16
        crc = _fold_lanes(a, b, c, d, e, f, g, h, start, (end - start) >> 6)
        return int(crc) ^ 0xFFFFFFFF

else:

    def masked(value: int, width: int, rotate: int, add: int, keep: int) -> int:
        """Return what is stored for a checksum of ``width`` bits: rotated to the right, with a number
        added, and with the bits of ``keep``.
        """
        mask = Mask(keep, rotate, add)
        return int(wrap_64(mask.apply(value & (1 << width) - 1, width)))

    def crc32c(start: int, size: int) -> int:
        """Return the CRC-32C of ``size`` bytes."""
        return function_of(_CRCS["crc32c"])(ctypes.string_at(start, size))

    def crc32(start: int, size: int) -> int:
        """Return the CRC-32 of ``size`` bytes."""
        return zlib.crc32(ctypes.string_at(start, size))
