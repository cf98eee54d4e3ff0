"""Memory between pages that nobody may touch: a step beyond it ends the process. Linux only."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import Chunk
from codecgen.runtime.arrow.primitives.memory import SLACK

AVAILABLE = sys.platform == "linux"
PAGE = mmap.PAGESIZE
_NONE, _READ, _WRITE = 0, 1, 3
_PRIVATE, _ANONYMOUS = 0x02, 0x20
_FAILED = ctypes.c_void_p(-1).value


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


class Guarded:
    """Pages with a forbidden one on either side.

    What is placed here ends at the last byte (``where`` is "end"), or begins at the first ("start").
    """

    def __init__(self, where: str, capacity: int = PAGE) -> None:
        self.libc = _libc()
        self.where = where
        self.capacity = 0
        self.whole = 0
        self._make(capacity)

    def _make(self, capacity: int) -> None:
        if self.whole:
            self.libc.munmap(self.whole, self.capacity + 2 * PAGE)
        self.capacity = -(-max(capacity, 1) // PAGE) * PAGE
        size = self.capacity + 2 * PAGE
        whole = self.libc.mmap(None, size, _NONE, _PRIVATE | _ANONYMOUS, -1, 0)
        if whole == _FAILED:
            raise MemoryError(f"no {size} bytes of memory")
        self.whole = int(whole)
        self.first = self.whole + PAGE
        self.bytes = np.ctypeslib.as_array(
            (ctypes.c_uint8 * self.capacity).from_address(self.first)
        )
        self.allowed = _NONE
        self.allow(_WRITE)

    def allow(self, what: int) -> None:
        if what == self.allowed:
            return
        if self.libc.mprotect(self.first, self.capacity, what):
            raise OSError(ctypes.get_errno(), "mprotect")
        self.allowed = what

    def read_only(self) -> None:
        self.allow(_READ)

    def place(self, size: int) -> int:
        """The address of so many bytes; those that were here before are gone."""
        if size > self.capacity:
            self._make(2 * size)
        else:
            self.allow(_WRITE)
        return self.first + self.capacity - size if self.where == "end" else self.first

    def array(self, size: int) -> Any:
        """So many bytes; those that were here before are gone."""
        at = self.place(size) - self.first
        return self.bytes[at : at + size]


class GuardedChunk(Chunk):
    """A chunk whose slack ends, or whose first byte is, at a forbidden page."""

    def __init__(self, where: str, moved: Callable[[int, int], None] = lambda *_: None) -> None:
        self.memory = Guarded(where)
        self.moved = moved
        """Told the address and the bytes of the memory whenever these change."""
        self.grow(0)

    def grow(self, capacity: int) -> None:
        self.array = self.memory.array(capacity + SLACK)
        self.array[capacity:] = 0x80  # continues every varint
        self.capacity = capacity
        self.size = 0
        self.moved(self.address, capacity + SLACK)

    def put(self, data: bytes) -> None:
        """Just these bytes, to be read only."""
        self.grow(len(data))
        self.array[: len(data)] = np.frombuffer(data, np.uint8)
        self.size = len(data)
        self.memory.read_only()


class Outputs:
    """What the decoder allocates: each buffer between pages of its own, and all of them used again after ``reset``."""

    def __init__(
        self, where: str, asked: Callable[[int], None], made: Callable[[int, int], None]
    ) -> None:
        self.where = where
        self.asked = asked
        """Told the bytes of a buffer before there is one."""
        self.made = made
        """Told its address and its bytes."""
        self.slots: list[Guarded] = []
        self.reset()

    def reset(self) -> None:
        self.count = 0
        self.total = 0
        """Bytes in the buffers since then."""

    def allocate(self, size: int) -> Any:
        self.count += 1
        self.total += size
        self.asked(size)
        if self.count > len(self.slots):
            self.slots.append(Guarded(self.where))
        address = self.slots[self.count - 1].place(size)
        self.made(address, size)
        ctypes.memset(address, 0xDB, size)  # what a kernel leaves out is seen
        return pa.foreign_buffer(address, size)


def table_in(memory: Guarded, shape: tuple[int, ...]) -> Any:
    """An array of 64-bit numbers, all zero."""
    array = memory.array(8 * int(np.prod(shape)))
    array[:] = 0
    return array.view(np.int64).reshape(shape)
