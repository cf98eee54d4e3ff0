"""Kernels as plain Python, with every access to memory checked against what they were given."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import numba
import pyarrow as pa

from codecgen.runtime.arrow import primitives
from codecgen.runtime.arrow.chunks import Chunk
from tests.fuzz.checked import MODULES, PACKAGE, PLAIN, PLAIN_WRITING, PRIMITIVES, WRITING


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
        raise Broken(
            f"{'write' if written else 'read'} of {size} bytes, {near[1:]} from the nearest memory"
        )


class TrackedChunk(Chunk):
    """A chunk that kernels may read, and its slack."""

    def __init__(self, capacity: int, memory: Memory) -> None:
        self.memory = memory
        super().__init__(capacity)

    def grow(self, capacity: int) -> None:
        super().grow(capacity)
        self.memory.array(self.array, writable=False)


_CURRENT: list[Memory] = [Memory()]
_NAME = "primitives_of_laws"


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
    """The names of a module of kernels, without a compiler and with checks."""
    _primitives()
    space: dict[str, Any] = {"__name__": name}
    with _without_compiler():
        exec(compile(text.replace(primitives.__name__, _NAME), name, "exec"), space)
    return space


class _Primitives(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the primitives once more, under another name: plain Python, and what touches memory looks first."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != _NAME:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name == _NAME)

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        stem = module.__name__.rpartition(".")[2]
        path = PACKAGE / ("__init__.py" if stem == _NAME else f"{stem}.py")
        text = path.read_text(encoding="utf-8").replace(primitives.__name__, _NAME)
        exec(compile(text, str(path), "exec"), module.__dict__)
        for name, entry in {**PRIMITIVES, **WRITING, **PLAIN, **PLAIN_WRITING}.items():
            own = module.__dict__.get(name)
            if own is not None and getattr(own, "__module__", None) == module.__name__:
                module.__dict__[name] = _checked(name, own, *entry[:2])


def _checked(name: str, raw: Any, parameters: str, accesses: tuple[Any, ...]) -> Any:
    lines = [f"def {name}({parameters}):"]
    lines += [f"    _allowed({p}, {size}, {written})" for p, size, written in accesses]
    space: dict[str, Any] = {"max": max, "_raw": raw, "_allowed": _allowed}
    exec("\n".join([*lines, f"    return _raw({parameters})"]), space)
    return space[name]


@cache
def _primitives() -> None:
    with _without_compiler():
        sys.meta_path.insert(0, _Primitives())
        for stem in MODULES:
            importlib.import_module(f"{_NAME}.{stem}")


@contextmanager
def _without_compiler() -> Iterator[None]:
    before = numba.config.DISABLE_JIT
    numba.config.DISABLE_JIT = 1
    try:
        yield
    finally:
        numba.config.DISABLE_JIT = before
