"""Batch headers of a file as arrays, from whatever has read them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from kafka_log.segment.blocks import Block
from kafka_log.segment.header_columns import Wanted
from kafka_log.segment.model import Batch


@dataclass(frozen=True, slots=True)
class Headers:
    """Columns of the headers of batches that are whole, as arrays, in the order of the file.

    ``first`` is the base offset, or the first offset in a compressed message of the older formats. ``count`` is -1 where
    the header does not say it. ``offset_bound`` is ``last``, or :data:`~kafka_log.segment.header_columns.UNBOUNDED` where the header
    contradicts itself. Timestamps are in milliseconds, -1 for none.
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
    offset_bound: Any

    def __len__(self) -> int:
        return len(self.position)

    def take(self, rows: Any) -> Headers:
        """Return the headers in some rows."""
        return Headers(*(getattr(self, name)[rows] for name in _NAMES))


_NAMES = tuple(field.name for field in fields(Headers))
WANTED = Wanted(_NAMES)


def row_of(batch: Batch) -> tuple[Any, ...]:
    """Return the header of one batch as a row for :func:`of_rows`."""
    return WANTED.row(batch)


def of_rows(rows: list[tuple[Any, ...]]) -> Headers:
    """Headers of single batches."""
    return Headers(**WANTED.of_rows(rows))


def of_block(block: Block) -> Headers:
    """Return the headers of a block."""
    return Headers(**WANTED.of_block(block))


def joined(parts: list[Headers]) -> Headers:
    """Several, one after the other."""
    return Headers(*(np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES))
