"""Comparison of aborted transactions, as transaction indexes state them, with the batches of a file while it is read."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

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
from kafka_log.segment.batch_headers import entries
from kafka_log.segment.cursor import Source
from kafka_log.segment.framing import HeaderColumns, layout_of
from kafka_log.segment.kernels import load_view
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.offset_order import OffsetOrder
from kafka_log.segment.offsets_of_files import is_copy, offsets_of
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.reader import SegmentReader, damage
from kafka_log.segment.reference import construct_engine
from kafka_log.segment.row_masks import AbortedSpans, numbers, numbers_of
from kafka_log.segment.row_selection import Aborted
from kafka_log.segment.urls import is_url

_COLUMNS = (
    "position",
    "size",
    "magic",
    "base_offset",
    "last_offset",
    "offset_bound",
    "producer_id",
    "is_transactional",
    "is_control",
)
"""Columns of the view batches that are compared."""

_MARKER_COLUMNS = ("base_offset", "producer_id", "is_transactional", "is_control")

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

    A missing index says that none of its markers aborts records. An abort marker after transactional batches of its producer contradicts it.
    Only a reader that meets the batches can tell, so it reads on to their marker: a marker alone may end a transaction without records.

    Args:
        aborted: Aborted transactions that may have records in the file. Those that end at MAX_OFFSET are open, and not compared:
            a growing file may have their marker by now.
        path: The file.
    """

    def __init__(self, aborted: Aborted, path: Path) -> None:
        self._path = path
        self._file = os.fspath(path)
        self._all = aborted
        self._unindexed = aborted.unindexed
        self._unindexed_end = aborted.unindexed[-1][1] if aborted.unindexed else 0
        self._open: dict[
            int, int
        ] = {}  # first met offset of a transaction without marker, by producer
        self._verified_ends: dict[int, int] = {}  # up to which offset it is verified, by producer
        self._met = -1  # position after the last batch that was met
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
        self._kinds: dict[tuple[int, bytes], bool] = {}

    def verify_batch(self, batch: Batch) -> None:
        """Raise ValueRefused if a batch contradicts an aborted transaction. Do nothing for a
        damaged batch, whose error its reader raises, and for one without base offset.
        """
        base = batch.base_offset
        if base is None or damage(batch):
            return
        if batch.position >= self._met:
            self._met = batch.position + batch.size
            if batch.is_transactional and base < self._unindexed_end:
                if batch.is_control:
                    self._end_transaction(batch, self._file)
                else:
                    self._open.setdefault(batch.producer_id, base)
        self._compare(batch, base)

    def _compare(self, batch: Batch, base: int) -> None:
        """Raise ValueRefused if a batch with the offset ``base`` contradicts an aborted transaction."""
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
        or last offset of a transaction, and markers within one or in unindexed offsets, are looked
        at.
        """
        if self._unindexed:
            self._track_chunk(headers, chunk, position)
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

    def verify_open(self, high: int | None) -> None:
        """Read headers after the last batch that was met, up to the markers of transactions that
        are open there and have offsets below ``high`` (None: any), also in later segments. Call it
        before rows are given out. Raise ValueRefused if a marker contradicts a missing index;
        CodecError for damage, or a file that cannot be read; OSError if the directory cannot be
        listed.
        """
        self._open = {
            producer: first
            for producer, first in self._open.items()
            if (high is None or first < high)
            and first >= self._verified_ends.get(producer, 0)
            and not self._all.has(producer, first)
        }
        if not self._open:
            return
        for path, start in self._files_from_end():
            columns = HeaderColumns(_MARKER_COLUMNS, os.fspath(path))
            for entry in entries(path, start=start):
                base, producer, is_transactional, is_control = columns.read(entry)
                if base is not None and base >= self._unindexed_end:
                    break  # planning has read what follows
                if is_transactional and is_control and producer in self._open:
                    at = entry.position
                    for batch in SegmentReader(path, start=at, stop=at + entry.frame.size):
                        self._end_transaction(batch, os.fspath(path))
                    self._verified_ends[producer] = base
                if not self._open:
                    return
            else:
                continue
            break
        self._verified_ends |= dict.fromkeys(self._open, self._unindexed_end)

    def _files_from_end(self) -> Iterator[tuple[Path, int]]:
        """Yield the file with the position after the last batch that was met, then the files of
        later segments with 0. Iterating raises OSError if the directory cannot be listed.
        """
        path = self._path
        if is_url(path):
            from kafka_log.segment.buffered_files import BufferedBlocks, BufferedPath  # fsspec

            path = cast(Path, BufferedPath(cast(Any, path), BufferedBlocks()))
        yield path, self._met
        for following in sorted(path.parent.iterdir()):
            if following.suffix != ".log" or is_copy(following):
                continue
            if offsets_of(following) is not None and following.name > path.name:
                yield following, 0

    def _track_chunk(self, headers: Any, chunk: Chunk, position: int) -> None:
        """Note which transactions are open after the batches of a chunk, as :meth:`verify_chunk`
        gets it. Raise ValueRefused if a marker contradicts a missing index. Batches that were met
        before are ignored.
        """
        starts, sizes = numbers(headers, "position"), numbers(headers, "size")
        first = numbers_of(headers.column("base_offset").fill_null(self._unindexed_end))
        producers, is_control = numbers(headers, "producer_id"), numbers(headers, "is_control")
        is_new = numbers(headers, "is_transactional") & (starts >= self._met)
        rows = np.flatnonzero(is_new & (first < self._unindexed_end))
        if len(starts):
            self._met = max(self._met, int(starts[-1] + sizes[-1]))
        order = rows[np.argsort(producers[rows], kind="stable")]
        is_marker = is_control[order]
        is_same = producers[order][1:] == producers[order][:-1]
        # Only the first of several batches of a transaction, and the first of several markers, changes what is open.
        is_change = np.ones(len(order), bool)
        is_change[1:] = ~is_same | (is_marker[1:] != is_marker[:-1])
        magics = numbers(headers, "magic")
        for i in order[is_change].tolist():
            producer, base = int(producers[i]), int(first[i])
            if not is_control[i]:
                self._open.setdefault(producer, base)
                continue
            if producer not in self._open:
                continue
            start, size, magic = int(starts[i]), int(sizes[i]), int(magics[i])
            data = bytes(chunk.view()[start - position : start - position + size])
            body = magic, data[layout_of(magic).leading_size :]
            if self._kinds.get(body) is False or not self._is_unindexed(base):
                del self._open[producer]
                continue
            batch = construct_engine(data, start, self._file, Policy.KAFKA, Limits(), True)
            self._end_transaction(batch, self._file)
            if batch.is_valid and len(self._kinds) < MAX_KNOWN_BODIES:
                self._kinds[body] = _is_abort(batch)

    def _end_transaction(self, control: Batch, file: str) -> None:
        """Note the end of a transaction. Raise ValueRefused if a missing index says that a control
        batch of ``file``, which aborts a transaction whose records were met, is not there.
        """
        first, base = self._open.pop(control.producer_id, None), control.base_offset
        if first is None or base is None or damage(control) or not _is_abort(control):
            return
        if not self._is_unindexed(base):
            return
        raise ValueRefused(
            f"the segment has no transaction index, as if nothing had been aborted, but the batch at offset {base} aborts the transaction of"
            f" producer {control.producer_id} with records at offset {first}: a copy lacks the file. Copy the .txnindex files too, or read"
            " uncommitted records; the policy salvage reads the batches instead",
            Where(file=file, position=control.position),
        )

    def _is_unindexed(self, offset: int) -> bool:
        """Return whether a missing index says that no marker at an offset aborts records."""
        i = bisect_right(self._unindexed, offset, key=lambda one: one[0]) - 1
        return i >= 0 and offset < self._unindexed[i][1]

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
    """Decoder that compares the batches of each chunk with aborted transactions, and their offsets, before it decodes them."""

    def __init__(
        self,
        source: Source,
        decoder: Decoder,
        verifier: TransactionVerifier | None,
        order: OffsetOrder | None,
        high: int | None,
    ) -> None:
        """Make a decoder of headers with the limits and kernels of ``decoder``; ``source`` decodes
        the rows, of which those below offset ``high`` are selected (None: all). Without
        ``verifier``, batches are not compared with transactions, without ``order`` not with the
        batches before them.
        """
        self._high = high
        self._source = source
        self._verifier = verifier
        self._order = order
        load = load_kernels if decoder.numpy is None else load_numpy_reader
        view = load_view("batches")
        self._headers = Decoder(
            view, choose(view, _COLUMNS), limits=decoder.limits, kernels=load(view)
        )

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]:
        """Yield the rows and rejected entries of a chunk, which begins at byte ``position`` of the
        file. Raise ValueRefused before the first one if a batch of the chunk contradicts an aborted
        transaction, or its offsets cannot be right; rejected entries are not compared.
        """
        for item in self._headers.decode(chunk, position):
            if not isinstance(item, Rows):
                continue
            if self._order is not None:
                self._order.add_headers(item.batch)
                self._order.raise_error()
            if self._verifier is not None:
                self._verifier.verify_chunk(item.batch, chunk, position)
        if self._verifier is not None:
            self._verifier.verify_open(self._high)
        yield from self._source.decode(chunk, position)


def _is_abort(control: Batch) -> bool:
    """Return whether a control batch is an abort marker. Return False if it has no records."""
    return any(
        record.control is not None and record.control.type_id == ControlRecordType.ABORT
        for record in control.records
    )


def _may_abort(control: Batch) -> bool:
    """Return whether a control batch is an abort marker, or has no records that tell: compaction
    empties markers, and keeps their batch.
    """
    return not control.records or _is_abort(control)
