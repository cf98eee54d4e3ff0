"""Stream the batch headers of a partition as Arrow record batches, skipping damage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.arrow.chunks import Chunk, Rejected
from codecgen.runtime.arrow.decoder import Decoder
from codecgen.runtime.arrow.output_buffers import choose, schema_of
from codecgen.runtime.errors import ParseError
from codecgen.runtime.located_bytes import Limits
from kafka_codecs.columns.batches import BATCHES
from kafka_log.logs.incomplete_tails import find_incomplete_tail
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.removed_segments import history_options
from kafka_log.read.selection import Selection, limit_to_segment
from kafka_log.segment.file_groups import FileGroups, GroupDecoder, split_into_groups
from kafka_log.segment.kernels import load_decoder, load_view
from kafka_log.segment.model import Policy
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import header_scanner
from kafka_log.segment.urls import is_url

OnDamage = Callable[[str], None]
"""Called with a line of text, with file and bytes, for each damage."""


def raise_damage(line: str) -> None:
    """Raise ParseError with ``line``: the callback for callers that do not accept damage."""
    raise ParseError(line)


class SmallSegmentHeaders:
    """Batch headers of the small segments of many partitions, read ahead and decoded together.

    Memory holds the headers of one group of files (:data:`~kafka_log.segment.file_groups.GROUP_BYTES`).

    Args:
        segments: The segments, in the order in which they will be taken.
        columns: Columns of the view ``batches``; ``next_offset`` and ``position`` are added.
    """

    def __init__(self, segments: Iterable[Segment], columns: Sequence[str]) -> None:
        self._columns = tuple(dict.fromkeys((*columns, "next_offset", "position")))
        local = (segment for segment in segments if not is_url(segment.path))
        self._groups = [group for group in split_into_groups(local) if len(group) > 1]
        self._group_of = {id(s): i for i, group in enumerate(self._groups) for s in group}
        self._found: dict[int, pa.RecordBatch] = {}
        self._current: int | None = None

    def take(self, segment: Segment) -> pa.RecordBatch | None:
        """Return the headers of a segment, timestamps as integers, which are then forgotten. Return None if it has to be read by itself: it is large,
        damaged, incomplete, unreadable or in a store, has changed since it was listed, was taken before, or has no small neighbor; and
        always if the reference codecs read. No checksum is verified.
        """
        number = self._group_of.get(id(segment))
        if number is None or self._reader is None:
            return None
        if number != self._current:
            group = self._groups[number]
            groups, decoder = self._reader
            found = groups.read(group, decoder)
            self._found = {id(group[i]): headers for i, headers in found.items()}
            self._current = number
        return self._found.pop(id(segment), None)

    @cached_property
    def _reader(self) -> tuple[FileGroups, GroupDecoder[pa.RecordBatch]] | None:
        """The memory and the decoder of groups; None if the reference codecs read."""
        limits = Limits()
        kernels = load_decoder(BATCHES.name, "auto", limits)
        if kernels is None:
            return None
        columns = choose(BATCHES, self._columns)
        decoder = Decoder(load_view(BATCHES.name), columns, limits=limits, kernels=kernels)

        def decode(chunk: Chunk, start: int) -> pa.RecordBatch | None:
            """Return the headers of a chunk of whole batches that begins at byte ``start``, timestamps as integers, else None."""
            at, parts = start, [pa.RecordBatch.from_pylist([], schema=schema_of(columns))]
            for item in decoder.decode(chunk, start) if chunk.size else ():
                if isinstance(item, Rejected) or item.start != at:
                    return None
                at = item.end
                parts.append(item.batch)
            if at != start + chunk.size:
                return None
            return _timestamps_to_integers(pa.concat_batches(parts))

        return FileGroups(), GroupDecoder(decode, _read_positions, _slice_file)


def _read_positions(headers: pa.RecordBatch) -> Any:
    """Return the column ``position`` as a NumPy array."""
    return headers.column("position").to_numpy()


def _slice_file(headers: pa.RecordBatch, first: int, last: int, base: int) -> pa.RecordBatch:
    """Return the headers of one file of a group: the rows ``first`` to ``last`` (excluded). Their positions
    are counted from ``base``, the byte of the group at which the file begins.
    """
    own = headers.slice(first, last - first)
    at = own.schema.get_field_index("position")
    return own.set_column(at, own.schema.field(at), pc.subtract(own.column(at), base))


class PartitionHeaders:
    """Iterable over the batch headers of a partition: pairs of a segment and a record batch. No checksum is verified.

    Bytes that are not a batch are skipped and reported to ``on_damage``, except for the incomplete tail that a live or killed broker
    leaves in its active segment. After the iteration ``end_offset`` is the offset after the last batch (None without a batch).
    ``is_cut`` is True if a file, or bytes between batches, were lost. Bytes at the very end of a partition do not count, because a
    broker truncates them.

    Args:
        partition: The partition to read.
        columns: Columns of the view ``batches``; ``next_offset`` is added.
        on_damage: Called with a line for each lost range.
        wanted: Selects batches; None selects all.
        advance: Called with the size of each segment after it is read.
        ahead: Reads the headers of small segments together. It is asked only if all batches are wanted.

    Raises:
        UnreadableError: if retention removes a segment meanwhile (see :func:`~kafka_log.logs.removed_segments.read_history`).
    """

    def __init__(
        self,
        partition: Partition,
        columns: Sequence[str],
        on_damage: OnDamage,
        wanted: RowSelection | None = None,
        advance: Callable[[int], None] = lambda _: None,
        ahead: SmallSegmentHeaders | None = None,
    ) -> None:
        self.advance = advance
        self.ahead = ahead
        self.wanted = Selection().batches() if wanted is None else wanted
        self.partition = partition
        self.columns = tuple(dict.fromkeys((*columns, "next_offset")))
        self.on_damage = on_damage
        self.end_offset: int | None = None
        self.is_cut = partition.error is not None

    def __iter__(self) -> Iterator[tuple[Segment, pa.RecordBatch]]:
        for segment in self.partition.segments:
            selection = limit_to_segment(self.wanted, segment)
            known = None if self.ahead is None or selection.skips else self.ahead.take(segment)
            if known is not None:
                yield from self._count(segment, known)
                self.advance(segment.size)
                continue
            scanner = header_scanner(
                segment.path,
                self.columns,
                Policy.SALVAGE,
                selection=selection,
                **history_options(segment),
            )
            for batch in scanner:
                yield from self._count(segment, _timestamps_to_integers(batch))
            end = scanner.end
            for lost in () if end is None else end.lost:
                is_tail = lost.before_offset is None and segment is self.partition.segments[-1]
                if is_tail and find_incomplete_tail(segment, lost.start) is not None:
                    continue
                self.is_cut = self.is_cut or not is_tail
                name = os.fspath(segment.path)
                what = lost.describe_bytes("were skipped")
                self.on_damage(f"{name}: {what}{lost.reason}")
            self.advance(segment.size)

    def _count(
        self, segment: Segment, batch: pa.RecordBatch
    ) -> Iterator[tuple[Segment, pa.RecordBatch]]:
        """Yield the segment with the headers ``batch``, after raising ``end_offset`` to the end of
        the last one. Yield nothing if there are no headers.
        """
        if batch.num_rows:
            last = batch.column("next_offset")[batch.num_rows - 1].as_py()
            self.end_offset = max(last, self.end_offset or 0)
            yield segment, batch


def _timestamps_to_integers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with its timestamp columns as int64 milliseconds, because some are beyond
    the range of a datetime; all other columns stay.
    """
    arrays = [
        column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
