"""Arrow columns of bytes, as kernels of views into payloads read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.primitives.memory import SLACK


def chunked(name: str, array: Any) -> pa.ChunkedArray:
    """An array of a part in its chunks. Raises TypeError for one of something else than bytes."""
    found = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    kind = found.type
    views = pa.types.is_binary_view(kind)
    plain = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if not (plain or views or pa.types.is_null(kind)):
        raise TypeError(f"{name} is {kind}, not binary")
    return found


class PartBytes:
    """An array of bytes, as a kernel sees it."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array.cast(pa.large_binary())
        validity, offsets, data = self.array.buffers()
        count = len(self.array)
        self.validity = validity if self.array.null_count else None
        self.first_bit = self.array.offset
        self.data = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        if count == 0 or offsets is None:
            self.offsets = np.zeros(count + 1, np.int64)
        else:
            whole = np.frombuffer(offsets, np.int64)
            self.offsets = whole[self.array.offset : self.array.offset + count + 1]
        steps = np.diff(self.offsets)
        if (steps < 0).any() or self.offsets[0] < 0 or self.offsets[-1] > len(self.data):
            raise ValueError("an array whose offsets are not in order, or beyond its bytes")

    def get(self, i: int) -> bytes | None:
        """The bytes of a row."""
        if self.validity is not None and not self.array[i].is_valid:
            return None
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def safe_rows(self) -> int:
        """How many rows end so far before the end of the memory that kernels may read on behind them."""
        return int(np.searchsorted(self.offsets[1:], len(self.data) - SLACK, side="right"))

    def table(self) -> list[int]:
        """Addresses of bytes, offsets and validity, and the first bit."""
        validity = 0 if self.validity is None else self.validity.address
        return [self.data.ctypes.data, self.offsets.ctypes.data, validity, self.first_bit]

    def tail(self, first: int) -> PartBytes:
        """The rows from one on, in memory that may be read on behind them."""
        tail: PartBytes = object.__new__(PartBytes)
        tail.array = self.array.slice(first)
        tail.validity, tail.first_bit = self.validity, self.first_bit + first
        begin, end = int(self.offsets[first]), int(self.offsets[-1])
        tail.data = np.zeros(end - begin + SLACK, np.uint8)
        tail.data[: end - begin] = self.data[begin:end]
        tail.offsets = np.array(self.offsets[first:] - begin, np.int64)
        return tail
