"""Sentences of findings about damage that ``kafka-log salvage --repair`` can undo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.segment.model import Lost
from kafka_log.segment.positioned_reads import open_segment, read_what_there_is, size_of
from kafka_log.segment.repair.batch_repair import NoRepair, Read, Repair
from kafka_log.segment.repair.segment_repair import repair_headers, repair_range


def describe_range_repairs(scanned: ScannedSegment, run: Lost) -> dict[int, str]:
    """Return sentences about the batches of a lost range that can be repaired, or for which several
    repairs are possible, by byte position. Raise UnreadableError (an OSError) if the segment cannot
    be opened.
    """
    with _reading(scanned) as (read, size):
        answers = list(repair_range(read, run, size, str(scanned.segment.path)))
    return {answer.position: text for answer in answers if (text := _describe(answer))}


def describe_header_repairs(scanned: ScannedSegment) -> dict[int, str]:
    """Return sentences about the batches with a valid checksum whose header can be repaired, by
    byte position. Raise UnreadableError (an OSError) if the segment cannot be opened.
    """
    segment = scanned.segment
    base = segment.base_offset if segment.has_canonical_name else None
    with _reading(scanned) as (read, _):
        answers = repair_headers(read, scanned.headers, base, scanned.next_base, str(segment.path))
        return {answer.position: _describe(answer) for answer in answers}


def _describe(answer: Repair | NoRepair) -> str:
    """Return the sentence about an answer, with a space before it; "" if nothing explains the damage."""
    if isinstance(answer, NoRepair):
        return f" It cannot be repaired: {answer.reason}." if answer.is_ambiguous else ""
    text = answer.describe()
    return f" {text[0].upper()}{text[1:]}; kafka-log salvage --repair corrects it."


@contextmanager
def _reading(scanned: ScannedSegment) -> Iterator[tuple[Read, int]]:
    """Open a segment for the ``with`` block, and give a function that reads bytes at a position,
    zeros in place of unreadable ones, and the size of the file. Raise UnreadableError (an OSError)
    if it cannot be opened.
    """
    with open_segment(scanned.segment.path, is_listed=True) as file:
        size = size_of(file)

        def read(position: int, n: int) -> bytes:
            return read_what_there_is(file, position, min(n, size - position), 0)

        yield read, size
