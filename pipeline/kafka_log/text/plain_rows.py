"""Rows of Arrow as Python objects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, with times in milliseconds: some are more than a datetime can hold."""
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.int64()))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows
