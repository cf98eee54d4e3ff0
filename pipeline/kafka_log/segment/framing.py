"""Frames of entries: where one entry ends and the next begins, and the columns of its header. Positions come from the generated layouts."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import ValueRefused
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from kafka_codecs import LOG_ENTRY
from kafka_codecs.rows.batches import BATCHES

HEADER_START = LOG_ENTRY.prefix_size
"""Number of bytes at the start of an entry that say its layout and its length."""

_KNOWN = sorted(LOG_ENTRY.cases)


def layout_of(magic: int) -> Layout:
    """Return the layout with which Apache Kafka's file reader reads a magic byte, which it does not
    check: that of the newest version up to the byte, and that of version 1 for a negative byte.
    """
    return LOG_ENTRY.cases[_KNOWN[bisect(_KNOWN, magic) - 1 if magic >= _KNOWN[0] else 1]]


class Frame(NamedTuple):
    """Layout, magic byte and length in bytes of an entry, by its first bytes."""

    layout: Layout
    magic: int
    size: int


def frame_of(head: bytes | memoryview, position: int, file: str) -> Frame:
    """Return layout, magic byte and size in bytes of the entry (record batch or legacy message)
    that begins with ``head``. An unknown magic byte is returned as it is, with the layout that
    Kafka uses: of the newest version below it, or of version 1 if it is negative. Raise ParseError
    if the stored length is too small for any entry, or ``head`` is shorter than HEADER_START (17)
    bytes. Neither the checksum nor whether the entry is complete is checked.
    """
    found = LOG_ENTRY.plain_frame(head, 0)
    if found is not None:
        return Frame(*found)
    source = Source(head, Session(strict=False, file=file), origin=position)
    magic = LOG_ENTRY.peek(source)
    layout = layout_of(magic)
    size = layout.frame(source)
    assert size is not None
    return Frame(layout, magic, size)


HEADER_BYTES = max(HEADER_START, *(layout.leading_size for layout in LOG_ENTRY.cases.values()))
"""Number of bytes at the start of an entry that hold its header, whatever its layout."""


class Entry(NamedTuple):
    """An entry at ``position``. ``data`` are its first :data:`HEADER_BYTES` bytes, or all that the file has."""

    position: int
    frame: Frame
    data: bytes


class HeaderColumns:
    """Reader of columns of the view batches from single batch headers, without verification."""

    def __init__(self, names: Sequence[str], file: str) -> None:
        """Choose columns of the view batches. ``file`` is the name of the file, for errors."""
        self.header = BATCHES.header(names)
        self.session = Session(strict=False, file=file)

    def read(self, entry: Entry) -> tuple[Any, ...]:
        """Return the columns of one entry as a tuple, in the order of the names. Raise
        TruncatedError if its header is incomplete; ValueRefused if the view ``batches`` has no
        header rows for its layout. Both are CodecErrors.
        """
        size, data = entry.frame.size, entry.data
        source = Source(data, self.session, end=min(len(data), size), origin=entry.position)
        row = self.header.row(entry.frame.layout, source, Place(entry.position, size))
        self.session.findings.clear()  # a file may have more findings than a session takes
        if row is None:
            name = entry.frame.layout.layout_name
            raise ValueRefused(
                f"the codecs cannot read the batch header of the layout {name}: the view batches has no `header_only` rows for it;"
                " add them to the schema of the view and generate the codecs again",
                source.where(),
            )
        return row
