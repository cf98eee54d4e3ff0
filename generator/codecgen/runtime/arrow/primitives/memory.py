"""Memory by raw address, and numbers of a fixed size in it.

With numba the primitives become a few machine instructions; without it, or with NUMBA_DISABLE_JIT=1, plain Python does
the same. All numbers are signed 64-bit integers. Nothing here checks bounds: the kernels do, before they read. Reads
may go up to :data:`SLACK` bytes beyond what was checked, and copies may write as far beyond what they fill.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from codecgen.runtime.arrow.primitives.compiling import JIT, inner, intrinsic, ir, types

SLACK = 64
"""Bytes that can be read after every input, and written after every output."""

if JIT:

    def pointer(builder: Any, address: Any, kind: Any) -> Any:
        """Return the code that makes an address, a number, a pointer to a value of the type ``kind``.

        It points into address space 1, which is the same memory as the default one. numba gives the code of
        a function to its callers as it is after instructions were selected for it. The address of a load
        that is a sum of two numbers is by then one of them as a pointer, and the other added to that. If a
        caller knows that the first is 0, it reads relative to the null pointer, where only the default
        address space has nothing: the optimizer would take what follows for unreachable.
        """
        return builder.inttoptr(address, kind.as_pointer(1))

    def _loader(bits: int, signed: bool, swap: bool) -> Any:
        """Return an intrinsic that loads a number of ``bits``; ``swap``: it is big-endian."""

        @intrinsic  # type: ignore[untyped-decorator]
        def load(typing: Any, address: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                value = builder.load(pointer(builder, args[0], ir.IntType(bits)), align=1)
                if swap and bits > 8:
                    value = builder.bswap(value)
                if bits == 64:
                    return value
                extend = builder.sext if signed else builder.zext
                return extend(value, ir.IntType(64))

            return types.int64(types.int64), code

        return load

    def _storer(bits: int) -> Any:
        @intrinsic  # type: ignore[untyped-decorator]
        def store(typing: Any, address: Any, value: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                number = args[1]
                if bits < 64:
                    number = builder.trunc(number, ir.IntType(bits))
                builder.store(number, pointer(builder, args[0], ir.IntType(bits)), align=1)
                return context.get_dummy_value()

            return types.void(types.int64, types.int64), code

        return store

    def _filler(bits: int) -> Any:
        """Return an intrinsic that writes the same number to ``count`` consecutive slots."""

        @intrinsic  # type: ignore[untyped-decorator]
        def fill(typing: Any, to: Any, first: Any, count: Any, value: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                value = args[3] if bits == 64 else builder.trunc(args[3], ir.IntType(bits))
                start = builder.gep(pointer(builder, args[0], ir.IntType(bits)), [args[1]])
                before = builder.block
                loop, done = builder.append_basic_block("fill"), builder.append_basic_block("full")
                i64 = ir.IntType(64)
                builder.cbranch(builder.icmp_signed(">", args[2], i64(0)), loop, done)
                builder.position_at_end(loop)
                at = builder.phi(i64)
                builder.store(value, builder.gep(start, [at]), align=1)
                further = builder.add(at, i64(1))
                at.add_incoming(i64(0), before)
                at.add_incoming(further, loop)
                builder.cbranch(builder.icmp_signed("<", further, args[2]), loop, done)
                builder.position_at_end(done)
                return context.get_dummy_value()

            return types.void(*[types.int64] * 4), code

        return fill

    def _wrapper(bits: int) -> Any:
        """Return an intrinsic that wraps a number to ``bits`` in two's complement."""

        @intrinsic  # type: ignore[untyped-decorator]
        def wrap(typing: Any, value: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.sext(builder.trunc(args[0], ir.IntType(bits)), ir.IntType(64))

            return types.int64(types.int64), code

        return wrap

    @intrinsic  # type: ignore[untyped-decorator]
    def wrap_64(typing: Any, value: Any) -> Any:
        """Two's complement of 64 bits, which machine code has anyway. The optimizer must not see through it: it takes sums for such
        that do not wrap, and would compare what they are made of instead.
        """

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i64 = ir.IntType(64)
            return builder.asm(ir.FunctionType(i64, [i64]), "", "=r,0", [args[0]], False)

        return types.int64(types.int64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def fail(typing: Any, row: Any, check: Any, p: Any) -> Any:
        """Note in a row of the index the number of the check that an entry fails, and where. 0."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i64 = ir.IntType(64)
            status = pointer(builder, args[0], ir.IntType(64))
            builder.store(args[1], status, align=1)
            builder.store(args[2], builder.gep(status, [i64(1)]), align=1)
            return i64(0)

        return types.int64(types.int64, types.int64, types.int64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def _move32(typing: Any, to: Any, start: Any) -> Any:
        """Copy 32 bytes."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), 32)
            value = builder.load(pointer(builder, args[1], vector), align=1)
            builder.store(value, pointer(builder, args[0], vector), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def _fetch(typing: Any, address: Any) -> Any:
        """Prefetch the cache line at an address, which may be invalid."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i32, byte = ir.IntType(32), ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
            function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            to_read, keep, data = i32(0), i32(3), i32(1)
            builder.call(function, [builder.inttoptr(args[0], byte), to_read, keep, data])
            return context.get_dummy_value()

        return types.void(types.int64), code

    load_u8, load_i8 = _loader(8, False, False), _loader(8, True, False)
    load_u16, load_i16 = _loader(16, False, True), _loader(16, True, True)
    load_u32, load_i32 = _loader(32, False, True), _loader(32, True, True)
    load_i64 = _loader(64, True, True)
    load_u16_le, load_i16_le = _loader(16, False, False), _loader(16, True, False)
    load_u32_le, load_i32_le = _loader(32, False, False), _loader(32, True, False)
    load_i64_le = _loader(64, True, False)
    store_8, store_16, store_24 = _storer(8), _storer(16), _storer(24)
    store_32, store_64 = _storer(32), _storer(64)
    fill_8, fill_16, fill_32, fill_64 = _filler(8), _filler(16), _filler(32), _filler(64)
    wrap_8, wrap_16, wrap_32 = _wrapper(8), _wrapper(16), _wrapper(32)

    @intrinsic  # type: ignore[untyped-decorator]
    def _move_rest(typing: Any, to: Any, start: Any, size: Any) -> Any:
        """Copy all but the first 32 bytes, 32 at a time, in a loop that the compiler leaves as short as it is."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i64, vector = ir.IntType(64), ir.VectorType(ir.IntType(8), 32)
            before = builder.block
            loop, done = builder.append_basic_block("copy"), builder.append_basic_block("copied")
            builder.cbranch(builder.icmp_signed(">", args[2], i64(32)), loop, done)
            builder.position_at_end(loop)
            at = builder.phi(i64)
            value = builder.load(pointer(builder, builder.add(args[1], at), vector), align=1)
            builder.store(value, pointer(builder, builder.add(args[0], at), vector), align=1)
            further = builder.add(at, i64(32))
            at.add_incoming(i64(32), before)
            at.add_incoming(further, loop)
            again = builder.cbranch(builder.icmp_signed("<", further, args[2]), loop, done)
            kept = [ir.MetaDataString(builder.module, "llvm.loop.unroll.disable")]
            again.set_metadata("llvm.loop", builder.module.add_metadata(kept))
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), code

    @inner
    def copy(to: int, start: int, size: int) -> None:
        """Copy bytes, 32 at a time: the first 32 whatever the size."""
        _move32(to, start)
        _move_rest(to, start, size)

    @inner
    def fetch_around(address: int) -> None:
        """Prefetch the cache lines around an address."""
        for line in range(address - 128, address + 192, 64):
            _fetch(line)

else:

    def _reader(size: int, signed: bool, order: Any) -> Callable[[int], int]:
        def load(address: int) -> int:
            return int.from_bytes(ctypes.string_at(address, size), order, signed=signed)

        return load

    def _writer(size: int) -> Callable[[int, int], None]:
        mask = (1 << 8 * size) - 1

        def store(address: int, value: int) -> None:
            ctypes.memmove(address, (value & mask).to_bytes(size, "little"), size)

        return store

    load_u8, load_i8 = _reader(1, False, "big"), _reader(1, True, "big")
    load_u16, load_i16 = _reader(2, False, "big"), _reader(2, True, "big")
    load_u32, load_i32 = _reader(4, False, "big"), _reader(4, True, "big")
    load_i64 = _reader(8, True, "big")
    load_u16_le, load_i16_le = _reader(2, False, "little"), _reader(2, True, "little")
    load_u32_le, load_i32_le = _reader(4, False, "little"), _reader(4, True, "little")
    load_i64_le = _reader(8, True, "little")
    store_8, store_16, store_24 = _writer(1), _writer(2), _writer(3)
    store_32, store_64 = _writer(4), _writer(8)

    def _repeater(size: int) -> Callable[[int, int, int, int], None]:
        mask = (1 << 8 * size) - 1

        def fill(to: int, first: int, count: int, value: int) -> None:
            data = (value & mask).to_bytes(size, "little") * count
            ctypes.memmove(to + size * first, data, len(data))

        return fill

    def _signed(bits: int) -> Callable[[int], int]:
        half, mask = 1 << bits - 1, (1 << bits) - 1
        return lambda value: (value + half & mask) - half

    fill_8, fill_16, fill_32, fill_64 = _repeater(1), _repeater(2), _repeater(4), _repeater(8)
    wrap_8, wrap_16, wrap_32, wrap_64 = _signed(8), _signed(16), _signed(32), _signed(64)

    def fail(row: int, check: int, p: int) -> int:
        """Note in a row of the index the number of the check that an entry fails, and where. 0."""
        store_64(row, check)
        store_64(row + 8, p)
        return 0

    def copy(to: int, start: int, size: int) -> None:
        """Copy bytes."""
        ctypes.memmove(to, start, size)

    def fetch_around(address: int) -> None:
        """Do nothing: plain Python cannot prefetch memory."""
