"""Which offsets the name of a segment allows. No checksum covers the first offset of a batch."""

from __future__ import annotations

import os
import re
from pathlib import PurePath

import numpy as np
import pyarrow as pa

from kafka_log.segment.row_masks import numbers

_NAME = re.compile(r"(?P<base>\d{20})(?:-[\w-]+)?\.log(?:\.\w+)?\Z", re.ASCII)

SPAN = 1 << 31
"""Offsets that a segment has room for: its index files hold the distance from its first one in four bytes."""


def offsets_of(path: str | os.PathLike[str]) -> range | None:
    """The offsets that records in a segment may have, by its name; None for a file that has another name."""
    found = _NAME.match(PurePath(path).name)
    if found is None:
        return None
    base = int(found["base"])
    return range(base, base + SPAN)


def with_damage(rows: pa.RecordBatch, allowed: range) -> pa.RecordBatch:
    """Rows whose column ``damage`` says of an offset that it cannot be."""
    offsets = numbers(rows, "offset")
    wrong = np.flatnonzero((offsets < allowed.start) | (offsets >= allowed.stop))
    if not len(wrong):
        return rows
    told = rows.column("damage").to_pylist()
    for row in wrong.tolist():
        said = (
            f"offset {offsets[row]} cannot be in a segment that begins at {allowed.start}:"
            f" it has room for {SPAN} offsets"
        )
        told[row] = said if told[row] is None else f"{told[row]}; {said}"
    at = rows.schema.get_field_index("damage")
    return rows.set_column(at, rows.schema.field(at), pa.array(told, pa.string()))
