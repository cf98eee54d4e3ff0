"""Read the batch headers of many segments in one pass, as columns of NumPy arrays. Small segments are decoded together.

A directory of ten thousand partitions has files of a few KiB: the fixed cost of a decoder is paid once for up to 1,024 files. A file
of such a group that is damaged or has an incomplete tail is read again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from codecgen.runtime.arrow.chunks import Chunk
from codecgen.runtime.errors import CodecError
from kafka_log.logs.partitions import Segment
from kafka_log.segment.block_reader import BlockDecoder, BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.file_groups import FileGroups, GroupDecoder, split_into_groups
from kafka_log.segment.header_columns import TIMED, Arrays, BatchColumns, sliced
from kafka_log.segment.kernels import (
    KERNEL_MIN_BYTES,
    KERNEL_MIN_BYTES_OF_HEADERS,
    use_kernels,
)
from kafka_log.segment.model import Batch, End
from kafka_log.segment.reader import SegmentReader

ROWS = 4096
"""Maximum number of batches of the reference codecs that are buffered as tuples."""

FILE_BYTES = 32 << 10
"""Minimum cost of a file for the reference codecs, in bytes of batches that take as long."""

Read = Callable[[Segment], SegmentReader | BlockReader]
"""A function that opens a segment."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive batches of a segment, in file order.

    ``arrays`` are their columns, ``noted`` the notes on batches that the reference codecs decoded, ``done`` the number of bytes read
    since the previous piece. The last piece of a segment has ``is_last``, and ``end`` or the ``error`` that stopped reading.
    """

    segment: Segment
    arrays: Arrays
    noted: Sequence[Any] = ()
    done: int = 0
    is_last: bool = False
    end: End | None = None
    error: OSError | None = None


def use_kernels_for(segments: Sequence[Segment], engine: str, deep: bool) -> bool:
    """Return whether compiled kernels read the segments: always for the engine ``arrow``, never for ``construct``. For ``auto`` it is True
    if the kernels are loaded, or the segments are large enough together; ``deep``: for decoding records too.
    """
    least = KERNEL_MIN_BYTES if deep else KERNEL_MIN_BYTES_OF_HEADERS
    return use_kernels(sum(max(s.size, FILE_BYTES) for s in segments if s.size), engine, least)


class HeaderPass:
    """Reader of the batch headers of many segments. Called with segments, it yields Piece objects:
    consecutive batches of one segment as columns of NumPy arrays.

    Memory holds a chunk of a file, or :data:`~kafka_log.segment.file_groups.GROUP_BYTES` of small files, and their columns.

    Args:
        wanted: The columns to read.
        read: Opens a segment.
        note: Returns the notes on a batch; called for batches that the reference codecs decode.
    """

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
        self.groups: FileGroups | None = None
        self.decoder: BlockDecoder | None = None

    def __call__(self, segments: Iterable[Segment]) -> Iterator[Piece]:
        """Yield the pieces of each segment, in the order of ``segments``; every segment has a last piece."""
        for group in split_into_groups(segments):
            yield from self._read_group(group)

    # ------------------------------------------------------------ one by one

    def _read_segment(self, segment: Segment) -> Iterator[Piece]:
        """Yield the pieces of one segment in file order; the last is marked, and may have no rows.
        Batches with a wrong checksum are rows too, unless under ``strict``. CodecError and OSError
        end the segment and are not raised: ``end`` of the last piece has the CodecError (also an
        UnreadableError, which is both), ``error`` another OSError.
        """
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
            pass  # the first error of a strict reader, which its end reports too
        except OSError as error:
            failed = error
        left = max(segment.size - done, 0)
        arrays = self.wanted.from_rows(rows)
        yield Piece(segment, arrays, noted, left, True, reader.end, failed)

    # ------------------------------------------------------------ together

    def _read_group(self, group: Sequence[Segment]) -> Iterator[Piece]:
        """Yield the pieces of small segments, in their order. Files of whole valid batches are
        decoded together, with one piece each; other files are read one by one, as are all files if
        there is no decoder for the group.
        """
        decoder = self._group_decoder(group)
        if decoder is None:
            for segment in group:
                yield from self._read_segment(segment)
            return
        self.groups = self.groups or FileGroups()
        found = self.groups.read(group, decoder)
        for number, segment in enumerate(group):
            arrays = found.get(number)
            if arrays is None:
                yield from self._read_segment(segment)
            else:
                yield Piece(segment, arrays, (), segment.size, True, _complete_end(segment, arrays))

    def _group_decoder(self, group: Sequence[Segment]) -> GroupDecoder[Arrays] | None:
        """Return the decoder of a group of files. Return None if the files are to be read one by
        one: there are fewer than two, or the reference codecs read them.
        """
        if len(group) < 2:
            return None
        if self.decoder is None:
            reader = self.read(group[0])
            if isinstance(reader, BlockReader):
                self.decoder = reader.scanner(self.columns, sizes=self.sizes).decoder()
        return (
            GroupDecoder(self._columns, lambda arrays: arrays["position"], _slice_file)
            if self.decoder
            else None
        )

    def _columns(self, chunk: Chunk, start: int) -> Arrays | None:
        """Return the columns of a chunk of files that begins at byte ``start`` of its group; None if it has anything but whole, valid batches."""
        assert self.decoder is not None
        at, parts = start, []
        for item in self.decoder.decode(chunk, start) if chunk.size else ():
            if not isinstance(item, Block) or item.start != at:
                return None
            at = item.end
            parts.append(self.wanted.from_block(item))
        return self.wanted.concatenate(parts) if at == start + chunk.size else None


def _slice_file(arrays: Arrays, first: int, last: int, base: int) -> Arrays:
    """Return the headers of one file of a group: the rows ``first`` to ``last`` (excluded). Their positions
    are counted from ``base``, the byte of the group at which the file begins.
    """
    own = dict(sliced(arrays, first, last))
    own["position"] = own["position"] - base
    return own


def _complete_end(segment: Segment, arrays: Arrays) -> End:
    """Return the end of a file that consists of whole batches."""
    size = segment.size
    return End(len(arrays["position"]), 0, size, size, 0, "eof")
