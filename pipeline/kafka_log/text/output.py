"""Tables and batches of rows as text, JSON lines, CSV, Parquet or Arrow, written to a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import BinaryIO, Literal, Protocol

import pyarrow as pa

from kafka_log.text.lines import encode_csv_header, encode_csv_lines, encode_json_lines

Output = Literal["text", "jsonl", "csv", "parquet", "arrow"]
OUTPUTS: tuple[Output, ...] = ("text", "jsonl", "csv", "parquet", "arrow")


def write_table(table: pa.Table, output: Output, out: BinaryIO, width: int | None = None) -> None:
    """Write a table to a binary stream in the format ``output``: ``"text"``, ``"jsonl"`` (JSON
    lines), ``"csv"``, ``"parquet"``, or ``"arrow"`` (an Arrow IPC stream). ``width`` limits the
    lines of text only (None: no limit). Without rows JSON lines are empty, and CSV is its header. The
    stream stays open. Raise KeyError for another format; errors of writing to ``out`` pass through.

    Args:
        table: The rows.
        output: The format. Lines of text are aligned columns for people.
        out: Where the bytes go. It need not tell its position.
        width: Columns of the terminal, for text. None: lines are as long as their cells.
    """
    if output == "text":
        from kafka_log.text.text_table import format_table

        out.write(format_table(table, width).encode("utf-8", "backslashreplace"))
        return
    if output == "parquet":
        from kafka_log.read.parquet import parquet_writer

        # A pipe cannot tell its position: the file is made in memory.
        made = pa.BufferOutputStream()
        with parquet_writer(made, table.schema) as writer:
            writer.write_table(table)
        out.write(made.getvalue())
        return
    rows: RowWriter
    rows = JsonRowWriter(out) if output == "jsonl" else ROW_WRITERS[output](out, table.schema)
    for batch in table.to_batches():
        rows.write(batch)
    rows.close()


class RowWriter(Protocol):
    """Writes batches of rows to a stream."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""

    def close(self) -> None:
        """Write what ends the rows, and flush the stream. The stream stays open."""


class JsonRowWriter:
    """Writes each row as a JSON object on a line of its own. Batches need not have the same columns."""

    def __init__(self, out: BinaryIO) -> None:
        self.out = out

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch, and flush the stream after some MiB of lines."""
        for block in encode_json_lines(batch):
            self.out.write(block)
            self.out.flush()

    def close(self) -> None:
        """Flush the stream."""
        self.out.flush()


class CsvRowWriter:
    """Writes rows as CSV. The first line has the names of the columns."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self.out = out
        out.write(encode_csv_header(schema.names))

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch, and flush the stream."""
        self.out.writelines(encode_csv_lines(batch))
        self.out.flush()

    def close(self) -> None:
        """Flush the stream."""
        self.out.flush()


class ParquetRowWriter:
    """Writes rows as a Parquet file, one row group after the other."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        from kafka_log.read.parquet import GroupedWriter

        self.out = out
        self.writer = GroupedWriter(out, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch, or keep them until a row group is full."""
        self.writer.write(batch)

    def close(self) -> None:
        """Write the last row group and the footer, and flush the stream."""
        self.writer.close()
        self.out.flush()


class ArrowRowWriter:
    """Writes rows as an Arrow IPC stream."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self.out = out
        self.writer = pa.ipc.new_stream(out, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch, and flush the stream."""
        self.writer.write_batch(batch)
        self.out.flush()

    def close(self) -> None:
        """Write the end of the stream, and flush it."""
        self.writer.close()
        self.out.flush()


ROW_WRITERS: Mapping[str, Callable[[BinaryIO, pa.Schema], RowWriter]] = {
    "csv": CsvRowWriter,
    "parquet": ParquetRowWriter,
    "arrow": ArrowRowWriter,
}
"""Writers that need the schema of all rows before the first row, by the name of their format."""
