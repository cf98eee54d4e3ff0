"""A file of batches as Arrow, at the speed of memory: the rows of its records, or of its batch headers."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from io import FileIO
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, TypedDict, Unpack, get_args

import pyarrow as pa

from codecgen.runtime.arrow.decoder import (
    Decoder,
    Rows,
    choose,
    load_kernels,
    load_numpy_reader,
    schema_of,
)
from codecgen.runtime.arrow.view import Columns
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.columns.batches import BATCHES
from kafka_codecs.columns.records import RECORDS
from kafka_log.segment.cursor import CHUNK_BYTES, Cursor, Loader, Source, WholeBytes
from kafka_log.segment.kernels import Engine, load_view
from kafka_log.segment.model import Batch, End, OnDamage, Policy, Record, Tail, record_size
from kafka_log.segment.odd_offsets import OddOffsets
from kafka_log.segment.reader import HeaderReader, SegmentReader, damage
from kafka_log.segment.row_damage import COLUMNS
from kafka_log.segment.row_masks import HeaderMasks, RowMasks
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.skipping import SkippingDecoder, SkippingReader

# What a first record does not need is imported where it is: the codecs take 50 ms, Arrow's functions 30.
if TYPE_CHECKING:
    from kafka_log.segment.batch_search import RangeEnd
    from kafka_log.segment.passes import Run
    from kafka_log.segment.row_values import Values

ROWS = 1 << 16
BYTES = 64 << 20
"""Rows, and bytes in them, of what is made of records that the reference codecs read; one record may have more."""

OnBatch = Callable[[Batch], None]

_NEEDED_DEPTH = 8


class FileOptions(TypedDict, total=False):
    """Which bytes of a file are read, and what they may be. See :class:`SegmentReader`."""

    limits: Limits | None
    start: int
    stop: int | None
    tail: Tail | str
    rescue: bool
    size: int | None
    reaches: int | None
    next_base: int | None
    is_removed: Callable[[], bool] | None


class ReadOptions(FileOptions, total=False):
    """How a file is read. See :class:`Scanner`."""

    on_damage: OnDamage | None
    chunk_bytes: int
    engine: Engine


@dataclass(frozen=True, slots=True)
class Unread:
    """A place at ``position`` where no record could be read, and why: in a ``batch``, or (None) where none could be read."""

    position: int
    batch: Batch | None
    problem: str


class Scanner:
    """One pass over a file. Iterate to get record batches; then ``end`` says how the file ended.

    ``selection`` says which records come: all, also those that brokers write for themselves. Under ``kafka`` reading ends before the first
    batch that begins at or after the end of the offset range, if no header after it says or leaves open that its batch holds offsets
    of the range; then ``end`` is None. Headers of a file in a store are not asked. ``strict`` and ``salvage`` read on. Batches that no
    record can come from, as their headers say, are verified and not decompressed, but under ``strict``. A header that contradicts
    itself says nothing.

    ``fallbacks`` counts the batches that the reference codecs read. Memory holds one chunk (``chunk_bytes``, or one batch of
    the file if that is larger), one decompressed section of at most 8 MiB (or one batch, within the limit of the schema),
    and the rows of these. Under ``kafka`` damage is raised unless ``on_damage`` is ``keep``, as it is by default under ``salvage``:
    then its records that can be read are there, as in :class:`SegmentReader`. With ``drop`` damaged batches have no rows.
    The columns ``crc_ok`` and ``damage`` (see :data:`kafka_log.segment.row_damage.COLUMNS`) tell what is wrong with a row.
    """

    view: ClassVar[Columns] = RECORDS
    records: ClassVar[bool] = True
    reads: ClassVar[type[SegmentReader]] = SkippingReader
    asks: ClassVar[type[RowMasks]] = RowMasks
    max_rows, max_bytes = ROWS, BYTES

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        policy: Policy | str = Policy.KAFKA,
        *,
        selection: RowSelection | None = None,
        on_damage: OnDamage | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        engine: Engine = "auto",
        **options: Unpack[FileOptions],
    ) -> None:
        if chunk_bytes < CHUNK_BYTES:
            from kafka_log.segment.framing import HEADER_START

            if chunk_bytes < HEADER_START:
                raise ValueError(
                    f"chunk_bytes is {chunk_bytes}: it must be at least {HEADER_START}"
                )
        self.chunk_bytes = chunk_bytes
        _known("engine", engine, get_args(Engine))
        _known("on_damage", on_damage, (None, *get_args(OnDamage)))
        self.reader = self.reads(path, policy=policy, records=self.records, **options)
        self.policy = self.reader.policy
        self.limits = self.reader.limits
        settled = on_damage or ("keep" if self.policy is Policy.SALVAGE else "raise")
        self.keep, self.drop = settled != "raise", settled == "drop"
        own, self.told = self._told(columns)
        chosen = choose(self.view, own)
        self.schema = self._with_told(schema_of(chosen), columns)
        self.selection = selection or RowSelection()
        self.skips = self.selection.skips and self.policy is not Policy.STRICT
        self.masks = self.asks(self.selection)
        if isinstance(self.reader, SkippingReader):
            self.reader.selection = self.selection
        salvage = self.policy is Policy.SALVAGE
        tells = salvage and "damage" in self.told
        needed = (
            *self.masks.columns(),
            *(("position",) if self.skips and self.records else ()),
            *(OddOffsets.COLUMNS if tells else ()),
        )
        there = {column.name for column in chosen}
        hidden = [name for name in dict.fromkeys(needed) if name not in there]
        self.columns = chosen + choose(self.view, hidden)
        self.decoded = schema_of(self.columns)
        self.kernels = (
            _load_decoder(self.view.name, engine) if self.limits.depth >= _NEEDED_DEPTH else None
        )
        by = "construct" if self.kernels is None else engine
        self.odd = OddOffsets(self.reader, by) if tells else None
        self.cursor = Cursor(self.reader)
        self._skipping: SkippingDecoder | None = None
        self._plain_bytes = 0
        self._run: Run | None = None
        self._range_end: RangeEnd | None = None
        self.on_batch: OnBatch | None = None
        """Is told of each batch of which there is something to say, before its rows come and after those before it."""

    @property
    def end(self) -> End | None:
        return self.reader.end

    @property
    def fallbacks(self) -> int:
        return self.cursor.fallbacks

    @property
    def bytes_read(self) -> int:
        """Bytes of the file that were read, again where they were."""
        return self.cursor.bytes_read + self._plain_bytes

    @property
    def batches_skipped(self) -> int:
        """Batches that were not decompressed, as their headers say that no record of theirs is wanted."""
        by_reader = self.reader.skipped if isinstance(self.reader, SkippingReader) else 0
        return by_reader + (0 if self._skipping is None else self._skipping.skipped)

    def offsets_around(self, batch: Batch) -> tuple[int | None, int | None]:
        """The last offset before the damaged batch that ``on_batch`` is being told of, and the first one after it; None where nobody can
        know, as its header may be damaged too."""
        if batch.is_valid:
            first = batch.base_offset
            return None if first is None else first - 1, batch.last_offset + 1
        salvage = self.policy is Policy.SALVAGE and self._run is not None
        return self._run.around if salvage and self._run is not None else (None, None)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with closing(self.parts()) as parts:
            for part in parts:
                if not isinstance(part, Unread):
                    yield part

    def parts(self) -> Generator[pa.RecordBatch | Unread, None, None]:
        """The rows, and between them the places where there are none."""
        with closing(self._parts()) as parts:
            for part in parts:
                if isinstance(part, Unread):
                    yield part
                    continue
                rows = self.masks.of(part)
                if rows.num_rows:
                    if self.odd is not None:
                        rows = self.odd.tell(rows)
                    yield rows.select(self.schema.names)
                if self._is_after(part) and self._is_over():
                    self.reader.end = None  # also when all was read already
                    return

    def _told(self, columns: Sequence[str] | None) -> tuple[Sequence[str] | None, tuple[str, ...]]:
        """The columns that are of the view, one at least, and those that tell what is wrong with a row."""
        if columns is None or not self.records:
            return columns, ()
        told = tuple(name for name in columns if name in COLUMNS)
        return [n for n in columns if n not in told] or [self.view.columns[0].name], told

    def _with_told(self, schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
        """The schema with what is told, in the order of the columns that are asked for."""
        if columns is None or not self.told:
            return schema
        fields = {
            **{f.name: f for f in schema},
            **{name: COLUMNS[name].field for name in self.told},
        }
        return pa.schema([fields[name] for name in columns])

    def _whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What the kernels read, with what is told: nothing is wrong."""
        for name in self.told:
            value = pa.scalar(COLUMNS[name].good, COLUMNS[name].field.type)
            batch = batch.append_column(COLUMNS[name].field, pa.repeat(value, batch.num_rows))
        return batch

    def items(self) -> Generator[Rows | Batch, None, None]:
        """What the kernels read, a run of batches at a time, and what the reference codecs read, in the file's order.

        Ranges and damage are left to the caller; only a strict reader raises.
        """
        with self.reader.opened() as run:
            if run is None:
                return
            self._run = run
            try:
                yield from self._items_of(run)
            finally:
                self._run = None

    def _items_of(self, run: Run) -> Iterator[Rows | Batch]:
        plain = run.batches()
        if self.kernels is not None:
            loader = self._load(run.file, run.size)
            yield from self.cursor.items(run, plain, self._source(), loader)
            return
        for batch in plain:
            self._plain_bytes += batch.size
            yield batch

    def _parts(self) -> Generator[pa.RecordBatch | Unread, None, None]:
        with closing(self.items()) as items:
            if self.kernels is None:
                yield from self._plain(item for item in items if isinstance(item, Batch))
            else:
                for item in items:
                    if isinstance(item, Rows):
                        yield self._whole(item.batch)
                    elif self._past(item):
                        return
                    else:
                        yield from self._unread(item)
                        yield from self._rows(self._verified(item))
        yield from self._after(self.reader.end)

    def _unread(self, batch: Batch) -> Iterator[Unread]:
        """That a batch could be read, but none of its records."""
        if self.keep and not self.drop and self.records and not batch.records:
            wrong = damage(batch)
            if wrong and (self.selection.control_records or not batch.is_control):
                yield Unread(batch.position, batch, "; ".join(map(str, wrong)))

    def _after(self, end: End | None) -> Iterator[Unread]:
        """What there is to say after the last batch."""
        if end is None:
            return
        if end.error is not None and not self.keep:
            raise end.error
        for lost in end.lost:
            yield Unread(
                lost.start, None, f"bytes {lost.start}..{lost.end} are lost: {lost.reason}"
            )
        if end.error is not None:
            yield Unread(end.iterated_bytes, None, f"the rest is not read: {end.error}")

    def _plain(self, batches: Iterator[Batch]) -> Iterator[pa.RecordBatch | Unread]:
        rows: list[tuple[Batch, Record | None]] = []
        size = 0
        raised: CodecError | None = None
        try:
            for batch in batches:
                if self._past(batch):
                    break
                if rows and self._is_told(batch):
                    yield from self._rows(rows)
                    rows, size = [], 0
                unread = list(self._unread(batch))
                rows += self._verified(batch)
                size += sum(map(record_size, batch.records))
                is_full = len(rows) >= self.max_rows or size >= self.max_bytes
                if unread or is_full or self._is_told(batch):
                    yield from self._rows(rows)
                    yield from unread
                    rows, size = [], 0
        except CodecError as error:
            raised = error  # what was read before it comes first
        yield from self._rows(rows)
        if raised is not None:
            try:
                raise raised
            finally:
                del raised  # its traceback holds this frame

    def _source(self) -> Source:
        decoder = self._decoder()
        if not (self.skips and self.records):
            return decoder
        self._skipping = SkippingDecoder(decoder, self.masks)
        return self._skipping

    def _decoder(self) -> Decoder:
        return Decoder(
            load_view(self.view.name),
            self.columns,
            limits=self.limits,
            full_check=self.policy is Policy.STRICT,
            rules=self.policy is Policy.STRICT,
            kernels=self.kernels,
        )

    def _load(self, file: FileIO, size: int) -> Loader:
        return WholeBytes(file, self.chunk_bytes)

    def _is_after(self, part: pa.RecordBatch) -> bool:
        """Return whether a batch was met that lies after the offset range, as its header says."""
        return self._skipping is not None and self._skipping.is_after

    def _past(self, batch: Batch) -> bool:
        """Return whether a batch and all that follow it lie after the offset range, so that their damage matters to nobody."""
        return self.selection.is_after(batch) and self._is_over()

    def _is_over(self) -> bool:
        """Return whether no header after the current position leaves open that its batch holds offsets of the range."""
        high = self.selection.offsets[1]
        if self.policy is not Policy.KAFKA or high is None:
            return False
        if self._run is None:
            return True
        if self._range_end is None:
            from kafka_log.segment.batch_search import RangeEnd

            self._range_end = RangeEnd(
                self.reader.path,
                high,
                stop=self.reader.stop,
                size=self.reader.size,
                engine="construct" if self.kernels is None else "auto",
            )
        return self._range_end.is_at(self._run.position)

    def _is_told(self, batch: Batch) -> bool:
        return self.on_batch is not None and bool(batch.findings or damage(batch))

    def _verified(self, batch: Batch) -> Sequence[tuple[Batch, Record | None]]:
        """The records of a batch, unless it is damaged and damage is raised."""
        if self.on_batch is not None and self._is_told(batch):
            self.on_batch(batch)
        if not self.keep:
            for error in damage(batch):
                raise error
        if self.drop and damage(batch):
            return []
        return [(batch, record) for record in batch.records]

    def _rows(self, rows: Sequence[tuple[Batch, Record | None]]) -> Iterator[pa.RecordBatch]:
        """Rows as Arrow, cut so that 32-bit offsets hold."""
        first = held = 0
        for i, (_, record) in enumerate(rows):
            size = 0 if record is None else record_size(record)
            if i > first and (i - first >= self.max_rows or held + size > self.max_bytes):
                yield self._columns(rows[first:i])
                first, held = i, 0
            held += size
        yield self._columns(rows[first:])

    def _columns(self, rows: Sequence[tuple[Batch, Record | None]]) -> pa.RecordBatch:
        arrays = []
        values = self._values()
        for f in self.decoded:
            value = values[f.name]
            arrays.append(pa.array([value(batch, record) for batch, record in rows], f.type))
        fields = list(self.decoded)
        for name in self.told:
            fields.append(COLUMNS[name].field)
            of = COLUMNS[name].of
            arrays.append(pa.array([of(batch, record) for batch, record in rows], fields[-1].type))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _values(self) -> Values:
        from kafka_log.segment.row_values import OF_RECORDS

        return OF_RECORDS


class BatchScanner(Scanner):
    """One pass over the batch headers of a file: nothing is decompressed, and no checksum is verified.

    Where batches are large only their headers are read, each by a call of ``pread``. With ``mmap`` the file is mapped into
    memory, which is several times as fast; but a file that becomes shorter meanwhile then ends the process, as with every
    map (a broker that truncates a log does this). Without it that is an error as any other.
    """

    view = BATCHES
    records = False
    reads = HeaderReader
    asks = HeaderMasks

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        policy: Policy | str = Policy.KAFKA,
        *,
        selection: RowSelection | None = None,
        mmap: bool = False,
        **options: Unpack[ReadOptions],
    ) -> None:
        super().__init__(path, columns, policy, selection=selection, **options)
        self.mmap = mmap

    def _load(self, file: FileIO, size: int) -> Loader:
        from kafka_log.segment.header_loading import MappedHeaders, ReadHeaders

        if self.mmap and isinstance(file, FileIO):
            return MappedHeaders(file, size)
        return ReadHeaders(file, self.chunk_bytes, getattr(self.kernels, "JIT", False))

    def _is_after(self, part: pa.RecordBatch) -> bool:
        return self.selection.skips and self.masks.is_after(part)

    def _verified(self, batch: Batch) -> Sequence[tuple[Batch, Record | None]]:
        super()._verified(batch)
        return [] if self.drop and damage(batch) else [(batch, None)]

    def _values(self) -> Values:
        from kafka_log.segment.row_values import OF_BATCHES

        return OF_BATCHES


def _known(name: str, value: str | None, known: Sequence[str | None]) -> None:
    if value not in known:
        listed = ", ".join(str(choice) for choice in known)
        raise ValueError(f"{name} is {value!r}; known: {listed}")


def _load_decoder(name: str, engine: Engine) -> ModuleType | None:
    """Return the module that decodes runs of batches: compiled kernels, or the NumPy readers without a compiler.

    Returns:
        None if the reference codecs read all: the engine is construct, or auto and the module cannot be imported.

    Raises:
        ImportError: If the engine is arrow and the module cannot be imported.
    """
    if engine == "construct":
        return None
    try:
        view = load_view(name)
        kernels = load_kernels(view)
        slow = engine == "auto" and not getattr(kernels, "JIT", True)  # kernels, but no compiler
        return load_numpy_reader(view) if slow else kernels
    except ImportError:
        if engine == "arrow":
            raise
        return None
