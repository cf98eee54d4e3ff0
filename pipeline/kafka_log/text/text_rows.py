"""Batches of rows as they come, as text for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from rich.cells import cell_len, set_cell_size

from kafka_log.text.lines import Cell, Layout, display_lines
from kafka_log.text.printing import NUMBER, fold, printable
from kafka_log.text.text_layout import GAP

ROOM = 10
"""Cells of a screen that are left for texts beside numbers, or else each row is a paragraph."""
_TIME = len("2026-11-22T00:00:00.000Z")


class TextRows:
    """Lines for people: cells with two blanks between them, below their names. ``pads`` are the least widths of columns by name;
    ``most`` are the bytes of a value that are shown.

    Lines that are longer than ``width`` lose their ends, but no number. Where these alone do not fit, or a number stands behind a text that
    is too long, that row and all after it are paragraphs, with a line for each column.
    """

    def __init__(
        self,
        out: BinaryIO,
        names: Sequence[str],
        pads: Mapping[str, int],
        most: int,
        width: int | None,
    ) -> None:
        self.out = out
        self.names = names
        self.pads = {n: max(pads[n], len(n)) for n in names if n in pads}
        self.width = width
        self.most = most if width is None else min(most, width)
        self.is_first = True
        self.in_paragraphs = False
        self.heading: str | None = None
        """A line that stands before the next rows."""

    def write(self, batch: pa.RecordBatch) -> None:
        if self.is_first:
            short = [f.name for f in batch.schema if _is_short(f.type)]
            self.pads = {name: len(name) for name in short} | self.pads
        if self.width is not None and not self.in_paragraphs:
            self.in_paragraphs = not self._fits(batch, self.width)
        if self.is_first and not self.in_paragraphs:
            self._names(batch.schema)
        if self.heading is not None:
            self.say(self.heading)
            self.heading = None
        for block in self._paragraphs(batch) if self.in_paragraphs else self._lines(batch):
            self.out.write(block)
            self.out.flush()
        self.is_first = False

    def _names(self, schema: pa.Schema) -> None:
        """The line above the rows."""
        line = "  ".join(
            f.name.rjust(self.pads[f.name])
            if pa.types.is_integer(f.type)
            else f.name.ljust(self.pads.get(f.name, 0))
            for f in schema
        )
        line = line.rstrip(" ")
        if self.width is not None and len(line) > self.width:
            line = line[: self.width - 1] + "…"
        self.say(line)

    def _fits(self, batch: pa.RecordBatch, width: int) -> bool:
        """Whether lines are no longer than a screen is wide, but for ends that they may lose."""
        kinds = batch.schema.types
        if any(map(_is_short, kinds)) and not _may_be_cut(batch.schema) and not all(map(_is_short, kinds)):  # fmt: skip
            return all(
                cell_len(line) <= width
                for block in display_lines(batch, self._layout(batch.schema))
                for line in str(block, "utf-8").split("\n")
            )
        shorts = [
            max(_width(column), self.pads[f.name])
            for f, column in zip(batch.schema, batch.columns, strict=True)
            if _is_short(f.type)
        ]
        room = 0 if len(shorts) == len(kinds) or not shorts else ROOM
        return sum(shorts) + GAP * (len(shorts) - 1) + room <= width

    def _layout(self, schema: pa.Schema) -> Layout:
        cells = [
            Cell(
                "  " if i else "",
                "-" if name == "timestamp" else "null",
                self._pad(schema, i),
            )
            for i, name in enumerate(schema.names)
        ]
        return Layout(tuple(cells), self.most)

    def _lines(self, batch: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        shorts = sum(map(_is_short, batch.schema.types))
        for block in display_lines(batch, self._layout(batch.schema)):
            yield block if self.width is None else _cut(bytes(block), self.width, shorts)

    def _paragraphs(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """A line for each column, with its name; an empty one before each row but the first."""
        assert self.width is not None
        indent = max(map(len, batch.schema.names)) + GAP
        cells = [
            Cell(f"\n{name:{indent}}", "-" if name == "timestamp" else "null", 0)
            for name in batch.schema.names
        ]
        folds = {f.name for f in batch.schema if _is_short(f.type)}
        begins = not self.is_first
        for block in display_lines(batch, Layout(tuple(cells), self.most)):
            lines = str(block, "utf-8").split("\n")
            fitted = (_fitted(line, indent, self.width, folds) for line in lines[:-1])
            text = "\n".join(fitted) + "\n"
            yield (text if begins else text.removeprefix("\n")).encode("utf-8")
            begins = True

    def _pad(self, schema: pa.Schema, i: int) -> int:
        """No blanks at the end of a line."""
        is_last = i == len(schema) - 1 and not pa.types.is_integer(schema.types[i])
        return 0 if is_last else self.pads.get(schema.names[i], 0)

    def say(self, line: str) -> None:
        """Write a line that is no row. Escape what a terminal would not print."""
        self.out.write(printable(line).encode() + b"\n")
        self.out.flush()

    def close(self) -> None:
        self.out.flush()


def _width(column: pa.Array) -> int:
    """Cells that the longest of some numbers, times or names takes."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        names = column.dictionary.to_pylist()
        return max((cell_len(printable(name)) for name in names if name is not None), default=0)
    if pa.types.is_integer(kind):
        ends = pc.min_max(column).as_py().values()
        return max(len(str(end)) for end in ends)
    return _TIME if pa.types.is_timestamp(kind) else len("false")


def _fitted(line: str, indent: int, width: int, folds: set[str]) -> str:
    """A line of a paragraph: names are folded, other texts lose their ends."""
    if len(line) * 2 <= width or cell_len(line) <= width:
        return line
    if line[:indent].rstrip(" ") not in folds:
        return _cut_line(line, width - 1, _NAME)
    parts = fold(line[indent:], width - indent)
    return line[:indent] + ("\n" + " " * indent).join(part.rstrip(" ") for part in parts)


_NAME = re.compile(r"\S+")


def _is_short(kind: Any) -> bool:
    """Whether values of a type are numbers, times and the like."""
    return not (pa.types.is_binary(kind) or pa.types.is_list(kind) or pa.types.is_string(kind))


def _may_be_cut(schema: pa.Schema) -> bool:
    """Whether a line may lose its end: no number or time stands behind what can be long."""
    is_long = [not _is_short(kind) for kind in schema.types]
    return all(is_long[is_long.index(True) :]) if any(is_long) else False


def _cut(block: bytes, width: int, shorts: int) -> bytes:
    """Lines that are not longer than a screen is wide, unless their first ``shorts`` words are: numbers and times are never cut."""
    whole = re.compile(rf"(?:\s*\S+){{{shorts}}}")
    lines = block.decode("utf-8").split("\n")
    return "\n".join(
        line
        if len(line) * 2 <= width or cell_len(line) <= width
        else _cut_line(line, width - 1, whole)
        for line in lines
    ).encode("utf-8")


def _cut_line(line: str, size: int, whole: re.Pattern[str]) -> str:
    found = whole.match(line)
    kept = found.group() if found else ""
    if cell_len(kept) >= size:
        return kept if kept == line else kept + "  …"
    cut = set_cell_size(line, size)
    # A number of which digits are missing is another number.
    last = cut.rpartition(" ")[0] + " "
    if NUMBER.fullmatch(line[len(last) :].partition(" ")[0]):
        cut = last
    return cut + "…"
