"""Batches of rows as they come, to a stream: lines, CSV, Parquet, Arrow."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
from rich.cells import cell_len, set_cell_size

from kafka_log.report.lines import Cell, Layout, line_blocks
from kafka_log.report.printing import NUMBER
from kafka_log.report.table_output import csv_line, csv_lines


class Output(Protocol):
    """Where rows go."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


class TextRows:
    """Lines for people: cells with two blanks between them, below their names. ``pads`` are the least widths of columns by name;
    ``most`` are the bytes of a value that are shown; lines that are longer than ``width`` lose their ends, but no number."""

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
        self.heading: str | None = None
        """A line that stands before the next rows."""

    def write(self, batch: pa.RecordBatch) -> None:
        names = batch.schema.names
        if self.is_first:
            short = [f.name for f in batch.schema if _is_short(f.type)]
            self.pads = {name: len(name) for name in short} | self.pads
            is_number = {f.name: pa.types.is_integer(f.type) for f in batch.schema}
            line = "  ".join(
                name.rjust(self.pads[name])
                if is_number[name]
                else name.ljust(self.pads.get(name, 0))
                for name in names
            )
            self.is_first = False
            self.say(line.rstrip(" "))
            if not _may_be_cut(batch.schema):
                self.width = None
        if self.heading is not None:
            self.say(self.heading)
            self.heading = None
        cells = [
            Cell(
                "  " if i else "",
                "-" if name == "timestamp" else "null",
                self._pad(batch.schema, i),
            )
            for i, name in enumerate(names)
        ]
        layout = Layout(tuple(cells), self.most)
        for block in line_blocks(batch, layout):
            if self.width is not None:
                block = _cut(bytes(block), self.width, sum(map(_is_short, batch.schema.types)))
            self.out.write(block)
            self.out.flush()

    def _pad(self, schema: pa.Schema, i: int) -> int:
        """No blanks at the end of a line."""
        is_last = i == len(schema) - 1 and not pa.types.is_integer(schema.types[i])
        return 0 if is_last else self.pads.get(schema.names[i], 0)

    def say(self, line: str) -> None:
        """A line that is no row."""
        self.out.write(line.encode("utf-8", "backslashreplace") + b"\n")
        self.out.flush()

    def close(self) -> None:
        self.out.flush()


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


class JsonRows:
    """An object a line."""

    def __init__(self, out: BinaryIO) -> None:
        self.out = out

    def write(self, batch: pa.RecordBatch) -> None:
        for block in line_blocks(batch):
            self.out.write(block)
            self.out.flush()

    def close(self) -> None:
        self.out.flush()


class CsvRows:
    """Names in the first line."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self.out = out
        out.write(csv_line(schema.names))

    def write(self, batch: pa.RecordBatch) -> None:
        self.out.writelines(csv_lines(pa.Table.from_batches([batch])))
        self.out.flush()

    def close(self) -> None:
        self.out.flush()


class ParquetRows:
    """A file of Parquet, one row group after the other."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        from kafka_log.tables.parquet import GroupedWriter

        self.stream = _Counted(out)
        self.writer = GroupedWriter(pa.PythonFile(self.stream, "w"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self.writer.write(batch)

    def close(self) -> None:
        self.writer.close()
        self.stream.flush()


class ArrowRows:
    """A stream of Arrow."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self.out = out
        self.writer = pa.ipc.new_stream(out, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self.writer.write_batch(batch)
        self.out.flush()

    def close(self) -> None:
        self.writer.close()
        self.out.flush()


class _Counted(io.RawIOBase):
    """A stream that knows its place, also a pipe."""

    def __init__(self, out: BinaryIO) -> None:
        self.out = out
        self.place = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.out.write(data)
        self.place += size
        return size

    def tell(self) -> int:
        return self.place

    def flush(self) -> None:
        self.out.flush()


OF_SCHEMA: Mapping[str, Callable[[BinaryIO, pa.Schema], Output]] = {
    "csv": CsvRows,
    "parquet": ParquetRows,
    "arrow": ArrowRows,
}
"""Outputs whose columns are the same from the first row to the last."""
