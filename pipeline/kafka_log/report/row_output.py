"""Batches of rows as they come, to a stream for programs: JSON lines, CSV, Parquet, Arrow. Text is in :mod:`kafka_log.report.text_rows`."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Protocol

import pyarrow as pa

from kafka_log.report.lines import line_blocks
from kafka_log.report.table_output import csv_line, csv_lines


class Output(Protocol):
    """Where rows go."""

    def write(self, batch: pa.RecordBatch) -> None: ...
    def close(self) -> None: ...


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
