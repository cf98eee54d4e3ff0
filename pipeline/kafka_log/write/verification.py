"""Verification of written logs: they are read again and compared with their source. Reading shares no code with writing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import choose, schema_of
from codecgen.runtime.errors import ParseError, Where
from codecgen.runtime.rows import Column, Place, RowView
from kafka_codecs.columns.records import RECORDS
from kafka_log.segment.framing import layout_of
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.kernels import Engine, use_kernels
from kafka_log.segment.positioned_reads import open_segment, read_exactly
from kafka_log.segment.row_masks import numbers
from kafka_log.segment.scanner import Scanner, header_scanner

CHUNK = 8 << 20
_POSITION = "position"
_MAY_CHANGE = {
    *(_POSITION, "size", "magic", "codec", "crc", "attributes"),
    "base_offset",  # of records: messages that shared no batch may share one
}
"""Columns that say where and how something is written."""


NOT_READ_BACK = (
    "a segment that was just written cannot be read back, so that nothing is committed: check the disk, and run"
    " the command again"
)
"""Reason of an OSError after writing."""

DEFECT = (
    "do not use the output. Run the command again while no broker writes to the source; if it fails again, report a"
    " defect of kafka-log"
)
"""The next step after each WrittenError."""


class WrittenError(ParseError):
    """Raised if written data differ from their source. ``where`` is the position in the file that was read."""


class Written(NamedTuple):
    """A range of bytes of a segment that was written."""

    path: Path
    start: int
    stop: int


def columns_of(view: RowView, magics: Iterable[int]) -> list[str]:
    """Return the columns of a view whose values must stay the same when batches or messages of the
    versions ``magics`` are written in another way. Columns that always may change, and those for
    which one of these versions has no value, are left out.

    A column for which a version has no value may get one.
    """
    layouts = {id(layout_of(magic)) for magic in magics}
    cases = [case for case in view.cases if id(case.layout) in layouts]
    kept = [name for name in view.columns if name not in _MAY_CHANGE]
    return [n for n in kept if not any(constant_of(case.columns[n]) is None for case in cases)]


def constant_of(column: Column) -> Any:
    """Return the value that a column has for every entry; ``...`` if it depends on the entry."""
    try:
        return column.value(None, None, Place(0, 0))
    except (AttributeError, TypeError):
        return ...


def read_records(
    path: Path, columns: Sequence[str], start: int = 0, stop: int | None = None
) -> Scanner:
    """Return a scanner of the records of a file from byte ``start`` to ``stop`` (excluded, None:
    the end), where batches begin. It gives ``columns``, their offsets and the positions of their
    batches. Raise OSError if ``stop`` is None and the file is missing. Iterating the scanner raises
    CodecError for damage, also a wrong checksum; an incomplete last batch is ignored.
    """
    wanted = list(dict.fromkeys((*columns, _POSITION, "offset")))
    engine = _engine(path, start, stop)
    return Scanner(path, wanted, start=start, stop=stop, engine=engine)


def read_headers(
    path: Path, columns: Sequence[str], start: int = 0, stop: int | None = None
) -> Scanner:
    """Return a scanner of the batch headers of a file from byte ``start`` to ``stop`` (excluded,
    None: the end), where batches begin. It gives ``columns``, their offsets and positions. Raise
    OSError if ``stop`` is None and the file is missing. Iterating the scanner raises CodecError for
    a damaged header; no checksum is verified, and an incomplete last batch is ignored.
    """
    wanted = list(dict.fromkeys((*columns, _POSITION, "base_offset", "last_offset")))
    engine = _engine(path, start, stop)
    return header_scanner(path, wanted, start=start, stop=stop, engine=engine)


def _engine(path: Path, start: int, stop: int | None) -> Engine:
    """Return the engine to read a range of bytes with, by its size."""
    size = (path.stat().st_size if stop is None else stop) - start
    return "arrow" if use_kernels(size) else "construct"


def compare_rows(
    expected: Iterable[pa.RecordBatch],
    source: Path | None,
    found: Iterable[tuple[Path, pa.RecordBatch]],
    columns: Sequence[str],
    what: str = "record",
) -> None:
    """Compare rows that were written (``found``) with ``expected`` ones in ``columns``. Raise
    WrittenError for a row that differs (within a batch the first one of the first column that
    differs), or is missing on one side; its text calls a row ``what`` and names the file ``source``
    (None: none). Raise other CodecErrors if rows cannot be read.

    Args:
        expected: What was read.
        source: The file that it was read of. None: rows that come from no file.
        found: What was written, with its files.
        columns: Names of columns that both have, with the same types.
        what: What a row is, for the message.
    """
    sources, written = _Rows((source, rows) for rows in expected), _Rows(found)
    while True:
        count = min(sources.fill(), written.fill())
        if not count:
            break
        one, other = sources.take(count), written.take(count)
        for name in columns:
            if not one.column(name).equals(other.column(name)):
                raise _difference(one, other, name, sources.path, written.path, what)
    if sources.left or written.left:
        side, there = (sources, "is missing") if sources.left else (written, "has no source")
        row = side.take(1)
        place = Where(position=_number(row, _POSITION), file=_name(side.path))
        offset = _offset(row)
        reason = f"the {what} at offset {offset} {there} in what was written; {DEFECT}"
        raise WrittenError(reason, place)


def compare_written(rows: pa.RecordBatch, written: Sequence[Written]) -> None:
    """Raise WrittenError if the records in the byte ranges ``written`` are not ``rows``, in this
    order and in all of their columns; another CodecError if they are damaged or cannot be read.
    """
    names = rows.schema.names
    found = records_written(written, names)
    compare_rows(_as_read(rows), None, found, names)


def _as_read(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield rows with the types that readers give."""
    schema = schema_of(choose(RECORDS, rows.schema.names))
    arrays = [rows.column(field.name).cast(field.type) for field in schema]
    yield pa.RecordBatch.from_arrays(arrays, names=schema.names)


class _Rows:
    """Rows of several files in sequence, in slices of any size."""

    def __init__(self, rows: Iterable[tuple[Path | None, pa.RecordBatch]]) -> None:
        self._rows = iter(rows)
        self._held: pa.RecordBatch | None = None
        self.path: Path | None = None

    @property
    def left(self) -> bool:
        """Return whether rows are held."""
        return self._held is not None and self._held.num_rows > 0

    def fill(self) -> int:
        """Return how many rows can be taken now; 0 at the end. Raise CodecError if the next rows
        cannot be read.
        """
        while not self.left:
            following = next(self._rows, None)
            if following is None:
                return 0
            self.path, self._held = following
        assert self._held is not None
        return int(self._held.num_rows)

    def take(self, count: int) -> pa.RecordBatch:
        """Return the next ``count`` rows, and remove them. ``count`` is at most what the last
        :meth:`fill` returned.
        """
        assert self._held is not None
        taken = self._held.slice(0, count)
        self._held = self._held.slice(count)
        return taken


def _difference(
    expected: pa.RecordBatch,
    found: pa.RecordBatch,
    name: str,
    source: Path | None,
    written: Path | None,
    what: str,
) -> WrittenError:
    """Return, not raise, the WrittenError for the first row whose column ``name`` differs between
    ``expected`` and ``found``. It has both values and their places in the files ``source`` and
    ``written``. ``what`` is a noun for a row. The slices must differ in the column.
    """
    i = next(
        i for i in range(expected.num_rows) if expected.column(name)[i] != found.column(name)[i]
    )
    row, made = expected.slice(i, 1), found.slice(i, 1)
    values = [_format_first_value(rows.column(name)) for rows in (row, made)]
    reason = f"{name} of the {what} at offset {_offset(row)} is {values[0]}, but {values[1]} in what was written at byte {_number(made, _POSITION)} of {_name(written)}; {DEFECT}"
    return WrittenError(reason, Where(position=_number(row, _POSITION), file=_name(source)))


def _format_first_value(column: pa.Array) -> str:
    """Return the first value of a column as Python text, cut after 80 characters with ``...``. A
    timestamp is shown as an integer.
    """
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    text = repr(column[0].as_py())
    return text if len(text) <= 80 else f"{text[:80]}..."


def _offset(row: pa.RecordBatch) -> int | None:
    """Return the offset of the first row, else the base offset of its batch, else its last offset;
    None if it has none of these columns.
    """
    names = row.schema.names
    return next(
        (_number(row, n) for n in ("offset", "base_offset", "last_offset") if n in names), None
    )


def _number(row: pa.RecordBatch, name: str) -> int | None:
    """Return the number in a column of the first row; None if it has no such column, or null there."""
    if name not in row.schema.names:
        return None
    found: int | None = row.column(name)[0].as_py()
    return found


def _name(path: Path | None) -> str | None:
    """Return the name of a file, or None if there is no file."""
    return None if path is None else os.fspath(path)


def compare_bytes(
    source: Path, headers: Headers, written: Iterable[Written], *, start: int, stop: int
) -> None:
    """Raise WrittenError if the written byte ranges, in order, differ from the bytes of ``source``
    from ``start`` (included) to ``stop`` (excluded), or are fewer or more. Raise UnreadableError if
    a file cannot be read, or is shorter than its range.

    `headers` are the batch headers of the source, for the message.
    """
    position = start
    with open_segment(source) as file:
        for one in written:
            with open_segment(one.path) as other:
                for at in range(one.start, one.stop, CHUNK):
                    count = min(CHUNK, one.stop - at, stop - position)
                    before, after = (
                        read_exactly(file, position, count),
                        read_exactly(other, at, min(CHUNK, one.stop - at)),
                    )
                    if before != after:
                        raise _other_bytes(source, headers, position, before, after, one.path, at)
                    position += count
    if position != stop:
        raise _other_bytes(source, headers, position, b"", b"", None, 0)


def _other_bytes(
    source: Path,
    headers: Headers,
    position: int,
    before: bytes,
    after: bytes,
    written: Path | None,
    at: int,
) -> WrittenError:
    """Return, not raise, the WrittenError for bytes ``after`` that differ from ``before``, those of
    the source from ``position`` on. It names the first batch that differs, and the place in the
    file ``written`` (from byte ``at`` on) unless that is None.
    """
    same = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))  # fmt: skip
    row = int(np.searchsorted(headers.position, position + same, side="right")) - 1
    reason = (
        f"the batch at offset {int(headers.first[max(row, 0)])} has other bytes in what was written"
    )
    if written is not None:
        reason += f", at byte {at + same} of {written}"
    reason += f"; {DEFECT}"
    return WrittenError(reason, Where(position=position + same, file=os.fspath(source)))


def records_written(
    written: Iterable[Written], columns: Sequence[str]
) -> Iterator[tuple[Path, pa.RecordBatch]]:
    """Yield the records in the written byte ranges, in order, each batch of rows with its file. The
    ranges of one file must follow each other in ``written`` and ascend. Raise CodecError for damage,
    also a wrong checksum, in the ranges of a file or between them.
    """
    for path, group in groupby(written, key=lambda one: one.path):
        places = list(group)
        starts, stops = (np.array([one[i] for one in places]) for i in (1, 2))
        for rows in read_records(path, columns, places[0].start, places[-1].stop):
            at = numbers(rows, _POSITION)
            inside = at < stops[np.searchsorted(starts, at, side="right") - 1]
            yield path, rows if inside.all() else rows.filter(pa.array(inside))


def headers_written(
    written: Iterable[Written], columns: Sequence[str]
) -> Iterator[tuple[Path, pa.RecordBatch]]:
    """Yield the batch headers in the written byte ranges, in order, each Arrow batch with its file.
    Raise CodecError for a damaged header; no checksum is verified.
    """
    for one in written:
        for rows in read_headers(one.path, columns, one.start, one.stop):
            yield one.path, rows
