"""The position in a file of batches: runs of batches that the kernels read, and what they leave to the reference codecs.

Chunks of whole batches go through the generated kernels. What these do not take (damage, freedoms that only some
policies grant, the end of the file) is read by the reference codecs, one batch at a time and in its place, so that
values and errors are theirs under every policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import FileIO
from typing import Protocol

from codecgen.runtime.arrow.decoder import Chunk, Rejected, Rows
from codecgen.runtime.arrow.memory_limit import fitting
from codecgen.runtime.errors import CodecError
from kafka_log.segment.model import Batch
from kafka_log.segment.passes import Run
from kafka_log.segment.positioned_reads import UnreadableError, read_at
from kafka_log.segment.reader import HeaderReader, SegmentReader

CHUNK_BYTES = fitting(8 << 20)


class Loader(Protocol):
    """Fills a chunk with what kernels read of the entries of a file, from ``position`` on, none of it after ``stop``."""

    @property
    def chunk(self) -> Chunk: ...

    def fill(self, position: int, stop: int) -> None: ...


class WholeBytes:
    """All bytes, as many as the chunk holds."""

    def __init__(self, file: FileIO, chunk_bytes: int) -> None:
        self.file = file
        self.chunk = Chunk(chunk_bytes)

    def fill(self, position: int, stop: int) -> None:
        wanted = min(self.chunk.capacity, stop - position)
        self.chunk.size = read_at(self.file, self.chunk.view()[:wanted], position)


class Source(Protocol):
    """What decodes the entries of a chunk whose first byte is ``position`` in the file."""

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]: ...


class Cursor:
    """One pass over a file by kernels; ``reader`` reads what they do not take. ``fallbacks`` counts the batches of these,
    ``bytes_read`` the bytes for the kernels."""

    def __init__(self, reader: SegmentReader) -> None:
        self.reader = reader
        self.fallbacks = 0
        self.bytes_read = 0

    def items(
        self, run: Run, plain: Iterator[Batch], decoder: Source, loader: Loader
    ) -> Iterator[Rows | Batch]:
        """What the kernels read, a run of batches at a time, and what the reference codecs read, in the file's order."""
        chunk = loader.chunk
        stop = run.size if self.reader.stop is None else min(self.reader.stop, run.size)

        def slow() -> Batch | None:
            batch = next(plain, None)
            self.fallbacks += batch is not None
            return batch

        while True:
            position = run.position
            chunk.size = 0
            if position < stop:
                try:
                    loader.fill(position, stop)
                except UnreadableError:
                    chunk.size = 0  # the reference codecs meet it too
                self.bytes_read += chunk.size
            for item in decoder.decode(chunk, position):
                if isinstance(item, Rows):
                    self._count_in(run, item)
                    yield item
                    continue
                batch = slow()
                if batch is None:
                    return
                yield batch
                if run.position != item.end:
                    break  # what follows in the chunk is not what comes next
            if run.position == position and not _room(run, chunk, stop):
                batch = slow()
                if batch is None:
                    return
                yield batch

    def _count_in(self, run: Run, rows: Rows) -> None:
        """Note what the kernels have read, as if the reader had."""
        records = 0 if isinstance(self.reader, HeaderReader) else rows.batch.num_rows
        run.count_in_read(rows.entries, records, rows.last, rows.end)


def _room(run: Run, chunk: Chunk, stop: int) -> bool:
    """Make room for a batch that is larger than the chunk, if all of it is there."""
    if not chunk.size:
        return False
    from kafka_log.segment import framing  # the codecs: not for a first record

    if chunk.size < framing.HEADER_START:
        return False
    try:
        head = bytes(chunk.view()[: framing.HEADER_START])
        size = framing.frame_of(head, run.position, run.name).size
    except CodecError:
        return False
    if not chunk.capacity < size <= stop - run.position:
        return False
    chunk.grow(size)
    return True
