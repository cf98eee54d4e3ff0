"""Salvage of entries that are incomplete or damaged: the records that can still be read.

The size of an entry holds if no valid entry begins before its end. If one does, it lies in a value of the entry,
or the size is wrong: then the entry ends where the valid one begins, so that no record is read twice.
"""

from __future__ import annotations

from collections.abc import Callable

from codecgen.runtime.construct import Layout
from codecgen.runtime.errors import CodecError
from kafka_log.segment.framing import HEADER_START, Frame, frame_of
from kafka_log.segment.model import Batch, Problem, is_own_checksum

Read = Callable[[int, int], bytes]


def read_frame(read: Read, position: int, file: str) -> Frame | None:
    """Return layout, magic byte and size of the entry at ``position``, also if it reaches beyond
    the end of the file. An unknown magic byte stays, with the layout of the newest version below it
    (of version 1 if it is negative). Return None if fewer than 17 bytes (HEADER_START) are left, or
    the stored length is too small for any entry.
    """
    head = read(position, HEADER_START)
    if len(head) < HEADER_START:
        return None
    try:
        return frame_of(head, position, file)
    except CodecError:
        return None


def parse_incomplete(
    data: bytes, frame: Frame | None, error: CodecError, parse: Callable[[bytes], Batch]
) -> Batch | None:
    """Return the batch whose first bytes are ``data``, with its complete records, parsed as if its
    length were that of ``data``; ``error`` becomes its first problem. Its wrong checksum is removed
    from the findings, as bytes are missing; ``is_valid`` stays False. Return None if ``frame`` is
    None, ``data`` has at most 17 bytes (HEADER_START), the batch does not parse, or it has no
    record.
    """
    if frame is None or frame.layout.length is None or len(data) <= HEADER_START:
        return None
    try:
        batch = parse(set_length(data, frame.layout))
    except CodecError:
        return None
    if not batch.records:
        return None
    batch.findings = tuple(f for f in batch.findings if not is_own_checksum(f))
    batch.problems = (Problem("size", error.without_frames()), *batch.problems)
    return batch


def set_length(data: bytes, layout: Layout) -> bytes:
    """Return the bytes of an entry of ``layout`` with ``data``, all of its bytes, as its length.
    Return ``data`` if entries of that layout do not state a length.
    """
    length = layout.length
    if length is None:
        return data
    number = (len(data) - length.before).to_bytes(
        length.size, "big" if length.endian == "big" else "little"
    )
    return data[: length.offset] + number + data[length.end :]


def has_all_records(batch: Batch) -> bool:
    """Return whether a batch has all of its records, whatever else is wrong with it."""
    if any(problem.at == "records" for problem in batch.problems):
        return False
    return batch.record_count is None or len(batch.records) >= batch.record_count


def is_filled_by_records(batch: Batch) -> bool:
    """Return whether nothing but the checksum of a batch is wrong. Records fill it to its last byte then, so its size is right."""
    return bool(batch.records) and not batch.problems and all(map(is_own_checksum, batch.findings))


def has_more_messages(long: Batch, short: Batch | None) -> bool:
    """Return whether the wrapper ``long`` has a valid message more than ``short``, which was parsed from fewer of its bytes."""
    more = long.records[0 if short is None else len(short.records) :]
    return not long.has_base_offset and bool(more) and more[0].crc_error is None


def copy_offsets(cut: Batch, whole: Batch) -> None:
    """Replace the records of ``cut``, whose offsets are unknown, by as many of the ``whole``
    wrapper, which has the offsets, and drop the problem. Do nothing if they are known, or ``whole``
    has fewer records.
    """
    if any(problem.at == "offsets" for problem in cut.problems) and len(whole.records) >= len(
        cut.records
    ):
        cut.records = whole.records[: len(cut.records)]
        cut.base_offset = cut.records[0].offset
        cut.problems = tuple(problem for problem in cut.problems if problem.at != "offsets")


def resolve_offsets(batch: Batch, after: int | None) -> None:
    """Shift the offsets of the records of a batch so that the first one is ``after`` + 1, if its
    problems say that the offsets are lost. Remove all records if ``after`` is None, or they would
    pass the last offset of the batch. Do nothing if the offsets are known.
    """
    if not batch.records or all(problem.at != "offsets" for problem in batch.problems):
        return
    shift = 0 if after is None else after + 1 - batch.records[0].offset
    if after is None or batch.records[-1].offset + shift > batch.last_offset:
        batch.records = []
        return
    batch.records = [r._replace(offset=r.offset + shift) for r in batch.records]
    batch.base_offset = batch.records[0].offset
