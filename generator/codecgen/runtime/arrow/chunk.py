"""Bytes of a file in memory."""

from __future__ import annotations

import numpy as np


class Chunk:
    """Memory for bytes of a file, with the slack after them that kernels read."""

    def __init__(self, capacity: int) -> None:
        self.grow(capacity)

    def grow(self, capacity: int) -> None:
        """Make room for so many bytes; those that are in it are lost."""
        slack = 64
        self.array = np.empty(capacity + slack, np.uint8)
        self.array[-slack:] = 0
        self.capacity = capacity
        self.size = 0

    @property
    def address(self) -> int:
        return int(self.array.ctypes.data)

    def view(self) -> memoryview:
        return self.array.data
