"""Segment files of a partition: good batches are copied byte for byte, other batches are encoded from their records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from itertools import chain, compress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from codecgen.runtime.construct import Layout
from codecgen.runtime.editing import edit
from codecgen.runtime.errors import CodecError, ValueRefused, Where
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from kafka_codecs import LOG_ENTRY
from kafka_codecs.columns.records import RECORDS
from kafka_log.logs.partitions import Segment
from kafka_log.segment import framing
from kafka_log.segment.framing import HEADER_BYTES, Entry, HeaderColumns, frame_of
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.model import Policy
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.placement import find_ascending
from kafka_log.segment.positioned_reads import (
    open_segment,
    read_exactly,
    read_what_there_is,
)
from kafka_log.segment.row_masks import numbers
from kafka_log.segment.scanner import Scanner
from kafka_log.segment.stored_fields import read_stored_fields
from kafka_log.segment.versions import (
    WRITTEN_BATCH_VERSIONS,
    WRITTEN_VERSIONS,
    absent_value,
    field_of,
    version_of,
)
from kafka_log.write.encoding import encode
from kafka_log.write.field_comparison import Rewritten, compare_fields
from kafka_log.write.output_files import OutputFile, open_output
from kafka_log.write.segment_contents import SegmentContents
from kafka_log.write.unwritten_fields import restore_fields
from kafka_log.write.verification import (
    DEFECT,
    Written,
    WrittenError,
    compare_bytes,
    compare_rows,
    records_written,
)

BOUNDS = ("base_offset", "last_offset")
"""What is asked of each batch."""


class SegmentRoller:
    """Writes batches to the current segment, and begins a new one before it would become too large."""

    def __init__(self, log: LogWriter, max_bytes: int) -> None:
        self.log = log
        self.max_bytes = max_bytes
        """Bytes that a segment has, unless one batch has more."""
        self.batches = self.bytes = 0

    def has_room(self, size: int, last: int) -> bool:
        """Return whether `size` bytes with offsets up to `last` fit into the current segment."""
        base = self.log.base_offset or 0
        return self.log.size + size <= self.max_bytes and last - base <= MAX_RELATIVE

    def write(self, data: bytes | memoryview, first: int, last: int, batches: int = 1) -> Written:
        """Append whole batches with the offsets ``first`` to ``last`` (both included), count them,
        and return their place. If they do not fit into the current segment, begin a new one with
        base offset ``first`` before that; an empty segment takes them at any size. The bytes are not
        verified. Raise ValueError if no segment was begun; OSError if writing fails.
        """
        if self.log.size and not self.has_room(len(data), last):
            self.log.begin(first)
        self.batches += batches
        self.bytes += len(data)
        return self.log.write(data)

    def copy(self, file: FileIO, headers: Headers) -> list[Written]:
        """Copy adjacent batches of a file, given by their headers (at least one), and return where
        they are now. They are copied in one piece if they fit into the current segment, else batch
        by batch with new segments as needed. No checksum is verified. Raise UnreadableError if the file cannot be read or ends
        before; ValueError if no segment was begun; OSError if writing fails.
        """
        sizes, lasts = headers.size.tolist(), headers.last.tolist()
        start = int(headers.position[0])
        if self.has_room(sum(sizes), lasts[-1]):
            self.batches += len(sizes)
            self.bytes += sum(sizes)
            return [self.log.copy(file, start, start + sum(sizes))]
        copies = []
        for size, first, last in zip(sizes, headers.first.tolist(), lasts, strict=True):
            copies.append(self.write(read_exactly(file, start, size), first, last))
            start += size
        return copies

    def write_pieces(self, pieces: Iterator[memoryview], columns: HeaderColumns) -> None:
        """Write pieces of whole batches, batch by batch where a piece does not fit into the current
        segment. ``columns`` reads the first and last offset of a batch from its header. Raise
        CodecError for an invalid header; ValueError if no segment was begun; OSError if writing
        fails.
        """
        for piece in pieces:
            entries = list(_entries(piece))
            first, last = columns.read(entries[0])[0], columns.read(entries[-1])[1]
            if self.has_room(len(piece), last):
                self.write(piece, first, last, len(entries))
                continue
            for entry in entries:
                data = piece[entry.position : entry.position + entry.frame.size]
                self.write(data, *columns.read(entry._replace(position=0)))


def _entries(piece: memoryview) -> Iterator[Entry]:
    """Yield the batches in ``piece``, which holds whole batches, with their byte positions in it.
    Raise CodecError for an invalid header.
    """
    position = 0
    while position < len(piece):
        data = bytes(piece[position : position + HEADER_BYTES])
        frame = framing.frame_of(data, position, "")
        yield Entry(position, frame, data)
        position += frame.size


CHUNK = 8 << 20
BATCH_BYTES = 1 << 28
"""Batches that are written anew are not cut: they end where they did."""

MAX_SEGMENT = (1 << 31) - 1
"""Brokers have no larger segments."""

NO_PRODUCER = {
    "producer_id": absent_value("producer_id"),
    "producer_epoch": absent_value("producer_epoch"),
    "sequence": absent_value("base_sequence"),
    "is_transactional": False,
}
"""Columns of records that belong to no transaction."""

_IN_HEADER = {"sequence": "base_sequence"}
"""Columns of headers for columns of records that have another name."""

_DAMAGE_COLUMNS = ("position", "crc_ok")
_COLUMNS = [*(column.name for column in RECORDS.columns), "crc_ok"]


class LogWriter:
    """Writes the segments of one partition, one after the other, into a directory.

    Files are named after their base offsets. A segment is on the disk when the next one begins or the ``with`` block ends without an error,
    unless its file was released before.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.segments: list[tuple[Path, int]] = []
        """Paths and base offsets."""
        self.size = 0
        """Bytes of the last segment."""
        self._file: OutputFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close(whole=kind is None)

    @property
    def base_offset(self) -> int:
        """Return the base offset of the current segment, or -1 if none was begun."""
        return self.segments[-1][1] if self.segments else -1

    def begin(self, base_offset: int) -> None:
        """Close the file of the current segment, if it is open, synced to the disk, and begin a new
        file named by ``base_offset`` in 20 digits. A released file is not synced. Raise
        FileExistsError if the new file exists; OSError if a file cannot be written.
        """
        self._close(whole=True)
        path = self.directory / f"{base_offset:020d}.log"
        self._file = open_output(path, "x")
        self.segments.append((path, base_offset))
        self.size = 0

    def write(self, data: bytes | memoryview) -> Written:
        """Append whole batches to the current segment, whose file is opened again if it was
        released, and return their place. Neither the bytes nor the size of the segment are checked.
        Raise ValueError if no segment was begun; OSError if writing fails.
        """
        if self._file is None:
            if not self.segments:
                raise ValueError("no segment was begun: call begin before write")
            self._file = open_output(self.segments[-1][0], "a")
        start, self.size = self.size, self.size + len(data)
        self._file.write(data)
        return Written(self.segments[-1][0], start, self.size)

    def copy(self, file: FileIO, start: int, end: int) -> Written:
        """Append the bytes of another file from ``start`` to ``end`` (excluded) to the current
        segment, and return their place. Raise UnreadableError if they cannot be read or the file ends before ``end``;
        OSError if they cannot be written; ValueError if no segment was begun.
        """
        for position in range(start, end, CHUNK):
            self.write(read_exactly(file, position, min(CHUNK, end - position)))
        return Written(self.segments[-1][0], self.size - (end - start), self.size)

    def flush(self) -> None:
        """Write buffered bytes to the file, so that they can be read. Raise OSError if that fails."""
        if self._file is not None:
            self._file.flush()

    def mark(self) -> tuple[int, int]:
        """Return where the next byte goes, for :meth:`since`."""
        return max(len(self.segments) - 1, 0), self.size

    def since(self, mark: tuple[int, int]) -> list[Written]:
        """Return the files and byte ranges that were written since ``mark``, a result of
        :meth:`mark`, without empty ranges. Flush the file first; raise OSError if that fails.
        """
        self.flush()
        first, start = mark
        out = []
        for i, (path, _) in enumerate(self.segments[first:]):
            stop = path.stat().st_size
            out.append(Written(path, start if i == 0 else 0, stop))
        return [one for one in out if one.start < one.stop]

    @property
    def is_open(self) -> bool:
        """Return whether the file of the current segment is open."""
        return self._file is not None

    def release(self) -> None:
        """Close the file of the current segment, if it is open, without syncing it to the disk. The
        next write opens it again. Raise OSError if buffered bytes cannot be written.
        """
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _close(self, whole: bool) -> None:
        """Close the current file; do nothing if none is open. If it is ``whole``, sync it to the
        disk before, and raise OSError if that fails; otherwise ignore errors.
        """
        file, self._file = self._file, None
        if file is None:
            return
        if not whole:
            file.abandon()
            return
        with file:
            file.sync()


class BatchRecords:
    """The records of a segment as rows, by batch. Batches must be asked for in file order."""

    def __init__(self, segment: Segment) -> None:
        scanner = Scanner(
            segment.path, _COLUMNS, Policy.SALVAGE, tail=segment.tail, size=segment.size
        )
        self._batches = iter(scanner)
        self._rest: pa.RecordBatch | None = None

    def of(self, positions: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the batches at the byte ``positions`` (ascending, at least one, after
        those of earlier calls). Damaged records are included; a batch without readable records has
        no rows. Batches before the last position that are not asked for are lost for later calls.
        """
        last = int(positions[-1])
        while (rows := self._rest or next(self._batches, None)) is not None:
            at = rows.column("position").to_numpy()
            end = int(np.searchsorted(at, last, side="right"))
            self._rest = rows.slice(end) if end < len(at) else None
            here = np.isin(at[:end], positions)
            if here.any():
                yield rows.slice(0, end).filter(pa.array(here))
            if self._rest is not None:
                return


@dataclass(frozen=True, slots=True)
class RewrittenBatch:
    """The result of encoding a damaged batch again.

    Attributes:
        index: Index of the batch in its segment.
        written: Number of records that were written.
        left_out: Number of readable records that were not written.
        error: Why the batch could not be encoded. None: records were left out for their checksums only.
        unkept: Why fields without a column were not kept. None: they have their values.
    """

    index: int
    written: int
    left_out: int
    error: str | None = None
    unkept: str | None = None


def build_empty_batch(version: int, first: int, last: int, leader_epoch: int) -> bytes:
    """Return the bytes of a batch without records that takes the offsets ``first`` to ``last``
    (both included). Raise BuildError if the header of that version has no such fields, or they do
    not fit into them; KeyError for an unknown version; WrittenError if the header reads as other
    offsets or another leader epoch.
    """
    batch = {
        "base_offset": first,
        "last_offset_delta": last - first,
        "partition_leader_epoch": leader_epoch,
        "records": [],
    }
    data = LOG_ENTRY.cases[version].build(batch)
    columns = HeaderColumns(("base_offset", "last_offset", "leader_epoch", "record_count"), "")
    said = columns.read(Entry(0, frame_of(data, 0, ""), data))
    if said != (first, last, leader_epoch, 0):
        reason = f"a batch of version {version} with offsets {first} to {last} of leader epoch {leader_epoch} has {said} in its header; {DEFECT}"
        raise WrittenError(reason)
    return data


def write_batches(
    log: LogWriter,
    found: SegmentContents,
    taken: Any,
    rewritten: Any,
    emptied: Any,
    name: int | None,
    *,
    begins: bool = True,
    keep_damaged: bool,
    constants: dict[str, Any],
) -> list[RewrittenBatch]:
    """Write the batches of a segment in the mask ``taken``, and return a RewrittenBatch for each
    one that is encoded again, in file order. Batches are copied; those in ``rewritten`` get
    ``constants`` in their headers, those in ``emptied`` lose their records. Others with problems are
    encoded again, records with wrong checksums only if ``keep_damaged``. With ``begins`` they begin
    a segment called ``name`` (None: their first offset). Raise OSError if reading or writing fails
    or a segment would be too large; CodecError if the result does not read as its source, or a
    header cannot hold a value.

    Args:
        log: Where the batches go.
        found: The contents of the segment.
        taken: Mask of the batches to write. Batches without problems are copied.
        rewritten: Mask of batches without problems whose headers get `constants`.
        emptied: Mask of batches whose offsets are kept, but not their records.
        name: Base offset of the segment. None: the first offset that is written.
        begins: Begin a segment, even if the batches fit into the current one.
        keep_damaged: Write records whose checksum is wrong too.
        constants: Values that replace columns of records that are encoded or rewritten.
    """
    anew: list[RewrittenBatch] = []
    copied: list[tuple[_Run, Written]] = []
    encoded: list[tuple[_Run, Written]] = []
    headers = found.headers
    values = {_IN_HEADER.get(column, column): value for column, value in constants.items()}
    changes = {
        magic: {field_of(version_of(magic), column): value for column, value in values.items()}
        for magic in np.unique(headers.magic[rewritten]).tolist()
    }
    changed: list[Rewritten] = []
    rows = BatchRecords(found.segment) if taken[list(found.troubles)].any() else None
    current = None if begins else (log.base_offset, log.size)
    source = found.segment.path
    with open_segment(source) as file:
        for run in _plan_runs(found, taken, rewritten, emptied, name, current):
            if run.base is not None:
                log.begin(run.base)
            start = log.size
            if run.kind == _EMPTY:
                log.write(_build_emptied(headers, run.batches))
                continue
            if run.kind == _COPY:
                copied.append((run, log.copy(file, run.start, run.end)))
                continue
            if run.kind == _REWRITE:
                for i in run.batches:
                    position, size = int(headers.position[i]), int(headers.size[i])
                    magic, place = int(headers.magic[i]), Written(source, position, position + size)
                    layout, new = framing.layout_of(magic), changes[magic]
                    data = read_exactly(file, position, size)
                    made = log.write(_change_header(data, place, layout, new))
                    first = int(headers.first[i])
                    changed.append(Rewritten(place, made, layout, layout, new, first))
            else:
                assert rows is not None
                (index,) = run.batches
                given = rows.of(headers.position[[index]])
                version = {"magic": _written_version(int(headers.magic[index]))}
                anew.append(
                    _write_reencoded(
                        log, found, index, list(given), keep_damaged, constants | version
                    )
                )
            if log.size > start:
                encoded.append((run, Written(log.segments[-1][0], start, log.size)))
    if log.size > MAX_SEGMENT:
        raise OSError(
            f"{found.segment.path}: its batches as they are written take {count_noun(log.size, 'byte')}, more than the {MAX_SEGMENT}"
            " that a segment can have; the partition is not committed. If --keep-damaged was given, leave it out; otherwise"
            " report this as a defect of kafka-log"
        )
    log.flush()
    for run, written in copied:
        compare_bytes(found.segment.path, headers, [written], start=run.start, stop=run.end)
    compare_fields(changed)
    if encoded:
        _compare_encoded(found, encoded, keep_damaged=keep_damaged, constants=constants)
    return anew


def _compare_encoded(
    found: SegmentContents,
    encoded: Sequence[tuple[_Run, Written]],
    *,
    keep_damaged: bool,
    constants: dict[str, Any],
) -> None:
    """Raise WrittenError if the records of encoded batches, read back, differ from those of the
    segment with ``constants`` in place of columns. Records with wrong checksums must be missing
    unless ``keep_damaged``, as must those with impossible offsets (:func:`_choose_rows`). Raise
    other CodecErrors if the result cannot be read.
    """
    names = [name for name in _COLUMNS if name not in (*_DAMAGE_COLUMNS, "base_offset", "magic")]

    def expected() -> Iterator[pa.RecordBatch]:
        records = BatchRecords(found.segment)
        for run, _ in encoded:
            given: Iterable[pa.RecordBatch] = records.of(found.headers.position[run.batches])
            if run.kind == _REENCODE:
                (index,) = run.batches
                rows = list(given)
                given = _filter_rows(rows, _choose_rows(found, index, rows, keep_damaged))
            yield from map(with_constants, given)

    def with_constants(rows: pa.RecordBatch) -> pa.RecordBatch:
        for name, value in constants.items():
            at = rows.schema.get_field_index(name)
            field = rows.schema.field(at)
            same = pa.repeat(pa.scalar(value, field.type), rows.num_rows)
            rows = rows.set_column(at, field, same)
        return rows

    found_rows = records_written([written for _, written in encoded], names)
    compare_rows(expected(), found.segment.path, found_rows, names)


def _choose_rows(
    found: SegmentContents, index: int, given: list[pa.RecordBatch], keep_damaged: bool
) -> Any:
    """Return a mask of the records of the damaged batch ``index`` that can be written: without a
    wrong checksum unless ``keep_damaged``, and with ascending offsets from the first to the last one
    of its header (both included). Damage may have changed their offsets; then the fewest are left
    out.
    """
    at = np.concatenate([np.empty(0, np.int64), *(numbers(rows, "offset") for rows in given)])
    outside = (at < found.headers.first[index]) | (at > found.headers.last[index])
    if not keep_damaged:
        sound = [rows.column("crc_ok").fill_null(True) for rows in given]
        outside |= ~np.concatenate([np.empty(0, np.bool_), *(one.to_numpy(False) for one in sound)])
    return find_ascending(at, at, outside)


def _filter_rows(given: list[pa.RecordBatch], chosen: Any) -> list[pa.RecordBatch]:
    """Return the rows of the mask ``chosen``, which goes on from one record batch to the next."""
    ends = np.cumsum([rows.num_rows for rows in given])
    masks = np.split(chosen, ends[:-1])
    return [rows.filter(pa.array(mask)) for rows, mask in zip(given, masks, strict=False)]


def _write_reencoded(
    log: LogWriter,
    found: SegmentContents,
    index: int,
    given: list[pa.RecordBatch],
    keep_damaged: bool,
    constants: dict[str, Any],
) -> RewrittenBatch:
    """Encode the records ``given`` of a damaged batch (number ``index`` of its segment) and write
    them to ``log``, with the values ``constants`` in place of their own. Leave out those with a
    wrong checksum, unless ``keep_damaged``, and those with impossible offsets. Fields without a
    column get the values of the source. Return how many records were written and left out; if no
    batch can hold their values, write none, and return the message as ``error``; if it cannot hold
    those of fields without a column, return that message as ``unkept``. Raise OSError if reading or
    writing fails.
    """
    chosen = _choose_rows(found, index, given, keep_damaged)
    written, left_out = int(chosen.sum()), int((~chosen).sum())
    try:
        rows = _filter_rows(given, chosen)
        pieces: list[memoryview | bytes] = list(_encode_rows(iter(rows), constants))
    except CodecError as error:  # damage has made values that no batch can hold
        return RewrittenBatch(index, 0, len(chosen), str(error))
    unkept = None
    if written:
        try:
            pieces[:] = _restore_fields(pieces, found, index, chosen)
        except CodecError as error:
            unkept = str(error)
    for piece in pieces:
        log.write(piece)
    return RewrittenBatch(index, written, left_out, unkept=unkept)


def _restore_fields(
    pieces: Sequence[memoryview | bytes], found: SegmentContents, index: int, chosen: Any
) -> list[bytes]:
    """Return the encoded records of a damaged batch, in the mask ``chosen`` of its records, with
    the values of the source in fields without a column. Raise CodecError if these cannot be kept, or
    the records of the source cannot be read again.
    """
    path, position = found.segment.path, int(found.headers.position[index])
    with open_segment(path) as file:
        data = read_what_there_is(file, position, int(found.headers.size[index]), 0)
    stored = read_stored_fields(data, position, os.fspath(path))
    if len(stored.records) < len(chosen):
        reason = f"the fields of {len(chosen)} records were read, and those of {len(stored.records)} when they were read again"
        raise ValueRefused(reason, Where(position=position, file=os.fspath(path)))
    entries = [
        (entry.frame.layout, bytes(piece[entry.position : entry.position + entry.frame.size]))
        for piece in pieces
        for entry in _entries(memoryview(piece))
    ]
    return restore_fields(entries, stored, list(compress(stored.records, chosen)))


def _encode_rows(
    given: Iterator[pa.RecordBatch], constants: dict[str, Any]
) -> Iterator[memoryview]:
    """Return an iterator of the encoded bytes of rows, with ``constants`` in place of columns. Each
    piece has one or more whole batches; without rows there are none. Iterating raises RowRefused
    for a row that no batch can hold, also after other pieces.
    """
    columns = [name for name in _COLUMNS if name not in _DAMAGE_COLUMNS and name not in constants]
    first = next(given, None)
    if first is None:
        return iter(())
    batches = (rows.select(columns) for rows in chain([first], given))
    stream = pa.RecordBatchReader.from_batches(first.select(columns).schema, batches)
    return encode(stream, batch_bytes=BATCH_BYTES, **constants)


def _written_version(magic: int) -> int:
    """Return the version in which the records of a batch with a magic byte are written again: the
    one as which Kafka reads it (an unknown byte as the newest version below it, a negative one as
    1), or the newest one of record batches if that is only read.
    """
    version = version_of(magic)
    return version if version in WRITTEN_VERSIONS else WRITTEN_BATCH_VERSIONS[-1]


def _change_header(data: bytes, place: Written, layout: Layout, changes: dict[str, Any]) -> bytes:
    """Return the bytes of a batch with new values of header fields, by their paths, and its new
    checksum. Raise CodecError if the old checksum is wrong, the header does not parse, or a value
    does not fit.
    """
    session = Session(strict=False, file=str(place.path))
    return edit(layout, Source(data, session, origin=place.start), changes)


def _build_emptied(headers: Headers, batches: range | list[int]) -> bytes:
    """Return a batch without records that has the offsets of the adjacent ``batches`` (indexes into
    ``headers``). It has the version and the leader epoch of the last one. Raise BuildError if the
    header of that version has no such fields, or they do not fit into them; WrittenError if the
    header reads as other offsets or another leader epoch.
    """
    first, last = batches[0], batches[-1]
    return build_empty_batch(
        _written_version(int(headers.magic[last])),
        int(headers.first[first]),
        int(headers.last[last]),
        int(headers.leader_epoch[last]),
    )


def _is_next(headers: Headers, before: int, i: int) -> bool:
    """Return whether batch ``i`` begins at the offset after batch ``before``, in the same leader
    epoch and version.
    """
    follows = headers.first[i] == headers.last[before] + 1
    alike = (
        getattr(headers, n)[i] == getattr(headers, n)[before] for n in ("leader_epoch", "magic")
    )
    return bool(follows and all(alike))


_COPY, _REWRITE, _REENCODE, _EMPTY = range(4)


@dataclass(frozen=True, slots=True)
class _Run:
    """Batches that are written in one go. ``base`` is the base offset of a segment that begins with them, or None."""

    kind: int
    batches: range | list[int]
    start: int
    end: int
    base: int | None


def _plan_runs(
    found: SegmentContents,
    taken: Any,
    rewritten: Any,
    emptied: Any,
    name: int | None,
    current: tuple[int, int] | None,
) -> Iterator[_Run]:
    """Yield the batches in the mask ``taken`` in file order, in runs that are written in one way.
    They are copied, get changed headers, are encoded again (one each), or are replaced by an empty
    batch. The first run begins a segment called ``name`` (None: its first offset), unless
    ``current`` has base offset and size of a segment to continue. A later run begins one if offsets
    or bytes would exceed the limits of a segment.

    A run ends where the way changes, where bytes between copied batches are left out, and where a new segment begins.
    """
    headers = found.headers
    base: int | None
    base, size = current or (None, 0)
    begins = current is None
    run: list[int] = []
    kind, start, end = _COPY, 0, 0
    new_base: int | None = None
    for i in np.flatnonzero(taken).tolist():
        position, length = int(headers.position[i]), int(headers.size[i])
        first, last = int(headers.first[i]), int(headers.last[i])
        of = _REENCODE if i in found.troubles else _REWRITE if rewritten[i] else _COPY
        of = _EMPTY if emptied[i] else of
        if not begins and base is not None:
            begins = last - base > MAX_RELATIVE or size + length > MAX_SEGMENT
        goes_on = of == kind and kind != _REENCODE and (kind == _REWRITE or position == end)
        if kind == _EMPTY and run:
            goes_on &= _is_next(headers, run[-1], i)
        if run and (begins or not goes_on):
            yield _Run(kind, run, start, end, new_base)
            run, new_base = [], None
        if begins:
            base = new_base = first if name is None or base is not None else name
            begins, size = False, 0
        if not run:
            kind, start = of, position
        run.append(i)
        end = position + length
        size += length
    if run:
        yield _Run(kind, run, start, end, new_base)
