"""Scanner of a file of batches: one pass that yields records, or batch headers, as Arrow record batches."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from io import FileIO
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypedDict, Unpack, get_args

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import (
    Decoder,
    Rows,
    choose,
    schema_of,
)
from codecgen.runtime.arrow.view import Columns
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.columns.batches import BATCHES
from kafka_codecs.columns.records import RECORDS
from kafka_log.segment.cursor import CHUNK_BYTES, Cursor, Loader, Source, WholeBytes
from kafka_log.segment.kernels import Engine, check_engine, load_decoder, load_view
from kafka_log.segment.model import Batch, End, OnDamage, Policy, Record, Tail, record_size
from kafka_log.segment.offset_order import COLUMNS as COMPARED
from kafka_log.segment.offset_order import OffsetOrder
from kafka_log.segment.reader import HeaderReader, SegmentReader, damage
from kafka_log.segment.row_damage import COLUMNS
from kafka_log.segment.row_masks import HEADERS, HeaderMasks, RowMasks, numbers
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.skipping import SkippingDecoder, SkippingReader
from kafka_log.segment.urls import is_url, needs_several_requests

# Modules that a first record does not need are imported in functions: the codecs take 50 ms, Arrow's functions 30.
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_log.segment.row_values import Values
    from kafka_log.segment.transaction_verification import TransactionVerifier

ROWS = 1 << 16
BYTES = 64 << 20
"""Maximum rows and bytes of a record batch made of records that the reference codecs read. One record may have more bytes."""


class FileOptions(TypedDict, total=False):
    """Options that say which bytes of a file to read and how they may end. See :class:`SegmentReader`."""

    limits: Limits | None
    start: int
    stop: int | None
    tail: Tail | str
    salvage_records: bool
    size: int | None
    reaches: int | None
    next_base: int | None
    is_removed: Callable[[], bool] | None


class ReadOptions(FileOptions, total=False):
    """Options of reading a file. See :class:`Scanner`."""

    on_damage: OnDamage | None
    chunk_bytes: int
    engine: Engine
    zero_copy: bool


@dataclass(frozen=True, slots=True)
class Unread:
    """A position from which no record could be read, and why.

    ``batch`` is the damaged batch, None outside of any batch.
    """

    position: int
    batch: Batch | None
    problem: str


@dataclass(frozen=True, slots=True)
class Flagged:
    """A batch with damage or other findings. It follows the rows before the batch, and precedes its own rows.

    ``around`` has the last offset before the batch and the first one after it. Each is None if the header may be damaged too and no
    neighboring batch tells the offset.
    """

    batch: Batch
    around: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class RowKind:
    """What a row of a scanner is: its columns, the reader of batches that the kernels reject, and the class of the row filter."""

    view: Columns
    reader: type[SegmentReader]
    masks: type[RowMasks]

    @property
    def has_records(self) -> bool:
        """Whether a row is a record; else it is a batch."""
        return self.view is RECORDS

    def values(self) -> Values:
        """Return the functions that take the value of each column from a batch of the reference codecs and its record."""
        from kafka_log.segment.row_values import OF_BATCHES, OF_RECORDS

        return OF_RECORDS if self.has_records else OF_BATCHES


RECORD_ROWS = RowKind(RECORDS, SkippingReader, RowMasks)
BATCH_ROWS = RowKind(BATCHES, HeaderReader, HeaderMasks)


class Scanner:
    """One pass over a file. Iterate to get Arrow record batches; then ``end`` says how the file ended.

    Memory holds one chunk (``chunk_bytes``, or a larger batch of the file), one decompressed section of at most 8 MiB (or one batch, within
    the limit of the schema), and their rows. ``fallbacks`` counts the batches that the reference codecs read.

    Batches that cannot hold selected records by their headers are verified, but not decompressed, unless the policy is ``strict``. A header
    that contradicts itself excludes nothing. Under ``kafka`` reading ends before the first batch that begins at or after the end of the
    offset range, if the headers after it show that no later batch holds offsets of the range; then ``end`` is None. Later headers of
    a file in a store are not read. ``strict`` and ``salvage`` read the whole file.

    Args:
        path: Path or URL of the file.
        columns: Columns of the rows, by default all of the view. The columns ``crc_ok`` and ``damage``
            (:data:`kafka_log.segment.row_damage.COLUMNS`) describe the damage of a row.
        policy: Strictness of the reader.
        kind: RECORD_ROWS, or BATCH_ROWS for a pass over batch headers (see :func:`header_scanner`).
        selection: Selected records; by default all, with control records.
        on_damage: Handling of damage: ``raise``, ``keep`` the readable records as :class:`SegmentReader` does, or ``drop`` damaged batches. The
            default is ``keep`` under ``salvage``, else ``raise``.
        chunk_bytes: Size of a chunk.
        engine: Codecs that read.
        mmap: Map the file into memory for a pass over batch headers.
        zero_copy: Return bytes and text outside lists and structs as Arrow's view types. The kernels write views of the chunk and
            of decompressed sections, which an array keeps in memory as a whole. Values are copied if rows are selected by key, record header or
            producer, by the NumPy reader, by the reference codecs, and with pyarrow 18.
        options: Options of :class:`SegmentReader`.

    Raises:
        ValueError: If ``engine`` or ``on_damage`` is unknown, or ``chunk_bytes`` too small.
    """

    max_rows: ClassVar[int] = ROWS
    max_bytes: int = BYTES

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        policy: Policy | str = Policy.KAFKA,
        *,
        kind: RowKind = RECORD_ROWS,
        selection: RowSelection | None = None,
        on_damage: OnDamage | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        engine: Engine = "auto",
        mmap: bool = False,
        zero_copy: bool = False,
        **options: Unpack[FileOptions],
    ) -> None:
        """Resolve columns, row filter and engine; the file is not opened yet. Raises ValueError as the class describes."""
        if chunk_bytes < CHUNK_BYTES:
            from kafka_log.segment.framing import HEADER_START

            if chunk_bytes < HEADER_START:
                raise ValueError(
                    f"chunk_bytes is {chunk_bytes}: it must be at least {HEADER_START}"
                )
        self.chunk_bytes = chunk_bytes
        check_engine(engine)
        if on_damage not in (None, *get_args(OnDamage)):
            known = ", ".join(get_args(OnDamage))
            raise ValueError(f"on_damage is {on_damage!r}; known: {known}")
        self.kind = kind
        self.mmap = mmap
        self.reader = kind.reader(path, policy=policy, records=kind.has_records, **options)
        self.policy = self.reader.options.policy
        self.limits = self.reader.options.limits
        resolved = on_damage or ("keep" if self.policy is Policy.SALVAGE else "raise")
        self.keep, self.drop = resolved != "raise", resolved == "drop"
        own, self.damage_columns = self._split_columns(columns)
        chosen = choose(kind.view, own)
        self.schema = self._with_damage_fields(schema_of(chosen, views=zero_copy), columns)
        self.selection = selection or RowSelection()
        self.zero_copy = zero_copy and not self.selection.is_by_content
        self.skips = self.selection.skips and self.policy is not Policy.STRICT
        self.masks = kind.masks(self.selection)
        self._verifier = self._make_verifier()
        self._order = self._make_order()
        # The reader must meet all markers if it tells which transactions are aborted.
        if isinstance(self.reader, SkippingReader) and not self.selection.aborted.unindexed:
            self.reader.selection = self.selection
        needed = (
            *self.masks.columns(),
            *(("position",) if self.skips and kind.has_records else ()),
        )
        names = {column.name for column in chosen}
        hidden = [name for name in dict.fromkeys(needed) if name not in names]
        self.columns = chosen + choose(kind.view, hidden)
        self.decoded = schema_of(self.columns)
        self.kernels = load_decoder(kind.view.name, engine, self.limits)
        self.engine: Engine = "construct" if self.kernels is None else engine
        self.cursor = Cursor(self.reader)
        self._skipping: SkippingDecoder | None = None
        self._range_end: RangeEnd | None = None
        self._ended_early = False

    @property
    def end(self) -> End | None:
        """How the file ended; None before the end, and if reading ended after the offset range."""
        return None if self._ended_early else self.reader.end

    @property
    def fallbacks(self) -> int:
        """Number of batches that the reference codecs read in place of the kernels."""
        return self.cursor.fallbacks

    @property
    def bytes_read(self) -> int:
        """Number of bytes of the file that were read, counted again where they were read again."""
        return self.cursor.bytes_read

    @property
    def batches_skipped(self) -> int:
        """Number of batches that were not decompressed because no selected record can be in them, by their headers."""
        by_reader = self.reader.skipped if isinstance(self.reader, SkippingReader) else 0
        return by_reader + (0 if self._skipping is None else self._skipping.skipped)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream. Reading it raises what :meth:`items` raises: CodecError for
        damage unless it is accepted, FileNotFoundError for a missing file.
        """
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield selected rows in file order, without flagged batches. Raises what :meth:`items` raises."""
        with closing(self.items()) as items:
            for item in items:
                if isinstance(item, pa.RecordBatch):
                    yield item

    def items(self) -> Generator[pa.RecordBatch | Unread | Flagged, None, None]:
        """Yield, in file order, record batches of selected rows, a Flagged for each batch with
        damage or findings, and an Unread for each place without a readable record (with ``drop``
        not for damaged batches). Iterating raises CodecError for the first damage, such as a wrong
        checksum, after the rows before it, unless ``on_damage`` is ``keep`` or ``drop``; always
        under ``strict``. It raises ValueRefused, a CodecError, for a batch that contradicts unverified
        transactions of the selection, or whose offsets cannot be right if the selection verifies their order, OSError if later segments have to be listed for that and
        cannot, and FileNotFoundError for a missing file if no ``size`` was listed. Under ``kafka`` end early once the offset range is over.
        """
        pending: list[tuple[Batch, Record | None]] = []
        size = 0
        is_over = False
        error: CodecError | None = None
        with closing(self.cursor.items(self._source(), self._make_loader)) as entries:
            while not is_over:
                outputs: list[Iterable[pa.RecordBatch | Unread | Flagged]] = []
                try:
                    entry = next(entries, None)
                    is_over = entry is None or (isinstance(entry, Batch) and self._is_past(entry))
                except CodecError as raised:
                    entry, error, is_over = None, raised, True
                if isinstance(entry, Batch):
                    # Pending rows may be wrong if it raises.
                    if self._order is not None:
                        self._order.add(entry)
                        self._order.raise_error()
                    if self._verifier is not None:
                        self._verifier.verify_batch(entry)
                is_full = is_over and (bool(pending) or self.kernels is None)
                unread: Iterable[Unread] = ()
                if isinstance(entry, Rows):
                    outputs.append((self._with_good_damage(entry.batch),))
                elif entry is not None and not is_over:
                    wrong = damage(entry)
                    is_flagged = bool(wrong or entry.findings)
                    if is_flagged:
                        if pending:
                            outputs.append(self._tables(pending))
                            pending, size = [], 0
                        outputs.append((Flagged(entry, self._offsets_around(entry)),))
                    if wrong and not self.keep:
                        error, is_over = wrong[0], True
                    else:
                        if not (wrong and self.drop):
                            pending += self._rows(entry)
                            size += sum(map(record_size, entry.records))
                        unread = self._unread(entry, wrong)
                        is_full = (
                            is_flagged
                            or self.kernels is not None
                            or len(pending) >= self.max_rows
                            or size >= self.max_bytes
                        )
                has_rows = is_full or (bool(outputs) and isinstance(entry, Batch))
                if self._verifier is not None and has_rows:
                    self._verifier.verify_open(self.selection.offsets[1])
                if is_full:
                    outputs += [self._tables(pending), unread]
                    pending, size = [], 0
                for output in chain.from_iterable(outputs):
                    if not isinstance(output, pa.RecordBatch):
                        yield output
                        continue
                    rows = self.masks.filter(output)
                    if rows.num_rows:
                        yield self._with_schema(rows)
                    if self._is_after(output) and self._is_range_over():
                        self._ended_early = True
                        return
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        yield from self._unread_ends()
        if self._order is not None and self.end is not None:
            self._finish_order(self._order)

    def _with_schema(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the schema, with copied values as views if the schema has views."""
        rows = rows.select(self.schema.names)
        if rows.schema.types == self.schema.types:
            return rows
        arrays = [
            array if array.type == field.type else array.cast(field.type)
            for array, field in zip(rows.columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _split_columns(
        self, columns: Sequence[str] | None
    ) -> tuple[Sequence[str] | None, tuple[str, ...]]:
        """Return the columns of the view and the damage columns (``crc_ok``, ``damage``) among
        ``columns``. If no column of the view is asked for, its first one is taken. Return
        ``columns`` unchanged and ``()`` if it is None, or rows are batches.
        """
        if columns is None or not self.kind.has_records:
            return columns, ()
        of_damage = tuple(name for name in columns if name in COLUMNS)
        of_view = [name for name in columns if name not in of_damage]
        return of_view or [self.kind.view.columns[0].name], of_damage

    def _with_damage_fields(self, schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
        """Return the schema with the fields of damage columns added, in the order of ``columns``;
        the schema itself if there are none.
        """
        if columns is None or not self.damage_columns:
            return schema
        fields = {
            **{f.name: f for f in schema},
            **{name: COLUMNS[name].field for name in self.damage_columns},
        }
        return pa.schema([fields[name] for name in columns])

    def _with_good_damage(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return ``batch`` with the damage columns that were asked for, with the values of
        undamaged rows: ``crc_ok`` True and ``damage`` null.
        """
        for name in self.damage_columns:
            value = pa.scalar(COLUMNS[name].good, COLUMNS[name].field.type)
            batch = batch.append_column(COLUMNS[name].field, pa.repeat(value, batch.num_rows))
        return batch

    def _source(self) -> Source | None:
        """Return the decoder of chunks; one that skips batches without selected rows if headers can
        tell, and one that compares unverified transactions with the batches. Return None if the
        reference codecs read the whole file.
        """
        if self.kernels is None:
            return None
        decoder = Decoder(
            load_view(self.kind.view.name),
            self.columns,
            limits=self.limits,
            full_check=self.policy is Policy.STRICT,
            rules=self.policy is Policy.STRICT,
            kernels=self.kernels,
            zero_copy=self.zero_copy,
        )
        source: Source = decoder
        if self.skips and self.kind.has_records:
            source = self._skipping = SkippingDecoder(decoder, self.masks)
        if self._verifier is None and self._order is None:
            return source
        from kafka_log.segment.transaction_verification import VerifyingSource

        high = self.selection.offsets[1]
        return VerifyingSource(source, decoder, self._verifier, self._order, high)

    def _make_verifier(self) -> TransactionVerifier | None:
        """Return the verifier of the aborted transactions of the selection; None if there are none,
        they are verified, or rows are batches.
        """
        aborted = self.selection.aborted
        if aborted.is_verified or not self.kind.has_records:
            return None
        from kafka_log.segment.transaction_verification import TransactionVerifier

        return TransactionVerifier(aborted, self.reader.path)

    def _make_order(self) -> OffsetOrder | None:
        """Return the comparison of the offsets of batches; None if the selection does not ask for
        it, or rows are batches.
        """
        if not self.selection.verifies_order or not self.kind.has_records:
            return None
        options = self.reader.options
        return OffsetOrder(self.reader.path, options.next_base, is_start=options.start == 0)

    def _finish_order(self, order: OffsetOrder) -> None:
        """Raise ValueRefused if the last batch that was read, or the first one after it, cannot have
        its offsets. The file is read once more if bytes follow, unless it lies in a store.
        """
        options = self.reader.options
        stop = options.stop
        if stop is None or (options.size is not None and stop >= options.size):
            order.finish()
        elif not is_url(self.reader.path):
            from kafka_log.segment.batch_headers import headers

            # Whoever reads the bytes that follow reports their damage.
            with suppress(CodecError):
                for values in islice(headers(self.reader.path, COMPARED, start=stop), 1):
                    order.add_batch(*values)
        order.raise_error()

    def _make_loader(self, file: FileIO, size: int) -> Loader:
        """Return the loader of chunks: of all bytes for records, of headers alone for batches; with
        ``mmap``, for batches of a local file, one that maps the file.
        """
        if self.kind.has_records:
            return WholeBytes(file, self.chunk_bytes)
        from kafka_log.segment.header_loading import MappedHeaders, ReadHeaders

        if self.mmap and isinstance(file, FileIO):
            return MappedHeaders(file, size)
        return ReadHeaders(file, self.chunk_bytes, getattr(self.kernels, "JIT", False))

    def _unread(self, batch: Batch, errors: Sequence[CodecError]) -> Iterator[Unread]:
        """Yield one Unread for a damaged batch without any readable record. Yield nothing if damage
        is dropped, the batch has records or no damage, rows are batches, or it holds control
        records that are not selected.
        """
        if not errors or self.drop or not self.kind.has_records or batch.records:
            return
        if self.selection.control_records or not batch.is_control:
            yield Unread(batch.position, batch, "; ".join(map(str, errors)))

    def _unread_ends(self) -> Iterator[Unread]:
        """Yield an Unread for each lost range of the file, and for its rest if an error ended the
        pass. Raise that CodecError instead if damage is to be raised. Yield nothing before the pass
        has ended.
        """
        end = self.reader.end
        if end is None:
            return
        if end.error is not None and not self.keep:
            raise end.error
        for lost in end.lost:
            yield Unread(lost.start, None, f"{lost.describe_bytes('are lost')}{lost.reason}")
        if end.error is not None:
            yield Unread(end.iterated_bytes, None, f"the rest is not read: {end.error}")

    def _offsets_around(self, batch: Batch) -> tuple[int | None, int | None]:
        """Return the last offset before a flagged batch and the first one after it, by its header.
        If its checksum is wrong, return those of its neighbors under ``salvage``, else (None,
        None). The former is None if the header does not state a base offset.

        The header of a batch with a wrong checksum may be damaged too: only ``salvage`` looks for its neighbors.
        """
        if batch.is_valid:
            first = batch.base_offset
            return None if first is None else first - 1, batch.last_offset + 1
        run = self.cursor.run
        return run.around if self.policy is Policy.SALVAGE and run is not None else (None, None)

    def _is_after(self, table: pa.RecordBatch) -> bool:
        """Return whether reading has reached a batch at or after the end of the offset range. Later
        batches may still hold offsets of the range: only :meth:`_is_range_over` tells. For rows
        that are batches, the batch is in ``table``; for records, it is the first such batch of the
        file. Return False if the range has no end, or headers are not looked at.

        ``table`` has the last rows. Headers of records are read ahead, so that the batch may lie after others that follow the rows.
        """
        if not self.kind.has_records:
            return self.selection.skips and bool(self.masks.is_after(table).any())
        run = self.cursor.run
        after = None if self._skipping is None else self._skipping.after_range
        return after is not None and (run is None or run.position >= after)

    def _is_past(self, batch: Batch) -> bool:
        """Return whether a batch and all that follow it lie after the offset range, so that their damage does not matter."""
        return self.selection.is_after(batch) and self._is_range_over()

    def _is_range_over(self) -> bool:
        """Return whether no batch from the current position on may hold offsets of the range, by
        the headers. Return False under another policy than ``kafka``, or if the range has no end;
        True if the pass has ended.
        """
        high = self.selection.offsets[1]
        if self.policy is not Policy.KAFKA or high is None:
            return False
        run = self.cursor.run
        if run is None:
            return True
        if self._range_end is None:
            self._range_end = RangeEnd(
                self.reader.path,
                high,
                stop=self.reader.options.stop,
                size=self.reader.options.size,
                engine="construct" if self.kernels is None else "auto",
                order=self._order,
            )
        return self._range_end.is_at(run.position)

    def _rows(self, batch: Batch) -> Sequence[tuple[Batch, Record | None]]:
        """Return a pair for each row of a batch: one for each record, or one with None if a row is a batch."""
        if not self.kind.has_records:
            return [(batch, None)]
        return [(batch, record) for record in batch.records]

    def _tables(self, rows: Sequence[tuple[Batch, Record | None]]) -> Iterator[pa.RecordBatch]:
        """Yield rows that the reference codecs read as record batches, each of at most ``max_rows``
        rows and about ``max_bytes`` bytes (a single larger row alone). For no rows yield one empty
        batch.
        """
        first = held = 0
        for i, (_, record) in enumerate(rows):
            size = 0 if record is None else record_size(record)
            if i > first and (i - first >= self.max_rows or held + size > self.max_bytes):
                yield self._table(rows[first:i])
                first, held = i, 0
            held += size
        yield self._table(rows[first:])

    def _table(self, rows: Sequence[tuple[Batch, Record | None]]) -> pa.RecordBatch:
        """Return pairs of a Batch and its Record (None: the row is a batch) as one record batch,
        with the damage columns last.
        """
        arrays = []
        values = self.kind.values()
        for f in self.decoded:
            value = values[f.name]
            arrays.append(pa.array([value(batch, record) for batch, record in rows], f.type))
        fields = list(self.decoded)
        for name in self.damage_columns:
            fields.append(COLUMNS[name].field)
            compute = COLUMNS[name].compute
            arrays.append(
                pa.array([compute(batch, record) for batch, record in rows], fields[-1].type)
            )
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def header_scanner(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    selection: RowSelection | None = None,
    mmap: bool = False,
    **options: Unpack[ReadOptions],
) -> Scanner:
    """Return a scanner whose rows are the batch headers of a file (columns of the view ``batches``)
    that ``selection`` (None: all) may select: nothing is decompressed, and no checksum is verified.
    ``mmap`` maps the file into memory, which is faster, but kills this process if the file is
    truncated. Raise ValueError for an unknown or repeated column, an unknown policy, engine, tail or
    ``on_damage``, or too small ``chunk_bytes``; ImportError if the engine is ``arrow`` and its
    modules cannot be imported. The file is opened when the scanner is iterated.

    If batches are large, only their headers are read, each by one call of ``pread``. With ``mmap`` the file is mapped into memory, which is
    several times as fast. But if another process truncates the mapped file, as a broker may do, the system kills this process; without
    ``mmap`` a truncated file is an ordinary error.
    """
    return Scanner(
        path, columns, policy, kind=BATCH_ROWS, selection=selection, mmap=mmap, **options
    )


class FirstBatch(NamedTuple):
    """A position, and whether a batch begins there that may hold selected records.

    If ``is_batch`` is False, the headers end at the position: at the end of the file, or at damage.
    """

    position: int
    is_batch: bool


class RangeEnd:
    """Test whether reading may end because no later header leaves open that its batch holds offsets below ``high``."""

    def __init__(
        self,
        path: Path,
        high: int,
        *,
        stop: int | None = None,
        size: int | None = None,
        engine: Engine = "auto",
        order: OffsetOrder | None = None,
    ) -> None:
        """Prepare the test for a file. ``stop``, ``size``, ``engine`` and ``order`` are as in :func:`first_batch`."""
        self._path = path
        self._below = RowSelection(offsets=(None, high))
        self._stop, self._size, self._engine, self._order = stop, size, engine, order
        self._next = 0

    def is_at(self, position: int) -> bool:
        """Return whether no batch from byte ``position`` on may hold offsets below the end of the
        range, by their headers up to the end of the file or the first damage. Return True if the
        file lies in a store and more than 256 KiB follow, whose headers are not read. Raise
        FileNotFoundError if the file is gone and no size was listed.
        """
        end = self._size if self._stop is None else self._stop
        if needs_several_requests(self._path, None if end is None else end - position):
            return True
        if position <= self._next:
            return False
        found = first_batch(
            self._path,
            self._below,
            start=position,
            stop=self._stop,
            size=self._size,
            engine=self._engine,
            order=self._order,
        )
        if found.is_batch:
            self._next = found.position
        return not found.is_batch


def first_batch(
    path: Path,
    selection: RowSelection,
    *,
    start: int = 0,
    stop: int | None = None,
    size: int | None = None,
    engine: Engine = "auto",
    order: OffsetOrder | None = None,
) -> FirstBatch:
    """Return (position, True) of the first batch from byte ``start`` on, where one begins, that may
    hold selected records, by the headers alone. Return (position, False) if none does before the
    headers end: at ``stop``, the end of the file, or the first damage. No checksum is verified.
    Raise FileNotFoundError for a missing file if ``size`` is None (else the headers end at
    ``start``); ValueError for an unknown engine; ImportError if ``arrow`` cannot be imported. The
    headers are added to ``order``; raise ValueRefused if offsets among them cannot be right.
    """
    masks = RowMasks(selection)
    scanner = header_scanner(
        path,
        HEADERS if order is None else [*dict.fromkeys((*HEADERS, *COMPARED))],
        on_damage="keep",
        start=start,
        stop=stop,
        size=size,
        engine=engine,
    )
    end = start
    for headers in scanner:
        if order is not None:
            order.add_headers(headers)
            order.raise_error()
        positions = numbers(headers, "position")
        found = np.flatnonzero(masks.may_have(headers))
        if len(found):
            return FirstBatch(int(positions[found[0]]), True)
        end = int(positions[-1] + numbers(headers, "size")[-1])
    if order is not None and stop is None:
        order.finish()
        order.raise_error()
    return FirstBatch(end, False)
