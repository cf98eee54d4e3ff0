"""Transactions of one partition, from its batches: what a consumer that reads committed records leaves out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from codecgen.runtime.errors import CodecError, TruncatedError, Where
from codecgen.runtime.source import Session, Source
from kafka_codecs import RECORD_BATCH, ControlRecordType
from kafka_log import Segment, SegmentReader, framing


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that was aborted. ``last_offset`` is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class Transactions:
    """Aborted transactions, in the order of their markers, and the first offset of one that has not ended.

    From ``last_stable_offset`` on a consumer that reads committed records gets nothing; None when all have ended.
    """

    aborted: tuple[Transaction, ...]
    last_stable_offset: int | None


@dataclass(frozen=True, slots=True)
class _Header:
    position: int
    base_offset: int
    producer_id: int
    is_control: bool


def transactions(segments: Iterable[Segment], *, damage_raises: bool = True) -> Transactions:
    """The transactions in the segments of one partition, which are given in the order of offsets.

    Only headers and markers are read. Bytes that are no batch are an error, or (``damage_raises`` False) the end
    of their segment: then a transaction whose marker lies behind counts as not ended.
    """
    aborted: list[Transaction] = []
    begun: dict[int, int] = {}
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
    return Transactions(tuple(aborted), min(begun.values(), default=None))


def _marker(segment: Segment, header: _Header) -> ControlRecordType | None:
    """What a control batch says about a transaction."""
    reader = SegmentReader(segment.path, start=header.position, stop=header.position + 1)
    for batch in reader:
        for record in batch.records:
            if record.control is None or record.control.type_id is None:
                continue
            for kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
                if record.control.type_id == kind:
                    return kind
    return None


_FIELDS = ("base_offset", "attributes", "producer_id")
_HEAD = max(RECORD_BATCH.offset_of(name) + RECORD_BATCH.size_of(name) for name in _FIELDS)


def _transactional(segment: Segment) -> Iterator[_Header]:
    """The headers of all batches that are part of a transaction."""
    name = os.fspath(segment.path)
    with segment.path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        position = 0
        while position + framing.HEAD < size:
            file.seek(position)
            head = file.read(_HEAD)
            magic, length = framing.peek(head, position, name)
            if length > size - position:
                return  # not whole yet
            if magic >= framing.NEWEST:
                if len(head) < _HEAD:
                    where = Where(position=position, file=name)
                    raise TruncatedError("the head of a batch is cut off", where)
                base_offset, attributes, producer_id = (_field(f, head) for f in _FIELDS)
                if attributes.is_transactional:
                    yield _Header(position, base_offset, producer_id, attributes.is_control)
            position += length


def _field(name: str, head: bytes) -> Any:
    at = RECORD_BATCH.offset_of(name)
    return RECORD_BATCH.by_name[name].codec.read(Source(head, Session(strict=False), pos=at), None)
