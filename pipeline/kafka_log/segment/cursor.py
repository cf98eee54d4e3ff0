"""Cursor over a file of batches: the kernels decode chunks, and the reference codecs decode the entries that the kernels reject.

The kernels reject damage, tolerances that only some policies have, and the end of the file. The reference codecs read such an
entry and continue after it, so that values and errors do not depend on the kernels under any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from io import FileIO
from typing import Protocol

from codecgen.runtime.arrow.decoder import Chunk, Rejected, Rows
from codecgen.runtime.arrow.memory_limit import limit_size
from codecgen.runtime.errors import CodecError
from kafka_log.segment.model import Batch
from kafka_log.segment.passes import SegmentPass
from kafka_log.segment.positioned_reads import UnreadableError, read_at
from kafka_log.segment.reader import HeaderReader, SegmentReader

CHUNK_BYTES = limit_size(8 << 20)


class Loader(Protocol):
    """Source of chunks: copies the bytes of a file that a decoder needs into memory."""

    @property
    def chunk(self) -> Chunk:
        """Return the chunk that :meth:`fill` fills."""

    def fill(self, position: int, stop: int) -> None:
        """Fill the chunk with bytes of the file from ``position`` (included) to at most ``stop``
        (excluded).
        """


class WholeBytes:
    """Loader of all bytes of a file range, ``chunk_bytes`` at a time or as many as the chunk holds. If arrays refer to
    the chunk, it gets new memory, which has no more bytes than are left.
    """

    def __init__(self, file: FileIO, chunk_bytes: int) -> None:
        self.file = file
        self.chunk_bytes = chunk_bytes
        self.chunk = Chunk(0)

    def fill(self, position: int, stop: int) -> None:
        """Fill the chunk with the bytes of the file from ``position`` (included) to at most
        ``stop`` (excluded), as many as it holds; fewer at the end of the file or before an
        unreadable sector. Raise UnreadableError if the first sector cannot be read.
        """
        wanted = min(max(self.chunk_bytes, self.chunk.capacity), stop - position)
        if self.chunk.is_referenced or self.chunk.capacity < wanted:
            self.chunk.grow(wanted)
        self.chunk.size = read_at(self.file, self.chunk.view()[:wanted], position)


class Source(Protocol):
    """Decoder of the entries of a chunk whose first byte lies at ``position`` in the file."""

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]:
        """Yield decoded rows, and the entries that the decoder rejects, in file order."""


class Cursor:
    """One pass over a file: ``decoder`` decodes chunks, and ``reader`` reads each entry that the decoder rejects.

    ``fallbacks`` counts the batches that the reader read in place of the decoder. ``bytes_read`` counts bytes that were read from the
    file; bytes that were read twice count twice. ``run`` is the reader's pass while it lasts, else None.
    """

    def __init__(self, reader: SegmentReader) -> None:
        """Prepare a pass; ``reader`` has the path and the policy."""
        self.reader = reader
        self.fallbacks = 0
        self.bytes_read = 0
        self.run: SegmentPass | None = None

    def items(
        self, decoder: Source | None, make_loader: Callable[[FileIO, int], Loader]
    ) -> Generator[Rows | Batch, None, None]:
        """Yield, in file order, Rows that ``decoder`` decoded, and a Batch for each entry that it
        rejected; all as Batch if ``decoder`` is None. ``make_loader`` gets the open file and its
        size. Iterating raises CodecError for the first problem if the reader is strict; else
        problems are in the batches and in the reader's ``end``, and a file that cannot be opened
        yields nothing. It raises FileNotFoundError for a missing file whose size was not listed.
        """
        with self.reader.opened() as run:
            if run is None:
                return
            self.run = run
            try:
                batches = run.batches()
                if decoder is not None:
                    yield from self._decode(run, batches, decoder, make_loader(run.file, run.size))
                    return
                for batch in batches:
                    self.bytes_read += batch.size
                    yield batch
            finally:
                self.run = None

    def _decode(
        self, run: SegmentPass, batches: Iterator[Batch], decoder: Source, loader: Loader
    ) -> Iterator[Rows | Batch]:
        """Load chunk after chunk, and yield the Rows that ``decoder`` decodes; for each entry that
        it rejects, yield the next of ``batches``, which the reference codecs read, and go on behind
        it. End when ``batches`` ends. Iterating raises what ``batches`` raises.
        """
        chunk = loader.chunk
        stop = (
            run.size
            if self.reader.options.stop is None
            else min(self.reader.options.stop, run.size)
        )

        def fall_back() -> Batch | None:
            """Return the next batch by the reference codecs, None at the end of the file."""
            batch = next(batches, None)
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
                batch = fall_back()
                if batch is None:
                    return
                yield batch
                if run.position != item.end:
                    break  # what follows in the chunk is not what comes next
            if run.position == position and not _grow_for_batch(run, chunk, stop):
                batch = fall_back()
                if batch is None:
                    return
                yield batch

    def _count_in(self, run: SegmentPass, rows: Rows) -> None:
        """Add the batches that the decoder read to the counts of the reader's pass, and move the pass to their end."""
        records = 0 if isinstance(self.reader, HeaderReader) else rows.batch.num_rows
        run.count_in_read(rows.entries, records, rows.last, rows.end)


def _grow_for_batch(run: SegmentPass, chunk: Chunk, stop: int) -> bool:
    """Enlarge the chunk, and return True, if the batch at its start is larger than the chunk and
    ends at or before ``stop``. Return False, and change nothing, if it is not, or its header is
    incomplete or invalid.
    """
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
