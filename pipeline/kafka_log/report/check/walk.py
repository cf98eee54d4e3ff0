"""One pass over a segment: the headers of its batches, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.disk.directory import Segment
from kafka_log.report.check.placement import in_order, outside
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.kernels import (
    KERNEL_MIN_BYTES,
    KERNEL_MIN_BYTES_OF_HEADERS,
    Engine,
    use_kernels,
)
from kafka_log.segment.model import Batch, Lost, Policy, Problem
from kafka_log.segment.reader import SegmentReader

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Headers:
    """Columns of the headers of batches that are whole, as arrays, in the order of the file.

    ``first`` is the base offset, or the first offset in a compressed message of the older formats. ``count`` is -1 where
    the header does not say it. Timestamps are in milliseconds, -1 for none.
    """

    position: Any
    size: Any
    magic: Any
    first: Any
    last: Any
    max_timestamp: Any
    producer_id: Any
    leader_epoch: Any
    is_transactional: Any
    is_control: Any
    count: Any

    def __len__(self) -> int:
        return len(self.position)

    def those(self, rows: Any) -> Headers:
        """Some of them."""
        return Headers(*(getattr(self, name)[rows] for name in _NAMES))


@dataclass(frozen=True, slots=True)
class Refused:
    """A batch whose checksum is right, but whose records cannot all be read. ``read`` is how many can."""

    position: int
    first: int
    last: int
    count: int | None
    read: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class Walked:
    """A segment that was read. ``lost`` are runs of bytes that are no whole batches; ``size`` is in bytes.

    ``next_base`` is what the name of the next segment says, None for the active one. For each batch ``outside`` says whether its
    offsets belong to another segment, ``placed`` whether it lies where it belongs.
    """

    segment: Segment
    size: int
    headers: Headers
    lost: tuple[Lost, ...]
    refused: tuple[Refused, ...]
    next_base: int | None
    outside: Any
    placed: Any

    @property
    def is_active(self) -> bool:
        """Whether it is the last segment, to which a broker appends."""
        return self.next_base is None


@dataclass(frozen=True, slots=True)
class Reading:
    """How segments are read. With ``deep`` records are read too, not checksums only; ``advance`` is told of bytes that are
    done."""

    deep: bool
    engine: Engine
    fast: bool
    advance: Advance

    @staticmethod
    def of(size: int, deep: bool, engine: Engine, advance: Advance) -> Reading:
        """For so many bytes in all."""
        least = KERNEL_MIN_BYTES if deep else KERNEL_MIN_BYTES_OF_HEADERS
        return Reading(deep, engine, use_kernels(size, engine, least), advance)

    def reader(self, path: Path) -> SegmentReader | BlockReader:
        """What reads a segment, and goes on after damage."""
        if self.fast:
            return BlockReader(
                path,
                policy=Policy.SALVAGE,
                engine=self.engine,
                records=self.deep,
                rescue=False,
            )
        return SegmentReader(path, policy=Policy.SALVAGE, records=self.deep, rescue=False)


def walk(segment: Segment, next_base: int | None, reading: Reading) -> Walked:
    """Read a segment. Raises OSError."""
    parts: list[Headers] = []
    single: list[tuple[Any, ...]] = []
    refused: list[Refused] = []
    reader = reading.reader(segment.path)
    items: Iterable[Batch | Block] = reader.parts() if isinstance(reader, BlockReader) else reader
    done = 0
    for item in items:
        if single and (isinstance(item, Block) or len(single) >= _ROWS):
            parts.append(_of_rows(single))
            single = []
        if isinstance(item, Block):
            parts.append(_of_block(item))
            end = item.end
        else:
            single.append(_row(item))
            refused += _refused(item)
            end = item.position + item.size
        if end - done >= _STEP:
            reading.advance(end - done)
            done = end
    reading.advance(segment.size - done)
    parts.append(_of_rows(single))
    bad = {batch.position for batch in refused}
    lost = () if reader.end is None else reader.end.lost
    end_of_file = max([segment.size, *(run.end for run in lost)])  # a broker may be writing to it
    runs = tuple(run for run in lost if run.start not in bad)
    headers = _joined(parts)
    base = segment.base_offset if segment.is_named else None
    out = outside(headers.first, headers.last, base, next_base)
    placed = in_order(headers.first, headers.last, out)
    return Walked(segment, end_of_file, headers, runs, tuple(refused), next_base, out, placed)


_ROWS = 4096
"""Headers that are kept as tuples at most."""

_STEP = 1 << 20
"""Bytes from one word about the progress to the next."""


def _row(batch: Batch) -> tuple[Any, ...]:
    first = batch.last_offset if batch.base_offset is None else batch.base_offset
    count = -1 if batch.record_count is None else batch.record_count
    return (
        batch.position,
        batch.size,
        batch.magic,
        first,
        batch.last_offset,
        batch.max_timestamp,
        batch.producer_id,
        batch.leader_epoch,
        batch.is_transactional,
        batch.is_control,
        count,
    )


def _refused(batch: Batch) -> list[Refused]:
    problems = list(batch.problems)
    problems += [Problem("crc", r.crc_error) for r in batch.records if r.crc_error is not None][:1]
    if not problems:
        return []
    first = batch.last_offset if batch.base_offset is None else batch.base_offset
    read = sum(record.crc_error is None for record in batch.records)
    return [
        Refused(batch.position, first, batch.last_offset, batch.record_count, read, problems[-1])
    ]


_BOOLS = ("is_transactional", "is_control")
_NAMES = tuple(field.name for field in fields(Headers))


def _of_rows(rows: list[tuple[Any, ...]]) -> Headers:
    columns = list(zip(*rows, strict=True)) or [()] * len(_NAMES)
    kinds = [np.bool_ if name in _BOOLS else np.int64 for name in _NAMES]
    return Headers(*(np.array(c, kind) for c, kind in zip(columns, kinds, strict=True)))


def _of_block(block: Block) -> Headers:
    columns = {
        name: _numbers(block.batch_headers.column(name)) for name in _NAMES if name in _IN_VIEW
    }
    return Headers(
        first=block.base_offsets().astype(np.int64),
        last=_numbers(block.batch_headers.column("last_offset")),
        count=_numbers(block.batch_headers.column("record_count").fill_null(-1)),
        **columns,
    )


_IN_VIEW = frozenset(_NAMES) - {"first", "last", "count"}


def _numbers(column: Any) -> Any:
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    found = column.to_numpy(zero_copy_only=False)
    return found if found.dtype == np.bool_ else found.astype(np.int64)


def _joined(parts: list[Headers]) -> Headers:
    return Headers(*(np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES))
