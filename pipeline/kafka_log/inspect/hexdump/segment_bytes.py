"""Read segments byte by byte: batches with their fields, and damaged ranges."""

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
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.rows import Place as RowPlace
from kafka_codecs import LOG_ENTRY
from kafka_codecs.rows.records import RECORDS
from kafka_log.inspect.hexdump.byte_fields import Note, Stream, fill_gaps, read_streams
from kafka_log.logs.partitions import NotFoundError
from kafka_log.segment import framing
from kafka_log.segment.framing import HEADER_BYTES, Entry, HeaderColumns
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.positioned_reads import size_of
from kafka_log.segment.reader import SegmentReader, damage
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.resynchronization import find_entry
from kafka_log.text.values import format_time

DEFAULT_RECORDS = 10
"""Default number of records, or entries of other files, that are shown."""

_DELTAS = {"offset_delta": "offset", "timestamp_delta": "timestamp"}
"""Delta fields of records, and the columns of the view records with the absolute values."""

MAX_DAMAGED_BYTES = 1 << 20
"""Maximum number of bytes read of a damaged range."""


class NoSuchPlace(NotFoundError):
    """Raised for a byte or an offset that is not in the file. The message says what is."""


@dataclass(frozen=True, slots=True)
class Part:
    """Piece of the output: a batch, a damaged range or a whole file, with its streams, tolerated problems and damage."""

    heading: str
    streams: tuple[Stream, ...]
    notes: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Bytes ``start`` to ``end`` (not included) that an entry has by its length. With an ``error`` they are no entry."""

    start: int
    end: int
    error: CodecError | None = None


def hexdump_batches(
    path: Path,
    *,
    at: int | None = None,
    offset: int | None = None,
    count: int = 1,
    records: int = DEFAULT_RECORDS,
    limits: Limits | None = None,
    start: int = 0,
) -> Iterator[Part]:
    """Yield ``count`` batches of a segment with their fields, fewer at its end. The first is the
    one that contains byte ``at`` (the size of the file means its last byte) or else ``offset``, or
    the first of the file (both None); for an empty file then one part that says so. A range of bytes that is no batch counts as one; damage is in
    the parts and does not raise. At most ``records`` records of each are shown, of the first batch
    from ``offset`` on. Raise NoSuchPlace if the segment has no byte ``at``, or no batch whose
    offset range contains ``offset`` (the record itself may be missing); OSError if the file cannot
    be read.

    Args:
        path: The segment.
        at: Begin with the batch that has this byte.
        offset: Begin with the batch that has this offset (with ``at``: that byte), and in it with the record that has this offset.
        count: Number of batches.
        records: Number of records that are shown of each batch.
        limits: Limits of decompression and of elements.
        start: Byte before ``at`` and ``offset`` where a batch begins. No byte before it is read.
    """
    limits = limits or Limits()
    with open_regular(path) as file:
        size = size_of(file)
        if not size and at is None and offset is None:
            yield Part(f"{path.name}, 0 bytes", (), ("the file is empty",))

        def read(position: int, n: int) -> bytes:
            file.seek(position)
            return file.read(n)

        places = _find_entries(read, start, size, os.fspath(path))
        if at is not None:
            if not (0 <= at <= size and size):
                raise NoSuchPlace(
                    f"{path} has {count_noun(size, 'byte')}, so that it has no byte {at}: positions count from 0"
                )
            # A truncation error names the byte after the last one.
            places = _skip_to_byte(places, min(at, size - 1))
        elif offset is not None:
            places = _skip_to_offset(read, places, offset, os.fspath(path))
        for place in islice(places, count):
            yield _dump_entry(path, read, place, records, limits, offset)
            offset = None


def holds_offset(path: Path, offset: int) -> bool:
    """Return whether the header of a batch of a segment states a range that contains ``offset``.
    Checksums and records are not checked; damaged ranges are skipped. Raise OSError if the file
    cannot be read.
    """
    try:
        return any(True for _ in hexdump_batches(path, offset=offset, records=0))
    except NoSuchPlace:
        return False


def _find_entries(read: Any, start: int, size: int, file: str) -> Iterator[EntryRange]:
    """Yield the byte range of each entry of a file from byte ``start`` on, where one begins, found
    by its length; its checksum is not verified. Damage does not raise: it is yielded as a range
    with its error, up to the next entry with a valid checksum or the end of the file.
    """
    position, last = start, None
    columns = HeaderColumns(("last_offset",), file)
    while position < size:
        head = read(position, HEADER_BYTES)
        try:
            if min(size - position, len(head)) <= framing.HEADER_START:
                raise _truncation_error(position, size, file)
            frame = framing.frame_of(head[: framing.HEADER_START], position, file)
            if frame.size > size - position:
                raise _truncation_error(position, size, file, frame.size)
        except CodecError as error:
            found = find_entry(read, position + 1, size, file, last)
            end = size if found is None else found[0]
            yield EntryRange(position, end, error)
            position = end
            continue
        try:
            (last,) = columns.read(Entry(position, frame, head))
        except CodecError:
            pass  # _dump_entry reports it
        yield EntryRange(position, position + frame.size)
        position += frame.size


def _truncation_error(position: int, size: int, file: str, wanted: int | None = None) -> CodecError:
    """Return the error about an entry that ends after the file; ``wanted`` is the size that its header states."""
    says = "" if wanted is None else f", whose header states {count_noun(wanted, 'byte')}"
    reason = f"{count_noun(size - position, 'byte at the end is', 'bytes at the end are')} not a complete batch{says}"
    return TrailingError(reason, Where(position=position, file=file))


def _skip_to_byte(places: Iterator[EntryRange], at: int) -> Iterator[EntryRange]:
    """Yield the entries of ``places`` from the one that contains byte ``at`` on; nothing if all end
    before it.
    """
    for place in places:
        if place.end > at:
            yield place
            yield from places


def _skip_to_offset(
    read: Any, places: Iterator[EntryRange], offset: int, file: str
) -> Iterator[EntryRange]:
    """Yield the entries from the first batch whose header's offset range contains ``offset`` on;
    damaged ranges before it are skipped, later ones are yielded. Raise NoSuchPlace if there is no
    such batch.
    """
    columns = HeaderColumns(("base_offset", "last_offset"), file)
    around = later = ""
    for place in places:
        head = read(place.start, HEADER_BYTES)
        try:
            if place.error is not None:
                raise place.error
            frame = framing.frame_of(head[: framing.HEADER_START], place.start, file)
            first, last = columns.read(Entry(place.start, frame, head))
        except CodecError:
            around = f"; bytes {place.start} to {place.end} before it are not a batch"
            continue
        if last < offset:
            around = ""
            continue
        if first is not None and first > offset:
            # The batch may follow all the same, if offsets are out of order.
            later = later or f": the next one, at byte {place.start}, begins at {first}{around}"
            continue
        yield place
        yield from places
        return
    after = later or around.replace(" before it", "") or "; it ends before"
    raise NoSuchPlace(f"no batch of {file} holds offset {offset}{after}")


def _dump_entry(
    path: Path, read: Any, place: EntryRange, records: int, limits: Limits, offset: int | None
) -> Part:
    """Return one batch with its fields. Tolerated problems, and that it has no record with
    ``offset``, are notes; wrong checksums and undecodable records are damage. Return a damaged
    range if ``place`` has an error or the file became shorter.
    """
    size = place.end - place.start
    if place.error is not None:
        return _dump_damage(read, place, records, limits)
    data = read(place.start, size)
    if len(data) < size:  # the file became shorter
        end = place.start + len(data)
        lost = _truncation_error(place.start, end, os.fspath(path), size)
        return _dump_damage(read, EntryRange(place.start, end, lost), records, limits)
    layout = framing.frame_of(data[: framing.HEADER_START], place.start, os.fspath(path)).layout
    reader = SegmentReader(
        path, policy=Policy.KAFKA, limits=limits, start=place.start, stop=place.start + 1
    )
    batch = next(iter(reader), None)
    notes: list[str] = []
    begin = 0
    if batch is not None and offset is not None:
        begin = _find_record(batch, offset)
        if begin == len(batch.records) or batch.records[begin].offset != offset:
            notes.append(
                f"the batch has no record with offset {offset}; compaction may have removed it"
            )
    found, error = read_streams(
        layout, data, place.start, limits, records, _delta_note(layout), begin
    )
    heading = f"{_layout_title(layout)} at byte {place.start}, {count_noun(size, 'byte')}"
    if batch is None:
        stopped = reader.end.error if reader.end is not None else None
        return Part(heading, tuple(found), damage=(str(stopped or error or "it cannot be read"),))
    wrong = damage(batch)
    notes += [str(finding) for finding in batch.findings if finding not in wrong]
    return Part(
        heading + _summarize_offsets(batch), tuple(found), tuple(notes), tuple(map(str, wrong))
    )


def _find_record(batch: Batch, offset: int) -> int:
    """Return the index of the first record at or after ``offset``; the number of records if there is none."""
    there = (i for i, record in enumerate(batch.records) if record.offset >= offset)
    return next(there, len(batch.records))


def _layout_title(layout: Any) -> str:
    """Return the name of a layout with its version, if it has one."""
    name, version = layout.layout_name, layout.version
    return name if version is None else f"{name} of version {version}"


def _summarize_offsets(batch: Batch) -> str:
    """Return the offset range and the number of records of a batch, as text that continues the heading."""
    first = batch.last_offset if batch.base_offset is None else batch.base_offset
    number = len(batch.records) if batch.count is None else batch.count
    return f", offsets {first} to {batch.last_offset}, {count_noun(number, 'record')}"


def _dump_damage(read: Any, place: EntryRange, records: int, limits: Limits) -> Part:
    """Return a range of bytes that is no batch, with the header fields that it would have; a
    truncated batch also with its records. The error of ``place`` is its damage. At most
    MAX_DAMAGED_BYTES are read.
    """
    size = place.end - place.start
    heading = f"no batch at byte {place.start}, {count_noun(size, 'byte')}"
    data = read(place.start, min(size, MAX_DAMAGED_BYTES))
    found: list[Stream] = []
    if len(data) > framing.HEADER_START:
        layout = framing.layout_of(LOG_ENTRY.peek(Source(data, Session(strict=False))))
        end = len(data) if isinstance(place.error, TrailingError) else layout.leading_size
        found, _ = read_streams(
            layout, data[:end], place.start, limits, records, _delta_note(layout)
        )
    pieces = [piece for piece in found[0].pieces if piece.path] if found else []
    outer = Stream(data, place.start, fill_gaps(pieces, 0, size, "not read"))
    return Part(heading, (outer, *found[1:]), damage=(str(place.error),))


def _delta_note(layout: Layout) -> Note:
    """Return a function that returns a text for the fields ``offset_delta`` and ``timestamp_delta``
    of records: the absolute offset (``offset N``) or time. It returns None for other fields, and if
    the batch header was not read.
    """

    def note(name: str, values: Any, entry: Any) -> str | None:
        """Return ``offset N`` or a time for a delta field of a record; None for other fields."""
        column = _DELTAS.get(name)
        if column is None or entry is None:
            return None
        case = next((case for case in RECORDS.cases if case.layout is layout), None)
        if case is None or any(needed not in entry for needed in case.fields((column,))):
            return None
        if any(array in case.columns[column].paths for array in case.other_arrays):
            return None  # it takes the element of another array too
        (value,) = case.values((column,))
        found = value(entry, case.item_of(values), RowPlace(0, 0))
        return f"offset {found}" if column == "offset" else format_time(found)

    return note
