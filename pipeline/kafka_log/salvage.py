"""After damage: the next place in a file where a whole batch begins."""

from __future__ import annotations

import re
from collections.abc import Callable

from codecgen.runtime.errors import CodecError
from codecgen.runtime.source import Limits, Session, Source
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
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
    position = start
    while position + framing.HEAD < size and budget[0] > 0:
        chunk = read(position, CHUNK + framing.HEAD)
        if chunk.strip(b"\0"):  # a file that was made longer in advance has a long tail of zeros
            for match in _HEAD.finditer(chunk):
                i = match.start()
                head = chunk[i : i + framing.HEAD]
                found = _entry(head, read, position + i, size, file, after, budget)
                if found is not None:
                    return position + i, found
        position += max(len(chunk) - framing.HEAD, 1)
    return None


def _head_pattern() -> re.Pattern[bytes]:
    """Finds every place where the bytes could be the head of an entry: an offset and a length that are not negative,
    a length that is not 0, a known magic byte. A look-ahead, so that places may overlap."""
    length = next(f.name for f in RECORD_BATCH.fields if f.measures is not None)
    at, magic_at = RECORD_BATCH.offset_of(length), RECORD_BATCH.offset_of("magic")
    zero = b"\\0{%d}" % RECORD_BATCH.size_of(length)
    magics = b"".join(b"\\x%02x" % magic for magic in LOG_ENTRY.cases)
    low = b"[\\x00-\\x7f]"
    parts = (low, b".{%d}" % (at - 1), b"(?!%s)" % zero, low, b".{%d}" % (magic_at - at - 1))
    return re.compile(b"(?=%s[%s])" % (b"".join(parts), magics), re.DOTALL)


_HEAD = _head_pattern()


def _entry(
    head: bytes,
    read: Read,
    position: int,
    size: int,
    file: str,
    after: int | None,
    budget: list[int],
) -> int | None:
    """The first offset of an entry at a place, None when there is none."""
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
