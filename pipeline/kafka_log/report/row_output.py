"""Batches of rows as they come, to a stream for programs: JSON lines, CSV, Parquet, Arrow. Text is in :mod:`kafka_log.report.text_rows`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import BinaryIO, Protocol

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
        from kafka_log.read.parquet import GroupedWriter

        self.out = out
        self.writer = GroupedWriter(out, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self.writer.write(batch)

    def close(self) -> None:
        self.writer.close()
        self.out.flush()


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


OF_SCHEMA: Mapping[str, Callable[[BinaryIO, pa.Schema], Output]] = {
    "csv": CsvRows,
    "parquet": ParquetRows,
    "arrow": ArrowRows,
}
"""Outputs whose columns are the same from the first row to the last."""
