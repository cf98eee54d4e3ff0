"""After damage: the next place in a file where a whole batch begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.layout import Length
from codecgen.runtime.located_bytes import Limits, Session, Source
from kafka_codecs import LOG_ENTRY
from kafka_log.segment import framing
from kafka_log.segment.batch_headers import HEADER_BYTES, Columns, Entry

CHUNK = 1 << 20
WORK_PER_BYTE = 16
"""Checksums may be taken over at most this many times the bytes that are searched: hostile bytes can look like the
start of a large batch at every place."""

Read = Callable[[int, int], bytes]


def next_entry(
    read: Read, start: int, size: int, file: str, after: int | None
) -> tuple[int, int] | None:
    """(position, first offset) of the first entry at or after ``start`` whose checksum is right.

    ``after`` is the last offset known before; an entry with a lower one is not trusted.
    """
    offsets = Columns(("base_offset", "last_offset"), file)
    budget = [WORK_PER_BYTE * (size - start) + CHUNK]
    position = start
    while position + framing.HEADER_START < size and budget[0] > 0:
        chunk = read(position, CHUNK + HEADER_BYTES)
        if chunk.strip(b"\0"):  # a file that was made longer in advance has a long tail of zeros
            for match in _HEAD.finditer(chunk):
                i = match.start()
                head = chunk[i : i + HEADER_BYTES]
                found = _entry(head, read, position + i, size, offsets, after, budget)
                if found is not None:
                    return position + i, found
        position += max(len(chunk) - HEADER_BYTES, 1)
    return None


def entry_at(read: Read, position: int, size: int, file: str, after: int | None) -> int | None:
    """The first offset of the entry at a place, None when none begins there whose checksum is right."""
    offsets = Columns(("base_offset", "last_offset"), file)
    head = read(position, HEADER_BYTES)
    return _entry(head, read, position, size, offsets, after, [size])


def offset_behind(read: Read, position: int, size: int, file: str, after: int | None) -> int | None:
    """The first offset of the entry that follows the one at a place, None as :func:`entry_at`."""
    end = position + framing.frame_of(read(position, HEADER_BYTES), position, file).size
    return entry_at(read, end, size, file, after) if end < size else None


def headers_between(
    read: Read, start: int, last: int, file: str
) -> Iterator[tuple[int, int | None, int]]:
    """(position, first offset, last offset) of the entry at ``start`` and of those behind it up to the one at ``last``, as headers say: fewer
    where they do not lead there. The first offset is None where only the records say it."""
    offsets = Columns(("base_offset", "last_offset"), file)
    position = start
    with suppress(CodecError):
        while position <= last:
            head = read(position, HEADER_BYTES)
            frame = framing.frame_of(head, position, file)
            first, end = offsets.of(Entry(position, frame, head))
            yield position, None if first is None else int(first), int(end)
            position += frame.size


def _header_pattern() -> re.Pattern[bytes]:
    """Finds every place where the bytes could be the head of an entry: a length that is above 0, and a value that says
    which layout it is. A look-ahead, so that places may overlap."""
    values: dict[tuple[Any, ...], list[int]] = {}
    lengths = {}
    for value, layout in LOG_ENTRY.cases.items():
        if layout.length is None:
            raise TypeError(f"{layout.layout_name} does not say at a fixed place how long it is")
        values.setdefault(layout.length.read_key(), []).append(value)
        lengths[layout.length.read_key()] = layout.length
    parts = [_pattern(lengths[place], known) for place, known in values.items()]
    return re.compile(b"(?=%s)" % b"|".join(parts), re.DOTALL)


def _pattern(length: Length, values: list[int]) -> bytes:
    """The head of layouts whose lengths lie at one place."""
    digits = [b"[\\x00-\\x7f]" if length.signed else b".", *[b"."] * (length.size - 1)]
    number = b"".join(digits if length.endian == "big" else reversed(digits))
    known = [re.escape(LOG_ENTRY.codec.write(value, None, Session())) for value in values]
    pieces = [
        (length.offset, length.size, b"(?!\\x00{%d})%s" % (length.size, number)),
        (LOG_ENTRY.offset, LOG_ENTRY.codec.size or 0, b"(?:%s)" % b"|".join(known)),
    ]
    at, found = 0, b""
    for offset, size, text in sorted(pieces):
        found += b".{%d}%s" % (offset - at, text)
        at = offset + size
    return found


_HEAD = _header_pattern()


def _entry(
    head: bytes,
    read: Read,
    position: int,
    size: int,
    offsets: Columns,
    after: int | None,
    budget: list[int],
) -> int | None:
    """The first offset of an entry at a place, None when there is none."""
    if len(head) < framing.HEADER_START:
        return None
    file = offsets.session.file or ""
    try:
        frame = framing.frame_of(head, position, file)
        if frame.size > size - position:
            return None
        first, last = offsets.of(Entry(position, frame, head))
    except CodecError:
        return None
    offset = int(last if first is None else first)
    if offset < 0 or (after is not None and offset <= after):
        return None
    if budget[0] < frame.size:
        return None
    budget[0] -= frame.size
    data = read(position, frame.size)
    session = Session(strict=True, limits=Limits(), file=file)
    opened = frame.layout.open(Source(data, session, origin=position))
    return None if opened.error is not None else offset
