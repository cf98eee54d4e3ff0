"""What the tests of salvage compare: rows, files, and what `check` finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_codecs.arrow.records import RECORDS
from kafka_log import LogDirectory, read_table

PLACES = ("position", "base_offset")
COLUMNS = [c.name for c in RECORDS.columns if c.name not in PLACES]
"""What a record says, without where it lies."""

Row = tuple[Any, ...]


def rows(path: Path, **options: Any) -> list[Row]:
    """The records below a path with all that they say."""
    options = {"control_records": True} | options
    table = read_table(path, COLUMNS, **options)
    return [tuple(map(repr, row.values())) for row in _numbers(table).to_pylist()]


def sound_rows(path: Path) -> list[Row]:
    """Those that can be read, and whose checksum is not wrong."""
    table = read_table(path, [*COLUMNS, "crc_ok"], policy="salvage", control_records=True)
    return [
        tuple(map(repr, list(row.values())[:-1]))
        for row in _numbers(table).to_pylist()
        if row["crc_ok"] is not False
    ]


def _numbers(table: pa.Table) -> pa.Table:
    """Timestamps as numbers: some are more than a datetime can hold. A version of the format that there is not, as the newest one: no
    checksum covers it, it is read as that, and written so."""
    at = table.schema.get_field_index("magic")
    newest = pc.min_element_wise(table.column(at), pa.scalar(2, table.schema.field(at).type))
    table = table.set_column(at, "magic", newest)
    for i, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            column = pa.chunked_array(
                [c.view(pa.int64()) for c in table.column(i).chunks], pa.int64()
            )
            table = table.set_column(i, field.name, column)
    return table


def files(directory: Path, *ends: str) -> dict[str, bytes]:
    """Files below a directory whose names end so, by their paths in it."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(p.relative_to(directory)): p.read_bytes() for p in found if p.name.endswith(ends)}


GAPS = ("offsets_missing", "segment_missing", "leader_epoch_negative", "leader_epoch_descends")
"""What `check` says of a log without what was lost or left out: brokers take gaps for compaction. Batches keep their leader epoch, which no
checksum covers."""


def problems(directory: Path, but: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What `check` finds that is more than a note."""
    found = LogDirectory(directory).check(deep=True).to_pylist()
    return [row for row in found if row["severity"] != "note" and row["code"] not in but]


def said(table: pa.Table, what: str) -> list[dict[str, Any]]:
    """The rows of a report that say one thing."""
    return [row for row in table.to_pylist() if row["what"] == what]
