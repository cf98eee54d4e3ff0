"""Iteration over the entries of a file of batches by their headers alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from codecgen.runtime.errors import CodecError, TrailingError, Where
from codecgen.runtime.nouns import count_noun
from kafka_log.segment import framing, tails
from kafka_log.segment.framing import HEADER_BYTES, Entry, HeaderColumns
from kafka_log.segment.model import Tail
from kafka_log.segment.positioned_reads import (
    open_segment,
    read_exactly,
    read_what_there_is,
    size_of,
)
from kafka_log.segment.resynchronization import find_entry


def entries(path: Path, tail: Tail = Tail.REFERENCE, start: int = 0) -> Iterator[Entry]:
    """Yield each entry (record batch or legacy message) of a file with its header bytes, from byte
    ``start`` on, where one begins. Checksums are not verified. Iterating raises CodecError at bytes
    that are no entry, and for a file that cannot be opened or read, also a missing one. An
    incomplete last entry is ignored if ``tail`` is ``reference``, and raises TrailingError if it is
    ``rolled``. Under ``active`` it ends the file without an error, as zeros do, unless a valid
    entry follows it (TrailingError).
    """
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
    """Raise TrailingError for the incomplete entry at ``position``. With ``tail`` ACTIVE raise it
    only if an entry with a valid checksum follows, whose offset is above the last one of ``before``
    (the last complete entry, None: any offset); else return.
    """
    reason = f"{count_noun(size - position, 'byte at the end is', 'bytes at the end are')} not a complete batch"
    if tail is Tail.ACTIVE:
        after = (
            None if before is None else int(HeaderColumns(("last_offset",), file).read(before)[0])
        )
        following = find_entry(read, position + 1, size, file, after)
        if following is None:
            return
        reason += f", but one begins at byte {following[0]}"
    raise TrailingError(reason, Where(position=position, file=file))


def headers(
    path: Path, columns: Sequence[str], tail: Tail = Tail.REFERENCE, start: int = 0
) -> Iterator[tuple[Any, ...]]:
    """Yield ``columns`` of the view ``batches`` as a tuple for each entry of a file, by its header
    alone, from byte ``start`` on, where one begins. Checksums are not verified. Raise KeyError for
    an unknown column. Iterating raises CodecError at bytes that are no entry, for a file that
    cannot be read, also a missing one, and for an incomplete last entry unless ``tail`` allows it
    (``reference`` ignores it).
    """
    wanted = HeaderColumns(columns, os.fspath(path))
    return map(wanted.read, entries(path, tail, start))
