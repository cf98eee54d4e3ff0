"""Bytes of a file that repair a field of a batch header, as words of a remedy."""

from __future__ import annotations

from codecgen.runtime.located_bytes import Session
from kafka_codecs import LOG_ENTRY
from kafka_log.segment.versions import field_of


def name_bytes(version: int, column: str, position: int) -> str:
    """Return the words for the bytes of a file that hold a header field, such as "bytes 12 to 15 of
    the file". Raise KeyError for an unknown version, ValueError if the column is not one field of
    the version.

    Args:
        version: Version of the log format.
        column: Column of the view ``batches`` that is computed from the field.
        position: Byte of the file at which the batch begins.
    """
    layout, name = LOG_ENTRY.cases[version], field_of(version, column)
    start = position + layout.offset_of(name)
    return f"bytes {start} to {start + layout.size_of(name) - 1} of the file"


def format_bytes(version: int, column: str, value: int) -> str:
    """Return the bytes of a value of a header field in hex, such as "00 00 00 07". Raise KeyError
    for an unknown version, ValueError if the column is not one field of the version, BuildError if
    the value does not fit into the field.
    """
    codec = LOG_ENTRY.cases[version].codec_of(field_of(version, column))
    return codec.write(value, None, Session()).hex(" ")
