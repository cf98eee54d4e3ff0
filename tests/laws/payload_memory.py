"""Payloads decoded by kernels as plain Python, with every access to memory checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow import payloads as decoding
from codecgen.runtime.arrow.payloads import Payloads, decode
from tests.laws.memory import Memory, watched
from tests.support.scanned_rows import unpacked

Data = Sequence[bytes | None]
TIGHT = {"PROBE": 2, "SPARE": 3, "MARGIN": 1.0}
"""Bounds while the laws read, so that few rows reach them."""


class _Watched:
    """A module of which some functions are others."""

    def __init__(self, module: Any, **functions: Any) -> None:
        self._module = module
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@contextmanager
def tracked(memory: Memory, tight: bool = True) -> Iterator[None]:
    """What the decoder allocates meanwhile is memory that kernels may touch."""

    def array(make: Any) -> Any:
        def made(*args: Any, **options: Any) -> Any:
            found = make(*args, **options)
            memory.array(found)
            return found

        return made

    numpy = _Watched(np, empty=array(np.empty), zeros=array(np.zeros), array=array(np.array))
    own: list[tuple[Any, str, Any]] = [(decoding, "np", numpy)]
    own.append((decoding, "pa", _Watched(pa, allocate_buffer=memory.allocate)))
    own += [(decoding, name, value) for name, value in (TIGHT if tight else {}).items()]
    before = [(module, name, getattr(module, name)) for module, name, _ in own]
    try:
        for module, name, value in own:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


@contextmanager
def anywhere() -> Iterator[None]:
    """Kernels may touch all memory meanwhile."""
    memory = Memory()
    memory.ranges.append((0, 1 << 62, True))
    with watched(memory):
        yield


def array_of(data: Data, memory: Memory, before: int = 0) -> pa.Array:
    """Bytes as an array of exactly as much memory as they take, of which the first ones are sliced off."""
    values = [b"sliced"] * before + list(data)
    sizes = [0 if one is None else len(one) for one in values]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    joined = np.frombuffer(b"".join(one or b"" for one in values) or b"\0", np.uint8).copy()
    there = np.array([one is not None for one in values] + [False] * (-len(values) % 8))
    bits = np.packbits(there, bitorder="little")
    for one in (offsets, joined, bits):
        memory.array(one, writable=False)
    buffers = [pa.py_buffer(one) for one in (bits, offsets, joined)]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)[before:]


def decoded(
    view: Any,
    parts: Mapping[str, Data],
    names: Sequence[str] | None = None,
    *,
    compiled: bool = True,
    before: int = 0,
    tight: bool = True,
    **options: Any,
) -> list[Payloads]:
    """What there is in some payloads: by the kernel in memory that is watched, or by the reference codecs."""
    memory = Memory()
    with tracked(memory, tight), watched(memory):
        arrays = {name: array_of(data, memory, before) for name, data in parts.items()}
        found = list(decode(view, arrays, names, compiled=compiled, **options))
    for one in found:
        one.batch.validate(full=True)
    return found


def summed(found: Sequence[Payloads]) -> dict[str, Any]:
    """All that was found, whatever the batches."""
    ends = [0, *(one.end for one in found)]
    assert [one.start for one in found] == ends[:-1], "batches follow each other"
    return {
        "values": [row for one in found for row in unpacked(one.batch)],
        "rows": [row for one in found for row in one.rows.to_pylist()],
        "rejected": [wrong for one in found for wrong in one.rejected],
        "unknown": [row for one in found for row in one.unknown.to_pylist()],
    }
