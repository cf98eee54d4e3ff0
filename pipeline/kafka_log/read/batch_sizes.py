"""How many bytes rows take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt


def held_bytes(rows: pa.RecordBatch) -> int:
    """Bytes of the rows, as ``nbytes`` says them. That counts in memory of Arrow's default allocator, which sets up to a gigabyte of addresses
    aside for it: too much where addresses are limited."""
    return sum(map(_bytes, rows.columns))


def _bytes(column: Any) -> int:
    """Bytes of the values of an array that may be a part of another one."""
    kind, count = column.type, len(column)
    validity = 0 if column.buffers()[0] is None else (count + 7) // 8
    if pt.is_list(kind):
        start, end = _ends(column)
        return validity + 4 * (count + 1) + _bytes(column.values.slice(start, end - start))
    if pt.is_struct(kind):
        return validity + sum(_bytes(column.field(i)) for i in range(kind.num_fields))
    if pt.is_binary(kind) or pt.is_string(kind):
        start, end = _ends(column)
        return validity + 4 * (count + 1) + end - start
    bits: int = kind.bit_width
    return validity + (count * bits + 7) // 8


def _ends(column: Any) -> tuple[int, int]:
    """Where the values of the first element begin, and those of the last one end."""
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return 0, 0
    offsets = np.frombuffer(buffer, np.int32, len(column) + 1, 4 * column.offset)
    return int(offsets[0]), int(offsets[-1])
