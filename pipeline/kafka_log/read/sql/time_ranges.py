"""Times that DuckDB cannot hold. Its times are 64-bit numbers of microseconds, of which the largest and the lowest mean infinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_UNITS = {
    "s": ("seconds", (1 << 63) // 1_000_000),
    "ms": ("milliseconds", (1 << 63) // 1_000),
    "us": ("microseconds", 1 << 63),
    "ns": ("nanoseconds", 1 << 63),
}
"""Name of a unit, and 2^63 microseconds (nanoseconds) in it."""

PLACE_COLUMNS = ("topic", "partition", "offset", "base_offset", "producer_id")
"""Columns that tell which row has a time. The first three that a table has are enough."""


class TimeRangeError(ValueError):
    """A time is out of the range of DuckDB.

    Attributes:
        column: Name of the column, with the names of the members around it.
        place: Columns of PLACE_COLUMNS of the row, by name.
    """

    def __init__(self, column: str, place: Mapping[str, Any], text: str) -> None:
        row = ", ".join(f"{name} {value}" for name, value in place.items())
        super().__init__(
            f"column {column} of the row with {row or 'unknown place'}: {text} is out of the range of SQL times."
            " Leave out the row (--offsets, --time) or the column; kafka-log dump prints the number"
        )
        self.column = column
        self.place = place


def has_times(kind: Any) -> bool:
    """Return whether values of an Arrow type have timestamps or dates in them, also inside structs
    and lists, but not inside maps. Times of day do not count.
    """
    if pa.types.is_struct(kind):
        return any(has_times(field.type) for field in kind)
    if pa.types.is_list(kind):
        return has_times(kind.value_type)
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


def check_times(batch: pa.RecordBatch) -> None:
    """Raise TimeRangeError for the first time of a batch, by columns, that DuckDB cannot hold. Times
    in maps are not compared.
    """
    for field, column in zip(batch.schema, batch.columns, strict=True):
        found = _find_unheld(field.name, column) if has_times(field.type) else None
        if found is not None:
            row, name, text = found
            names = [n for n in PLACE_COLUMNS if n in batch.schema.names][:3]
            place = {n: batch.column(n)[row].as_py() for n in names}
            raise TimeRangeError(name, place, text)


def _find_unheld(name: str, column: Any) -> tuple[int, str, str] | None:
    """Return row, name and text of the first time in a column that DuckDB cannot hold; None if it
    holds all.
    """
    kind = column.type
    if pa.types.is_struct(kind):
        parts = zip(kind, column.flatten(), strict=True)
        every = (_find_unheld(f"{name}.{f.name}", part) for f, part in parts if has_times(f.type))
        return next((found for found in every if found is not None), None)
    if pa.types.is_list(kind):
        found = _find_unheld(name, column.flatten())
        if found is None:
            return None
        return pc.list_parent_indices(column)[found[0]].as_py(), *found[1:]
    is_date = pa.types.is_date32(kind)
    unit, end = ("days", 1 << 31) if is_date else _UNITS[kind.unit]
    numbers = column.cast(pa.int32()).cast(pa.int64()) if is_date else column.cast(pa.int64())
    limits = pc.min_max(numbers).as_py()
    if limits["min"] is None or -end + 1 < limits["min"] <= limits["max"] < end - 1:
        return None
    is_held = pc.and_(pc.greater(numbers, -end + 1), pc.less(numbers, end - 1))
    row = pc.index(is_held, False).as_py()
    return row, name, f"{numbers[row].as_py()} {unit} since 1970"
