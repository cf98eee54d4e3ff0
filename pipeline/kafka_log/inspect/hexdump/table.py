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
        pa.field("part", pa.string(), False, {"doc": "Heading of the part: a batch, or a file."}),
        pa.field(
            "section",
            pa.string(),
            True,
            {"doc": "Heading of the decompressed section; null for bytes of the file."},
        ),
        pa.field(
            "position",
            pa.int64(),
            False,
            {"doc": "Position in the file, or in the decompressed section."},
        ),
        pa.field("length", pa.int64(), False),
        pa.field(
            "field",
            pa.string(),
            True,
            {"doc": "Path of the field; null for bytes without a field."},
        ),
        pa.field("type", pa.string()),
        pa.field("value", pa.string(), False, {"doc": "Value of the field as text."}),
        pa.field(
            "bytes",
            pa.string(),
            True,
            {"doc": "The bytes as hexadecimal digits; null if the text shows only their number."},
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
