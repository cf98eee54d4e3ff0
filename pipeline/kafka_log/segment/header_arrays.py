"""Batch headers of a file as arrays, from whatever has read them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.segment.blocks import Block
from kafka_log.segment.model import Batch


@dataclass(frozen=True, slots=True)
class Headers:
    """Columns of the headers of batches that are whole, as arrays, in the order of the file.

    ``first`` is the base offset, or the first offset in a compressed message of the older formats. ``count`` is -1 where
    the header does not say it. Timestamps are in milliseconds, -1 for none.
    """

    position: Any
    size: Any
    magic: Any
    codec: Any
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


def row_of(batch: Batch) -> tuple[Any, ...]:
    """The header of one batch, for :func:`of_rows`."""
    first = batch.last_offset if batch.base_offset is None else batch.base_offset
    count = -1 if batch.record_count is None else batch.record_count
    return (
        batch.position,
        batch.size,
        batch.magic,
        batch.codec,
        first,
        batch.last_offset,
        batch.max_timestamp,
        batch.producer_id,
        batch.leader_epoch,
        batch.is_transactional,
        batch.is_control,
        count,
    )


_BOOLS = ("is_transactional", "is_control")
_NAMES = tuple(field.name for field in fields(Headers))


def of_rows(rows: list[tuple[Any, ...]]) -> Headers:
    """Headers of single batches."""
    columns = list(zip(*rows, strict=True)) or [()] * len(_NAMES)
    kinds = [np.bool_ if name in _BOOLS else np.int64 for name in _NAMES]
    return Headers(*(np.array(c, kind) for c, kind in zip(columns, kinds, strict=True)))


def of_block(block: Block) -> Headers:
    """Those of a block."""
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


def joined(parts: list[Headers]) -> Headers:
    """Several, one after the other."""
    return Headers(*(np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES))
