"""Runs of batches that the Arrow kernels read: their heads, beside the columns of their records.

What a block says of batches and records is what the reference codecs say of them; the kernels take only what a strict
reader finds nothing to say about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, repeat
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import Rows
from codecgen.runtime.construct import wrap
from kafka_codecs import Compression
from kafka_codecs.records import record_batch as batch_module
from kafka_log.control import read_control
from kafka_log.model import Batch, Record
from kafka_log.summary import Summary

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
            else int(numbers(heads, "record_count").sum(dtype=np.int64)),
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
