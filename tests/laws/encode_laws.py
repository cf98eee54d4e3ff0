"""Laws about encoders: what was written is what is read, or a row is refused."""

from __future__ import annotations

import importlib
import random
from types import ModuleType
from typing import Any

import pyarrow as pa

from codecgen.runtime.arrow.buffers import arrow_type
from codecgen.runtime.arrow.columns import RowRefused
from codecgen.runtime.arrow.encoder import Encoder
from codecgen.runtime.errors import BuildError
from tests.laws.made import Generated
from tests.laws.memory import Broken, Memory, watched
from tests.laws.reference import Reference, Row
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
        reference = Reference(made.facts, tree, package, LIMITS)
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
            layout = reference.codec.cases[kind].layout_name
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
    from codecgen.runtime.source import Session, Source

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
        return b"z" * size if column["type"] == "binary" else "z" * size
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
    """Write rows and read them again. How many were written. Raises Broken."""
    names = [n for n in rows[0] if n not in writer.places]
    columns = [writer.view.column(n) for n in names]
    batch = pa.RecordBatch.from_arrays(
        [pa.array([row[c.name] for row in rows], arrow_type(c)) for c in columns], names
    )
    memory = Memory()
    with watched(memory):
        encoder = Encoder(
            writer, kind, batch_bytes=r.choice((1, 60, 16384)), kernels=kernels, limits=LIMITS
        )
        _watch(encoder, memory)
        try:
            data = b"".join(bytes(piece) for piece in encoder.encode([batch]))
        except (RowRefused, BuildError):
            return 0
    wanted = [{n: row[n] for n in names} for row in rows]
    read = [row for entry in reference.entries(data) for row in (entry.rows or ())]
    found = [{n: row[n] for n in names} for row in read]
    if found != wanted:
        raise Broken(f"{name}: rows {wanted} are written as {data.hex()}, which is read as {found}")
    kernels_rows, odd = reader(writer.view, importlib.import_module(writer.view.kernels))(
        data, names, False
    )
    if odd or kernels_rows != wanted:
        raise Broken(f"{name}: written rows {data.hex()} are read as {kernels_rows} by the kernels")
    return len(rows)


def _watch(encoder: Encoder, memory: Memory) -> None:
    """Let the kernels of an encoder touch what it has, and the columns that it is given."""
    encoder.table = _tracked(encoder.table, memory)
    source = encoder.columns.source

    def noted(batch: pa.RecordBatch) -> Any:
        found = source(batch)
        memory.ranges.append((found.address, found.address + (1 << 16), False))
        for item in found.kept:
            if hasattr(item, "ctypes"):
                memory.array(item, writable=False)
            else:
                for buffer in item.buffers():
                    if buffer is not None:
                        memory.buffer(buffer, writable=False)
        return found

    encoder.columns.source = noted  # type: ignore[method-assign]
    memory.array(encoder.sizes)
    written, compressed = encoder._written, encoder._compressed

    def writes(*args: Any) -> Any:
        first, last = args[1:3]
        for row in encoder.table[first:last].tolist():
            memory.ranges.append((row[6], row[6] + row[7] + 64, False))
        memory.ranges.append((0, 1 << 63, True))
        try:
            return written(*args)
        finally:
            memory.ranges.pop()

    def squeezes(*args: Any) -> Any:
        memory.ranges.append((0, 1 << 63, True))
        try:
            return compressed(*args)
        finally:
            memory.ranges.pop()

    encoder._written = writes  # type: ignore[method-assign]
    encoder._compressed = squeezes  # type: ignore[method-assign]


def _tracked(array: Any, memory: Memory) -> Any:
    memory.array(array)
    return array
