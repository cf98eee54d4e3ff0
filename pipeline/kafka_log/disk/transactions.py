"""Transactions of one partition, from its batches: what a consumer that reads committed records leaves out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from codecgen.runtime.errors import CodecError
from kafka_codecs import PRODUCER_SNAPSHOT, ControlRecordType
from kafka_log.disk.directory import Segment
from kafka_log.segment.batch_headers import headers
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.reader import SegmentReader

SNAPSHOT_BYTES = 64 << 20
"""The largest producer snapshot that is read: more than a million producers."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that was aborted. ``last_offset`` is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class Transactions:
    """Aborted transactions, in the order of their markers, and the first offset of one that has not ended.

    From ``last_stable_offset`` on a consumer that reads committed records gets nothing; None when all have ended. ``begun`` has
    the first offsets of those that have not, by their producers.
    """

    aborted: tuple[Transaction, ...]
    last_stable_offset: int | None
    begun: tuple[tuple[int, int], ...] = ()


class _Header(NamedTuple):
    """Columns of the view batches."""

    position: int
    base_offset: int
    producer_id: int
    is_control: bool


def transactions(segments: Iterable[Segment], *, damage_raises: bool = True) -> Transactions:
    """The transactions in the segments of one partition, which are given in the order of offsets.

    Only headers and markers are read, and the producer snapshot beside the first segment, which knows the transactions that
    began before it. Bytes that are no batch are an error, or (``damage_raises`` False) the end
    of their segment: then a transaction whose marker lies after counts as not ended.
    """
    segments = list(segments)
    aborted: list[Transaction] = []
    begun = _open_before(segments[0]) if segments else {}
    for segment in segments:
        try:
            for header in _transactional(segment):
                if not header.is_control:
                    begun.setdefault(header.producer_id, header.base_offset)
                    continue
                kind = _marker(segment, header)
                if kind is None:
                    continue
                first = begun.pop(header.producer_id, None)
                if kind is ControlRecordType.ABORT and first is not None:
                    aborted.append(Transaction(header.producer_id, first, header.base_offset))
        except CodecError:
            if damage_raises:
                raise
    stable = min(begun.values(), default=None)
    return Transactions(tuple(aborted), stable, tuple(sorted(begun.items())))


def _open_before(segment: Segment) -> dict[int, int]:
    """The first offsets of the transactions that are open where a log begins, by their producers.

    A snapshot that is missing, or is not what it should be, knows of none: brokers pass over it too.
    """
    path = segment.path.with_suffix(".snapshot")
    if not segment.is_named or segment.base_offset == 0:
        return {}
    try:
        with path.open("rb") as file:
            data = file.read(SNAPSHOT_BYTES + 1)
        if len(data) > SNAPSHOT_BYTES:
            return {}
        entries = PRODUCER_SNAPSHOT.parse(data, file=os.fspath(path)).entries
    except (OSError, CodecError):
        return {}
    firsts = ((e.producer_id, e.current_txn_first_offset) for e in entries)
    return {producer: first for producer, first in firsts if 0 <= first < segment.base_offset}


def _marker(segment: Segment, header: _Header) -> ControlRecordType | None:
    """What a control batch says about a transaction."""
    first = header.position
    reader = SegmentReader(segment.path, start=first, stop=first + 1, size=segment.size)
    for batch in reader:
        for record in batch.records:
            if record.control is None or record.control.type_id is None:
                continue
            for kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
                if record.control.type_id == kind:
                    return kind
    error = None if reader.end is None else reader.end.error
    if isinstance(error, UnreadableError):
        raise error
    return None


def _transactional(segment: Segment) -> Iterator[_Header]:
    """The headers of all batches that are part of a transaction."""
    wanted = (*_Header._fields, "is_transactional")
    for *values, is_transactional in headers(segment.path, wanted, segment.tail):
        if is_transactional:
            yield _Header(*values)
