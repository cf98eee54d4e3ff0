"""After damage: the next place in a file where a whole batch begins."""

from __future__ import annotations

from collections.abc import Callable

from codecgen.runtime.errors import CodecError
from codecgen.runtime.source import Limits, Session, Source
from kafka_codecs import LOG_ENTRY
from kafka_log import framing

CHUNK = 1 << 20
WORK_PER_BYTE = 16
"""Checksums may be taken over at most this many times the bytes that are searched: hostile bytes can look like the
start of a large batch at every place."""

Read = Callable[[int, int], bytes]


def next_entry(
    read: Read, start: int, size: int, file: str, after: int | None
) -> tuple[int, int] | None:
    """(position, first offset) of the first entry at or behind ``start`` whose checksum is right.

    ``after`` is the last offset known before; an entry with a lower one is not believed.
    """
    budget = [WORK_PER_BYTE * (size - start) + CHUNK]
    magic_at = LOG_ENTRY.offset
    position = start
    while position + framing.HEAD < size and budget[0] > 0:
        chunk = read(position, CHUNK + framing.HEAD)
        last = len(chunk) - framing.HEAD
        for i in range(max(last, 1)):
            if i + magic_at < len(chunk) and chunk[i + magic_at] in LOG_ENTRY.cases:
                found = _entry(chunk, i, read, position + i, size, file, after, budget)
                if found is not None:
                    return position + i, found
        position += max(last, 1)
    return None


def _entry(
    chunk: bytes,
    i: int,
    read: Read,
    position: int,
    size: int,
    file: str,
    after: int | None,
    budget: list[int],
) -> int | None:
    """The first offset of an entry at a place, None when there is none."""
    head = chunk[i : i + framing.HEAD]
    if len(head) < framing.HEAD:
        return None
    try:
        frame = framing.frame_of(head, position, file)
    except CodecError:
        return None
    offset = frame.offset
    if frame.size > size - position or offset < 0 or (after is not None and offset <= after):
        return None
    if budget[0] < frame.size:
        return None
    budget[0] -= frame.size
    data = read(position, frame.size)
    session = Session(strict=True, limits=Limits(), file=file)
    opened = frame.layout.open(Source(data, session, origin=position))
    return None if opened.error is not None else offset
