"""Laws about encoders: what was written is what is read, or a row is refused."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow import encoder as encoding
from codecgen.runtime.arrow.casts import RowRefused
from codecgen.runtime.arrow.encoder import Encoder
from codecgen.runtime.arrow.output_buffers import arrow_type
from codecgen.runtime.errors import BuildError
from tests.laws.made import Generated
from tests.laws.memory import Broken, Memory, watched
from tests.laws.reference import Entry, Reference, Row
from tests.laws.view_laws import LIMITS, entries, reader
from tests.laws.world import Tree

EDGES = (0, 1, -1, 127, 128, 255, 256, 32767, 32768, 1 << 31, (1 << 63) - 1, -(1 << 63))


def encode_laws(made: Generated, package: ModuleType, r: random.Random, tables: int = 2) -> int:
    """The laws for every view that is written; how many rows were. Raises Broken."""
    written = 0
    for name, tree in made.facts.views.items():
        if f"{made.package}/arrow/{name}_writer.py" not in made.files:
            continue
        module = importlib.import_module(f"{made.package}.arrow.{name}_writer")
        writer = getattr(module, f"{name.upper()}_WRITER")
        kernels = importlib.import_module(writer.kernels)
        reference = Reference(made.facts, tree, package, LIMITS, made.notes)
        for kind in writer.kinds:
            for _ in range(tables):
                rows = table(made, tree, reference, r, kind)
                if rows:
                    written += one_table(
                        made, tree, name, writer, kernels, kind, rows, reference, r
                    )
    return written


def table(
    made: Generated, tree: Tree, reference: Reference, r: random.Random, kind: int
) -> list[Row]:
    """Rows of one kind: those of built entries, some of them with other values."""
    rows: list[Row] = []
    for part in entries(made, tree, r):
        for entry in reference.entries(part):
            codec = reference.codec
            layout = codec.cases[kind].layout_name if hasattr(codec, "cases") else tree["of"]
            data = part[entry.start : entry.end]
            if entry.rows and _layout_of(reference, data) == layout:
                rows += entry.rows
    for _ in range(r.choice((0, 0, 1, 3))):
        if rows:
            row = r.choice(rows)
            name = r.choice(list(row))
            row[name] = other(tree["columns"][name], r, row[name])
    return rows


def _layout_of(reference: Reference, data: bytes) -> str:
    from codecgen.runtime.located_bytes import Session, Source

    return str(reference.codec.case(Source(data, Session())).layout_name)


def other(column: Tree, r: random.Random, value: Any) -> Any:
    """Another value for a column."""
    if "list" in column:
        return [*(value or ()), *(value or ())]
    if column.get("nullable") and r.random() < 0.3:
        return None
    if column["type"] == "bool":
        return r.random() < 0.5
    if column["type"] in ("binary", "string"):
        size = r.choice((0, 1, 4, 127, 128, 300))
        text = r.choice(("z", "\0")) * size
        return text.encode() if column["type"] == "binary" else text
    bits = 64 if column["type"] == "timestamp_ms" else int(column["type"][3:])
    return r.choice([n for n in EDGES if -(1 << bits - 1) <= n < 1 << bits - 1])


def one_table(
    made: Generated,
    tree: Tree,
    name: str,
    writer: Any,
    kernels: Any,
    kind: int,
    rows: list[Row],
    reference: Reference,
    r: random.Random,
) -> int:
    """Write rows and read them again: the kernels refuse the entries that a note leaves to the reference codecs, and only those.
    How many were written. Raises Broken."""
    names = [n for n in rows[0] if n not in writer.places]
    columns = [writer.view.column(n) for n in names]
    batch = pa.RecordBatch.from_arrays(
        [pa.array([row[c.name] for row in rows], arrow_type(c)) for c in columns], names
    )
    memory = Memory()
    with watched(memory), _arrow(memory):
        size = r.choice((1, 60, 16384))
        encoder = _Encoder(memory, writer, kind, batch_bytes=size, kernels=kernels, limits=LIMITS)
        try:
            data = b"".join(bytes(piece) for piece in encoder.encode([batch]))
        except (RowRefused, BuildError):
            return 0
    wanted = [{n: row[n] for n in names} for row in rows]
    entries_read = list(reference.entries(data))
    found = _named(entries_read, names)
    if found != wanted:
        raise Broken(f"{name}: rows {wanted} are written as {data.hex()}, which is read as {found}")
    if writer.view.kernels is None:
        return len(rows)
    kernels_rows, rejected = reader(writer.view, importlib.import_module(writer.view.kernels))(
        data, names, False
    )
    left_out = [entry.start for entry in entries_read if entry.left_out]
    if [item.start for item in rejected] != left_out:
        raise Broken(
            f"{name}: of written rows {data.hex()} the kernels refuse {rejected}, not the entries at {left_out}"
        )
    if kernels_rows != _named([entry for entry in entries_read if not entry.left_out], names):
        raise Broken(f"{name}: written rows {data.hex()} are read as {kernels_rows} by the kernels")
    return len(rows)


def _named(read: list[Entry], names: list[str]) -> list[Row]:
    """Return some columns of the rows of entries."""
    return [{n: row[n] for n in names} for entry in read for row in entry.rows or ()]


class _Encoder(Encoder):
    """An encoder whose kernels may touch what it has made, and the columns that it is given."""

    def __init__(self, memory: Memory, *args: Any, **options: Any) -> None:
        self.memory = memory
        super().__init__(*args, **options)
        source = self.columns.source

        def noted(batch: pa.RecordBatch) -> Any:
            found = source(batch)
            for item in found.kept:
                if isinstance(item, np.ndarray):
                    memory.array(item, writable=False)
                else:
                    for buffer in item.buffers():
                        if buffer is not None:
                            memory.buffer(buffer, writable=False)
            return found

        self.columns.source = noted

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, np.ndarray):
            self.memory.array(value)
        super().__setattr__(name, value)

    def _entry_bytes(self, source: Any, first: int, last: int, size: int) -> memoryview:
        for row in self.table[first:last, [encoding._SECTION, encoding._SECTION_SIZE]].tolist():
            self.memory.ranges.append((row[0], row[0] + row[1], False))
        return super()._entry_bytes(source, first, last, size)


@contextmanager
def _arrow(memory: Memory) -> Iterator[None]:
    """What encoders allocate meanwhile is noted."""
    names = vars(pa) | {"allocate_buffer": memory.allocate}
    before = encoding.pa
    encoding.pa = SimpleNamespace(**names)
    try:
        yield
    finally:
        encoding.pa = before
