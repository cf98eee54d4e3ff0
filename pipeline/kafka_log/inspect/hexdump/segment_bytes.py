"""Files of a log byte by byte: what each field says, and where damage is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import CodecError, TrailingError, Where
from codecgen.runtime.located_bytes import Limits, Session, Source
from codecgen.runtime.rows import Place as RowPlace
from kafka_codecs import LOG_ENTRY
from kafka_codecs.rows.records import RECORDS
from kafka_log.inspect.hexdump.byte_fields import Note, Stream, streams, whole
from kafka_log.logs.partitions import NotFoundError
from kafka_log.segment import framing
from kafka_log.segment.framing import HEADER_BYTES, Entry, HeaderColumns
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.positioned_reads import size_of
from kafka_log.segment.reader import SegmentReader, damage
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.resynchronization import find_entry
from kafka_log.text.values import format_time

SHOWN = 10
"""Records, or entries of other files, that are shown unless told otherwise."""

_DELTAS = {"offset_delta": "offset", "timestamp_delta": "timestamp"}
"""Fields that have a difference, and the columns of the view records that have what it comes to."""

DAMAGED = 1 << 20
"""Bytes of what is no batch that are looked at."""


class NoSuchPlace(NotFoundError):
    """A byte or an offset that is not in the file. The text says what is."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file as it is shown: what it is, its bytes, what was noticed about them, and what is wrong with them."""

    heading: str
    streams: tuple[Stream, ...]
    notes: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes ``start`` to ``end`` (not included) that are an entry by its length, or, with an ``error``, none."""

    start: int
    end: int
    error: CodecError | None = None


def batches(
    path: Path,
    *,
    at: int | None = None,
    offset: int | None = None,
    count: int = 1,
    records: int = SHOWN,
    limits: Limits | None = None,
) -> Iterator[Part]:
    """``count`` batches of a segment, from the first one on, or the one with a byte or an offset. Bytes that are no batch count as
    one. Of each ``records`` are shown, of the batch with an ``offset`` from the record with this one on.

    Raises :class:`NoSuchPlace`, OSError.
    """
    limits = limits or Limits()
    with open_regular(path) as file:
        size = size_of(file)

        def read(position: int, n: int) -> bytes:
            file.seek(position)
            return file.read(n)

        places = _places(read, size, os.fspath(path))
        if at is not None:
            if not (0 <= at <= size and size):
                raise NoSuchPlace(f"{path} has {size} bytes: there is no byte {at}")
            # errors about what is cut off name the byte after the last
            places = _from_byte(places, min(at, size - 1))
        elif offset is not None:
            places = _from_offset(read, places, offset, os.fspath(path))
        for place in islice(places, count):
            yield _part(path, read, place, records, limits, offset)
            offset = None


def _places(read: Any, size: int, file: str) -> Iterator[Place]:
    """What lies in a file, by the lengths that entries say; after damage it goes on where a whole entry begins."""
    position, last = 0, None
    columns = HeaderColumns(("last_offset",), file)
    while position < size:
        head = read(position, HEADER_BYTES)
        try:
            if min(size - position, len(head)) <= framing.HEADER_START:
                raise _cut_off(position, size, file)
            frame = framing.frame_of(head[: framing.HEADER_START], position, file)
            if frame.size > size - position:
                raise _cut_off(position, size, file, frame.size)
        except CodecError as error:
            found = find_entry(read, position + 1, size, file, last)
            end = size if found is None else found[0]
            yield Place(position, end, error)
            position = end
            continue
        try:
            (last,) = columns.read(Entry(position, frame, head))
        except CodecError:
            pass  # it is said when it is shown
        yield Place(position, position + frame.size)
        position += frame.size


def _cut_off(position: int, size: int, file: str, wanted: int | None = None) -> CodecError:
    says = "" if wanted is None else f": it says that it has {wanted}"
    reason = f"{size - position} bytes at the end are no whole batch{says}"
    return TrailingError(reason, Where(position=position, file=file))


def _from_byte(places: Iterator[Place], at: int) -> Iterator[Place]:
    for place in places:
        if place.end > at:
            yield place
            yield from places


def _from_offset(read: Any, places: Iterator[Place], offset: int, file: str) -> Iterator[Place]:
    columns = HeaderColumns(("base_offset", "last_offset"), file)
    around = ""
    for place in places:
        head = read(place.start, HEADER_BYTES)
        try:
            if place.error is not None:
                raise place.error
            frame = framing.frame_of(head[: framing.HEADER_START], place.start, file)
            first, last = columns.read(Entry(place.start, frame, head))
        except CodecError:
            around = f"; bytes {place.start} to {place.end} before it are no batch"
            continue
        if last < offset:
            around = ""
            continue
        if first is not None and first > offset:
            raise NoSuchPlace(
                f"no batch of {file} holds offset {offset}: the next one, at byte {place.start}, begins at {first}{around}"
            )
        yield place
        yield from places
        return
    after = around.replace(" before it", "") or "; it ends before"
    raise NoSuchPlace(f"no batch of {file} holds offset {offset}{after}")


def _part(
    path: Path, read: Any, place: Place, records: int, limits: Limits, offset: int | None
) -> Part:
    size = place.end - place.start
    if place.error is not None:
        return _damaged(read, place, records, limits)
    data = read(place.start, size)
    if len(data) < size:  # the file became shorter
        end = place.start + len(data)
        lost = _cut_off(place.start, end, os.fspath(path), size)
        return _damaged(read, Place(place.start, end, lost), records, limits)
    layout = framing.frame_of(data[: framing.HEADER_START], place.start, os.fspath(path)).layout
    reader = SegmentReader(
        path, policy=Policy.KAFKA, limits=limits, start=place.start, stop=place.start + 1
    )
    batch = next(iter(reader), None)
    notes: list[str] = []
    begin = 0
    if batch is not None and offset is not None:
        begin = _number_of(batch, offset)
        if begin == len(batch.records) or batch.records[begin].offset != offset:
            notes.append(f"no record of it has offset {offset}: it is gone, as after compaction")
    found, error = streams(layout, data, place.start, limits, records, _notes(layout), begin)
    heading = f"{_title(layout)} at byte {place.start}, {size} bytes"
    if batch is None:
        stopped = reader.end.error if reader.end is not None else None
        return Part(heading, tuple(found), damage=(str(stopped or error or "it cannot be read"),))
    wrong = damage(batch)
    notes += [str(finding) for finding in batch.findings if finding not in wrong]
    return Part(heading + _offsets(batch), tuple(found), tuple(notes), tuple(map(str, wrong)))


def _number_of(batch: Batch, offset: int) -> int:
    """The number of the first record that has an offset, or a larger one."""
    there = (i for i, record in enumerate(batch.records) if record.offset >= offset)
    return next(there, len(batch.records))


def _title(layout: Any) -> str:
    name, version = layout.layout_name, layout.version
    return name if version is None else f"{name} of version {version}"


def _offsets(batch: Batch) -> str:
    first = batch.last_offset if batch.base_offset is None else batch.base_offset
    number = len(batch.records) if batch.count is None else batch.count
    return f", offsets {first} to {batch.last_offset}, {number} {'record' if number == 1 else 'records'}"


def _damaged(read: Any, place: Place, records: int, limits: Limits) -> Part:
    """Bytes that are no batch, as the header that they would have; of a batch that is cut off also the records that are there."""
    size = place.end - place.start
    heading = f"no batch at byte {place.start}, {size} bytes"
    data = read(place.start, min(size, DAMAGED))
    found: list[Stream] = []
    if len(data) > framing.HEADER_START:
        layout = framing.layout_of(LOG_ENTRY.peek(Source(data, Session(strict=False))))
        end = len(data) if isinstance(place.error, TrailingError) else layout.head_size
        found, _ = streams(layout, data[:end], place.start, limits, records, _notes(layout))
    pieces = [piece for piece in found[0].pieces if piece.path] if found else []
    outer = Stream(data, place.start, whole(pieces, 0, size, "not read"))
    return Part(heading, (outer, *found[1:]), damage=(str(place.error),))


def _notes(layout: Layout) -> Note:
    """What says the offset and the time that are meant, which records have as differences."""

    def note(name: str, values: Any, entry: Any) -> str | None:
        column = _DELTAS.get(name)
        if column is None or entry is None:
            return None
        case = next((case for case in RECORDS.cases if case.layout is layout), None)
        if case is None or any(needed not in entry for needed in case.fields((column,))):
            return None
        (value,) = case.values((column,))
        found = value(entry, values, RowPlace(0, 0))
        return f"offset {found}" if column == "offset" else format_time(found)

    return note
