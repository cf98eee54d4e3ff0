"""Arrow record batches -> entries one after the other, by the kernels that write a view.

A first pass finds which rows one entry holds and how many bytes that takes, a second writes them into memory of just
that size. Rows that are to be compressed are written apart, compressed, and put into their entry.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.casts import RowRefused
from codecgen.runtime.arrow.input_columns import Columns, Source
from codecgen.runtime.arrow.writer import WriteKind, Writer
from codecgen.runtime.compression import compress
from codecgen.runtime.errors import BuildError
from codecgen.runtime.located_bytes import Limits
from codecgen.runtime.nouns import count_noun

PIECE = 1 << 20
"""Bytes after which a piece is given out. It may have one entry more."""

ENTRIES = 4096
"""Entries that are worked on at a time."""

MAX_BYTES = 1 << 28
"""The most bytes of rows that an entry may be asked to have."""

SLACK = 64
_CASE, _FIRST, _ROWS, _SIZE, _SIZES, _CODEC, _SECTION, _SECTION_SIZE = range(8)


@dataclass(frozen=True, slots=True)
class _Found:
    """Entries that were planned.

    Attributes:
        count: Number of entries.
        after: First row after them.
        size: Bytes of their rows.
        compressed_entries: Number of those that are compressed.
    """

    count: int
    after: int
    size: int
    compressed_entries: int


class Encoder:
    """Writes the rows of a view as entries of one kind (such as record batches of one message
    format), by kernels. Not for several threads at once.
    """

    def __init__(
        self,
        writer: Writer,
        kind: int,
        *,
        constants: Mapping[str, object] | None = None,
        batch_bytes: int = 16384,
        level: int | None = None,
        piece_bytes: int = PIECE,
        limits: Limits | None = None,
        kernels: ModuleType | None = None,
    ) -> None:
        """Prepare to write entries. Raise ValueError if ``kind`` cannot be written, ``batch_bytes``
        is out of range, or a constant does not fit its column.

        Args:
            writer: Description of how the view is written.
            kind: Number of the layout of the entries, such as the magic of a batch; a key of ``writer.kinds``.
            constants: Values of columns, for all rows. They replace what the rows have.
            batch_bytes: Max bytes of the rows of an entry before compression. A larger row is alone in its entry.
            level: Level of compression, None for the default of the codec.
            piece_bytes: Approximate bytes of a piece.
            limits: Limits for the number of rows in an entry.
            kernels: Module of the kernels. By default that of ``writer``.

        Raises:
            ValueError: if ``kind`` cannot be written, ``batch_bytes`` is out of range, or a constant does not fit its column.
        """
        if kind not in writer.kinds:
            known = ", ".join(f"{number} ({k.name})" for number, k in writer.kinds.items())
            raise ValueError(
                f"kind {kind} cannot be written to the view {writer.view.name!r}; known: {known}"
            )
        if not 1 <= batch_bytes <= MAX_BYTES:
            raise ValueError(f"batch_bytes is {batch_bytes}: it must be in 1..{MAX_BYTES}")
        self.writer = writer
        self.kind: WriteKind = writer.kinds[kind]
        self.columns = Columns(writer, self.kind, constants or {})
        self.batch_bytes = batch_bytes
        self.level = level
        self.piece_bytes = piece_bytes
        self.max_elements = (limits or Limits()).elements
        module = kernels or importlib.import_module(writer.kernels)
        self.plan, self.write_compressed_rows, self.write_entries = module.KERNELS[kind]
        self.table = np.zeros((ENTRIES, writer.slots), np.int64)
        self.sizes = np.empty(self.max_elements + 1, np.int32)
        self.table_address = int(self.table.ctypes.data)
        self.sizes_address = int(self.sizes.ctypes.data)
        self.around = max(case.around for case in self.kind.cases.values())
        self.scratch = np.empty(0, np.uint8)
        self.rows = 0

    def encode(self, batches: Iterable[pa.RecordBatch], row: int = 0) -> Iterator[memoryview]:
        """Yield the bytes of entries with the rows, in pieces of one or more whole entries of about
        ``piece_bytes`` bytes. An entry may have rows of several record batches; without rows
        nothing is yielded. Raise RowRefused if a value does not fit or no entry can hold a row;
        ValueError for wrong columns or types, or a damaged array. Raise BuildError for an unknown
        codec or a level that it lacks; UnsupportedCodec if its package is not installed.

        Meanwhile ``rows`` is the number of the next row to be written.

        Args:
            batches: The rows.
            row: Number of the first row, for errors.

        Raises:
            RowRefused: if no entry can hold a row.
            ValueError: if the columns are not those of the view.
            BuildError: if a codec is unknown, or lacks the level.
            UnsupportedCodec: if the package of a codec is not installed.
        """
        self.rows = row
        rest: pa.RecordBatch | None = None
        for given in batches:
            batch = self.columns.select(given, self.rows + (0 if rest is None else rest.num_rows))
            if rest is not None:
                rest, at = yield from self._bridge(rest, batch)
                if rest is not None:
                    continue
                batch = batch.slice(at)
            done = yield from self._emit_pieces(self.columns.source(batch), False)
            rest = batch.slice(done) if done < batch.num_rows else None
            self.rows += done
        if rest is not None:
            self.rows += yield from self._emit_pieces(self.columns.source(rest), True)

    def _bridge(
        self, rest: pa.RecordBatch, batch: pa.RecordBatch
    ) -> Generator[memoryview, None, tuple[pa.RecordBatch | None, int]]:
        """Yield the bytes of the entry that begins with the rows ``rest`` and ends in ``batch``.
        Return (None, first row of ``batch`` after it); if ``batch`` ends before the entry is full,
        yield nothing and return (all rows of both, number of rows of ``batch``). Raise RowRefused
        if no entry can hold a row; ValueError if offsets of a column are invalid; BuildError for an
        unknown codec or level; UnsupportedCodec if its package is not installed.
        """
        more = max(256, rest.num_rows)
        while True:
            taken = batch.slice(0, more)
            joined = _concatenate(rest, taken) if taken.num_rows else rest
            source = self.columns.source(joined)
            found = self._plan(source, 0, False, 1)
            if found.count:
                yield from self._emit(source, found)
                self.rows += found.after
                return None, found.after - rest.num_rows
            if more >= batch.num_rows:
                return joined, batch.num_rows
            more *= 2

    def _emit_pieces(self, source: Source, final: bool) -> Generator[memoryview, None, int]:
        """Yield the bytes of full entries with the rows of ``source``, and, if ``final`` is set, of
        a last entry that is not full. Return the number of rows that were written; the others are
        left to the next record batch. Raise RowRefused if no entry can hold a row; BuildError for
        an unknown codec or level; UnsupportedCodec if a package is not installed.
        """
        row = 0
        while row < source.rows:
            found = self._plan(source, row, final, self.piece_bytes)
            if not found.count:
                break
            yield from self._emit(source, found)
            row = found.after
        return row

    def _plan(self, source: Source, row: int, final: bool, enough: int) -> _Found:
        """Find which rows from ``row`` on go into which entries, up to ``enough`` bytes, and store
        that in the entry table. Without ``final`` an entry that is not full is not planned. Return
        counts and sizes, 0 entries if none is full. Raise RowRefused if no entry can hold the first
        row.
        """
        last = min(source.rows, row + len(self.sizes))
        count, after, blamed, size, compressed_entries = self.plan(
            source.address,
            self.table_address,
            ENTRIES,
            row,
            last,
            int(final and last == source.rows),
            self.sizes_address,
            self.batch_bytes,
            enough,
            self.max_elements,
        )
        if blamed >= 0 and not count:
            raise self._refusal_error(source, int(after), int(blamed))
        return _Found(int(count), int(after), int(size), int(compressed_entries))

    def _emit(self, source: Source, found: _Found) -> Iterator[memoryview]:
        """Yield the bytes of the planned entries: in one piece if none is compressed, else in
        pieces of about ``piece_bytes`` bytes before compression. Raise BuildError if a codec or its
        level is unknown, UnsupportedCodec if its package is not installed; RowRefused if an entry
        is too large.
        """
        if not found.compressed_entries:
            yield self._entry_bytes(source, 0, found.count, found.size)
            return
        first = 0
        while first < found.count:
            sizes = np.cumsum(self.table[first : found.count, _SIZE])
            last = first + max(1, int(np.searchsorted(sizes, self.piece_bytes, "right")))
            sections = self._compress_sections(source, first, last)
            yield self._entry_bytes(
                source, first, last, int(self.table[first:last, _SECTION_SIZE].sum())
            )
            del sections
            first = last

    def _entry_bytes(self, source: Source, first: int, last: int, size: int) -> memoryview:
        """Return the planned entries ``first`` to ``last`` (excluded) as they lie in a file, in a
        new buffer. ``size`` is the size of their sections together, as they are written; it is not
        checked. If entries are compressed, :meth:`_compress_sections` must have made their
        sections, and the caller must still keep these.
        """
        out = pa.allocate_buffer(size + (last - first) * self.around + SLACK)
        end = self.write_entries(source.address, self.table_address, first, last, out.address)
        return memoryview(out)[: int(end) - out.address]

    def _compress_sections(self, source: Source, first: int, last: int) -> list[bytes]:
        """Compress the rows of entries ``first`` to ``last`` (excluded), and store the addresses in
        the entry table. Return the compressed sections, which the caller must keep until they are
        written; uncompressed entries have none. Raise BuildError for an unknown codec or level,
        UnsupportedCodec if its package is not installed; RowRefused if the rows or the compressed
        bytes exceed a limit.
        """
        table = self.table
        size = int(table[first:last, _SIZE].sum())
        if size + SLACK > len(self.scratch):
            self.scratch = np.empty(size + SLACK, np.uint8)
        self.write_compressed_rows(
            source.address, self.table_address, first, last, self.scratch.ctypes.data
        )
        start = int(self.scratch.ctypes.data)
        data = self.scratch.data
        sections: list[bytes] = []
        for i in range(first, last):
            row = table[i]
            number = int(row[_CODEC])
            case = self.kind.cases[int(row[_CASE])]
            codec = case.codecs.get(number)
            if number == 0:
                continue
            if codec is None:
                raise BuildError(
                    f"codec {number} is not a codec of {self.kind.name}; leave out the codec, or give one that the format has"
                )
            at, size = int(row[_SECTION]) - start, int(row[_SIZE])
            if size > codec.limit:
                reason = f"{count_noun(size, 'byte')}, more than the {codec.limit} that may be compressed together"
                raise RowRefused(reason, self.rows + int(row[_FIRST]), None)
            section = compress(
                codec.name, data[at : at + size], level=self.level, variant=codec.variant
            )
            if len(section) > case.max_bytes:
                reason = f"{len(section)} compressed bytes, more than the {case.max_bytes} that an entry has room for"
                raise RowRefused(reason, self.rows + int(row[_FIRST]), None)
            sections.append(section)
            row[_SECTION] = _address(section)
            row[_SECTION_SIZE] = len(section)
        return sections

    def _refusal_error(self, source: Source, row: int, blamed: int) -> BuildError:
        """Return, without raising it, a RowRefused for the row ``row`` of ``source``, which no
        entry can hold: the row is too large, or the value of a column has no place in the format or
        would not be read back. ``blamed`` is the index of the failed check.
        """
        check = self.writer.checks[blamed]
        if check.column is None:
            reason = f"the row has more bytes than {self.kind.name} has room for"
            return RowRefused(reason, self.rows + row, None)
        name, value = self.columns.describe_value(source, row, check.column)
        if check.place is not None:
            reason = f"{value} has no place in {self.kind.name} ({check.place.name}, {check.place})"
        else:
            reason = f"{value} would not be read back from {self.kind.name}"
        return RowRefused(reason, self.rows + row, name)


def _concatenate(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of two record batches with one schema as one batch, those of ``first`` first."""
    (batch,) = pa.Table.from_batches([first, second]).combine_chunks().to_batches()
    return batch


def _address(data: bytes) -> int:
    """Return the memory address of the first byte. The caller keeps ``data`` alive."""
    return int(np.frombuffer(data, np.uint8).ctypes.data)
