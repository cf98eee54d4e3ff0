"""One pass over a segment: the headers of its batches, lost ranges, and undecodable batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, BinaryIO

from codecgen.runtime.errors import CodecError, RuleBroken
from kafka_log.inspect.check.control_batches import ControlBatches, scan_control_batches
from kafka_log.inspect.header_pass import HeaderPass, Piece, use_kernels_for
from kafka_log.logs.partitions import Segment
from kafka_log.segment import framing
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.header_arrays import WANTED, Headers
from kafka_log.segment.header_columns import Arrays, BatchColumns
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import UNKNOWN_VERSION, Batch, Lost, Policy, Problem
from kafka_log.segment.placement import find_outside_segment, find_placed
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.versions import are_known

LEAST, LATEST = "least_timestamp", "timestamp_bound"
RULES = "rules"
OF_PRODUCER = ("producer_epoch", "base_sequence", "last_sequence")

UNWRITTEN = 32
"""Minimum of zeros at the end of a batch for which it counts as not completely written."""

NO_NEXT_BASES: Mapping[Segment, int | None] = MappingProxyType({})

Count = Callable[[int], None]
"""Called with a number of bytes or batches to add."""


def ignore(count: int) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """Batch with a valid checksum whose records cannot all be decoded, or that breaks a rule of its format.

    Attributes:
        position: Position in the file.
        first: First offset.
        last: Last offset.
        count: Record count of the header; None if it has none.
        read: Number of decoded records.
        problem: What is wrong; its ``at`` is :data:`RULES` for a broken rule.
    """

    position: int
    first: int
    last: int
    count: int | None
    read: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class ScannedSegment:
    """Segment that was read.

    Attributes:
        size: Number of bytes that were read.
        headers: Columns of the headers of valid batches.
        lost: Ranges of bytes that are not valid batches.
        tail_kind: ``zero_tail`` or ``torn_tail`` if the last lost range is a normal end of a segment after a crash; None for other damage.
        refused: Batches with undecodable records or broken rules.
        next_base: Base offset of the next segment; None for the active segment.
        outside: Mask of the batches whose offsets belong to another segment.
        placed: Mask of the batches in offset order and in their segment.
        sequences: Columns :data:`OF_PRODUCER` of the headers.
        control: Records of the control batches.
        least_timestamp: Minimum timestamp of each batch; None unless requested.
        timestamp_bound: Upper bound of the timestamps of each batch, UNBOUNDED if its header is contradictory; None
            unless requested.
    """

    segment: Segment
    size: int
    headers: Headers
    lost: tuple[Lost, ...]
    tail_kind: str | None
    refused: tuple[RefusedBatch, ...]
    next_base: int | None
    outside: Any
    placed: Any
    sequences: Mapping[str, Any]
    control: ControlBatches
    least_timestamp: Any = None
    timestamp_bound: Any = None

    @property
    def is_active(self) -> bool:
        """Return whether a broker appends to the segment: it is the last one and not rolled."""
        return is_active(self.segment, self.next_base)

    def tail_kind_of(self, run: Lost) -> str | None:
        """Return ``tail_kind`` for the lost range at the end of the segment, None for other ones."""
        return self.tail_kind if run.end == self.size else None


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """Options of a pass over segments.

    Attributes:
        deep: Decode records too, not only headers and checksums.
        engine: Decoder to use.
        advance: Called with the number of bytes that are done.
        judged: Called with the number of batches that were checked.
        timed: Read the bounds of timestamps.
    """

    deep: bool
    engine: Engine
    advance: Count = ignore
    judged: Count = ignore
    timed: bool = False

    @property
    def header_columns(self) -> BatchColumns:
        """Return the header columns to read."""
        return BatchColumns((*WANTED.names, *OF_PRODUCER, *((LEAST, LATEST) if self.timed else ())))

    def read_pieces(
        self, segments: Sequence[Segment], following: Mapping[Segment, int | None] = NO_NEXT_BASES
    ) -> Iterator[Piece]:
        """Yield the batches of ``segments`` as pieces, in order; each segment has a last piece.
        Damage is skipped and listed in ``end`` of that piece; an OSError ends only its segment and
        is in ``error``, not raised. ``following`` has the base offset of the next segment, if
        known. Checksums are verified; records are decoded and rules checked only if ``deep``.

        Args:
            segments: Segments in the order in which they are read.
            following: Base offset of the segment after each of them, None if there is none.
        """
        fast = use_kernels_for(segments, self.engine, self.deep)

        def opened(segment: Segment) -> SegmentReader | BlockReader:
            options: dict[str, Any] = {"policy": Policy.SALVAGE, "records": self.deep}
            options |= {"salvage_records": False, "next_base": following.get(segment)}
            options |= {"check_rules": self.deep}
            if fast:
                return BlockReader(segment.path, engine=self.engine, **options)
            return SegmentReader(segment.path, **options)

        return HeaderPass(self.header_columns, opened, _find_refused)(segments)


def scan_segment(
    segment: Segment, next_base: int | None, pieces: Iterator[Piece], reading: ScanOptions
) -> ScannedSegment:
    """Return the ScannedSegment that the next of ``pieces`` describe, up to the last piece of the
    segment, and report their bytes to ``reading.advance``. ``next_base`` is the base offset of the
    next segment, None if there is none. Damage is in the result and not raised. Raise the OSError
    that ended the reading, such as FileNotFoundError, also if the file is gone before its end is
    judged.
    """
    parts: list[Arrays] = []
    refused: list[RefusedBatch] = []
    for piece in pieces:
        parts.append(piece.arrays)
        refused += piece.noted
        reading.advance(piece.done)
        if piece.is_last:
            break
    if piece.error is not None:
        raise piece.error
    lost = () if piece.end is None else tuple(run.up_to(next_base) for run in piece.end.lost)
    columns = dict(reading.header_columns.concatenate(parts))
    times = columns.pop(LEAST, None), columns.pop(LATEST, None)
    sequences = {name: columns.pop(name) for name in OF_PRODUCER}
    headers = Headers(**columns)
    # Their checksums are valid: other findings name them.
    valid = {batch.position for batch in refused}
    valid.update(headers.position[~are_known(headers.magic)].tolist())
    runs = tuple(run for run in lost if run.start not in valid)
    end_of_last = int(headers.position[-1] + headers.size[-1]) if len(headers) else 0
    end_of_file = max([end_of_last, *(run.end for run in lost)])
    base = segment.base_offset if segment.has_offset_in_name else None
    out = find_outside_segment(headers.first, headers.last, base, next_base)
    placed = find_placed(headers.first, headers.last, out, (base or 0, next_base))
    control = scan_control_batches(segment.path, headers)
    found = tuple(refused), next_base, out, placed, sequences, control, *times
    at_end = next((run for run in runs if run.end == end_of_file), None)
    kind = (
        None if at_end is None else find_tail_kind(segment, at_end, is_active(segment, next_base))
    )
    return ScannedSegment(segment, end_of_file, headers, runs, kind, *found)


def is_active(segment: Segment, next_base: int | None) -> bool:
    """Return whether a broker appends to a segment: no segment follows, so ``next_base`` is None, and it is not rolled."""
    return next_base is None and not segment.rolled


def find_tail_kind(segment: Segment, run: Lost, may_grow: bool) -> str | None:
    """Return the kind of an incomplete end, the lost range ``run``; None for other damage. It is
    ``zero_tail`` if all of it is zeros, ``torn_tail`` if it has fewer than HEADER_START bytes or
    its batch ends after it. If ``may_grow`` (a broker appends to the segment), a batch that ends in
    zeros up to the end of the range is torn too. Raise OSError if the file cannot be opened or
    read.
    """
    with open_regular(segment.path, -1) as file:
        if is_zeros(file, run.start, run.end):
            return "zero_tail"
        file.seek(run.start)
        data = file.read(framing.HEADER_START)
        if len(data) < framing.HEADER_START:
            return "torn_tail"
        try:
            frame = framing.frame_of(data, run.start, str(segment.path))
        except CodecError:
            return None
        end = run.start + frame.size
        if end <= run.end and may_grow:
            # After a crash a file may be as long as it should be, with zeros where nothing was written.
            begin = max(end - UNWRITTEN, run.start + framing.HEADER_START)
            return "torn_tail" if is_zeros(file, begin, run.end) else None
    return "torn_tail" if end > run.end else None


def _find_refused(batch: Batch) -> list[RefusedBatch]:
    """Return a list with one RefusedBatch, ``[]`` if the batch has no problem but an unknown
    version, which is found by its header. The problem is a message of the batch with a wrong checksum, else the last problem of decoding, else the first
    rule of brokers that it breaks.
    """
    problems = [problem for problem in batch.problems if problem.at != UNKNOWN_VERSION]
    problems += [Problem("crc", r.crc_error) for r in batch.records if r.crc_error is not None][:1]
    problems = problems[-1:] or [
        Problem(RULES, error) for error in batch.findings if isinstance(error, RuleBroken)
    ]
    first = batch.last_offset if batch.base_offset is None else batch.base_offset
    read = sum(record.crc_error is None for record in batch.records)
    return [
        RefusedBatch(batch.position, first, batch.last_offset, batch.record_count, read, problem)
        for problem in problems[:1]
    ]


def is_zeros(file: BinaryIO, start: int, end: int) -> bool:
    """Return whether the bytes from ``start`` (included) to ``end`` (excluded) are all 0; bytes
    after the end of the file count as 0. Raise OSError if the file cannot be read.
    """
    file.seek(start)
    while start < end:
        data = file.read(min(end - start, 1 << 20))
        if not data:
            return True  # it became shorter
        if data.strip(b"\0"):
            return False
        start += len(data)
    return True
