"""Rows of Arrow columns as lines of text: JSON for programs, cells for people.

Compiled code writes them where it is loaded and knows the types (:mod:`kafka_log.text.line_kernel`), else plain Python does. The
bytes are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafka_log.text.printing import iso_time, printable
from kafka_log.text.table_output import (
    is_json,
    is_text,
    json_lines,
    json_text,
    objects,
)

_KERNEL_PRIMITIVES = "codecgen.runtime.arrow.primitives.compiling"


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands around the values of a column, and in the place of null; ``pad``: the least characters of a value."""

    prefix: str
    null: str = "null"
    pad: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """Lines for people: the cells of each column, and how many bytes of a value are shown."""

    cells: tuple[Cell, ...]
    most: int


def line_blocks(
    batch: pa.RecordBatch, layout: Layout | None = None
) -> Iterator[bytes | memoryview]:
    """The lines of a batch in blocks of some MiB: JSON lines, or those of a layout. A block is good until the next one is made.

    Memory: a few MiB, or what the longest line may take.
    """
    compiled = _compiled()
    if compiled is not None and compiled.is_known(batch.schema):
        yield from compiled.blocks(batch, layout)
        return
    lines = (
        json_lines(pa.Table.from_batches([batch])) if layout is None else plain_lines(batch, layout)
    )
    some: list[str] = []
    size = 0
    for line in lines:
        some.append(line)
        size += len(line)
        if size >= 1 << 20:
            yield ("\n".join(some) + "\n").encode("utf-8")
            some, size = [], 0
    if some:
        yield ("\n".join(some) + "\n").encode("utf-8")


def _compiled() -> Any:
    """What runs the kernel, where the compiler is loaded already: loading it takes longer than many lines."""
    if not getattr(sys.modules.get(_KERNEL_PRIMITIVES), "JIT", False):
        return None
    from kafka_log.text import compiled_lines

    return compiled_lines


def plain_lines(batch: pa.RecordBatch, layout: Layout) -> Iterator[str]:
    """The lines of a layout, by plain Python."""
    shows = [_shows(field, layout.most) for field in batch.schema]
    columns = [objects(column) for column in batch.columns]
    for row in zip(*columns, strict=True):
        yield "".join(map(_cell, layout.cells, row, shows, batch.schema))


def _cell(cell: Cell, value: Any, show: Callable[[Any], str], field: pa.Field) -> str:
    if pa.types.is_list(field.type):
        return cell.prefix + show(value) if value else ""
    text = cell.null if value is None else show(value)
    is_number = pa.types.is_integer(field.type) and value is not None
    text = text.rjust(cell.pad) if is_number else _filled(text, cell.pad)
    return cell.prefix + text


def _filled(text: str, pad: int) -> str:
    """As many bytes as the kernel fills a cell to."""
    return text + " " * (pad - len(text.encode("utf-8")))


def _shows(field: pa.Field, most: int) -> Callable[[Any], str]:
    kind = field.type
    if is_json(field):
        return str
    if pa.types.is_dictionary(kind):
        return printable
    if pa.types.is_timestamp(kind):
        return iso_time
    if pa.types.is_boolean(kind):
        return lambda value: "true" if value else "false"
    if pa.types.is_integer(kind):
        return str
    if pa.types.is_binary(kind):
        return lambda value: shown(value, most)
    if pa.types.is_list(kind):
        if not pa.types.is_struct(kind.value_type):
            item = _shows(pa.field("", kind.value_type), most)
            return lambda values: f"[{', '.join('null' if v is None else item(v) for v in values)}]"
        members = [(f.name, _shows(f, most)) for f in kind.value_type]
        return lambda values: "[" + ", ".join(_pair(value, members) for value in values) + "]"
    return json_text


def _pair(value: Any, members: Sequence[tuple[str, Callable[[Any], str]]]) -> str:
    return "=".join("null" if value[name] is None else show(value[name]) for name, show in members)


def shown(data: bytes, most: int) -> str:
    """At most so many bytes for people: as a JSON string where they are text, as ``0x..`` otherwise."""
    cut = len(data)
    if cut > most:
        cut = most
        while cut > 0 and cut > most - 3 and data[cut] & 0xC0 == 0x80:
            cut -= 1
    some = data[:cut]
    text = json_text(some.decode("utf-8")) if is_text(some) else f"0x{some.hex()}"
    return text if cut == len(data) else f"{text}...({len(data) - cut} bytes more)"
