"""Bytes with their fields as a table for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from kafka_log.inspect.hexdump.byte_fields import Stream
from kafka_log.inspect.hexdump.segment_bytes import Part
from kafka_log.segment.arrow_text import utf8

FIELDS = pa.schema(
    [
        pa.field("part", pa.string(), False, {"doc": "What was read: a batch, or a file."}),
        pa.field(
            "section",
            pa.string(),
            True,
            {"doc": "What was decompressed, where it is bytes of that; null: bytes of the file."},
        ),
        pa.field(
            "position",
            pa.int64(),
            False,
            {"doc": "In the file, or in what was decompressed."},
        ),
        pa.field("length", pa.int64(), False),
        pa.field("field", pa.string(), True, {"doc": "Null: bytes that no field has."}),
        pa.field("type", pa.string()),
        pa.field("value", pa.string(), False, {"doc": "What the text says."}),
        pa.field(
            "bytes",
            pa.string(),
            True,
            {"doc": "In hexadecimal digits; null where only their number is shown."},
        ),
    ]
)
"""Columns of the table: one row per field, or per range of bytes without a field."""


def hexdump_table(parts: Iterable[Part]) -> pa.Table:
    """Return the pieces of all parts as a table with the columns of :data:`FIELDS`, in the order of the text."""
    rows = [row for part in parts for stream in part.streams for row in _piece_rows(part, stream)]
    return pa.Table.from_pylist(rows, FIELDS)


def _piece_rows(part: Part, stream: Stream) -> Iterator[dict[str, Any]]:
    """Yield one row for each piece of a stream, in the columns of :data:`FIELDS`. ``bytes`` is
    hexadecimal, None for an omitted piece; ``field`` is None for bytes without a field.
    """
    for piece in stream.pieces:
        data = None if piece.omitted else stream.data[piece.start : piece.end].hex()
        yield {
            "part": utf8(part.heading),
            "section": stream.heading or None,
            "position": stream.origin + piece.start,
            "length": piece.end - piece.start,
            "field": piece.path or None,
            "type": piece.kind,
            "value": utf8(piece.value),
            "bytes": data,
        }
