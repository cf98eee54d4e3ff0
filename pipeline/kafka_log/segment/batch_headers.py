"""One walk over the headers of a file of batches: their columns of the view batches, and nothing else of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codecgen.runtime.errors import CodecError, TrailingError, ValueRefused, Where
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from kafka_codecs import LOG_ENTRY
from kafka_codecs.rows.batches import BATCHES
from kafka_log.segment import framing, tails
from kafka_log.segment.model import Tail
from kafka_log.segment.positioned_reads import (
    open_segment,
    read_exactly,
    read_what_there_is,
    size_of,
)

HEADER_BYTES = max(framing.HEADER_START, *(layout.head_size for layout in LOG_ENTRY.cases.values()))
"""Bytes of an entry that have all of its header, whatever it is."""


class Entry(NamedTuple):
    """An entry that lies at ``position``. ``data`` are its first bytes: as many as there are, or :data:`HEADER_BYTES`."""

    position: int
    frame: framing.Frame
    data: bytes


class Columns:
    """Columns of the view batches, of one header after the other. Nothing is verified."""

    def __init__(self, names: Sequence[str], file: str) -> None:
        self.header = BATCHES.header(names)
        self.session = Session(strict=False, file=file)

    def of(self, entry: Entry) -> tuple[Any, ...]:
        """Those of one entry. Raises ParseError when its header is cut off, or it is no batch."""
        size, data = entry.frame.size, entry.data
        source = Source(data, self.session, end=min(len(data), size), origin=entry.position)
        row = self.header.row(entry.frame.layout, source, Place(entry.position, size))
        self.session.findings.clear()  # a file may have more oddities than a session takes
        if row is None:
            name = entry.frame.layout.layout_name
            raise ValueRefused(f"{name} is no batch", source.where())
        return row


def entries(path: Path, tail: Tail = Tail.REFERENCE, start: int = 0) -> Iterator[Entry]:
    """Each entry of a file from ``start`` on, where one begins, in order. Where the bytes end before an entry does, it ends quietly, if ``tail`` allows it;
    CodecError is raised for what is no entry, or cannot be read."""
    name = os.fspath(path)
    with open_segment(path, is_listed=True) as file:
        size = size_of(file)

        def read(position: int, n: int) -> bytes:
            return read_what_there_is(file, position, min(n, size - position), 0xFF)

        position = start
        entry: Entry | None = None
        while position + framing.HEADER_START < size:
            data = read_exactly(file, position, min(HEADER_BYTES, size - position))
            try:
                frame = framing.frame_of(data, position, name)
            except CodecError:
                if tail is Tail.ACTIVE and tails.is_unwritten(read, position, size):
                    return
                raise
            if frame.size > size - position:
                break
            entry = Entry(position, frame, data)
            yield entry
            position += frame.size
        if position < size and tail is not Tail.REFERENCE:
            _check_rest(read, position, size, name, tail, entry)


def _check_rest(
    read: Callable[[int, int], bytes],
    position: int,
    size: int,
    file: str,
    tail: Tail,
    before: Entry | None,
) -> None:
    """Refuse bytes at the end that are no whole entry: after a rolled segment, or with whole entries after them."""
    reason = f"{size - position} bytes at the end are no whole batch"
    if tail is Tail.ACTIVE:
        from kafka_log.segment.resynchronisation import next_entry  # stands on this module

        after = None if before is None else int(Columns(("last_offset",), file).of(before)[0])
        following = next_entry(read, position + 1, size, file, after)
        if following is None:
            return
        reason += f", but one begins at byte {following[0]}"
    raise TrailingError(reason, Where(position=position, file=file))


def headers(
    path: Path, columns: Sequence[str], tail: Tail = Tail.REFERENCE, start: int = 0
) -> Iterator[tuple[Any, ...]]:
    """Columns of the view batches for each entry of a file. See :func:`entries`."""
    wanted = Columns(columns, os.fspath(path))
    return map(wanted.of, entries(path, tail, start))
