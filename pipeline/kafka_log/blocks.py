"""Segments by the Arrow kernels, for those that want to know of batches: their heads, beside the columns of their records.

A :class:`Block` is a run of batches that the kernels read. What they do not take comes as a :class:`Batch` of the
reference codecs, in its place, so that a file is the same whoever reads it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import Chunk, Decoder, Odd, Rows, choose
from codecgen.runtime.checksums import checksum
from codecgen.runtime.construct import Bits, wrap
from codecgen.runtime.source import Limits
from kafka_codecs import RECORD_BATCH, Compression
from kafka_codecs.arrow.batches import BATCHES
from kafka_codecs.arrow.records import RECORDS
from kafka_codecs.records import record_batch as batch_module
from kafka_log import framing
from kafka_log.control import read_control
from kafka_log.model import Batch, End, Policy, Record
from kafka_log.scan import Engine, Scanner
from kafka_log.summary import Summary

SLACK = 64
STRETCH = 8192
"""Records that become Python objects at a time, at least: one batch of the file more at most."""

COLUMNS = ("offset", "timestamp", "sequence", "key", "value", "headers", "position", "base_offset")
"""What makes :class:`Record` objects."""

COUNTED = ("position", "base_offset")
"""What :meth:`Block.summary` needs."""

_LABELS = {int(codec): codec.label for codec in Compression}
_HEAD = (
    "position",
    "size",
    "magic",
    "last_offset",
    "crc",
    "base_timestamp",
    "codec",
    "timestamp_type",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "is_transactional",
    "is_control",
    "leader_epoch",
    "delete_horizon",
    "record_count",
)


@dataclass(frozen=True, slots=True)
class Block(Rows):
    """Some entries of one layout. ``batch`` has their records, or none where only heads were read; ``heads`` has a row
    of the view batches for each entry, and ``attributes`` are theirs as numbers."""

    heads: pa.RecordBatch
    attributes: Any

    def starts(self) -> Any:
        """The row at which the records of each entry begin, and behind the last one how many there are."""
        rows = numbers(self.batch, "position")
        return np.append(np.searchsorted(rows, numbers(self.heads, "position")), len(rows))

    def base_offsets(self) -> Any:
        """The first offset of each entry. That of a compressed message is that of the first record in it."""
        column = self.heads.column("base_offset")
        if not column.null_count:
            return numbers(self.heads, "base_offset")
        first = numbers(self.batch, "base_offset")[self.starts()[:-1]]
        return np.where(column.is_null(), first, column.fill_null(0))

    def summary(self) -> Summary:
        """What there is to count."""
        heads = self.heads
        counts = heads.column("record_count")
        times = numbers(heads, "max_timestamp")
        times = times[times >= 0]
        producers = numbers(heads, "producer_id")
        codecs = _counted(numbers(heads, "codec"))
        return Summary(
            "",
            batches=heads.num_rows,
            records=self.batch.num_rows
            if counts.null_count
            else int(numbers(heads, "record_count").sum()),
            control_batches=heads.column("is_control").true_count,
            transactional_batches=heads.column("is_transactional").true_count,
            empty_batches=0
            if counts.null_count
            else int((numbers(heads, "record_count") == 0).sum()),
            first_offset=int(self.base_offsets().min()),
            last_offset=int(numbers(heads, "last_offset").max()),
            first_timestamp=int(times.min()) if len(times) else None,
            last_timestamp=int(times.max()) if len(times) else None,
            magics=_counted(numbers(heads, "magic")),
            codecs=Counter({_LABELS[codec]: n for codec, n in codecs.items()}),
            producers=set(np.unique(producers[producers >= 0]).tolist()),
        )

    def batches(self, file: str) -> Iterator[Batch]:
        """The entries as the reference codecs give them."""
        starts = self.starts().tolist()
        columns = [_values(self.heads.column(name)) for name in _HEAD]
        heads = zip(*columns, self.attributes.tolist(), self.base_offsets().tolist(), strict=True)
        first = 0
        held: list[Record] = []
        for i, head in enumerate(heads):
            batch = _batch(*head)
            begin, end = starts[i], starts[i + 1]
            if end - first > len(held):
                first, held = begin, self._records(begin, max(end, begin + STRETCH))
            batch.records = held[begin - first : end - first]
            if batch.is_control:
                batch.records = [_with_control(r, file, batch.position) for r in batch.records]
            yield batch

    def _records(self, start: int, stop: int) -> list[Record]:
        rows = self.batch.slice(start, stop - start)
        names = ("offset", "timestamp", "sequence", "key", "value")
        columns = [_values(rows.column(name)) for name in names]
        headers = _headers(rows.column("headers"))
        none = [None] * rows.num_rows  # neither control records nor errors, so far
        parts = zip(*columns, headers, none, none, strict=True)
        return list(map(Record._make, parts))


def numbers(batch: pa.RecordBatch, name: str) -> Any:
    """A column of numbers without nulls, as numpy has it."""
    column = batch.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return column.to_numpy(zero_copy_only=False)


def _counted(found: Any) -> Counter[int]:
    values, counts = np.unique(found, return_counts=True)
    return Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def _values(column: Any) -> list[Any]:
    """A column as Python objects. Timestamps are numbers: some are more than a datetime can hold."""
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    if column.null_count and not pa.types.is_binary(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    return column.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]


def _headers(column: Any) -> Iterable[tuple[tuple[str, bytes | None], ...]]:
    offsets = column.offsets.to_numpy().tolist()
    first, last = offsets[0], offsets[-1]
    if first == last:
        return repeat((), len(column))
    inner = column.values.slice(first, last - first)
    pairs = list(zip(*(_values(inner.field(i)) for i in range(2)), strict=True))
    return [tuple(pairs[a - first : b - first]) for a, b in pairwise(offsets)]


def _with_control(record: Record, file: str, position: int) -> Record:
    control = read_control(record.key, record.value, strict=False, file=file, position=position)
    return record._replace(control=control)


def _batch(
    position: int,
    size: int,
    magic: int,
    last_offset: int,
    crc: int,
    base_timestamp: int | None,
    codec: int,
    timestamp_type: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
    is_control: bool,
    leader_epoch: int,
    delete_horizon: int | None,
    record_count: int | None,
    attributes: int,
    base_offset: int,
) -> Batch:
    """A batch without its records. It is one that a strict reader has nothing to say about."""
    last_sequence, next_offset = -1, last_offset + 1
    if record_count is not None:
        delta = wrap(last_offset - base_offset, 32)
        fields: Any = SimpleNamespace(
            base_offset=base_offset, base_sequence=base_sequence, last_offset_delta=delta
        )
        last_sequence = batch_module.last_sequence(fields)
        next_offset = batch_module.next_offset(fields)
    return Batch(
        position=position,
        size=size,
        magic=magic,
        base_offset=base_offset,
        last_offset=last_offset,
        next_offset=next_offset,
        crc=crc,
        is_valid=True,
        attributes=attributes,
        base_timestamp=base_timestamp,
        compression=_LABELS[codec],
        timestamp_type=timestamp_type,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        last_sequence=last_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        partition_leader_epoch=leader_epoch,
        delete_horizon=delete_horizon,
        count=record_count,
    )


# ---------------------------------------------------------------- decoding


class BlockDecoder(Decoder):
    """Gives :class:`Block` objects instead of rows."""

    def __init__(self, columns: Sequence[str], **options: Any) -> None:
        super().__init__(RECORDS, choose(RECORDS, columns), **options)
        names = [column.name for column in BATCHES.columns]
        self.heads = Decoder(BATCHES, choose(BATCHES, names), limits=self.limits)

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Odd]:
        for item in super().decode(chunk, position):
            if isinstance(item, Rows):
                yield from self._with_heads(item, chunk, position)
            else:
                yield item

    def _with_heads(self, rows: Rows, chunk: Chunk, position: int) -> Iterator[Rows | Odd]:
        part = _part(chunk, rows.start - position, rows.end - position)
        found = [item for item in self.heads.decode(part, rows.start) if isinstance(item, Rows)]
        if len(found) != 1 or found[0].entries != rows.entries:
            yield Odd(rows.start, None)
            return
        yield _block(rows, rows.batch, found[0].batch, chunk, position)


class HeadDecoder(BlockDecoder):
    """Leaves compressed records of batches as they are: heads and checksums will do. What else there is, the messages
    of the older formats too, is read in full: it costs less than to tell it apart."""

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Odd]:
        for item in self.heads.decode(chunk, position):
            if not isinstance(item, Rows):
                yield item
                continue
            block = _block(item, _NO_RECORDS, item.batch, chunk, position)
            for start, stop, light in _runs(self._are_light(block)):
                if light:
                    yield from self._checked(block, start, stop, chunk, position)
                    continue
                ends = numbers(block.heads, "position")
                first = int(ends[start])
                last = int(ends[stop]) if stop < len(ends) else block.end
                part = _part(chunk, first - position, last - position)
                yield from super().decode(part, first)

    def _are_light(self, block: Block) -> Any:
        """Which entries need no more than their checksum verified."""
        heads = block.heads
        if heads.column("record_count").null_count:
            return np.zeros(heads.num_rows, bool)
        counts, codecs = (numbers(heads, name) for name in ("record_count", "codec"))
        known = np.isin(codecs, list(_LABELS)) & (codecs != Compression.NONE)
        return (
            known
            & (counts > 0)
            & (counts <= self.limits.elements)
            & (block.attributes & _RESERVED == 0)
        )

    def _checked(
        self, block: Block, start: int, stop: int, chunk: Chunk, position: int
    ) -> Iterator[Rows | Odd]:
        """The entries from ``start`` to ``stop`` whose checksums are right, and those whose are not."""
        columns = (
            numbers(block.heads, name)[start:stop].tolist() for name in ("position", "size", "crc")
        )
        data = chunk.view()
        first = start
        for i, (at, size, crc) in enumerate(zip(*columns, strict=True), start):
            covered = data[at - position + _COVERED : at - position + size]
            if _checksum(covered) != crc:
                yield from _cut(block, first, i)
                yield Odd(at, at + size)
                first = i + 1
        yield from _cut(block, first, stop)


_NO_RECORDS = pa.RecordBatch.from_pydict({name: pa.array([], pa.int64()) for name in COUNTED})
_COVERED = RECORD_BATCH.offset_of("attributes")
_ATTRIBUTES = RECORD_BATCH.by_name["attributes"].codec
assert isinstance(_ATTRIBUTES, Bits)
_RESERVED = sum(bit.mask << bit.low for bit in _ATTRIBUTES.bits if bit.reserved)
_checksum = checksum("crc32c")


def _block(
    rows: Rows, records: pa.RecordBatch, heads: pa.RecordBatch, chunk: Chunk, position: int
) -> Block:
    layout = framing.layout_of(heads.column("magic")[0].as_py())
    at = numbers(heads, "position") - position + layout.offset_of("attributes")
    attributes = np.zeros(len(at), np.int64)
    for i in range(layout.size_of("attributes")):
        attributes = attributes << 8 | chunk.array[at + i]
    return Block(records, rows.start, rows.last, rows.end, rows.entries, heads, attributes)


def _cut(block: Block, start: int, stop: int) -> Iterator[Block]:
    if stop == start:
        return
    heads = block.heads.slice(start, stop - start)
    at = numbers(heads, "position")
    end = int(at[-1] + numbers(heads, "size")[-1])
    attributes = block.attributes[start:stop]
    yield Block(block.batch, int(at[0]), int(at[-1]), end, stop - start, heads, attributes)


def _runs(flags: Any) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, flag) of the runs of equal flags."""
    cuts = [0, *(np.flatnonzero(np.diff(flags)) + 1).tolist(), len(flags)]
    for start, stop in pairwise(cuts):
        yield start, stop, bool(flags[start])


def _part(chunk: Chunk, start: int, stop: int) -> Chunk:
    """A part of a chunk, with what follows it as slack."""
    part = Chunk(0)
    part.array = chunk.array[start : stop + SLACK]
    part.size = part.capacity = stop - start
    return part


# ---------------------------------------------------------------- reading


class BlockScanner(Scanner):
    """One pass over a file. ``items`` gives :class:`Block` objects, and batches by the reference codecs."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str],
        policy: Policy | str = Policy.KAFKA,
        *,
        records: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(path, columns, policy, **options)
        self.reader.records = records

    def items(self) -> Generator[Block | Batch, None, None]:
        with closing(super().items()) as items:
            for item in items:
                assert isinstance(item, Block | Batch)
                yield item

    def _decoder(self) -> Decoder:
        kind: type[BlockDecoder] = BlockDecoder if self.reader.records else HeadDecoder
        return kind(
            [column.name for column in self.columns],
            limits=self.limits,
            careful=self.policy is Policy.STRICT,
            kernels=self.kernels,
        )


class BlockReader:
    """Reads one file of batches like :class:`~kafka_log.reader.SegmentReader`, with the kernels."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        policy: Policy | str = Policy.KAFKA,
        limits: Limits | None = None,
        engine: Engine = "auto",
        records: bool = True,
    ) -> None:
        options: dict[str, Any] = {"limits": limits, "engine": engine, "records": records}
        self.policy = policy
        self.options = options
        self.path = Path(path)
        self.end: End | None = None

    def __iter__(self) -> Iterator[Batch]:
        for item in self._items(COLUMNS):
            if isinstance(item, Block):
                yield from item.batches(os.fspath(self.path))
            else:
                yield item

    def parts(self) -> Iterator[Batch | Block]:
        """The same for those that count only: blocks know their sums."""
        return self._items(COUNTED)

    def _items(self, columns: Sequence[str]) -> Iterator[Batch | Block]:
        scanner = BlockScanner(self.path, columns, self.policy, **self.options)
        try:
            yield from scanner.items()
        finally:
            self.end = scanner.end
