"""Where one entry ends and the next begins. What lies where comes from the generated layouts."""

from __future__ import annotations

from bisect import bisect
from typing import NamedTuple

from codecgen.runtime.construct import Layout
from codecgen.runtime.located_bytes import Session, Source
from kafka_codecs import LOG_ENTRY

HEADER_START = LOG_ENTRY.prefix_size
"""The first bytes of an entry, which say what it is, and how long."""

_KNOWN = sorted(LOG_ENTRY.cases)


def layout_of(magic: int) -> Layout:
    """Return the layout that Apache Kafka's file reader takes for a magic byte, which it does not check: the newest version
    up to it, and the second version for a byte below all versions."""
    return LOG_ENTRY.cases[_KNOWN[bisect(_KNOWN, magic) - 1 if magic >= _KNOWN[0] else 1]]


class Frame(NamedTuple):
    """What the first bytes of an entry say: its layout and magic, and its length in bytes."""

    layout: Layout
    magic: int
    size: int


def frame_of(head: bytes | memoryview, position: int, file: str) -> Frame:
    """The frame of the entry that begins with ``head``, which has at least :data:`HEAD` bytes.

    Raises ParseError for a length that no entry can have.
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
