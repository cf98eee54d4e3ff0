"""A file of batches as Arrow, at the speed of memory.

Chunks of whole batches go through the generated kernels. What these do not take (damage, freedoms that only some
policies grant, the end of the file) is read by the reference codecs, one batch at a time and in its place, so that
values and errors are theirs under every policy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import FileIO
from mmap import ACCESS_READ, mmap
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.arrow.decoder import (
    Chunk,
    Decoder,
    Rows,
    choose,
    load_kernels,
    load_vectors,
    schema_of,
)
from codecgen.runtime.arrow.view import View
from codecgen.runtime.errors import CodecError
from codecgen.runtime.source import Limits
from kafka_codecs import Compression
from kafka_codecs.arrow.batches import BATCHES
from kafka_codecs.arrow.records import RECORDS
from kafka_log import framing
from kafka_log.columns import record_size
from kafka_log.engine import construct_engine
from kafka_log.model import Batch, End, Policy, Record
from kafka_log.reader import Run, SegmentReader, damage

CHUNK_BYTES = 4 << 20
ROWS = 1 << 16
BYTES = 64 << 20
"""Rows, and bytes in them, of the batches that are made when the reference codecs read everything: one of the file's
batches more at most."""

Engine = Literal["auto", "arrow", "construct"]
Range = tuple[int | None, int | None]

_NEEDED_DEPTH = 8

_VALUES: Mapping[str, Callable[[Batch, Any], Any]] = {
    "offset": lambda b, r: r.offset,
    "timestamp": lambda b, r: r.timestamp,
    "timestamp_type": lambda b, r: b.timestamp_type,
    "key": lambda b, r: r.key,
    "value": lambda b, r: r.value,
    "headers": lambda b, r: [{"key": key, "value": value} for key, value in r.headers],
    "base_offset": lambda b, r: b.base_offset,
    "position": lambda b, r: b.position,
    "magic": lambda b, r: b.magic,
    "codec": lambda b, r: int(Compression[(b.compression or "none").upper()]),
    "producer_id": lambda b, r: b.producer_id,
    "producer_epoch": lambda b, r: b.producer_epoch,
    "sequence": lambda b, r: r.sequence,
    "leader_epoch": lambda b, r: b.partition_leader_epoch,
    "is_transactional": lambda b, r: b.is_transactional,
    "is_control": lambda b, r: b.is_control,
    "delete_horizon": lambda b, r: b.delete_horizon,
}
"""The columns of the view records, from what the reference codecs read."""

_BATCH_VALUES: Mapping[str, Callable[[Batch, Any], Any]] = {
    **{name: _VALUES[name] for name in ("position", "magic", "codec", "timestamp_type")},
    **{name: _VALUES[name] for name in ("producer_id", "producer_epoch", "leader_epoch")},
    **{name: _VALUES[name] for name in ("is_transactional", "is_control", "delete_horizon")},
    "size": lambda b, _: b.size,
    "base_offset": lambda b, _: None if b.count is None and _wraps(b) else b.base_offset,
    "last_offset": lambda b, _: b.last_offset,
    "base_timestamp": lambda b, _: b.base_timestamp,
    "max_timestamp": lambda b, _: b.max_timestamp,
    "base_sequence": lambda b, _: b.base_sequence,
    "record_count": lambda b, _: b.count,
    "crc": lambda b, _: b.crc,
}
"""Likewise those of the view batches."""


def _wraps(batch: Batch) -> bool:
    return batch.compression != Compression.NONE.label


class Scanner:
    """One pass over a file. Iterate to get record batches; then ``end`` says how the file ended.

    ``odd`` counts the batches that the reference codecs read. Memory holds one chunk (``chunk_bytes``, or one batch of
    the file if that is larger), one decompressed run of at most 8 MiB (or one batch, within the limit of the schema),
    and the rows of these. Under ``kafka`` and ``salvage`` damage is raised unless ``on_damage`` is ``keep``:
    then its records that can be read are there, as in :class:`SegmentReader`.
    """

    view: ClassVar[View] = RECORDS
    values: ClassVar[Mapping[str, Callable[[Batch, Any], Any]]] = _VALUES
    records: ClassVar[bool] = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        policy: Policy | str = Policy.KAFKA,
        *,
        offsets: Range | None = None,
        timestamps: Range | None = None,
        on_damage: Literal["raise", "keep"] | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        limits: Limits | None = None,
        engine: Engine = "auto",
        start: int = 0,
        stop: int | None = None,
    ) -> None:
        if chunk_bytes < framing.HEAD:
            raise ValueError(f"chunk_bytes is {chunk_bytes}: it must be at least {framing.HEAD}")
        self.reader = SegmentReader(
            path, policy=policy, limits=limits, start=start, stop=stop, records=self.records
        )
        self.policy = self.reader.policy
        self.limits = self.reader.limits
        self.chunk_bytes = chunk_bytes
        self.keep = (on_damage or ("keep" if self.policy is Policy.SALVAGE else "raise")) == "keep"
        chosen = choose(self.view, columns)
        self.schema = schema_of(chosen)
        self.ranges = {
            name: bounds
            for name, bounds in (("offset", offsets), ("timestamp", timestamps))
            if bounds is not None
        }
        hidden = [name for name in self.ranges if name not in self.schema.names]
        self.columns = chosen + choose(self.view, hidden)
        self.decoded = schema_of(self.columns)
        self.kernels = _kernels(self.view, engine) if self.limits.depth >= _NEEDED_DEPTH else None
        self.odd = 0

    @property
    def end(self) -> End | None:
        return self.reader.end

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches():
            if self.ranges:
                batch = self._within(batch)
            if batch.num_rows:
                yield batch

    def _within(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows in the ranges, without the columns that were needed for these only."""
        mask = None
        for name, (low, high) in self.ranges.items():
            values = batch.column(name).cast(pa.int64())
            for bound, test in ((low, pc.greater_equal), (high, pc.less)):
                if bound is not None:
                    holds = test(values, bound)
                    mask = holds if mask is None else pc.and_(mask, holds)
        if mask is not None:
            batch = batch.filter(mask)
        return batch.select(self.schema.names)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with self.reader.path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            run = Run(self.reader, file.fileno(), size)
            plain = run.batches()
            if self.kernels is None:
                yield from self._plain(plain)
            else:
                yield from self._fast(file, run, plain, size)
        end = self.reader.end
        if end is not None and end.error is not None and not self.keep:
            raise end.error

    def _plain(self, batches: Iterator[Batch]) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[Batch, Record | None]] = []
        size = 0
        raised: CodecError | None = None
        try:
            for batch in batches:
                rows += self._believed(batch)
                size += sum(map(record_size, batch.records))
                if len(rows) >= ROWS or size >= BYTES:
                    yield self._rows(rows)
                    rows, size = [], 0
        except CodecError as error:
            raised = error  # what was read before it comes first
        yield self._rows(rows)
        if raised is not None:
            raise raised

    def _fast(
        self, file: FileIO, run: Run, plain: Iterator[Batch], size: int
    ) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(
            self.view,
            self.columns,
            limits=self.limits,
            careful=self.policy is Policy.STRICT,
            kernels=self.kernels,
        )
        stop = size if self.reader.stop is None else min(self.reader.stop, size)
        chunk = self._chunk(file, size)
        last: int | None = None  # the last batch that the kernels read

        def slow() -> pa.RecordBatch | None:
            nonlocal last
            if last is not None and self.policy is Policy.SALVAGE:
                run.last_offset = self._last_offset(run, last)
            last = None
            batch = next(plain, None)
            if batch is None:
                return None
            self.odd += 1
            return self._rows(self._believed(batch))

        while True:
            position = run.position
            if position < stop:
                self._read(file, chunk, position, stop)
            else:
                chunk.size = 0
            for item in decoder.decode(chunk, position):
                if isinstance(item, Rows):
                    self._count_in(run, item)
                    last = item.last
                    yield item.batch
                    continue
                rows = slow()
                if rows is None:
                    return
                yield rows
                if run.position != item.end:
                    break  # what follows in the chunk is not what comes next
            if run.position == position and not self._room(run, chunk, stop):
                rows = slow()
                if rows is None:
                    return
                yield rows

    def _chunk(self, file: FileIO, size: int) -> Chunk:
        return Chunk(self.chunk_bytes)

    def _read(self, file: FileIO, chunk: Chunk, position: int, stop: int) -> None:
        file.seek(position)
        view = chunk.view()
        wanted = min(chunk.capacity, stop - position)
        chunk.size = 0
        while chunk.size < wanted:
            n = file.readinto(view[chunk.size : wanted])
            if not n:
                break
            chunk.size += n

    def _room(self, run: Run, chunk: Chunk, stop: int) -> bool:
        """Make room for a batch that is larger than the chunk, if all of it is there."""
        if chunk.size < chunk.capacity or chunk.size < framing.HEAD:
            return False
        try:
            head = bytes(chunk.view()[: framing.HEAD])
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
        if run.all_valid:
            run.valid = rows.end

    def _last_offset(self, run: Run, position: int) -> int:
        """The last offset of a batch that the kernels have read."""
        data = run.read(position, run.position - position)
        batch = construct_engine(data, position, run.name, self.policy, self.limits, False)
        return batch.last_offset

    def _believed(self, batch: Batch) -> Sequence[tuple[Batch, Record | None]]:
        """The records of a batch, unless it is damaged and damage is raised."""
        if not self.keep:
            for error in damage(batch):
                raise error
        return [(batch, record) for record in batch.records]

    def _rows(self, rows: Sequence[tuple[Batch, Record | None]]) -> pa.RecordBatch:
        arrays = []
        for f in self.decoded:
            value = self.values[f.name]
            arrays.append(pa.array([value(batch, record) for batch, record in rows], f.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.decoded)


class BatchScanner(Scanner):
    """One pass over the heads of the batches of a file: nothing is decompressed, and no checksum is verified.

    The file is mapped into memory, of which only the pages with heads are read. A file that becomes shorter meanwhile
    ends the process, as with every map: read files that others truncate by :class:`SegmentReader`.
    """

    view = BATCHES
    values = _BATCH_VALUES
    records = False

    def _chunk(self, file: FileIO, size: int) -> Chunk:
        chunk = Chunk(0)
        if size:
            self.mapped = np.frombuffer(mmap(file.fileno(), 0, access=ACCESS_READ), np.uint8)
        return chunk

    def _read(self, file: FileIO, chunk: Chunk, position: int, stop: int) -> None:
        chunk.array = self.mapped[position:stop]
        chunk.size = chunk.capacity = len(chunk.array)

    def _room(self, run: Run, chunk: Chunk, stop: int) -> bool:
        return False

    def _believed(self, batch: Batch) -> Sequence[tuple[Batch, Record | None]]:
        super()._believed(batch)
        return [(batch, None)]


def scan_batches(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    on_damage: Literal["raise", "keep"] | None = None,
    limits: Limits | None = None,
    engine: Engine = "auto",
) -> pa.RecordBatchReader:
    """The record batches and messages of a file, one row each, from their heads alone. See :class:`BatchScanner`."""
    return BatchScanner(
        path, columns, policy, on_damage=on_damage, limits=limits, engine=engine
    ).to_reader()


def scan(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    offsets: Range | None = None,
    timestamps: Range | None = None,
    on_damage: Literal["raise", "keep"] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
    limits: Limits | None = None,
    engine: Engine = "auto",
) -> pa.RecordBatchReader:
    """The records of a file of batches as a stream of Arrow record batches, in bounded memory.

    ``columns`` are those of the view records (None: all that need not be asked for); ``offsets`` and ``timestamps``
    (milliseconds) are ranges of which the first is in, the second not, and None is open. See :class:`Scanner`.
    """
    return Scanner(
        path,
        columns,
        policy,
        offsets=offsets,
        timestamps=timestamps,
        on_damage=on_damage,
        chunk_bytes=chunk_bytes,
        limits=limits,
        engine=engine,
    ).to_reader()


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    policy: Policy | str = Policy.KAFKA,
    *,
    offsets: Range | None = None,
    timestamps: Range | None = None,
    on_damage: Literal["raise", "keep"] | None = None,
    limits: Limits | None = None,
    engine: Engine = "auto",
) -> pa.Table:
    """Like :func:`scan`, all of it as a table."""
    return scan(
        path,
        columns,
        policy,
        offsets=offsets,
        timestamps=timestamps,
        on_damage=on_damage,
        limits=limits,
        engine=engine,
    ).read_all()


def _kernels(view: View, engine: Engine) -> ModuleType | None:
    """What reads runs of batches: the kernels, or readers that need no compiler. None: the reference codecs read all."""
    if engine == "construct":
        return None
    try:
        kernels = load_kernels(view)
        slow = engine == "auto" and not getattr(kernels, "JIT", True)  # kernels, but no compiler
        return load_vectors(view) if slow else kernels
    except ImportError:
        if engine == "arrow":
            raise
        return None
