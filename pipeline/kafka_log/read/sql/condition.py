"""A condition in SQL on the rows of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.read.sql.lazy_tables import LazyTable, connect, stream_result
from kafka_log.read.sql.time_ranges import TimeRangeError
from kafka_log.read.sql.words import quote_columns

_ROW = "row of the batch"


class ConditionError(ValueError):
    """DuckDB refuses a condition, or cannot compute it for a row."""


class RowCondition:
    """Filter of the rows for which an expression of DuckDB is true.

    The expression is computed for each row alone: DuckDB refuses aggregates and window functions in it. ``columns`` are those that it
    needs.

    Args:
        expression: The expression. ``offset`` need not be quoted.
        schema: All columns that it may name.

    Raises:
        ConditionError: If the expression is invalid.
        ModuleNotFoundError: If DuckDB is not installed.
    """

    def __init__(self, expression: str, schema: pa.Schema) -> None:
        """Check the expression. Raises ConditionError as the class describes."""
        self._expression = expression
        self._schema = schema
        self._needed: set[str] = set()
        self._batch = pa.RecordBatch.from_pylist([], schema=schema)
        # Its name is no other table's, and cannot be guessed: a subquery would see one batch only.
        table = f"rows_{uuid4().hex}"
        own = pa.field(_ROW, pa.int64())
        rows = LazyTable(schema.append(own), self._read, self._keep_error)
        self._time_error: TimeRangeError | None = None
        self._connection = connect({table: rows}, threads=1)
        self._query = f'select "{_ROW}" from {table} where (\n{self._quoted()}\n)'
        self._find_matching_rows()
        self.columns: Sequence[str] = [name for name in schema.names if name in self._needed]

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch for which the expression is true, in order, with all columns.
        Raise ConditionError if it cannot be computed for a row.
        """
        self._batch = batch
        return batch.take(self._find_matching_rows()) if batch.num_rows else batch

    def _quoted(self) -> str:
        """Return the expression with each ``offset`` and ``group`` that stands for a column in
        quotes. Raise ConditionError if DuckDB cannot divide it into words, or it is no valid text.
        """
        try:
            return quote_columns(self._expression, everywhere=True)
        except duckdb.Error as error:
            raise self._error(error) from None
        except UnicodeEncodeError:
            raise ConditionError(
                f"--where {self._expression!r} is not UTF-8: write bytes as '\\xFF'::BLOB"
            ) from None

    def _find_matching_rows(self) -> pa.Array:
        """Return the indexes of the rows of the batch for which the expression is true, ascending.
        Raise ConditionError if it is more than one expression, or DuckDB rejects it, such as for an
        unknown column, or fails at a value.
        """
        try:
            alone = f"SELECT {self._quoted()}"  # without the parentheses of the query, which it may close
            if any(len(self._connection.extract_statements(q)) != 1 for q in (alone, self._query)):
                raise ConditionError(
                    f"--where {self._expression!r} is more than one expression: join conditions with AND or OR"
                )
            relation = self._connection.sql(self._query)
            found = stream_result(relation).read_all().column(0).combine_chunks()
        except duckdb.Error as error:
            cause, self._time_error = self._time_error, None
            raise self._error(error if cause is None else cause) from None
        return found.take(pc.sort_indices(found))

    def _keep_error(self, error: BaseException) -> None:
        """Keep the error about a time that DuckDB cannot hold, which has the row and column."""
        if isinstance(error, TimeRangeError):
            self._time_error = error

    def _error(self, error: Exception) -> ConditionError:
        """Return the error with the expression and the first paragraph of DuckDB's message."""
        reason = " ".join(str(error).partition("\n\nLINE")[0].split())
        return ConditionError(f"--where {self._expression!r}: {reason}")

    def _read(self, names: Sequence[str]) -> pa.RecordBatchReader:
        """Return the batch with these columns, and note that they are needed."""
        self._needed.update(names)
        rows = self._batch.num_rows
        arrays = [
            pa.array(np.arange(rows)) if name == _ROW else self._batch.column(name)
            for name in names
        ]
        schema = pa.schema([pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)])  # fmt: skip
        return pa.RecordBatchReader.from_batches(
            schema, [pa.RecordBatch.from_arrays(arrays, schema=schema)]
        )
