"""Functions of C libraries that kernels call by their addresses.

A call from Python takes as long as some KiB of data take to be decompressed, and holds the lock of the interpreter. The libraries
are those that Python's packages bring: nothing is compiled for it, and where one does not say where its functions
are, Python calls them as ever.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from codecgen.runtime.arrow.primitives.compiling import JIT, intrinsic, ir, types

POINTER = ctypes.c_void_p


def _signature(result: int, *parameters: int) -> tuple[Any, Any]:
    """Return the numba type and the code generator of an intrinsic that calls the C function at its
    first argument. ``result`` and ``parameters`` are sizes of integers in bits; a shorter result is
    sign extended to 64 bits.
    """
    int64 = types.int64

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = [ir.IntType(bits) for bits in parameters]
        kind = ir.FunctionType(ir.IntType(result), kinds)
        called = builder.inttoptr(args[0], kind.as_pointer())
        passed = [
            value if bits == 64 else builder.trunc(value, to)
            for value, bits, to in zip(args[1:], parameters, kinds, strict=True)
        ]
        found = builder.call(called, passed)
        return found if result == 64 else builder.sext(found, ir.IntType(64))

    return int64(*[int64] * (1 + len(parameters))), code


if JIT:

    @intrinsic  # type: ignore[untyped-decorator]
    def call_1(typing: Any, function: Any, a: Any) -> Any:
        """Call the function ``int f(pointer)`` at an address."""
        return _signature(32, 64)

    @intrinsic  # type: ignore[untyped-decorator]
    def call_2(typing: Any, function: Any, a: Any, b: Any) -> Any:
        """Call the function ``int f(pointer, int)`` at an address."""
        return _signature(32, 64, 32)

    @intrinsic  # type: ignore[untyped-decorator]
    def call_4(typing: Any, function: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        """Call the function ``ssize_t f(int, pointer, size_t, int64_t)`` at an address."""
        return _signature(64, 32, 64, 64, 64)

    @intrinsic  # type: ignore[untyped-decorator]
    def call_5(typing: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        """Call the function ``size_t f(pointer, pointer, size_t, pointer, size_t)`` at an address."""
        return _signature(64, 64, 64, 64, 64, 64)

else:

    def _function_caller(result: Any, *parameters: Any) -> Any:
        kind = ctypes.CFUNCTYPE(result, *parameters)
        return lambda function, *args: kind(function)(*args)

    _INT, _LONG = ctypes.c_int, ctypes.c_int64
    call_1 = _function_caller(_INT, _LONG)
    call_2 = _function_caller(_INT, _LONG, _INT)
    call_4 = _function_caller(_LONG, _INT, _LONG, _LONG, _LONG)
    call_5 = _function_caller(_LONG, _LONG, _LONG, _LONG, _LONG, _LONG)


@cache
def library(*modules: str) -> ctypes.CDLL | None:
    """Load the first of the extension ``modules`` that is installed as a C library, and return it;
    for a module built into Python, Python itself. Return None if none can be loaded, on Windows,
    and on 32-bit systems.
    """
    if sys.maxsize < 1 << 32 or sys.platform == "win32":
        return None
    for module in modules:
        try:
            found = importlib.util.find_spec(module)
            if found is not None:
                return ctypes.CDLL(found.origin if found.has_location else None)
        except (ImportError, OSError):  # no such package; nothing that can be loaded
            continue
    return None


def address(function: Any) -> int:
    """Return the address of a library's function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@dataclass(frozen=True)
class Library:
    """Arguments that let a kernel call a library, and the objects they refer to."""

    arguments: tuple[int, ...]
    kept: Any = None
