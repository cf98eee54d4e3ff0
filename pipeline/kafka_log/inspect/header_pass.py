"""One pass over the batches of many segments: their columns as arrays. Small segments are decoded together.

A directory of ten thousand partitions has files of a few KiB: what a decoder costs is paid once for a thousand of them. Where
anything is not as it should be in one of these, that one is read by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codecgen.runtime.arrow.decoder import Chunk
from codecgen.runtime.errors import CodecError
from kafka_log.logs.partitions import Segment
from kafka_log.segment.block_reader import BlockDecoder, BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.header_columns import TIMED, Arrays, BatchColumns, sliced
from kafka_log.segment.kernels import (
    KERNEL_MIN_BYTES,
    KERNEL_MIN_BYTES_OF_HEADERS,
    use_kernels,
)
from kafka_log.segment.model import Batch, End
from kafka_log.segment.positioned_reads import open_segment, read_at
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.skipping import part_of

SMALL = 256 << 10
"""Bytes of a segment up to which it is decoded together with others."""

GROUP_BYTES = 4 << 20
GROUP_FILES = 1024
"""Bytes, and files, that are decoded together at most."""

ROWS = 4096
"""Batches of the reference codecs that are kept as tuples at most."""

FILE_BYTES = 32 << 10
"""A file takes the reference codecs at least as long as so many bytes of batches."""

Read = Callable[[Segment], SegmentReader | BlockReader]
"""What opens a segment."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some batches of a segment, in the order of the file. ``noted`` is what was noted of those that the reference codecs read;
    ``done`` are the bytes that were read for it. After the last piece of a segment, ``end`` says how it ended, or ``error`` why there
    is none."""

    segment: Segment
    arrays: Arrays
    noted: Sequence[Any] = ()
    done: int = 0
    is_last: bool = False
    end: End | None = None
    error: OSError | None = None


def pays(segments: Sequence[Segment], engine: str, deep: bool) -> bool:
    """Whether the kernels are to read so many segments."""
    least = KERNEL_MIN_BYTES if deep else KERNEL_MIN_BYTES_OF_HEADERS
    return use_kernels(sum(max(s.size, FILE_BYTES) for s in segments if s.size), engine, least)


class HeaderPass:
    """``wanted`` are the columns, ``read`` opens a segment, ``note`` takes from a batch of the reference codecs what is to be
    noted. Memory holds a chunk of a file, or :data:`GROUP_BYTES` of small ones, and their columns."""

    def __init__(
        self, wanted: BatchColumns, read: Read, note: Callable[[Batch], Iterable[Any]]
    ) -> None:
        self.wanted = wanted
        self.read = read
        self.note = note
        timed = {"least_timestamp", "largest_timestamp", "timestamp_bound", "late"} & {
            *wanted.names
        }
        self.columns = TIMED if timed else TIMED[:2]
        self.sizes = "plain" in wanted.names
        self.chunk: Chunk | None = None
        self.decoder: BlockDecoder | None = None

    def __call__(self, segments: Iterable[Segment]) -> Iterator[Piece]:
        """The pieces of each segment, in the order of the segments."""
        group: list[Segment] = []
        size = 0
        for segment in segments:
            if size + segment.size > GROUP_BYTES or len(group) >= GROUP_FILES:
                yield from self._group(group)
                group, size = [], 0
            if segment.size <= SMALL:
                group.append(segment)
                size += segment.size
            else:
                yield from self._group(group)
                yield from self._single(segment)
                group, size = [], 0
        yield from self._group(group)

    # ------------------------------------------------------------ one by one

    def _single(self, segment: Segment) -> Iterator[Piece]:
        reader = self.read(segment)
        if isinstance(reader, BlockReader):
            items: Iterable[Batch | Block] = reader.items(self.columns, sizes=self.sizes)
        else:
            items = reader
        rows: list[tuple[Any, ...]] = []
        noted: list[Any] = []
        done = end = 0
        failed: OSError | None = None
        try:
            for item in items:
                if rows and (isinstance(item, Block) or len(rows) >= ROWS):
                    yield Piece(segment, self.wanted.from_rows(rows), noted, end - done)
                    rows, noted, done = [], [], end
                if isinstance(item, Block):
                    end = item.end
                    yield Piece(segment, self.wanted.from_block(item), (), end - done)
                    done = end
                else:
                    end = item.position + item.size
                    rows.append(self.wanted.row(item))
                    noted += self.note(item)
        except CodecError:
            pass  # a strict reader's first error, which is in its end too
        except OSError as error:
            failed = error
        left = max(segment.size - done, 0)
        arrays = self.wanted.from_rows(rows)
        yield Piece(segment, arrays, noted, left, True, reader.end, failed)

    # ------------------------------------------------------------ together

    def _group(self, group: Sequence[Segment]) -> Iterator[Piece]:
        decoder = self._decoder(group)
        if decoder is None:
            for segment in group:
                yield from self._single(segment)
            return
        if self.chunk is None:
            self.chunk = Chunk(GROUP_BYTES + SMALL)
        edges, loaded = [0], []
        for segment in group:
            size = self._load(segment, edges[-1])
            if size is not None:
                edges.append(edges[-1] + size)
                loaded.append(segment)
        found: dict[int, Arrays] = {}
        self._decode(decoder, edges, 0, len(loaded), found)
        whole = {id(loaded[i]): arrays for i, arrays in found.items()}
        for segment in group:
            arrays = whole.get(id(segment))
            if arrays is None:
                yield from self._single(segment)
            else:
                yield Piece(segment, arrays, (), segment.size, True, _whole(segment, arrays))

    def _decoder(self, group: Sequence[Segment]) -> BlockDecoder | None:
        """What decodes a group of files; None where they are read one by one."""
        if self.decoder is None and len(group) > 1:
            reader = self.read(group[0])
            if isinstance(reader, BlockReader):
                self.decoder = reader.scanner(self.columns, sizes=self.sizes).decoder()
        return self.decoder if len(group) > 1 else None

    def _load(self, segment: Segment, at: int) -> int | None:
        """Read a file to a place in memory. How many bytes it has; None if it is not as it was."""
        assert self.chunk is not None
        try:
            with open_segment(segment.path) as file:
                view = self.chunk.view()[at : at + segment.size + 1]
                return segment.size if read_at(file, view, 0) == segment.size else None
        except OSError:
            return None

    def _decode(
        self,
        decoder: BlockDecoder,
        edges: Sequence[int],
        low: int,
        high: int,
        found: dict[int, Arrays],
    ) -> None:
        """The columns of the files from ``low`` up to ``high`` that are all right."""
        if low == high:
            return
        arrays = self._columns(decoder, edges[low : high + 1])
        if arrays is not None:
            starts = np.searchsorted(arrays["position"], edges[low : high + 1]).tolist()
            for i in range(low, high):
                own = dict(sliced(arrays, starts[i - low], starts[i - low + 1]))
                own["position"] = own["position"] - edges[i]
                found[i] = own
        elif high - low > 1:
            middle = (low + high) // 2
            self._decode(decoder, edges, low, middle, found)
            self._decode(decoder, edges, middle, high, found)

    def _columns(self, decoder: BlockDecoder, edges: Sequence[int]) -> Arrays | None:
        """The columns of files that lie one after the other, None if not all of them are whole batches."""
        assert self.chunk is not None
        start, stop = edges[0], edges[-1]
        at, parts = start, []
        if start < stop:
            for item in decoder.decode(part_of(self.chunk, start, stop), start):
                if not isinstance(item, Block) or item.start != at:
                    return None
                at = item.end
                parts.append(self.wanted.from_block(item))
        arrays = self.wanted.concatenate(parts)
        begins = np.append(arrays["position"], stop)
        return arrays if at == stop and bool(np.isin(edges, begins).all()) else None


def _whole(segment: Segment, arrays: Arrays) -> End:
    """How a file ends that has whole batches only."""
    size = segment.size
    return End(len(arrays["position"]), 0, size, size, 0, "eof")
