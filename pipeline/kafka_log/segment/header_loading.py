"""Loaders of batch headers: they copy headers into memory, at the same distance from each other as in the file, where the kernels expect them."""

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
"""Bytes of a file that one chunk spans if batches are large. Only the pages with headers are in memory."""

FIRST = 64
"""Number of headers in the first chunk, to find out how large batches are."""

MOST = 1024
"""Maximum number of headers in a chunk. With more, allocating pages costs more than the calls save."""

FAR = 24 << 10
"""Minimum mean batch size for reading single headers. One call for a few bytes takes as long as copying this many bytes."""

FAR_BY_KERNEL = 8 << 10
"""Minimum mean batch size for reading single headers by a kernel."""

TRIAL = 32
"""Number of batches after which the way of reading is chosen again."""

FAR_ON_DISK = 128 << 10
"""Minimum mean batch size for single reads from a disk. A seek takes as long as reading this many bytes in sequence."""

PIECE = 128 << 10
"""Bytes of one read-ahead request. The system may ignore bytes beyond its own limit."""

_OF_READ_AHEAD = ("posix_fadvise", "preadv", "RWF_NOWAIT")

_LENGTH = LOG_ENTRY.length
"""Length field that all layouts of entries share; None if they have different ones."""


class SparseChunk(Chunk):
    """Chunk whose memory pages are allocated by the system when they are first written to."""

    def grow(self, capacity: int) -> None:
        """Replace the memory by new zeroed pages for ``capacity`` bytes and 64 bytes of slack. The
        former bytes are lost, and ``size`` is 0.
        """
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
        """Request large pages, once: most of the chunk will be written to, and large pages are allocated faster."""
        if not self.dense:
            self._advise("MADV_HUGEPAGE")
            self.dense = True

    def _advise(self, name: str) -> None:
        """Apply the ``madvise`` option called ``name`` to the memory. Do nothing if the system does
        not have it or refuses it.
        """
        advice = getattr(mmap, name, None)
        if advice is not None:
            try:
                self.memory.madvise(advice)
            except OSError:
                pass  # a system without huge pages does not know them


class DiskReadAhead:
    """Requests to the system to read bytes of a file from disk before they are needed, if the file is not in the page cache.

    Without a request the system does not read ahead, as headers with gaps between them look like random access.
    """

    def __init__(self, file: FileIO) -> None:
        """Prepare requests for ``file``. A file of a store is never requested ahead."""
        self.file = file
        self.is_cold = False
        """Whether bytes were met that are not in memory."""
        self._can_ask = isinstance(file, FileIO) and all(hasattr(os, n) for n in _OF_READ_AHEAD)
        self._asked = 0

    def request(self, position: int, stop: int) -> None:
        """Ask the system to read the bytes from ``position`` to ``stop`` (rounded up by less than
        128 KiB) that were not requested before, in the background. Do nothing if the byte at
        ``position`` is in memory and no other was missing before, or the system cannot tell or be
        asked.
        """
        if not self._can_ask or not (self.is_cold or self._waits_at(position)):
            return
        self.is_cold = True
        for start in range(max(position, self._asked), stop, PIECE):
            with suppress(OSError):
                os.posix_fadvise(self.file.fileno(), start, PIECE, os.POSIX_FADV_WILLNEED)
            self._asked = start + PIECE

    def _waits_at(self, position: int) -> bool:
        """Return True if the byte at ``position`` is not in the page cache. Return False if it is,
        or if the file system cannot tell: then no request is ever made again.
        """
        try:
            os.preadv(self.file.fileno(), (bytearray(1),), position, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        except OSError:
            self._can_ask = False  # the file system cannot tell
        return False


class ReadHeaders:
    """Loader that reads each header by itself if batches are large, and all bytes if they are small."""

    def __init__(self, file: FileIO, chunk_bytes: int, compiled: bool) -> None:
        """Prepare to read ``file``. With ``compiled`` a kernel reads the headers if a compiler is available and the file is local."""
        self.file = file
        self.step = max(chunk_bytes, FAR)  # what does not fit into it is large
        self.chunk = SparseChunk(max(WINDOW, self.step))
        self.read_by_kernel = _kernel() if compiled and isinstance(file, FileIO) else None
        self.far_from = FAR if self.read_by_kernel is None else FAR_BY_KERNEL
        self.far = _LENGTH is not None
        self.most = FIRST
        self.ahead = DiskReadAhead(file)
        self.span = 0
        """Bytes of the next MOST batches, if they are as large as those before and near enough that the disk reads them in a row; else 0."""

    def fill(self, position: int, stop: int) -> None:
        """Fill the chunk from byte ``position`` (included) to at most ``stop`` (excluded): with all
        bytes if batches are small, else with their headers alone, at their distances in the file
        (the bytes between them are undefined). Choose between both by the sizes met. Raise
        UnreadableError if the first bytes cannot be read.
        """
        if not self.far:
            self._read_all(position, stop)
        if self.far:
            self._read_headers(position, stop)

    def _read_all(self, position: int, stop: int) -> None:
        """Fill the chunk with the bytes from ``position`` to at most ``stop``, as many as one step
        takes. Set ``far`` if the first 32 batches are large enough on average to read headers
        alone. Raise UnreadableError if the first sector cannot be read.
        """
        self.chunk.expect_all()
        view = self.chunk.view()
        room = min(self.step, stop - position)
        self.chunk.size = read_at(self.file, view[:room], position)
        at = count = 0
        while count < TRIAL and self.chunk.size - at >= framing.HEADER_START:
            at += max(size_of(view, at), framing.HEADER_START)
            count += 1
        self.far = _LENGTH is not None and at >= count * self.far_from

    def _read_headers(self, position: int, stop: int) -> None:
        """Fill the chunk with single headers from ``position`` on, by a kernel if there is one, and
        clear ``far`` if 32 or more batches are too small on average for that. Raise UnreadableError
        if the first header cannot be read.
        """
        room = min(self.chunk.capacity, stop - position)
        at = count = got = 0
        if self.span:
            self.ahead.request(position, min(position + 2 * self.span, stop))
        if self.read_by_kernel is not None:
            at, count = self.read_by_kernel(
                self.file, self.chunk, room, position, self.most, self.far_from
            )
        if at == 0:
            at, count, got = self._one_by_one(room, position)  # errors are raised here
        self.chunk.size = at or got
        self.far = count < TRIAL or at >= count * self.far_from
        self.span = at * MOST // count if count and at < count * FAR_ON_DISK else 0
        self.most = MOST

    def _one_by_one(self, room: int, position: int) -> tuple[int, int, int]:
        """Read headers one after the other into the chunk. Return the position in it after the last
        complete batch, the number of batches, and the bytes that were read of the next header. Stop
        at an entry that is incomplete, invalid or unreadable, after ``most`` headers, and after
        TRIAL or more batches that are too small on average. Raise UnreadableError if the first
        header cannot be read.
        """
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
    """Return the function that reads headers as ``_one_by_one`` does, but compiled, and returns
    only position and number. Return None if the system has no usable ``pread``, or the layouts have
    no common length field.

    It stops at the first unusual header, and returns its position and the number of batches before it.
    """
    from codecgen.runtime.arrow import header_reads  # it takes numba

    function, length = header_reads.pread(), _LENGTH
    if function is None or length is None:
        return None
    number = (length.offset, length.size, int(length.signed), int(length.endian == "little"))
    layout = (HEADER_BYTES, framing.HEADER_START, *number, length.before)

    def read_headers(
        file: FileIO, chunk: Chunk, room: int, position: int, most: int, far: int
    ) -> tuple[int, int]:
        """Read headers into ``chunk``. Return the position in it after the last one, and the number of batches."""
        place = (chunk.address, room, position)
        at, count = header_reads.read_headers(
            function, file.fileno(), *place, *layout, most, TRIAL, far
        )
        return int(at), int(count)

    return read_headers


class MappedHeaders:
    """Loader without copies: the chunk is a window of the memory-mapped file."""

    def __init__(self, file: FileIO, size: int) -> None:
        """Map ``size`` bytes of ``file`` into memory; an empty file is not mapped."""
        self.chunk = Chunk(0)
        self.mapped: Any = np.empty(0, np.uint8)
        if size:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.mapped = np.frombuffer(memory, np.uint8)

    def fill(self, position: int, stop: int) -> None:
        """Set the chunk to the bytes of the map from ``position`` to ``stop`` (excluded)."""
        chunk = self.chunk
        chunk.array = self.mapped[position:stop]
        chunk.size = chunk.capacity = len(chunk.array)


def size_of(view: memoryview, at: int) -> int:
    """Return the size in bytes that the entry at index ``at`` of ``view`` states, unverified: it
    may be negative or too small. If the layouts have no common length field, return 0 for an
    impossible length.
    """
    length = _LENGTH
    if length is None:
        try:
            return framing.frame_of(view[at:], 0, "").size
        except CodecError:
            return 0
    data = view[at + length.offset : at + length.end]
    order: Literal["big", "little"] = "big" if length.endian == "big" else "little"
    return int.from_bytes(data, order, signed=length.signed) + length.before
