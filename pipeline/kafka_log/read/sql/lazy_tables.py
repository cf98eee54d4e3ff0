"""Tables that DuckDB reads batch by batch, only with the columns that a query needs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from kafka_log.read.sql.time_ranges import PLACE_COLUMNS, check_times, has_times

Read = Callable[[Sequence[str]], pa.RecordBatchReader]
"""Returns rows with these columns, in this order."""


class LazyTable(ds.Dataset):  # type: ignore[misc]
    """Table of which DuckDB reads columns when a query runs, and none before.

    DuckDB asks a dataset for a scanner with columns and a filter. Each scan of the table in a query calls ``read``.

    Args:
        schema: All columns.
        read: Returns the rows with some of these columns.
        on_error: Called with an exception that ends the reading, also with KeyboardInterrupt. DuckDB raises an error of its own then.
    """

    def __init__(
        self,
        schema: pa.Schema,
        read: Read,
        on_error: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """Store the arguments. The base class has no constructor, because its objects are made in C++."""
        self._columns = schema
        self._read = read
        self._on_error = on_error

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        return self._columns

    def scanner(
        self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any
    ) -> _Scan:
        """Return a scan of ``columns`` (None: all) with the rows for which ``filter`` is true
        (None: all rows). Nothing is read yet. Raise KeyError for an unknown column.
        """
        names = self._columns.names if columns is None else list(columns)
        return _Scan(self._columns, self._read, self._on_error, names, filter)


class _Scan:
    """One scan of a LazyTable."""

    def __init__(
        self,
        schema: pa.Schema,
        read: Read,
        on_error: Callable[[BaseException], None],
        names: Sequence[str],
        condition: Any,
    ) -> None:
        self._all_names: Sequence[str] = schema.names
        self._read = read
        self._on_error = on_error
        self._names = names
        self._condition = condition
        self.projected_schema = pa.schema([schema.field(name) for name in names])

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._rows())

    def _rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows for which the condition is true (None: all), with the columns of the scan;
        columns that only the condition names are read too, and with times those that tell the row.
        An error while reading, Ctrl-C included, is given to ``on_error`` and raised; so is
        TimeRangeError for a time that DuckDB cannot hold.
        """
        try:
            # The text of a condition names the columns in it, and perhaps others.
            text = "" if self._condition is None else str(self._condition)
            is_timed = any(has_times(field.type) for field in self.projected_schema)
            places = PLACE_COLUMNS if is_timed else ()
            more = [
                n for n in self._all_names if n not in self._names and (n in text or n in places)
            ]
            for batch in self._read([*self._names, *more]):
                for part in self._filter(batch):
                    if is_timed:
                        check_times(part)
                    yield part.select(self._names)
        except (Exception, KeyboardInterrupt) as error:
            self._on_error(error)
            raise

    def _filter(self, batch: pa.RecordBatch) -> Sequence[pa.RecordBatch]:
        """Return the rows of a batch for which the condition is true (None: all). Raise
        TimeRangeError if the condition cannot be computed because of a time, ArrowException if it
        cannot for another reason.
        """
        if self._condition is None:
            return [batch]
        try:
            found = pa.Table.from_batches([batch]).filter(self._condition)
        except pa.ArrowException:
            check_times(batch)
            raise
        parts: list[pa.RecordBatch] = found.to_batches()
        return parts


def connect(
    tables: Mapping[str, LazyTable], *, threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a DuckDB database in memory in which each of ``tables`` can be queried
    by its name; rows are read when a query does. Times are shown in UTC, extensions are not
    installed by themselves, variables of Python are no tables, and no progress is printed.
    ``threads`` None: DuckDB's default.

    Args:
        tables: Tables by name.
        threads: Number of threads. None: all cores.
    """
    config: dict[str, Any] = {
        "autoinstall_known_extensions": "false",
        "python_enable_replacements": "false",
        "temp_directory": os.fspath(Path(tempfile.gettempdir()) / f"kafka-log-{os.getpid()}"),
    }
    if threads is not None:
        config["threads"] = threads
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("set TimeZone = 'UTC'")
    # DuckDB prints the bar into the standard output, between the rows.
    connection.execute("set enable_progress_bar_print = false")
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def stream_result(relation: duckdb.DuckDBPyRelation, rows: int = 1 << 13) -> pa.RecordBatchReader:
    """Run a query, and return its result as a stream of batches of at most ``rows`` rows. Raise
    duckdb.Error if the query fails; reading the stream raises it too, with DuckDB's message.
    """
    # to_arrow_reader is the name since DuckDB 1.5.
    stream = (getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader)(rows)
    return pa.RecordBatchReader.from_batches(stream.schema, _read_stream(stream))


def _read_stream(stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream of DuckDB. Raise duckdb.Error, with DuckDB's message, if the
    query fails.

    The stream passes the message through Arrow's C interface, and pyarrow makes an OSError of it.
    """
    try:
        yield from stream
    except (OSError, pa.ArrowException) as error:
        raise duckdb.Error(str(error)) from None
