"""Batches of rows as lines or paragraphs of text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from rich.cells import cell_len, set_cell_size

from kafka_log.segment.printable import escape_unprintable
from kafka_log.text.folding import NUMBER, fold_cell
from kafka_log.text.lines import Cell, Layout, encode_text_lines
from kafka_log.text.text_table import GAP

ROOM = 10
"""Cells of the terminal that must be left for texts next to numbers. If fewer are left, each row is a paragraph."""
_TIMES = {"s": 20, "ms": 24, "us": 27, "ns": 30}
"""Width of a time, by the unit of its type."""


class TextRowWriter:
    """Writes rows as lines of cells below the names of their columns.

    A line that is longer than the terminal loses its end, but no number. If numbers do not fit, or follow a text that is too long,
    this row and all rows after it are paragraphs with one line a column.

    Args:
        out: Where the text goes.
        names: The columns.
        pads: Minimum widths of columns, by name.
        max_bytes: Maximum number of bytes of a value.
        width: Width of the terminal. None: lines are as long as their cells.
    """

    def __init__(
        self,
        out: BinaryIO,
        names: Sequence[str],
        pads: Mapping[str, int],
        max_bytes: int,
        width: int | None,
    ) -> None:
        self.out = out
        self.names = names
        self.pads = {n: max(pads[n], len(n)) for n in names if n in pads}
        self.width = width
        self.max_bytes = max_bytes if width is None else min(max_bytes, width)
        self.is_first = True
        self.in_paragraphs = False
        self.heading: str | None = None
        """A line to write before the next rows. None: there is none."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch as lines, or as paragraphs from the first batch on that does
        not fit the width, and flush the stream. Write the names of the columns before the first
        lines, and ``heading``, if it is set, before the rows.
        """
        if self.is_first:
            short = [f.name for f in batch.schema if _is_short(f.type)]
            self.pads = {name: len(name) for name in short} | self.pads
        if self.width is not None and not self.in_paragraphs:
            self.in_paragraphs = not self._fits_as_lines(batch, self.width)
        if self.is_first and not self.in_paragraphs:
            self._names(batch.schema)
        if self.heading is not None:
            self.write_line(self.heading)
            self.heading = None
        for block in self._paragraphs(batch) if self.in_paragraphs else self._lines(batch):
            self.out.write(block)
            self.out.flush()
        self.is_first = False

    def _names(self, schema: pa.Schema) -> None:
        """Write the line with the names of the columns, those of integers to the right. A line that
        exceeds the width is cut and ends with an ellipsis.
        """
        line = "  ".join(
            f.name.rjust(self.pads[f.name])
            if pa.types.is_integer(f.type)
            else f.name.ljust(self.pads.get(f.name, 0))
            for f in schema
        )
        line = line.rstrip(" ")
        if self.width is not None and len(line) > self.width:
            line = line[: self.width - 1] + "…"
        self.write_line(line)

    def _fits_as_lines(self, batch: pa.RecordBatch, width: int) -> bool:
        """Return whether all rows of a batch fit the width as lines. If no short column (number,
        time, boolean) follows a long one, ends of lines may be cut, and only the short columns, and
        10 cells for the others, have to fit; else every line has to fit whole.
        """
        kinds = batch.schema.types
        if any(map(_is_short, kinds)) and not _may_be_cut(batch.schema) and not all(map(_is_short, kinds)):  # fmt: skip
            return all(
                cell_len(line) <= width
                for block in encode_text_lines(batch, self._layout(batch.schema))
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
        """Return the layout of lines: two spaces between cells, padded to the widths in ``pads``,
        except in a last column that is no integer; null is ``null``, or ``-`` in the column
        ``timestamp``.
        """
        cells = [
            Cell(
                "  " if i else "",
                "-" if name == "timestamp" else "null",
                self._pad(schema, i),
            )
            for i, name in enumerate(schema.names)
        ]
        return Layout(tuple(cells), self.max_bytes)

    def _lines(self, batch: pa.RecordBatch) -> Iterator[bytes | memoryview]:
        """Yield rows as lines, cut to the width."""
        shorts = sum(map(_is_short, batch.schema.types))
        for block in encode_text_lines(batch, self._layout(batch.schema)):
            yield block if self.width is None else _cut_lines(bytes(block), self.width, shorts)

    def _paragraphs(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """Yield rows as paragraphs that fit the width, which must be set: one line a column with
        its name, and an empty line before each row but the first. A value that exceeds the width is
        folded if it is a number, time or boolean, else cut.
        """
        assert self.width is not None
        indent = max(map(len, batch.schema.names)) + GAP
        cells = [
            Cell(f"\n{name:{indent}}", "-" if name == "timestamp" else "null", 0)
            for name in batch.schema.names
        ]
        folds = {f.name for f in batch.schema if _is_short(f.type)}
        begins = not self.is_first
        for block in encode_text_lines(batch, Layout(tuple(cells), self.max_bytes)):
            lines = str(block, "utf-8").split("\n")
            fitted = (_fit_line(line, indent, self.width, folds) for line in lines[:-1])
            text = "\n".join(fitted) + "\n"
            yield (text if begins else text.removeprefix("\n")).encode("utf-8")
            begins = True

    def _pad(self, schema: pa.Schema, i: int) -> int:
        """Return the minimum width of column `i`: 0 for a last column of text, so that no line ends with spaces."""
        is_last = i == len(schema) - 1 and not pa.types.is_integer(schema.types[i])
        return 0 if is_last else self.pads.get(schema.names[i], 0)

    def write_line(self, line: str) -> None:
        """Write a line that is no row, with unprintable characters escaped."""
        self.out.write(escape_unprintable(line).encode() + b"\n")
        self.out.flush()

    def close(self) -> None:
        """Flush the stream."""
        self.out.flush()


def _width(column: pa.Array) -> int:
    """Return the width of the widest value of a short column: that of a time for times, the longest name of a
    dictionary, the longest number of integers, and 5 for other types.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        names = column.dictionary.to_pylist()
        return max(
            (cell_len(escape_unprintable(name)) for name in names if name is not None), default=0
        )
    if pa.types.is_integer(kind):
        ends = pc.min_max(column).as_py().values()
        return max(len(str(end)) for end in ends)
    return _TIMES[kind.unit] if pa.types.is_timestamp(kind) else len("false")


def _fit_line(line: str, indent: int, width: int, folds: set[str]) -> str:
    """Return a line of a paragraph in at most ``width`` terminal cells a line: unchanged if it
    fits, folded if its column is in ``folds``, else truncated with an ellipsis. ``indent`` is where
    the value begins.
    """
    if len(line) * 2 <= width or cell_len(line) <= width:
        return line
    if line[:indent].rstrip(" ") not in folds:
        return _cut_line(line, width - 1, _NAME)
    parts = fold_cell(line[indent:], width - indent)
    return line[:indent] + ("\n" + " " * indent).join(part.rstrip(" ") for part in parts)


_NAME = re.compile(r"\S+")


def _is_short(kind: Any) -> bool:
    """Return whether values of an Arrow type are short: neither bytes nor lists nor strings."""
    return not (pa.types.is_binary(kind) or pa.types.is_list(kind) or pa.types.is_string(kind))


def _may_be_cut(schema: pa.Schema) -> bool:
    """Return whether lines may lose their ends: no short column follows a long one."""
    is_long = [not _is_short(kind) for kind in schema.types]
    return all(is_long[is_long.index(True) :]) if any(is_long) else False


def _cut_lines(block: bytes, width: int, shorts: int) -> bytes:
    """Return a block of lines with each line that exceeds ``width`` terminal cells truncated, with
    an ellipsis at its end. The first ``shorts`` words, which are numbers and times, are never cut.
    """
    whole = re.compile(rf"(?:\s*\S+){{{shorts}}}")
    lines = block.decode("utf-8").split("\n")
    return "\n".join(
        line
        if len(line) * 2 <= width or cell_len(line) <= width
        else _cut_line(line, width - 1, whole)
        for line in lines
    ).encode("utf-8")


def _cut_line(line: str, size: int, whole: re.Pattern[str]) -> str:
    """Return a line cut to `size` terminal cells, with an ellipsis after them. The text that
    `whole` matches at its start is never cut, even if it is longer, and a number at the end is
    dropped instead of cut.
    """
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
