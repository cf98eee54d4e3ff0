"""A decoder whose memory lies between guard pages, and what must hold of whatever it reads."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from codecgen.runtime.arrow import decoder as decoding
from codecgen.runtime.arrow import decompressor as decompressing
from codecgen.runtime.arrow.decoder import Decoder, Rejected, Rows, choose, load_kernels, schema_of
from codecgen.runtime.arrow.primitives.memory import SLACK
from codecgen.runtime.arrow.view import View
from codecgen.runtime.located_bytes import Limits
from codecgen.targets.arrow.numba_decode.layout_rules import WITH_CARE, WITH_RULES
from kafka_codecs.arrow.batches import BATCHES
from kafka_codecs.arrow.records import RECORDS
from tests.fuzz.checked import Broken, Ranges, checked, complaining
from tests.fuzz.guards import Guarded, GuardedChunk, Outputs, table_in

DECOMPRESSED = 1 << 20
ELEMENTS = 20_000
ALL = tuple(column.name for column in RECORDS.columns)
COLUMN_SETS: tuple[tuple[str, ...] | None, ...] = (
    ALL,
    None,
    ("key",),
    ("headers",),
    ("offset", "value"),
    ("position", "timestamp", "codec"),
    ("delete_horizon", "sequence", "is_control"),
)

PER_BYTE = 12
"""Bytes of output for each byte that is decoded, at most: a record of 7 bytes has 69 in the fixed widths of all columns."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How one chunk is decoded."""

    where: str = "end"
    checks: bool = False
    columns: tuple[str, ...] | None = ALL
    full_check: bool = False
    max_rows: int = 1 << 20
    elements: int = ELEMENTS
    heads: bool = False

    @classmethod
    def drawn(cls, r: random.Random, checks: bool) -> Settings:
        return cls(
            "end" if r.random() < 0.8 else "start",
            checks,
            ALL if r.random() < 0.5 else r.choice(COLUMN_SETS),
            r.random() < 0.3,
            r.choice((1, 10, 1000)) if r.random() < 0.2 else 1 << 20,
            r.choice((0, 1, 5)) if r.random() < 0.1 else ELEMENTS,
            r.random() < 0.15,
        )

    @property
    def limits(self) -> Limits:
        return Limits(decompressed=DECOMPRESSED, elements=self.elements)


@dataclass(slots=True)
class Outcome:
    """What a decoder made of a chunk."""

    rows: int = 0
    rejected: int = 0
    batches: list[pa.RecordBatch] = field(default_factory=list)


class Probe:
    """A decoder of one view with guard pages on one side of all its memory, with or without checks in the kernels."""

    def __init__(self, view: View, where: str, kernels: ModuleType, ranges: Ranges | None) -> None:
        self.view = view
        self.ranges = ranges
        self.outputs = Outputs(where, self._asked, self._made)
        self.decoder = Decoder(
            view, (), kernels=complaining(kernels, ranges), allocate=self.outputs.allocate
        )
        self.fixed: list[tuple[int, int, bool]] = [(0, 0, False), (0, 0, False)]
        self.memories = []
        arrays = []
        for name in ("table", "out", "state", "room"):
            memory = Guarded(where)
            array = table_in(memory, getattr(self.decoder, name).shape)
            arrays.append(array)
            self.memories.append(memory)
            self.fixed.append((array.ctypes.data, array.nbytes, name != "out"))
        self.decoder.use(*arrays)
        self.input = GuardedChunk(where, lambda *place: self._moved(0, place))
        self.decoder.decompressor.scratch = GuardedChunk(
            where, lambda *place: self._moved(1, place)
        )

    def _moved(self, which: int, place: tuple[int, int]) -> None:
        self.fixed[which] = (*place, False)
        if self.ranges is not None:
            self.ranges.set(self.fixed)

    def _asked(self, size: int) -> None:
        given = self.input.capacity + self.decoder.decompressor.scratch.capacity
        spare = SLACK + 8 * decoding.SPARE  # of a buffer: each value has 8 bytes at most
        if size < SLACK or self.outputs.total > PER_BYTE * given + spare * self.outputs.count:
            raise Broken(f"a buffer of {size} bytes for rows from {given} bytes")

    def _made(self, address: int, size: int) -> None:
        if self.ranges is not None:
            self.ranges.add(address, size)

    def run(self, data: bytes, starts: Sequence[int], settings: Settings, full: bool) -> Outcome:
        """Decode bytes; after what ends early it goes on at the next start. ``full``: validate and keep batches.

        Raises Broken."""
        decoder = self.decoder
        decoder.full_check = (WITH_CARE | WITH_RULES) if settings.full_check else 0
        decoder.max_rows = settings.max_rows
        decoder.limits = decoder.decompressor.limits = settings.limits
        decoder.columns = choose(self.view, None if settings.heads else settings.columns)
        decoder.schema = schema_of(decoder.columns)
        decoder.decompressor.scratch.grow(0 if settings.full_check else 2 * decompressing.SCRATCH)
        outcome = Outcome()
        self.input.put(data)
        self._fresh()
        for item in self._items(data, starts):
            self._check(item, outcome, full)
            self._fresh()
        return outcome

    def _items(self, data: bytes, starts: Sequence[int]) -> Iterator[Rows | Rejected]:
        whole = self.input.array
        at = 0
        while at < len(data):
            self.input.array = whole[at:]
            self.input.size = len(data) - at
            after = at
            for item in self.decoder.decode(self.input, at):
                if item.start < after or (item.end is not None and item.end <= item.start):
                    raise Broken(f"{item} does not lie after byte {after}")
                after = item.start if item.end is None else item.end
                yield item
            i = bisect_right(starts, after)
            at = starts[i] if i < len(starts) else len(data)

    def _check(self, item: Rows | Rejected, outcome: Outcome, full: bool) -> None:
        if isinstance(item, Rejected):
            outcome.rejected += 1
            return
        outcome.rows += item.batch.num_rows
        if item.batch.num_rows > max(
            self.decoder.max_rows, self.decoder.limits.elements if item.entries == 1 else 0
        ):
            raise Broken(f"{item.batch.num_rows} rows, of {self.decoder.max_rows} at most")
        if full:
            item.batch.validate(full=True)
            outcome.batches.append(copied(item.batch))

    def _fresh(self) -> None:
        self.outputs.reset()
        if self.ranges is not None:
            self.ranges.set(self.fixed)


def copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows in memory of their own."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch()


class Probes:
    """A probe for each way; those with checks are compiled when they are needed. One for a process: small tables,
    little scratch memory and buffers with little to spare, so that their ends are met, are set for all decoders in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[tuple[bool, str, bool], Probe] = {}
        self.modules: dict[tuple[bool, bool], tuple[ModuleType, Ranges | None]] = {}
        decoding.ENTRIES = 8
        decoding.SPARE = 8
        decoding.PROBE = 64
        decompressing.SCRATCH = 4096

    def run(self, data: bytes, starts: Sequence[int], settings: Settings, full: bool) -> Outcome:
        key = (settings.heads, settings.where, settings.checks)
        if key not in self.made:
            view = BATCHES if settings.heads else RECORDS
            self.made[key] = Probe(view, settings.where, *self._kernels(view, settings))
        return self.made[key].run(data, starts, settings, full)

    def _kernels(self, view: View, settings: Settings) -> tuple[Any, Ranges | None]:
        key = (settings.heads, settings.checks)
        if key not in self.modules:
            kernels = load_kernels(view)
            ranges = Ranges() if settings.checks else None
            if ranges is not None:
                kernels = checked(kernels, ranges, self.folder)
            self.modules[key] = kernels, ranges
        return self.modules[key]
