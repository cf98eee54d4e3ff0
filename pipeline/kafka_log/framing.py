"""Where one batch ends and the next begins. What lies where comes from the generated layouts."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.runtime.construct import Layout
from codecgen.runtime.source import Session, Source
from kafka_codecs import LOG_ENTRY, RECORD_BATCH

HEAD = RECORD_BATCH.offset_of("magic") + RECORD_BATCH.size_of("magic")
"""Bytes up to and with the magic byte: what it takes to know what an entry is, and how long."""

NEWEST = max(LOG_ENTRY.cases)
OLDEST = min(LOG_ENTRY.cases)


def layout_of(magic: int) -> Layout:
    """The layout that Apache Kafka's file reader takes for a magic byte: it does not check it, takes what is
    above the newest version for the newest, and what is below the oldest for the second version."""
    if magic in LOG_ENTRY.cases:
        return LOG_ENTRY.cases[magic]
    return RECORD_BATCH if magic > NEWEST else LOG_ENTRY.cases[OLDEST + 1]


@dataclass(frozen=True, slots=True)
class Frame:
    """What the head of an entry says: its layout and magic, its length in bytes, and its first field, an offset."""

    layout: Layout
    magic: int
    size: int
    offset: int


def frame_of(head: bytes, position: int, file: str) -> Frame:
    """The frame of the entry that begins with ``head``, which has at least :data:`HEAD` bytes.

    Raises ParseError for a length that no entry can have.
    """
    source = Source(head, Session(strict=False, file=file), origin=position)
    magic = LOG_ENTRY.peek(source)
    layout = layout_of(magic)
    size = layout.frame(source)
    assert size is not None
    offset = layout.fields[0].codec.read(source, None)
    return Frame(layout, magic, size, offset)


def peek(head: bytes, position: int, file: str) -> tuple[int, int]:
    """(magic, length in bytes) of the entry that begins with ``head``; see :func:`frame_of`."""
    frame = frame_of(head, position, file)
    return frame.magic, frame.size
