"""Stored fields of a damaged entry: those of its header, and those of each of its records."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import row_items
from kafka_codecs import LOG_ENTRY
from kafka_codecs.rows.records import RECORDS
from kafka_log.segment import inner_messages
from kafka_log.segment.framing import layout_of
from kafka_log.segment.salvage import set_length


class StoredFields(NamedTuple):
    """The fields of an entry as they are stored.

    Attributes:
        layout: The layout with which the entry is read.
        entry: The fields of its header.
        records: The fields of each readable record, in file order. A legacy message that is not
            compressed is its own record.
    """

    layout: Layout
    entry: Any
    records: list[Any]


def read_stored_fields(data: bytes, position: int, file: str) -> StoredFields:
    """Return the fields of the entry whose bytes are ``data``, which may end before the entry does,
    with those of the records before the first unreadable one. ``position`` and ``file`` are for
    errors. Raise CodecError if the header is not complete.
    """
    session = Session(strict=False, file=file, any_version=True, torn=True)
    layout = layout_of(LOG_ENTRY.peek(Source(data, session, origin=position)))
    opened = layout.open(Source(set_length(data, layout), session, origin=position))
    if opened.error is not None:
        raise opened.error
    records: list[Any] = []
    case = RECORDS.case(layout, opened.fields)
    if case is not None:
        with suppress(CodecError):
            if case.whole:
                found, lost = inner_messages.find_messages(case, opened, session)
                items = inner_messages.read_messages(
                    case, opened, found, session, is_whole=lost is None
                )
            else:
                items = row_items(case, opened, RECORDS.columns)
            for item in items:
                records.append(item[0] if case.other_arrays else item)
    return StoredFields(layout, opened.fields, records)
