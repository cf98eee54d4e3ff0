"""Comparison of aborted transactions, as transaction indexes state them, with the batches of a file while it is read."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codecgen.runtime.arrow.decoder import (
    Chunk,
    Decoder,
    Rejected,
    Rows,
    choose,
    load_kernels,
    load_numpy_reader,
)
from codecgen.runtime.errors import ValueRefused, Where
from codecgen.runtime.located_bytes import Limits
from kafka_codecs import ControlRecordType
from kafka_log.segment.cursor import Source
from kafka_log.segment.framing import layout_of
from kafka_log.segment.kernels import load_view
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import damage
from kafka_log.segment.reference import construct_engine
from kafka_log.segment.row_masks import AbortedSpans, numbers, numbers_of
from kafka_log.segment.row_selection import Aborted

_COLUMNS = (
    "position",
    "size",
    "magic",
    "base_offset",
    "offset_bound",
    "producer_id",
    "is_transactional",
    "is_control",
)
"""Columns of the view batches that are compared."""

MAX_KNOWN_BODIES = 4096
"""Maximum number of remembered control batches. Markers of one kind differ only in the coordinator epoch."""


class _Edge(NamedTuple):
    """The first offset of an aborted transaction, or the offset of its marker (``is_end``)."""

    offset: int
    producer_id: int
    is_end: bool


class TransactionVerifier:
    """Compares the aborted transactions of a file with its batches.

    A transaction begins with a transactional batch of its producer at its first offset, and ends with the abort marker of this
    producer at its last offset, its only marker. Offsets that no batch has prove nothing: compaction may have removed the batch.

    Args:
        aborted: Aborted transactions that may have records in the file. Those that end at MAX_OFFSET are open, and not compared:
            a growing file may have their marker by now.
        path: The file, for errors.
    """

    def __init__(self, aborted: Aborted, path: Path) -> None:
        self._file = os.fspath(path)
        ended = [
            (producer, first, last)
            for producer, ranges in aborted.by_producer.items()
            for first, last in ranges
            if last < MAX_OFFSET
        ]
        self._aborted = Aborted(ended)
        self._spans = AbortedSpans(self._aborted)
        self._edges = sorted(
            _Edge(offset, producer, is_end)
            for producer, first, last in ended
            for offset, is_end in ((first, False), (last, True))
        )
        self._offsets = np.array([edge.offset for edge in self._edges], np.int64)
        self._abort_bodies: set[tuple[int, bytes]] = set()

    def verify_batch(self, batch: Batch) -> None:
        """Raise ValueRefused if a batch contradicts an aborted transaction. Do nothing for a
        damaged batch, whose error its reader raises, and for one without base offset.
        """
        base = batch.base_offset
        if base is None or damage(batch):
            return
        first = bisect_left(self._edges, base, key=lambda edge: edge.offset)
        after = bisect_right(self._edges, batch.last_offset, key=lambda edge: edge.offset)
        edges = self._edges[first:after]
        is_end = False
        for edge in edges:
            fits = edge.offset == base and edge.producer_id == batch.producer_id
            if edge.is_end:
                is_end = fits and batch.is_control and _may_abort(batch)
                fits = is_end
            else:
                fits = fits and batch.is_transactional and not batch.is_control
            if not fits:
                what = "the abort marker" if edge.is_end else "the first batch"
                self._refuse(batch, edge, f"is not {what} of this transaction")
        if batch.is_control and not is_end and self._aborted.has(batch.producer_id, base):
            edge = _Edge(base, batch.producer_id, True)
            self._refuse(batch, edge, "is a marker of this producer, which ends a transaction")

    def verify_chunk(self, headers: Any, chunk: Chunk, position: int) -> None:
        """Raise ValueRefused if one of the batches with the columns ``headers`` in ``chunk``, which
        begins at byte ``position``, contradicts an aborted transaction. Only batches at the first
        or last offset of a transaction, and markers within one, are looked at.
        """
        bases, bounds = headers.column("base_offset"), headers.column("offset_bound")
        is_known = numbers_of(bases.is_valid()) & numbers_of(bounds.is_valid())
        first, last = (numbers_of(column.fill_null(0)) for column in (bases, bounds))
        producers, is_control = numbers(headers, "producer_id"), numbers(headers, "is_control")
        is_transactional = numbers(headers, "is_transactional")
        begin = np.searchsorted(self._offsets, first)
        count = np.searchsorted(self._offsets, last, side="right") - begin
        is_inside = is_control & self._spans.mask(producers, first)
        starts, sizes = numbers(headers, "position"), numbers(headers, "size")
        magics = numbers(headers, "magic")
        for i in np.flatnonzero(is_known & ((count > 0) | is_inside)).tolist():
            edge = self._edges[begin[i]] if count[i] == 1 else None
            fits = (
                edge is not None
                and edge[:2] == (first[i], producers[i])
                and edge.is_end == is_control[i]
            )
            if fits and not is_control[i] and is_transactional[i]:
                continue
            start, size, magic = int(starts[i]), int(sizes[i]), int(magics[i])
            data = bytes(chunk.view()[start - position : start - position + size])
            body = magic, data[layout_of(magic).leading_size :]
            if fits and body in self._abort_bodies:
                continue
            batch = construct_engine(
                data, start, self._file, Policy.KAFKA, Limits(), bool(is_control[i])
            )
            self.verify_batch(batch)
            if fits and batch.is_valid and len(self._abort_bodies) < MAX_KNOWN_BODIES:
                self._abort_bodies.add(body)

    def _refuse(self, batch: Batch, edge: _Edge, why: str) -> None:
        """Raise ValueRefused, which says why a batch contradicts the transaction with an edge."""
        ranges = self._aborted.by_producer[edge.producer_id]
        first, last = next(one for one in ranges if one[0] <= edge.offset <= one[1])
        raise ValueRefused(
            f"the transaction index says that producer {edge.producer_id} aborted a transaction with the offsets {first} to {last}, but"
            f" the batch at offset {batch.base_offset} {why}: the index is damaged or belongs to another log. kafka-log reindex writes"
            " a correct one; the policy salvage reads the batches instead",
            Where(file=self._file, position=batch.position),
        )


class VerifyingSource:
    """Decoder that compares the batches of each chunk with aborted transactions before it decodes them."""

    def __init__(self, source: Source, decoder: Decoder, verifier: TransactionVerifier) -> None:
        """Make a decoder of headers with the limits and kernels of ``decoder``; ``source`` decodes
        the rows.
        """
        self._source = source
        self._verifier = verifier
        load = load_kernels if decoder.numpy is None else load_numpy_reader
        view = load_view("batches")
        self._headers = Decoder(
            view, choose(view, _COLUMNS), limits=decoder.limits, kernels=load(view)
        )

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]:
        """Yield the rows and rejected entries of a chunk, which begins at byte ``position`` of the
        file. Raise ValueRefused before the first one if a batch of the chunk contradicts an aborted
        transaction; rejected entries are not compared.
        """
        for item in self._headers.decode(chunk, position):
            if isinstance(item, Rows):
                self._verifier.verify_chunk(item.batch, chunk, position)
        yield from self._source.decode(chunk, position)


def _may_abort(control: Batch) -> bool:
    """Return whether a control batch is an abort marker, or has no records that tell: compaction
    empties markers, and keeps their batch.
    """
    return not control.records or any(
        record.control is not None and record.control.type_id == ControlRecordType.ABORT
        for record in control.records
    )
