"""Skipping of batches that cannot hold selected rows: their headers are verified by checksum, and nothing is decompressed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.chunks import split_by_flag
from codecgen.runtime.arrow.decoder import (
    Chunk,
    Decoder,
    Rejected,
    Rows,
    choose,
    load_kernels,
    load_numpy_reader,
)
from kafka_log.segment.kernels import load_view
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.passes import SegmentPass
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.row_masks import HEADERS, RowMasks, filter_rows, numbers
from kafka_log.segment.row_selection import RowSelection

WORTH = 128 << 10
"""Minimum bytes of consecutive batches to skip. Restarting the kernels takes as long as decoding this many bytes."""

SLACK = 64
"""Bytes after their input that kernels may read."""


class SkippingReader(SegmentReader):
    """Reader that does not decompress batches whose headers show that no record in them is selected. ``strict`` reads all records."""

    selection = RowSelection()
    skipped = 0
    """Number of batches that were returned without records."""

    def batch_at(self, run: SegmentPass, position: int, size: int, *, records: bool) -> Batch:
        """Read the entry at byte ``position``, and return it; without records (a legacy message
        keeps its own), and counted in ``skipped``, if its header shows that none is selected and
        its checksum is valid. Under ``strict`` always read the records. Raise CodecError if it
        cannot be read or its header cannot be parsed, and for any problem under ``strict``; else
        problems are in the batch.
        """
        if records and self.selection.skips and self.options.policy is not Policy.STRICT:
            from kafka_log.segment.framing import HEADER_BYTES
            from kafka_log.segment.reference import header_of

            data = run.read(position, min(size, HEADER_BYTES))
            header = header_of(data, position, size, run.name)
            if header is not None and not self.selection.may_have(header):
                batch = super().batch_at(run, position, size, records=False)
                if batch.is_valid and not batch.problems:
                    self.skipped += 1
                    return batch
        return super().batch_at(run, position, size, records=records)


class SkippingDecoder:
    """Decoder that only verifies the batches that cannot hold selected rows: these come without rows, and ``skipped`` counts them."""

    def __init__(self, decoder: Decoder, masks: RowMasks) -> None:
        """Make decoders of headers and of checksums with the limits and kernels of ``decoder``."""
        self.skipped = 0
        self.after_range: int | None = None
        """Position of the first batch whose header says that it lies after the offset range. None: no such header was read yet."""
        self.decoder = decoder
        self.masks = masks
        load = load_kernels if decoder.numpy is None else load_numpy_reader
        view = load_view("batches")
        self.headers = Decoder(
            view, choose(view, HEADERS), limits=decoder.limits, kernels=load(view)
        )
        self.verifier = Decoder(
            decoder.view,
            decoder.columns[:1],
            limits=decoder.limits,
            kernels=decoder.kernels,
            decompress=False,
        )
        self.nothing = pa.RecordBatch.from_pylist([], schema=decoder.schema)

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]:
        """Yield, in file order, Rows of the batches in ``chunk`` that may hold selected rows, Rows
        with an empty batch for those that are only verified, and Rejected for entries that the
        kernels do not accept. End early where the kernels stop before the end of consecutive
        batches, as at a Rejected whose ``end`` is None. ``position`` is where the chunk begins in
        the file.
        """
        for item in self.headers.decode(chunk, position):
            if isinstance(item, Rejected):
                yield item
                continue
            starts = numbers(item.batch, "position")
            ends = starts + numbers(item.batch, "size")
            may_have = self.masks.may_have(item.batch)
            late = starts[self.masks.is_after(item.batch)]
            if self.after_range is None and len(late):
                self.after_range = int(late[0])
            for first, after, wanted in split_by_flag(_with_few(may_have, starts, ends)):
                # A header may say less than its records: others look at headers alone, and give no row of such a batch.
                here = may_have[first:after]
                others = starts[first:after][here] if wanted and not here.all() else None
                done = start = int(starts[first])
                end = int(ends[after - 1])
                part = part_of(chunk, start - position, end - position)
                decoder = self.decoder if wanted else self.verifier
                for found in decoder.decode(part, start):
                    done = done if found.end is None else found.end
                    if isinstance(found, Rows) and not wanted:
                        self.skipped += found.entries
                        found = replace(found, batch=self.nothing)
                    elif isinstance(found, Rows) and others is not None:
                        found = replace(found, batch=_of_batches(found.batch, others))
                    yield found
                chunk.is_referenced |= part.is_referenced
                if done != end:
                    return  # what is left is read anew


def _with_few(wanted: Any, starts: Any, ends: Any) -> Any:
    """Return the mask ``wanted``, with each run of unwanted batches that has fewer than 128 KiB set
    to True too, since skipping it does not pay. ``starts`` and ``ends`` are byte positions of the
    batches.
    """
    cuts = np.flatnonzero(np.diff(wanted)) + 1
    first = np.concatenate(([0], cuts))
    after = np.concatenate((cuts, [len(wanted)]))
    few = ends[after - 1] - starts[first] < WORTH
    return np.repeat(wanted[first] | few, after - first)


def _of_batches(rows: pa.RecordBatch, positions: Any) -> pa.RecordBatch:
    """Return the rows of the batches at ``positions``."""
    return filter_rows(rows, np.isin(numbers(rows, "position"), positions))


def part_of(chunk: Chunk, start: int, stop: int) -> Chunk:
    """Return the bytes ``start`` to ``stop`` (excluded) of a chunk as a new Chunk on the same
    memory. The bytes after them serve as slack.
    """
    part = Chunk(0)
    part.buffer = chunk.buffer
    part.array = chunk.array[start : stop + SLACK]
    part.size = part.capacity = stop - start
    return part
