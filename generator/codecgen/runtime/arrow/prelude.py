"""Primitives of the kernels: memory by raw address, varints, UTF-8.

The generator writes this text into every module of kernels, so that a compiled kernel depends on one file only.
With numba the primitives become a few machine instructions; without it, or with NUMBA_DISABLE_JIT=1, plain Python does
the same. All numbers are signed 64-bit integers. Nothing here checks bounds: the kernels do, before they read. Reads
may go up to :data:`SLACK` bytes beyond what was checked, and copies may write as far beyond what they fill.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

SLACK = 64
"""Bytes that can be read behind every input, and written behind every output."""

F = TypeVar("F", bound=Callable[..., Any])

try:
    numba: Any = importlib.import_module("numba")
    ir: Any = importlib.import_module("llvmlite.ir")
    types: Any = numba.core.types
    intrinsic: Any = importlib.import_module("numba.extending").intrinsic
    JIT = not numba.config.DISABLE_JIT
except ImportError:
    JIT = False


def jit(function: F) -> F:
    """The function as machine code that runs without the GIL, kept on disk where there is a place for it."""
    if not JIT:
        return function
    try:
        return cast(F, numba.njit(function, nogil=True, cache=True, error_model="numpy"))
    except RuntimeError:  # neither the package nor the user's cache can be written to
        return cast(F, numba.njit(function, nogil=True, error_model="numpy"))


def inner(function: F) -> F:
    """The function as machine code that other such functions call, and nobody else."""
    if not JIT:
        return function
    options = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, numba.njit(function, error_model="numpy", **options))


if JIT:

    def _pointer(builder: Any, address: Any, bits: int) -> Any:
        return builder.inttoptr(address, ir.IntType(bits).as_pointer())

    def _loader(bits: int, signed: bool, swap: bool) -> Any:
        """An intrinsic that loads a number; ``swap`` when it is in big-endian order."""

        @intrinsic  # type: ignore[untyped-decorator]
        def load(typing: Any, address: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                value = builder.load(_pointer(builder, args[0], bits), align=1)
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
                builder.store(number, _pointer(builder, args[0], bits), align=1)
                return context.get_dummy_value()

            return types.void(types.int64, types.int64), code

        return store

    def _filler(bits: int) -> Any:
        """An intrinsic that writes the same number into a run of places."""

        @intrinsic  # type: ignore[untyped-decorator]
        def fill(typing: Any, to: Any, first: Any, count: Any, value: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                value = args[3] if bits == 64 else builder.trunc(args[3], ir.IntType(bits))
                start = builder.gep(_pointer(builder, args[0], bits), [args[1]])
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
        """An intrinsic for two's complement."""

        @intrinsic  # type: ignore[untyped-decorator]
        def wrap(typing: Any, value: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.sext(builder.trunc(args[0], ir.IntType(bits)), ir.IntType(64))

            return types.int64(types.int64), code

        return wrap

    @intrinsic  # type: ignore[untyped-decorator]
    def wrap_64(typing: Any, value: Any) -> Any:
        """Two's complement of 64 bits, which machine code has anyway."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return args[0]

        return types.int64(types.int64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def fail(typing: Any, row: Any, check: Any, p: Any) -> Any:
        """Note in a row of the index the number of the check that an entry fails, and where. 0."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i64 = ir.IntType(64)
            status = _pointer(builder, args[0], 64)
            builder.store(args[1], status, align=1)
            builder.store(args[2], builder.gep(status, [i64(1)]), align=1)
            return i64(0)

        return types.int64(types.int64, types.int64, types.int64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def _move32(typing: Any, to: Any, start: Any) -> Any:
        """Copy 32 bytes."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), 32).as_pointer()
            value = builder.load(builder.inttoptr(args[1], vector), align=1)
            builder.store(value, builder.inttoptr(args[0], vector), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), code

    @intrinsic  # type: ignore[untyped-decorator]
    def _fetch(typing: Any, address: Any) -> Any:
        """Have the processor bring a line of memory into its caches; the address may be anything."""

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
    store_8, store_16, store_32, store_64 = _storer(8), _storer(16), _storer(32), _storer(64)
    fill_8, fill_16, fill_32, fill_64 = _filler(8), _filler(16), _filler(32), _filler(64)
    wrap_8, wrap_16, wrap_32 = _wrapper(8), _wrapper(16), _wrapper(32)

    @intrinsic  # type: ignore[untyped-decorator]
    def _move_rest(typing: Any, to: Any, start: Any, size: Any) -> Any:
        """Copy all but the first 32 bytes, 32 at a time, in a loop that the compiler leaves as short as it is."""

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i64, vector = ir.IntType(64), ir.VectorType(ir.IntType(8), 32).as_pointer()
            before = builder.block
            loop, done = builder.append_basic_block("copy"), builder.append_basic_block("copied")
            builder.cbranch(builder.icmp_signed(">", args[2], i64(32)), loop, done)
            builder.position_at_end(loop)
            at = builder.phi(i64)
            value = builder.load(builder.inttoptr(builder.add(args[1], at), vector), align=1)
            builder.store(value, builder.inttoptr(builder.add(args[0], at), vector), align=1)
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
        """Have the processor bring some lines of memory into its caches."""
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
    store_8, store_16, store_32, store_64 = _writer(1), _writer(2), _writer(4), _writer(8)

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
        """Nothing that plain Python could do."""


@inner
def _long_uvarint(p: int) -> tuple[int, int, bool]:
    """The same as :func:`uvarint`, of three bytes and more: apart, since it is rare and its callers are to stay small."""
    value = load_u8(p) & 0x7F | (load_u8(p + 1) & 0x7F) << 7
    for i in range(2, 5):
        byte = load_u8(p + i)
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, p + i + 1, byte != 0 and value <= 0xFFFFFFFF
    return 0, p, False


@inner
def uvarint(p: int) -> tuple[int, int, bool]:
    """(value, address behind, whether it is in its shortest form) of an unsigned varint of 32 bits."""
    byte = load_u8(p)
    if byte < 0x80:
        return byte, p + 1, True
    more = load_u8(p + 1)
    if more < 0x80:
        return byte & 0x7F | more << 7, p + 2, more != 0
    return _long_uvarint(p)


@inner
def varint(p: int) -> tuple[int, int, bool]:
    """(value, address behind, whether it is in its shortest form) of a zigzag varint of 32 bits."""
    value, behind, shortest = uvarint(p)
    return (value >> 1) ^ -(value & 1), behind, shortest


@inner
def _long_varlong(p: int) -> tuple[int, int, bool]:
    """The same as :func:`varlong`, of three bytes and more."""
    byte = load_u8(p)
    sign = -(byte & 1)
    value = (byte & 0x7F) >> 1  # all but the sign, which is the lowest bit
    for i in range(1, 10):
        byte = load_u8(p + i)
        value |= (byte & 0x7F) << 7 * i - 1
        if byte < 0x80:
            return value ^ sign, p + i + 1, byte != 0 and (i < 9 or byte == 1)
    return 0, p, False


@inner
def varlong(p: int) -> tuple[int, int, bool]:
    """(value, address behind, whether it is in its shortest form) of a zigzag varint of 64 bits."""
    byte = load_u8(p)
    sign = -(byte & 1)
    if byte < 0x80:
        return (byte >> 1) ^ sign, p + 1, True
    more = load_u8(p + 1)
    if more < 0x80:
        return ((byte & 0x7F) >> 1 | more << 6) ^ sign, p + 2, more != 0
    return _long_varlong(p)


_HIGH_BITS = 0x8080808080808080 - (1 << 64)
"""The bits that are set in bytes that are not ASCII, as a signed number."""


@inner
def is_utf8(start: int, size: int) -> bool:
    """Whether bytes are UTF-8 as Unicode defines it: shortest forms, no surrogates, up to U+10FFFF."""
    i = 0
    while size - i >= 8 and load_i64_le(start + i) & _HIGH_BITS == 0:
        i += 8
    left = size - i
    if left < 8 and load_i64_le(start + i) & _HIGH_BITS & (1 << 8 * left) - 1 == 0:
        return True
    while i < size:
        byte = load_u8(start + i)
        if byte < 0x80:
            i += 1
            continue
        if 0xC2 <= byte <= 0xDF:
            more, low, high = 1, 0x80, 0xBF
        elif 0xE0 <= byte <= 0xEF:
            more = 2
            low = 0xA0 if byte == 0xE0 else 0x80
            high = 0x9F if byte == 0xED else 0xBF
        elif 0xF0 <= byte <= 0xF4:
            more = 3
            low = 0x90 if byte == 0xF0 else 0x80
            high = 0x8F if byte == 0xF4 else 0xBF
        else:
            return False
        if size - i <= more:
            return False
        second = load_u8(start + i + 1)
        if second < low or second > high:
            return False
        for k in range(2, more + 1):
            if load_u8(start + i + k) & 0xC0 != 0x80:
                return False
        i += more + 1
    return True


@inner
def clear_bit(bitmap: int, i: int) -> None:
    """Clear a bit of an Arrow bitmap."""
    address = bitmap + (i >> 3)
    store_8(address, load_u8(address) & ~(1 << (i & 7)))


@inner
def fill_false(to: int, first: int, count: int) -> None:
    """Clear a run of bits."""
    for i in range(first, first + count):
        clear_bit(to, i)
