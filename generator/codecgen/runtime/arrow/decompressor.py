"""Compressed sections of the index -> a buffer that is used again: by kernels, or by the codecs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from codecgen.runtime.arrow.chunks import Chunk
from codecgen.runtime.arrow.memory_limit import limit_size
from codecgen.runtime.arrow.primitives.compressed_sections import NUMBERS
from codecgen.runtime.arrow.primitives.native import Library
from codecgen.runtime.arrow.view import Codec, View
from codecgen.runtime.compression import CODECS
from codecgen.runtime.compression.lz4 import UNCHECKED_HEADER
from codecgen.runtime.compression.snappy import XERIAL, XERIAL_OR_RAW
from codecgen.runtime.errors import UnsupportedCodec
from codecgen.runtime.located_bytes import Limits

SCRATCH = limit_size(8 << 20)
"""Decompressed bytes after which rows are written. There is room for twice as many; a single entry may have more."""

STATUS, AT, CASE, START, END, CODEC, SECTION, SECTION_END, COUNT = range(9)
"""What a row of the index says of an entry, or of a section of entries that are rows themselves."""

_UNKNOWN: Any = object()

KERNELS_OF_CODECS: Mapping[str, Mapping[str | None, int]] = {
    "gzip": {None: 1},
    "lz4": {None: 1, UNCHECKED_HEADER: 2},
    "snappy": {None: 1, XERIAL: 2, XERIAL_OR_RAW: 3},
    "zstd": {None: 1},
}
"""The codecs that have kernels, and the kinds of sections that these know, by the variant."""

LIBRARIES = ("gzip", "zstd")
"""Those whose kernels call a library."""


@dataclass(frozen=True, slots=True)
class Sections:
    """A kernel that decompresses the sections of one codec.

    Attributes:
        kernel: The function.
        kinds: Form of the sections by case and number of the codec, 0 for sections that the kernel does not read.
        limits: Max decompressed bytes by case and number of the codec.
        library: Library that the kernel calls, None if it calls none.
    """

    kernel: Any
    kinds: Any
    limits: Any
    library: Library | None


class Decompressor:
    """Decompresses the sections (compressed parts) of indexed entries into a scratch buffer, which
    is used again at each call. While Arrow arrays refer to it, each call takes a new buffer.
    """

    def __init__(self, view: View, limits: Limits, compiled: bool, *, trims: bool = False) -> None:
        """Prepare for a view. ``trims`` is for arrays that refer to the buffer: one that is less than half full is made smaller."""
        self.view = view
        self.limits = limits
        self.compiled = compiled
        self.trims = trims
        self.scratch = Chunk(2 * SCRATCH)
        self.sections: dict[str, Sections | None] = {}

    def decompress(self, table: Any, chunk: Chunk, first: int, count: int) -> int:
        """Decompress the sections of entries ``first`` to ``count`` (excluded) of the index, and
        store their new addresses there, until the scratch buffer is full. Skip rejected and
        uncompressed entries. Return the first entry whose section is not ready, ``count`` if all
        are. A section that cannot be decompressed, or has an unknown codec, gets the status -1.

        Args:
            table: The index.
            chunk: Bytes that the entries lie in.
            first: First entry.
            count: Entry after the last one.
        """
        scratch = self.scratch
        if self.trims and (scratch.is_referenced or scratch.capacity < 2 * SCRATCH):
            scratch.grow(2 * SCRATCH)
        done, used = self._fill(table, chunk, first, count)
        if self.trims and 0 < used < SCRATCH:
            self._trim(table[first:done], used)
        return done

    def _trim(self, part: Any, used: int) -> None:
        """Move the ``used`` bytes of the scratch buffer into one of this size, so that arrays keep
        no more memory than that, and store the new addresses in the index rows ``part``.
        """
        before, start = self.scratch.buffer, self.scratch.address
        self.scratch.grow(used)
        self.scratch.array[:used] = np.frombuffer(before, np.uint8)[:used]
        moved = (start <= part[:, SECTION]) & (part[:, SECTION] <= start + used)
        part[moved, SECTION : SECTION_END + 1] += self.scratch.address - start

    def _fill(self, table: Any, chunk: Chunk, first: int, count: int) -> tuple[int, int]:
        """Decompress as :meth:`decompress` does, into the scratch buffer as it is. Return the first
        entry whose section is not ready, and the used bytes.
        """
        part = table[first:count]
        packed = np.flatnonzero((part[:, CODEC] != 0) & (part[:, STATUS] == 0))
        rows: list[int] = (packed + first).tolist()
        cases, numbers = part[packed][:, [CASE, CODEC]].T.tolist()
        used = 0
        ready = first  # all before this one are
        for i, case, number in zip(rows, cases, numbers, strict=True):
            codec = self.view.cases[case].codecs.get(number, _UNKNOWN)
            if i < ready or codec is None:
                continue
            if used >= SCRATCH:
                return i, used
            if codec is _UNKNOWN:
                table[i, STATUS] = -1
                continue
            if codec.name not in self.sections:
                self.sections[codec.name] = self._sections(codec.name)
            kernel = self.sections[codec.name]
            if kernel is not None and kernel.kinds[case, number]:
                ready, used = self._by_kernel(table, kernel, i, count, used)
                if ready > i:
                    continue
            done, used = self._by_codec(codec, table, chunk, i, used)
            if not done:
                return i, used
        return count, used

    def _by_codec(
        self, codec: Codec, table: Any, chunk: Chunk, row: int, used: int
    ) -> tuple[bool, int]:
        """Decompress the section of index row ``row`` in Python, and store its new addresses there.
        Return (True, used bytes of the scratch buffer). A section that is damaged or spelled
        unusually, or exceeds the limit, or whose codec is not installed, gets the status -1. Return
        (False, ``used``) if it does not fit behind ``used`` bytes; an empty buffer grows instead.
        """
        start, end = (int(place) - chunk.address for place in table[row, [SECTION, SECTION_END]])
        plain = self._decompress_clean(codec, chunk.view()[start:end])
        if plain is None:
            table[row, STATUS] = -1
            return True, used
        after = used + len(plain)
        if after > self.scratch.capacity:
            if used:
                return False, used
            self.scratch.grow(after)
        self.scratch.view()[used:after] = plain
        place = self.scratch.address
        table[row, [CODEC, SECTION, SECTION_END]] = 0, place + used, place + after
        return True, after

    def _by_kernel(
        self, table: Any, sections: Sections, first: int, count: int, used: int
    ) -> tuple[int, int]:
        """Decompress sections from the entry ``first`` on by a compiled kernel, behind ``used``
        bytes of the scratch buffer. Return the first entry that the kernel did not decompress
        (``count`` if it did all), and the used bytes.
        """
        start = self.scratch.address
        ready, after = sections.kernel(
            table.ctypes.data,
            self.view.row_size,
            first,
            count,
            sections.kinds.ctypes.data,
            sections.limits.ctypes.data,
            start + used,
            start + min(SCRATCH, self.scratch.capacity),
            start + self.scratch.capacity,
            *(sections.library.arguments if sections.library else ()),
        )
        return int(ready), int(after) - start

    def _limit(self, codec: Codec) -> int:
        """Return the max decompressed bytes of a section: the limit of the reader or, without one,
        that of the view's ``codec``.
        """
        return codec.limit if self.limits.decompressed is None else self.limits.decompressed

    def _sections(self, name: str) -> Sections | None:
        """Return the compiled kernel for the codec ``name`` with its limits for each case and codec
        number. Return None if there is none, the library that it calls is missing, or nothing is
        compiled.
        """
        kinds_of = KERNELS_OF_CODECS.get(name)
        if kinds_of is None or not self.compiled:
            return None
        kernel = importlib.import_module(f"codecgen.runtime.arrow.{name}")
        library = kernel.library() if name in LIBRARIES else None
        if library is None and name in LIBRARIES:
            return None
        kinds = np.zeros((len(self.view.cases), NUMBERS), np.int64)
        limits = np.zeros_like(kinds)
        for i, case in enumerate(self.view.cases):
            for number, codec in case.codecs.items():
                if codec is not None and codec.name == name and number < NUMBERS:
                    kinds[i, number] = kinds_of.get(codec.variant, 0)
                    limits[i, number] = self._limit(codec)
        return Sections(kernel.sections, kinds, limits, library)

    def _decompress_clean(self, codec: Codec, section: memoryview) -> bytes | None:
        """Return the decompressed bytes of a section. Return None if it is damaged, exceeds the
        limit, has unusual spellings or unused bytes, or its codec is not installed.
        """
        limit, known = self._limit(codec), CODECS[codec.name]
        try:
            if codec.variant is None and known.usual is not None:
                plain = known.usual(section, limit)
                if plain is not None:
                    return plain
            result = known.read(section, limit, codec.variant)
        except (UnsupportedCodec, ImportError):
            return None
        rejected = result.error is not None or result.notes or result.unused
        return None if rejected else result.data
