"""Compressed runs of the index -> a buffer that is used again: by kernels, or by the codecs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from codecgen.runtime.arrow.chunk import Chunk
from codecgen.runtime.arrow.view import Codec, View
from codecgen.runtime.compression import CODECS
from codecgen.runtime.compression.lz4 import UNCHECKED_HEADER
from codecgen.runtime.errors import UnsupportedCodec
from codecgen.runtime.source import Limits

NUMBERS = 16
"""How many numbers of codecs each case has in the tables of kinds and limits."""

SCRATCH = 8 << 20
"""Decompressed bytes after which rows are written. A single entry may have more."""

STATUS, AT, CASE, START, END, CODEC, RUN, RUN_END, COUNT = range(9)
"""What a row of the index says of an entry, or of a run of entries that are rows themselves."""

_UNKNOWN: Any = object()

KERNELS_OF_CODECS: Mapping[str, Mapping[str | None, int]] = {
    "lz4": {None: 1, UNCHECKED_HEADER: 2},
    "snappy": {None: 1},
}
"""The codecs that have kernels, and the kinds of runs that these know, by the variant."""


@dataclass(frozen=True, slots=True)
class Runs:
    """A kernel that decompresses runs. ``kinds`` and ``limits`` say by case and number of the codec how it reads them (0:
    not at all), and how much they may hold."""

    kernel: Any
    kinds: Any
    limits: Any


class Decompressor:
    """Decompresses the runs of a view's entries. ``compiled`` says whether kernels are machine code."""

    def __init__(self, view: View, limits: Limits, compiled: bool) -> None:
        self.view = view
        self.limits = limits
        self.compiled = compiled
        self.scratch = Chunk(SCRATCH)
        self.runs: dict[str, Runs | None] = {}

    def decompress(self, table: Any, chunk: Chunk, first: int, count: int) -> int:
        """Decompress what entries of the index need it, as far as there is room. The first entry that is not ready."""
        part = table[first:count]
        wanted = np.flatnonzero((part[:, CODEC] != 0) & (part[:, STATUS] == 0))
        if not len(wanted):
            return count
        data, base = chunk.view(), chunk.address
        scratch, address = self.scratch.view(), self.scratch.address
        used = 0
        ready = first  # all before this one are
        columns = part[wanted][:, (CASE, CODEC, RUN, RUN_END)].tolist()
        for i, (case, number, start, end) in zip((wanted + first).tolist(), columns, strict=True):
            if i < ready:
                continue
            codec = self.view.cases[case].codecs.get(number, _UNKNOWN)
            if codec is None:
                continue
            if used >= SCRATCH:
                return i
            plain = None
            if codec is not _UNKNOWN:
                if codec.name not in self.runs:
                    self.runs[codec.name] = self._runs(codec.name)
                runs = self.runs[codec.name]
                if runs is not None and runs.kinds[case, number]:
                    ready, used = self._by_kernel(table, runs, i, count, used)
                    if ready > i:
                        continue
                plain = self._plain(codec, data[start - base : end - base])
            if plain is None:
                table[i, STATUS] = -1
                continue
            size = len(plain)
            if used + size > self.scratch.capacity:
                if used:
                    return i
                self.scratch.grow(size)
                scratch, address = self.scratch.view(), self.scratch.address
            scratch[used : used + size] = plain
            row = table[i]
            row[CODEC] = 0
            row[RUN] = address + used
            used += size
            row[RUN_END] = address + used
        return count

    def _by_kernel(
        self, table: Any, runs: Runs, first: int, count: int, used: int
    ) -> tuple[int, int]:
        """Let a kernel decompress what it can, from one entry on. Where it stops, and how much room is used."""
        start = self.scratch.address
        ready, behind = runs.kernel(
            table.ctypes.data,
            self.view.row_size,
            first,
            count,
            runs.kinds.ctypes.data,
            runs.limits.ctypes.data,
            start + used,
            start + self.scratch.capacity,
        )
        return int(ready), int(behind) - start

    def _limit(self, codec: Codec) -> int:
        return codec.limit if self.limits.decompressed is None else self.limits.decompressed

    def _runs(self, name: str) -> Runs | None:
        """The kernel for a codec; None when there is none, or no compiler."""
        kinds_of = KERNELS_OF_CODECS.get(name)
        if kinds_of is None or not self.compiled:
            return None
        kernel = importlib.import_module(f"codecgen.runtime.arrow.{name}")
        kinds = np.zeros((len(self.view.cases), NUMBERS), np.int64)
        limits = np.zeros_like(kinds)
        for i, case in enumerate(self.view.cases):
            for number, codec in case.codecs.items():
                if codec is not None and codec.name == name and number < NUMBERS:
                    kinds[i, number] = kinds_of.get(codec.variant, 0)
                    limits[i, number] = self._limit(codec)
        return Runs(kernel.runs, kinds, limits)

    def _plain(self, codec: Codec, run: memoryview) -> bytes | None:
        """A run without compression; None when there is anything to be said about it."""
        found, limit = CODECS[codec.name], self._limit(codec)
        try:
            if found.usual is not None and codec.variant is None:
                usual = found.usual(run, limit)
                if usual is not None:
                    return usual
            result = found.read(run, limit, codec.variant)
        except (UnsupportedCodec, ImportError):
            return None
        odd = result.error is not None or result.notes or result.unused
        return None if odd else result.data
