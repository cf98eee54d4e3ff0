"""How the batch headers come into memory, where kernels look for them: as far from each other as in the file."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from typing import Any, Literal

import numpy as np

from codecgen.runtime.arrow.decoder import Chunk
from codecgen.runtime.arrow.memory_limit import limit_size
from codecgen.runtime.errors import CodecError
from kafka_codecs import LOG_ENTRY
from kafka_log.segment import framing
from kafka_log.segment.framing import HEADER_BYTES
from kafka_log.segment.positioned_reads import UnreadableError, read_at

WINDOW = limit_size(32 << 20)
"""Bytes of a file that are looked through at a time when batches are large. Memory holds the pages with headers."""

FIRST = 64
"""Heads that are read at first, to see how large batches are."""

MOST = 1024
"""Heads that are read at a time: of more the pages cost more than the call."""

FAR = 24 << 10
"""Bytes from one batch to the next from which on it is faster to read each head by itself than to read everything:
a read of a few bytes takes as long as it takes to copy so many."""

FAR_BY_KERNEL = 8 << 10
"""The same where a kernel reads the headers."""

TRIAL = 32
"""Batches after which it is decided anew which of the two is done."""

FAR_ON_DISK = 128 << 10
"""The same where the disk is waited for: a disk takes as long to find a few bytes as to read so many in a row."""

PIECE = 128 << 10
"""Bytes that the system is asked at a time to read ahead. It may ignore what exceeds its own limit."""

_OF_READ_AHEAD = ("posix_fadvise", "preadv", "RWF_NOWAIT")

_LENGTH = LOG_ENTRY.length
"""Where all entries say how long they are; None where they do not say it in the same way."""


class Sparse(Chunk):
    """Memory of which only the pages that are written to are there."""

    def grow(self, capacity: int) -> None:
        if sys.platform == "win32":
            self.memory = mmap.mmap(-1, capacity + 64)
        else:  # pages that are shared take longer to make
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            self.memory = mmap.mmap(-1, capacity + 64, flags=flags)
        self._advise("MADV_NOHUGEPAGE")
        self.array = np.frombuffer(self.memory, np.uint8)
        self.capacity = capacity
        self.size = 0
        self.dense = False

    def expect_all(self) -> None:
        """Most of it will be written to: large pages are faster to make."""
        if not self.dense:
            self._advise("MADV_HUGEPAGE")
            self.dense = True

    def _advise(self, name: str) -> None:
        advice = getattr(mmap, name, None)
        if advice is not None:
            try:
                self.memory.madvise(advice)
            except OSError:
                pass  # a system without huge pages does not know them


class DiskReadAhead:
    """Asks the system to read bytes of a file from the disk before they are needed, if the file is not in memory.

    Heads that lie apart are no pattern that the system recognizes: without a request it waits for the disk at each of them.
    """

    def __init__(self, file: FileIO) -> None:
        self.file = file
        self.is_cold = False
        """Whether bytes were met that are not in memory."""
        self._can_ask = isinstance(file, FileIO) and all(hasattr(os, n) for n in _OF_READ_AHEAD)
        self._asked = 0

    def request(self, position: int, stop: int) -> None:
        """Request the bytes from ``position`` to ``stop`` that were not requested yet, if the byte at ``position`` is not in memory or
        another one was not."""
        if not self._can_ask or not (self.is_cold or self._waits_at(position)):
            return
        self.is_cold = True
        for start in range(max(position, self._asked), stop, PIECE):
            with suppress(OSError):
                os.posix_fadvise(self.file.fileno(), start, PIECE, os.POSIX_FADV_WILLNEED)
            self._asked = start + PIECE

    def _waits_at(self, position: int) -> bool:
        try:
            os.preadv(self.file.fileno(), (bytearray(1),), position, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        except OSError:
            self._can_ask = False  # the file system cannot tell
        return False


class ReadHeaders:
    """Reads each head by itself where batches are large, and everything where they are small. ``compiled``: by a kernel,
    if the system has what it needs."""

    def __init__(self, file: FileIO, chunk_bytes: int, compiled: bool) -> None:
        self.file = file
        self.step = max(chunk_bytes, FAR)  # what does not fit into it is large
        self.chunk = Sparse(max(WINDOW, self.step))
        self.hop = _kernel() if compiled and isinstance(file, FileIO) else None
        self.far_from = FAR if self.hop is None else FAR_BY_KERNEL
        self.far = _LENGTH is not None
        self.most = FIRST
        self.ahead = DiskReadAhead(file)
        self.span = 0
        """Bytes of the next MOST batches, if they are as large as those before and near enough that the disk reads them in a row; else 0."""

    def fill(self, position: int, stop: int) -> None:
        if not self.far:
            self._everything(position, stop)
        if self.far:
            self._each(position, stop)

    def _everything(self, position: int, stop: int) -> None:
        self.chunk.expect_all()
        view = self.chunk.view()
        room = min(self.step, stop - position)
        self.chunk.size = read_at(self.file, view[:room], position)
        at = count = 0
        while count < TRIAL and self.chunk.size - at >= framing.HEADER_START:
            at += max(size_of(view, at), framing.HEADER_START)
            count += 1
        self.far = _LENGTH is not None and at >= count * self.far_from

    def _each(self, position: int, stop: int) -> None:
        room = min(self.chunk.capacity, stop - position)
        at = count = got = 0
        if self.span:
            self.ahead.request(position, min(position + 2 * self.span, stop))
        if self.hop is not None:
            at, count = self.hop(self.file, self.chunk, room, position, self.most, self.far_from)
        if at == 0:
            at, count, got = self._one_by_one(room, position)  # errors are raised here
        self.chunk.size = at or got
        self.far = count < TRIAL or at >= count * self.far_from
        self.span = at * MOST // count if count and at < count * FAR_ON_DISK else 0
        self.most = MOST

    def _one_by_one(self, room: int, position: int) -> tuple[int, int, int]:
        """Read headers one after the other into the chunk. Return where it stops, after how many batches, and how many bytes of the header are there."""
        view = self.chunk.view()
        at = count = 0
        while count < self.most and room - at >= framing.HEADER_START:
            wanted = min(HEADER_BYTES, room - at)
            try:
                got = read_at(self.file, view[at : at + wanted], position + at)
            except UnreadableError:
                if count:
                    return at, count, 0
                raise
            if got < framing.HEADER_START:
                return at, count, got
            size = size_of(view, at)
            if not framing.HEADER_START <= size <= room - at or got < min(wanted, size):
                return at, count, got  # it does not end in the window: the next one begins with it
            at += size
            count += 1
            if count >= TRIAL and at < count * self.far_from:
                break
        return at, count, 0


def _kernel() -> Callable[[FileIO, Chunk, int, int, int, int], tuple[int, int]] | None:
    """Return the compiled function that reads headers as ``_one_by_one`` does, None without a compiler.

    It stops at the first unusual header, and returns its position and the number of batches before it.
    """
    from codecgen.runtime.arrow import header_reads  # it takes numba

    function, length = header_reads.pread(), _LENGTH
    if function is None or length is None:
        return None
    number = (length.offset, length.size, int(length.signed), int(length.endian == "little"))
    layout = (HEADER_BYTES, framing.HEADER_START, *number, length.before)

    def hop(
        file: FileIO, chunk: Chunk, room: int, position: int, most: int, far: int
    ) -> tuple[int, int]:
        place = (chunk.address, room, position)
        at, count = header_reads.read_headers(
            function, file.fileno(), *place, *layout, most, TRIAL, far
        )
        return int(at), int(count)

    return hop


class MappedHeaders:
    """Lets kernels read the file itself, by a map."""

    def __init__(self, file: FileIO, size: int) -> None:
        self.chunk = Chunk(0)
        self.mapped: Any = np.empty(0, np.uint8)
        if size:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.mapped = np.frombuffer(memory, np.uint8)

    def fill(self, position: int, stop: int) -> None:
        chunk = self.chunk
        chunk.array = self.mapped[position:stop]
        chunk.size = chunk.capacity = len(chunk.array)


def size_of(view: memoryview, at: int) -> int:
    """Length of the entry whose head is at a place, as it says itself; 0 when it says what no length can be."""
    length = _LENGTH
    if length is None:
        try:
            return framing.frame_of(view[at:], 0, "").size
        except CodecError:
            return 0
    data = view[at + length.offset : at + length.end]
    order: Literal["big", "little"] = "big" if length.endian == "big" else "little"
    return int.from_bytes(data, order, signed=length.signed) + length.before
