"""Kernels as plain Python, with every access to memory checked against what they were given."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import pyarrow as pa

from codecgen.runtime.arrow.chunk import Chunk
from tests.arrow.checked import PLAIN, PLAIN_WRITING, PRIMITIVES, WRITING

MARK = "\n\n# " + "-" * 60 + " the view "
"""What stands between the primitives of a module of kernels and its own functions."""


class Broken(Exception):
    """Something that must hold does not: an access beyond memory, or rows that differ."""


class Memory:
    """The memory that kernels may touch: (address, end, may it be written?)."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int, bool]] = []
        self.kept: list[Any] = []

    def array(self, array: Any, writable: bool = True) -> None:
        self.kept.append(array)
        at = int(array.ctypes.data)
        self.ranges.append((at, at + array.nbytes, writable))

    def allocate(self, size: int) -> pa.Buffer:
        """A buffer of Arrow's, which kernels may write."""
        buffer = pa.allocate_buffer(size)
        self.buffer(buffer, True)
        return buffer

    def buffer(self, buffer: Any, writable: bool) -> None:
        self.kept.append(buffer)
        self.ranges.append((buffer.address, buffer.address + buffer.size, writable))

    def allowed(self, p: int, size: int, written: int) -> None:
        """Raises Broken for an access beyond the memory."""
        if size <= 0:
            return
        for start, end, writable in reversed(self.ranges):
            if start <= p and p + size <= end and (writable or not written):
                return
        near = min((min(abs(p - s), abs(p - e)), p - s, p - e) for s, e, _ in self.ranges)
        raise Broken(f"{'write' if written else 'read'} of {size} bytes, {near[1:]} from the nearest memory")  # fmt: skip


class TrackedChunk(Chunk):
    """A chunk that kernels may read, and its slack."""

    def __init__(self, capacity: int, memory: Memory) -> None:
        self.memory = memory
        super().__init__(capacity)

    def grow(self, capacity: int) -> None:
        super().grow(capacity)
        self.memory.array(self.array, writable=False)


_CURRENT: list[Memory] = [Memory()]
_PRIMITIVES: dict[str, dict[str, Any]] = {}


def _allowed(p: int, size: int, written: int) -> bool:
    _CURRENT[-1].allowed(p, size, written)
    return True


@contextmanager
def watched(memory: Memory) -> Iterator[None]:
    """Kernels that run meanwhile may touch this memory only."""
    _CURRENT.append(memory)
    try:
        yield
    finally:
        _CURRENT.pop()


def executed(name: str, text: str) -> dict[str, Any]:
    """The names of a module of kernels, without a compiler and with checks; primitives are made once for all modules."""
    head, mark, rest = text.partition(MARK)
    if not mark:
        head, rest = "", text
    key = hashlib.sha256(head.partition('"""\n\nfrom __future__')[2].encode()).hexdigest()
    with _without_compiler():
        if key not in _PRIMITIVES:
            _PRIMITIVES[key] = _checked(head)
        space = dict(_PRIMITIVES[key], __name__=name)
        exec(compile("# " + rest if mark else rest, name, "exec"), space)
    return space


@contextmanager
def _without_compiler() -> Iterator[None]:
    before = numba.config.DISABLE_JIT
    numba.config.DISABLE_JIT = 1
    try:
        yield
    finally:
        numba.config.DISABLE_JIT = before


def _checked(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "primitives_of_laws", "_allowed": _allowed}
    exec(compile(text, "primitives", "exec"), space)
    for name, (parameters, accesses, _) in {**PRIMITIVES, **WRITING, **PLAIN, **PLAIN_WRITING}.items():
        if name in space:
            lines = [f"def {name}({parameters}, _raw=_raw):"]
            lines += [f"    _allowed({p}, {size}, {written})" for p, size, written in accesses]
            own: dict[str, Any] = {**_OWN, "_raw": space[name], "_allowed": _allowed}
            exec("\n".join([*lines, f"    return _raw({parameters})"]), own)
            space[name] = own[name]
    return space


_OWN: dict[str, Callable[..., Any]] = {"max": max}
