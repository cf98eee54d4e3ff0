"""Batch headers of a file as NumPy arrays, from blocks and from batches of the reference codecs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from kafka_log.segment.blocks import Block
from kafka_log.segment.header_columns import BatchColumns
from kafka_log.segment.model import Batch


@dataclass(frozen=True, slots=True)
class Headers:
    """Columns of the headers of complete batches as arrays of one length, in file order.

    ``first`` is the base offset, or for a compressed legacy message the offset of its first record. ``count`` is -1 if
    the header does not state it. ``offset_bound`` equals ``last``, or :data:`~kafka_log.segment.header_columns.UNBOUNDED` if the header
    contradicts itself. Timestamps are in milliseconds, -1 for none.
    """

    position: Any
    size: Any
    magic: Any
    codec: Any
    crc: Any
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
        """Return the headers of the rows that ``rows`` selects: a mask, an array of indexes or a slice."""
        return Headers(*(getattr(self, name)[rows] for name in _NAMES))


_NAMES = tuple(field.name for field in fields(Headers))
WANTED = BatchColumns(_NAMES)


def header_row(batch: Batch) -> tuple[Any, ...]:
    """Return the header of one batch as a tuple, a row for :func:`headers_from_rows`."""
    return WANTED.row(batch)


def headers_from_rows(rows: list[tuple[Any, ...]]) -> Headers:
    """Return the headers of single batches, from rows made by :func:`header_row`, in their order;
    empty arrays for no rows.
    """
    return Headers(**WANTED.from_rows(rows))


def headers_from_block(block: Block) -> Headers:
    """Return the headers of a block."""
    return Headers(**WANTED.from_block(block))


def concatenate_headers(parts: list[Headers]) -> Headers:
    """Return the concatenation of several Headers, in the given order. Raise ValueError for none."""
    return Headers(*(np.concatenate([getattr(part, name) for part in parts]) for name in _NAMES))
