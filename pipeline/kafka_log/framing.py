"""Where one batch ends and the next begins. What lies where comes from the generated layouts."""

from __future__ import annotations

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


def peek(head: bytes, position: int, file: str) -> tuple[int, int]:
    """(magic, length in bytes of the whole entry) for at least :data:`HEAD` bytes.

    Raises ParseError for a length that no entry can have.
    """
    source = Source(head, Session(strict=False, file=file), origin=position)
    magic = LOG_ENTRY.peek(source)
    size = layout_of(magic).frame(source)
    assert size is not None
    return magic, size
