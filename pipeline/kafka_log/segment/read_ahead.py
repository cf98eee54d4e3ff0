"""Bytes of a file that are read many at a time, where batches are looked at one after the other."""

from __future__ import annotations

from io import FileIO

from kafka_log.segment.positioned_reads import UnreadableError, read_at

WINDOW = 1 << 20
"""Bytes that are read at a time."""
MOST = 16 << 20
"""Bytes of one batch that are held besides."""


class ReadAhead:
    """A file of ``size`` bytes, of which a window is in memory."""

    def __init__(self, file: FileIO, size: int) -> None:
        self.file = file
        self.size = size
        self.buffer = self.held = memoryview(b"")
        self.start = 0
        """Where in the file that begins which is held, in a part of the buffer."""

    def at(self, position: int, n: int) -> memoryview | None:
        """What is held from a place on, ``n`` bytes at least. None where there are not so many, they cannot be read, or it is too
        much for here. The next call may put other bytes into that memory."""
        if 0 <= position - self.start <= len(self.held) - n:
            return self.held[position - self.start :]
        left = self.size - position
        if n > min(left, MOST):
            return None
        if len(self.buffer) < n:
            self.buffer = memoryview(bytearray(min(max(n, WINDOW), self.size)))
        self.held, self.start = self.buffer[:0], position
        try:
            got = read_at(self.file, self.buffer[:left], position)
        except UnreadableError:
            return None  # it is asked for again, and told
        self.held = self.buffer[:got]
        return self.held if n <= got else None
