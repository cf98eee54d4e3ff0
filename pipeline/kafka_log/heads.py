"""How the heads of batches come into memory, where kernels look for them: as far from each other as in the file."""

from __future__ import annotations

import mmap
import os
from io import FileIO
from typing import Any, Protocol

import numpy as np

from codecgen.runtime.arrow.decoder import Chunk
from kafka_codecs import RECORD_BATCH
from kafka_log import framing

WINDOW = 16 << 20
"""Bytes of a file that are looked through at a time when batches are large. Memory holds the pages with heads."""

FAR = 24 << 10
"""Bytes from one batch to the next from which on it is faster to read each head by itself than to read everything:
a read of a few bytes takes as long as it takes to copy so many."""

TRIAL = 32
"""Batches after which it is decided anew which of the two is done."""

_LENGTH = next(f.name for f in RECORD_BATCH.fields if f.measures is not None)
_AT = RECORD_BATCH.offset_of(_LENGTH)
_BEHIND = _AT + RECORD_BATCH.size_of(_LENGTH)
_COUNT = "record_count"
_HEAD = RECORD_BATCH.offset_of(_COUNT) + RECORD_BATCH.size_of(_COUNT)


class Heads(Protocol):
    """Fills a chunk with what kernels read of the entries of a file, from ``position`` on, none of it behind ``stop``."""

    chunk: Chunk

    def fill(self, position: int, stop: int) -> None: ...


class Sparse(Chunk):
    """Memory of which only the pages that are written to are there."""

    def grow(self, capacity: int) -> None:
        memory = mmap.mmap(-1, capacity + 64)
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            try:
                memory.madvise(mmap.MADV_NOHUGEPAGE)
            except OSError:
                pass  # a system without huge pages does not know them
        self.array = np.frombuffer(memory, np.uint8)
        self.capacity = capacity
        self.size = 0


class ReadHeads:
    """Reads each head by itself where batches are large, and everything where they are small."""

    def __init__(self, file: FileIO, chunk_bytes: int) -> None:
        self.file = file
        self.step = chunk_bytes
        self.chunk: Chunk = Sparse(max(WINDOW, chunk_bytes))
        self.far = True

    def fill(self, position: int, stop: int) -> None:
        if not self.far:
            self._everything(position, stop)
        if self.far:
            self._each(position, stop)

    def _everything(self, position: int, stop: int) -> None:
        chunk = self.chunk
        view = chunk.view()
        room = min(self.step, stop - position)
        chunk.size = read_at(self.file, view[:room], position)
        at = count = 0
        while count < TRIAL and chunk.size - at >= framing.HEAD:
            at += max(size_of(view, at), framing.HEAD)
            count += 1
        self.far = at >= count * FAR

    def _each(self, position: int, stop: int) -> None:
        chunk = self.chunk
        view = chunk.view()
        room = min(chunk.capacity, stop - position)
        at = count = got = 0
        while room - at >= framing.HEAD:
            got = read_at(self.file, view[at : min(at + _HEAD, room)], position + at)
            if got < framing.HEAD:
                break
            size = size_of(view, at)
            if not framing.HEAD <= size <= room - at:
                break  # it does not end in the window: the next one begins with it
            at += size
            count += 1
            if count >= TRIAL and at < count * FAR:
                self.far = False
                break
        chunk.size = at or got


class MappedHeads:
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
    """Length of the entry whose head is at a place, as it says itself."""
    return int.from_bytes(view[at + _AT : at + _BEHIND], "big", signed=True) + _BEHIND


def read_at(file: FileIO, view: memoryview, position: int) -> int:
    """Fill a view with the bytes at a place of a file. How many there were."""
    done = 0
    while done < len(view):
        if hasattr(os, "preadv"):
            n = os.preadv(file.fileno(), (view[done:],), position + done)
        else:
            file.seek(position + done)
            n = file.readinto(view[done:]) or 0
        if not n:
            break
        done += n
    return done
