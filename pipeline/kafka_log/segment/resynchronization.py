"""Resynchronization: where the next whole entry begins after damage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.fields import Length
from codecgen.runtime.located_bytes import Limits, Session, Source
from kafka_codecs import LOG_ENTRY
from kafka_log.segment import framing
from kafka_log.segment.framing import HEADER_BYTES, Entry, HeaderColumns
from kafka_log.segment.model import is_own_checksum

CHUNK = 1 << 20
WORK_PER_BYTE = 16
"""Maximum number of bytes to checksum for each byte that is searched. Hostile bytes can look like the start of a large batch at
every position."""

Read = Callable[[int, int], bytes]


def find_entry(
    read: Read, start: int, size: int, file: str, after: int | None
) -> tuple[int, int] | None:
    """Return (byte position, first offset) of the first valid entry (record batch or legacy
    message) at or after ``start``: its checksum is valid, and its offset above ``after`` (None:
    any). The offset of a compressed legacy message is its last one. Return None if none ends at or
    before ``size``, or after checksums over 16 times the bytes searched.
    """
    offsets = HeaderColumns(("base_offset", "last_offset"), file)
    budget = [WORK_PER_BYTE * (size - start) + CHUNK]
    position = start
    while position + framing.HEADER_START < size and budget[0] > 0:
        chunk = read(position, CHUNK + HEADER_BYTES)
        if chunk.strip(b"\0"):  # a preallocated file has a long tail of zeros
            for match in _HEADER_PATTERN.finditer(chunk):
                i = match.start()
                head = chunk[i : i + HEADER_BYTES]
                found = _base_offset(head, read, position + i, size, offsets, after, budget)
                if found is not None:
                    return position + i, found
        position += max(len(chunk) - HEADER_BYTES, 1)
    return None


def base_offset_at(
    read: Read, position: int, size: int, file: str, after: int | None
) -> int | None:
    """Return the first offset of the entry (record batch or legacy message) at byte ``position``;
    for a compressed legacy message its last one. Return None if no valid entry begins there, or its
    offset is not above ``after`` (None: any).
    """
    offsets = HeaderColumns(("base_offset", "last_offset"), file)
    head = read(position, HEADER_BYTES)
    return _base_offset(head, read, position, size, offsets, after, [size])


def next_base_offset(
    read: Read, position: int, size: int, file: str, after: int | None
) -> int | None:
    """Return the first offset of the entry right after the one at byte ``position``; for a
    compressed legacy message its last one. Return None if the file ends there, no valid entry
    follows, or its offset is not above ``after`` (None: any). Raise ParseError if the entry at
    ``position`` has no possible length.
    """
    end = position + framing.frame_of(read(position, HEADER_BYTES), position, file).size
    return base_offset_at(read, end, size, file, after) if end < size else None


def headers_between(
    read: Read, start: int, last: int, file: str
) -> Iterator[tuple[int, int | None, int]]:
    """Yield (byte position, first offset, last offset) of the entries from position ``start`` to
    ``last`` (included), by their headers, unverified. The first offset is None for a compressed
    legacy message. End early, without an error, at a header that is invalid.
    """
    offsets = HeaderColumns(("base_offset", "last_offset"), file)
    position = start
    with suppress(CodecError):
        while position <= last:
            head = read(position, HEADER_BYTES)
            frame = framing.frame_of(head, position, file)
            first, end = offsets.read(Entry(position, frame, head))
            yield position, None if first is None else int(first), int(end)
            position += frame.size


def _header_pattern() -> re.Pattern[bytes]:
    """Return a regular expression, a look-ahead, for the first bytes of an entry: a length that is
    not 0 and, if signed, not negative, and a known magic byte. Raise TypeError if a generated
    layout has no length at a fixed place.

    It is a look-ahead, so that matches may overlap.
    """
    values: dict[tuple[Any, ...], list[int]] = {}
    lengths = {}
    for value, layout in LOG_ENTRY.cases.items():
        if layout.length is None:
            raise TypeError(
                f"{layout.layout_name} has no length at a fixed place, so that entries after damage cannot be found: change its schema and generate the codecs again"
            )
        values.setdefault(layout.length.read_key(), []).append(value)
        lengths[layout.length.read_key()] = layout.length
    parts = [_pattern(lengths[place], known) for place, known in values.items()]
    return re.compile(b"(?=%s)" % b"|".join(parts), re.DOTALL)


def _pattern(length: Length, values: list[int]) -> bytes:
    """Return the regular expression, as bytes, for the first bytes of entries with one of the magic
    bytes ``values`` and with a length field as ``length`` that is not 0 and, if signed, not
    negative.
    """
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


_HEADER_PATTERN = _header_pattern()


def _base_offset(
    head: bytes,
    read: Read,
    position: int,
    size: int,
    offsets: HeaderColumns,
    after: int | None,
    budget: list[int],
) -> int | None:
    """Return the first offset (of a compressed legacy message the last) of the entry that begins
    with ``head``, which may break rules for producers. Return None if its checksum is wrong, it
    does not parse or is cut off, its offset is negative or not above ``after``, or its size exceeds
    ``budget[0]``; the size of each entry that is verified is taken from that.
    """
    if len(head) < framing.HEADER_START:
        return None
    file = offsets.session.file or ""
    try:
        frame = framing.frame_of(head, position, file)
        if frame.size > size - position:
            return None
        first, last = offsets.read(Entry(position, frame, head))
    except CodecError:
        return None
    offset = int(last if first is None else first)
    if offset < 0 or (after is not None and offset <= after):
        return None
    if budget[0] < frame.size:
        return None
    budget[0] -= frame.size
    data = read(position, frame.size)
    session = Session(strict=False, limits=Limits(), file=file)
    opened = frame.layout.open(Source(data, session, origin=position))
    is_valid = opened.error is None and not any(map(is_own_checksum, session.findings))
    return offset if is_valid else None
