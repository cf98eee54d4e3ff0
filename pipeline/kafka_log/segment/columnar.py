"""A file of batches as Arrow, at the speed of memory.

Chunks of whole batches go through the generated kernels. What these do not take (damage, freedoms that only some
policies grant, the end of the file) is read by the reference codecs, one batch at a time and in its place, so that
values and errors are theirs under every policy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from io import FileIO
from operator import index
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import pyarrow as pa

from codecgen.runtime.arrow.decoder import (
    Chunk,
    Decoder,
    Rows,
    choose,
    load_kernels,
    load_numpy_reader,
    schema_of,
)
from codecgen.runtime.arrow.view import View
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.arrow.batches import BATCHES
from kafka_codecs.arrow.records import RECORDS
from kafka_log.segment.model import Batch, End, Policy, Record, Tail, record_size
from kafka_log.segment.passes import Run
from kafka_log.segment.positioned_reads import UnreadableError, read_at
from kafka_log.segment.reader import HeaderReader, SegmentReader, damage
from kafka_log.segment.row_damage import COLUMNS
from kafka_log.segment.row_selection import EVERYTHING, Aborted, Range, RowSelection

# What a first record does not need is imported where it is: the codecs take 50 ms, Arrow's functions 30.
if TYPE_CHECKING:
    from kafka_log.segment.header_loading import HeaderChunks
    from kafka_log.segment.row_values import Values

CHUNK_BYTES = 8 << 20
ROWS = 1 << 16
BYTES = 64 << 20
"""Rows, and bytes in them, of what is made of records that the reference codecs read; one record may have more."""

Engine = Literal["auto", "arrow", "construct"]
OnDamage = Literal["raise", "keep", "drop"]
OnBatch = Callable[[Batch], None]

_NEEDED_DEPTH = 8
_HEAD = RECORDS.head
"""Bytes that say what an entry is, and how long."""


class Scanner:
    """One pass over a file. Iterate to get record batches; then ``end`` says how the file ended.

    All records come, also those that brokers write for themselves (``control_records`` False leaves these out), and all
    transactions, without those that are ``aborted`` (producer id, first offset, last offset).
    ``offsets`` and ``timestamps`` (milliseconds) are ranges: the first is in, the second not, None is open. Under
    ``kafka`` reading ends at the first record whose offset is not below the end of ``offsets``, or damaged batch that
    begins there, as offsets rise in a log; then ``end`` is None. ``strict`` and ``salvage`` read on.

    ``fallbacks`` counts the batches that the reference codecs read. Memory holds one chunk (``chunk_bytes``, or one batch of
    the file if that is larger), one decompressed section of at most 8 MiB (or one batch, within the limit of the schema),
    and the rows of these. Under ``kafka`` damage is raised unless ``on_damage`` is ``keep``, as it is by default under ``salvage``:
    then its records that can be read are there, as in :class:`SegmentReader`. With ``drop`` damaged batches have no rows.
    The columns ``crc_ok`` and ``damage`` (see :data:`kafka_log.segment.row_damage.COLUMNS`) tell what is wrong with a row.
    """

    view: ClassVar[View] = RECORDS
    records: ClassVar[bool] = True
    reads: ClassVar[type[SegmentReader]] = SegmentReader

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        policy: Policy | str = Policy.KAFKA,
        *,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        control_records: bool = True,
        aborted: Aborted | None = None,
        on_damage: OnDamage | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        limits: Limits | None = None,
        engine: Engine = "auto",
        start: int = 0,
        stop: int | None = None,
        tail: Tail | str = Tail.REFERENCE,
        rescue: bool = True,
        size: int | None = None,
    ) -> None:
        if chunk_bytes < _HEAD:
            raise ValueError(f"chunk_bytes is {chunk_bytes}: it must be at least {_HEAD}")
        _known("engine", engine, get_args(Engine))
        _known("on_damage", on_damage, (None, *get_args(OnDamage)))
        self.reader = self.reads(
            path,
            policy=policy,
            limits=limits,
            start=start,
            stop=stop,
            records=self.records,
            tail=tail,
            rescue=rescue,
            size=size,
        )
        self.policy = self.reader.policy
        self.limits = self.reader.limits
        self.chunk_bytes = chunk_bytes
        settled = on_damage or ("keep" if self.policy is Policy.SALVAGE else "raise")
        self.keep, self.drop = settled != "raise", settled == "drop"
        own, self.told = self._told(columns)
        chosen = choose(self.view, own)
        self.schema = self._with_told(schema_of(chosen), columns)
        self.selection = RowSelection(
            checked_range("offsets", offsets),
            checked_range("timestamps", timestamps),
            control_records,
            aborted,
        )
        hidden = [name for name in self.selection.columns() if name not in self.schema.names]
        self.columns = chosen + choose(self.view, hidden)
        self.decoded = schema_of(self.columns)
        self.kernels = _kernels(self.view, engine) if self.limits.depth >= _NEEDED_DEPTH else None
        self.fallbacks = 0
        self.on_batch: OnBatch | None = None
        """Is told of each batch of which there is something to say, before its rows come and after those before it."""

    @property
    def end(self) -> End | None:
        return self.reader.end

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with closing(self._batches()) as batches:
            for batch in batches:
                rows, more = self.selection.of(batch, self.policy)
                if rows.num_rows:
                    yield rows.select(self.schema.names)
                if not more:
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
            plain = run.batches()
            if self.kernels is None:
                yield from plain
            else:
                yield from self._fast(run.file, run, plain, run.size)

    def _batches(self) -> Generator[pa.RecordBatch, None, None]:
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
                        yield from self._rows(self._verified(item))
        end = self.reader.end
        if end is not None and end.error is not None and not self.keep:
            raise end.error

    def _plain(self, batches: Iterator[Batch]) -> Iterator[pa.RecordBatch]:
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
                rows += self._verified(batch)
                size += sum(map(record_size, batch.records))
                if len(rows) >= ROWS or size >= BYTES or self._is_told(batch):
                    yield from self._rows(rows)
                    rows, size = [], 0
        except CodecError as error:
            raised = error  # what was read before it comes first
        yield from self._rows(rows)
        if raised is not None:
            try:
                raise raised
            finally:
                del raised  # its traceback holds this frame

    def _fast(
        self, file: FileIO, run: Run, plain: Iterator[Batch], size: int
    ) -> Iterator[Rows | Batch]:
        decoder = self._decoder()
        stop = size if self.reader.stop is None else min(self.reader.stop, size)
        chunk = self._open(file, size)

        def slow() -> Batch | None:
            batch = next(plain, None)
            self.fallbacks += batch is not None
            return batch

        while True:
            position = run.position
            if position < stop:
                try:
                    self._read(file, chunk, position, stop)
                except UnreadableError:
                    chunk.size = 0  # the reference codecs meet it too
            else:
                chunk.size = 0
            for item in decoder.decode(chunk, position):
                if isinstance(item, Rows):
                    self._count_in(run, item)
                    yield item
                    continue
                batch = slow()
                if batch is None:
                    return
                yield batch
                if run.position != item.end:
                    break  # what follows in the chunk is not what comes next
            if run.position == position and not self._room(run, chunk, stop):
                batch = slow()
                if batch is None:
                    return
                yield batch

    def _decoder(self) -> Decoder:
        return Decoder(
            self.view,
            self.columns,
            limits=self.limits,
            full_check=self.policy is Policy.STRICT,
            kernels=self.kernels,
        )

    def _open(self, file: FileIO, size: int) -> Chunk:
        return Chunk(self.chunk_bytes)

    def _read(self, file: FileIO, chunk: Chunk, position: int, stop: int) -> None:
        wanted = min(chunk.capacity, stop - position)
        chunk.size = read_at(file, chunk.view()[:wanted], position)

    def _room(self, run: Run, chunk: Chunk, stop: int) -> bool:
        """Make room for a batch that is larger than the chunk, if all of it is there."""
        if chunk.size < _HEAD:
            return False
        from kafka_log.segment import framing

        try:
            head = bytes(chunk.view()[:_HEAD])
            size = framing.frame_of(head, run.position, run.name).size
        except CodecError:
            return False
        if not chunk.capacity < size <= stop - run.position:
            return False
        chunk.grow(size)
        return True

    def _count_in(self, run: Run, rows: Rows) -> None:
        """Note what the kernels have read, as if the reader had."""
        run.position = rows.end
        run.count += rows.entries
        run.record_count += rows.batch.num_rows if self.records else 0
        run.last_batch = rows.last
        if run.all_valid:
            run.valid = rows.end

    def _past(self, batch: Batch) -> bool:
        """Whether a damaged batch lies after the range, so that its damage matters to nobody."""
        high = self.selection.offsets[1]
        if high is None or self.policy is not Policy.KAFKA or batch.base_offset is None:
            return False
        return batch.base_offset >= high and bool(damage(batch))

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
            if i > first and (i - first >= ROWS or held + size > BYTES):
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

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        policy: Policy | str = Policy.KAFKA,
        *,
        on_damage: OnDamage | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        limits: Limits | None = None,
        engine: Engine = "auto",
        start: int = 0,
        stop: int | None = None,
        tail: Tail | str = Tail.REFERENCE,
        rescue: bool = True,
        size: int | None = None,
        mmap: bool = False,
    ) -> None:
        super().__init__(
            path,
            columns,
            policy,
            on_damage=on_damage,
            chunk_bytes=chunk_bytes,
            limits=limits,
            engine=engine,
            start=start,
            stop=stop,
            tail=tail,
            rescue=rescue,
            size=size,
        )
        self.mmap = mmap

    def _open(self, file: FileIO, size: int) -> Chunk:
        from kafka_log.segment.header_loading import MappedHeaders, ReadHeaders

        self.batch_headers: HeaderChunks
        if self.mmap:
            self.batch_headers = MappedHeaders(file, size)
        else:
            compiled = getattr(self.kernels, "JIT", False)
            self.batch_headers = ReadHeaders(file, self.chunk_bytes, compiled)
        return self.batch_headers.chunk

    def _read(self, file: FileIO, chunk: Chunk, position: int, stop: int) -> None:
        self.batch_headers.fill(position, stop)

    def _verified(self, batch: Batch) -> Sequence[tuple[Batch, Record | None]]:
        super()._verified(batch)
        return [] if self.drop and damage(batch) else [(batch, None)]

    def _values(self) -> Values:
        from kafka_log.segment.row_values import OF_BATCHES

        return OF_BATCHES


def checked_range(name: str, bounds: Range | None) -> Range:
    """A range of 64-bit numbers. Raises ValueError."""
    if bounds is None:
        return EVERYTHING
    try:
        low, high = (None if bound is None else index(bound) for bound in bounds)
    except (TypeError, ValueError):
        reason = "it must be (first, end), two integers or None"
        raise ValueError(f"{name} is {bounds!r}: {reason}") from None
    if any(bound is not None and not -(1 << 63) <= bound < 1 << 63 for bound in (low, high)):
        raise ValueError(f"{name} is {bounds!r}: these must be numbers of 64 bits")
    if low is not None and high is not None and low > high:
        raise ValueError(f"{name} is {bounds!r}: the first is above the end")
    return low, high


def _known(name: str, value: str | None, known: Sequence[str | None]) -> None:
    if value not in known:
        listed = ", ".join(str(choice) for choice in known)
        raise ValueError(f"{name} is {value!r}; known: {listed}")


def _kernels(view: View, engine: Engine) -> ModuleType | None:
    """What reads runs of batches: the kernels, or readers that need no compiler. None: the reference codecs read all."""
    if engine == "construct":
        return None
    try:
        kernels = load_kernels(view)
        slow = engine == "auto" and not getattr(kernels, "JIT", True)  # kernels, but no compiler
        return load_numpy_reader(view) if slow else kernels
    except ImportError:
        if engine == "arrow":
            raise
        return None
