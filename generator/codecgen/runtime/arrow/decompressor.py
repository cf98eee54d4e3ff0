"""Compressed runs of the index -> a buffer that is used again: by kernels, or by the codecs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from codecgen.runtime.arrow.chunk import Chunk
from codecgen.runtime.arrow.view import Codec, View
from codecgen.runtime.compression import CODECS
from codecgen.runtime.compression.base import Usual
from codecgen.runtime.compression.lz4 import UNCHECKED_HEADER
from codecgen.runtime.errors import CodecError, UnsupportedCodec
from codecgen.runtime.source import Limits

NUMBERS = 16
"""How many numbers of codecs each case has in the tables of kinds and limits."""

SCRATCH = 8 << 20
"""Decompressed bytes after which rows are written. A single entry may have more."""

STATUS, AT, CASE, START, END, CODEC, RUN, RUN_END, COUNT = range(9)
"""What a row of the index says of an entry, or of a run of entries that are rows themselves."""

_OF_RUN = (CASE, CODEC, RUN, RUN_END)
_UNKNOWN: Any = object()

KERNELS_OF_CODECS: Mapping[str, Mapping[str | None, int]] = {
    "lz4": {None: 1, UNCHECKED_HEADER: 2},
    "snappy": {None: 1},
}
"""The codecs that have kernels, and the kinds of runs that these know, by the variant."""

MODULES_OF_MANY: Mapping[str, str] = {"zstd": "codecgen.runtime.arrow.zstd"}
"""The codecs of which many runs are looked at together."""


@dataclass(frozen=True, slots=True)
class Runs:
    """A kernel that decompresses runs. ``kinds`` and ``limits`` say by case and number of the codec how it reads them (0:
    not at all), and how much they may hold."""

    kernel: Any
    kinds: Any
    limits: Any


@dataclass(frozen=True, slots=True)
class _Packed:
    """Entries whose runs are compressed: their rows of the index, and what these say."""

    rows: list[int]
    cases: list[int]
    numbers: list[int]
    starts: list[int]
    ends: list[int]

    def alike(self, k: int) -> int:
        """Behind one entry and those after it that have the same case and codec."""
        first = self.cases[k], self.numbers[k]
        for i in range(k, len(self.rows)):
            if (self.cases[i], self.numbers[i]) != first:
                return i
        return len(self.rows)


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
        packed = np.flatnonzero((part[:, CODEC] != 0) & (part[:, STATUS] == 0))
        if not len(packed):
            return count
        runs = _Packed(
            *(column.tolist() for column in (packed + first, *part[packed][:, _OF_RUN].T))
        )
        used = k = 0
        ready = first  # all before this one are
        while k < len(runs.rows):
            i, case, number = runs.rows[k], runs.cases[k], runs.numbers[k]
            codec = self.view.cases[case].codecs.get(number, _UNKNOWN)
            if i < ready or codec is None:
                k += 1
                continue
            if used >= SCRATCH:
                return i
            if codec is _UNKNOWN:
                table[i, STATUS] = -1
                k += 1
                continue
            if codec.name not in self.runs:
                self.runs[codec.name] = self._runs(codec.name)
            kernel = self.runs[codec.name]
            if kernel is not None and kernel.kinds[case, number]:
                ready, used = self._by_kernel(table, kernel, i, count, used)
                if ready > i:
                    continue
                until = k + 1  # the kernel may take the next one
            else:
                until = runs.alike(k)
            done, used = self._by_codec(codec, table, chunk, runs, k, until, used)
            if done < until:
                return runs.rows[done]
            k = until
        return count

    def _by_codec(
        self,
        codec: Codec,
        table: Any,
        chunk: Chunk,
        runs: _Packed,
        first: int,
        until: int,
        used: int,
    ) -> tuple[int, int]:
        """Decompress runs of one codec, as long as there is room. The first one that is not, and how much room is used."""
        data, base, limit = chunk.view(), chunk.address, self._limit(codec)
        usual = CODECS[codec.name].usual if codec.variant is None else None
        quick, error, rooms = self._quick(codec, chunk, runs, first, until)
        scratch, room = self.scratch.view(), self.scratch.capacity
        ready: list[int] = []
        ends = [used]
        for k, most in zip(range(first, until), rooms, strict=True):
            if used >= SCRATCH:
                break
            run = data[runs.starts[k] - base : runs.ends[k] - base]
            plain = None
            if most and quick is not None:
                try:
                    plain = quick(run, most)
                except error:
                    pass  # what is wrong is said below
            if plain is None:
                plain = self._looked_at(codec, run, usual, limit)
                if plain is None:
                    table[runs.rows[k], STATUS] = -1
                    continue
            behind = used + len(plain)
            if behind > room:
                if used:
                    break
                self.scratch.grow(behind)
                scratch, room = self.scratch.view(), self.scratch.capacity
            scratch[used:behind] = plain
            used = behind
            ready.append(runs.rows[k])
            ends.append(used)
        else:
            k = until
        places = np.array(ends, np.int64) + self.scratch.address
        table[ready, CODEC] = 0
        table[ready, RUN] = places[:-1]
        table[ready, RUN_END] = places[1:]
        return k, used

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

    def _quick(
        self, codec: Codec, chunk: Chunk, runs: _Packed, k: int, until: int
    ) -> tuple[Callable[[memoryview, int], bytes] | None, type[Exception], Iterable[int]]:
        """How to decompress runs of which little need be asked, what that raises, and how much each of them may hold: 0
        where it has to be looked at."""
        if codec.variant is None and until - k > 1 and codec.name in MODULES_OF_MANY:
            try:
                many = importlib.import_module(MODULES_OF_MANY[codec.name])
                quick, error = many.reader()
            except ImportError:
                pass
            else:
                starts, ends = (
                    np.array(places[k:until], np.int64) - chunk.address
                    for places in (runs.starts, runs.ends)
                )
                return quick, error, many.rooms(chunk.array, starts, ends, self._limit(codec))
        return None, CodecError, repeat(0, until - k)

    def _looked_at(
        self, codec: Codec, run: memoryview, usual: Usual | None, limit: int
    ) -> bytes | None:
        """A run without compression; None when there is anything to be said about it."""
        try:
            plain = None if usual is None else usual(run, limit)
            if plain is not None:
                return plain
            result = CODECS[codec.name].read(run, limit, codec.variant)
        except (UnsupportedCodec, ImportError):
            return None
        odd = result.error is not None or result.notes or result.unused
        return None if odd else result.data
