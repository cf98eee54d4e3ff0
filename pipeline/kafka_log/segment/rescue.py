"""Entries that are not whole: what can be read of them, and where reading goes on.

The length of an entry is believed when no good entry begins before its end. When one does, it lies in a value of the entry,
or the length is wrong: then the entry ends where the good one begins, so that no record comes twice.
"""

from __future__ import annotations

from collections.abc import Callable

from codecgen.runtime.errors import CodecError
from kafka_log.segment.framing import HEADER_START, Frame, frame_of
from kafka_log.segment.model import Batch, Problem, is_own_checksum

Read = Callable[[int, int], bytes]


def claimed(read: Read, position: int, file: str) -> Frame | None:
    """What the entry at a place says of itself, None when it says nothing that can be."""
    head = read(position, HEADER_START)
    if len(head) < HEADER_START:
        return None
    try:
        return frame_of(head, position, file)
    except CodecError:
        return None


def torn(
    data: bytes, frame: Frame | None, error: CodecError, parse: Callable[[bytes], Batch]
) -> Batch | None:
    """The batch that ``data`` begins, without what follows it. None when nothing can be read of it.

    It is parsed with the length that it has. Its checksum is over bytes that are not there: only a right one says something.
    """
    length = None if frame is None else frame.layout.length
    if length is None or len(data) <= HEADER_START:
        return None
    number = (len(data) - length.before).to_bytes(
        length.size, "big" if length.endian == "big" else "little"
    )
    try:
        batch = parse(data[: length.offset] + number + data[length.end :])
    except CodecError:
        return None
    if not batch.records:
        return None
    batch.findings = tuple(f for f in batch.findings if not is_own_checksum(f))
    batch.problems = (Problem("size", error.without_frames()), *batch.problems)
    return batch


def has_all(batch: Batch) -> bool:
    """Whether all records of a batch are there, whatever else is wrong with it."""
    if any(problem.at == "records" for problem in batch.problems):
        return False
    return batch.record_count is None or len(batch.records) >= batch.record_count


def fills(batch: Batch) -> bool:
    """Whether records fill a batch to its last byte, and nothing but its checksum is wrong: its length is right."""
    return bool(batch.records) and not batch.problems and all(map(is_own_checksum, batch.findings))


def has_more(long: Batch, short: Batch | None) -> bool:
    """Whether a wrapper with more of its bytes has more messages, with right checksums."""
    more = long.records[0 if short is None else len(short.records) :]
    return not long.says_base_offset and bool(more) and more[0].crc_error is None


def take_offsets(cut: Batch, whole: Batch) -> None:
    """Give the messages of a wrapper that was cut the offsets that they have in the ``whole`` one, as far as that has them."""
    if any(problem.at == "offsets" for problem in cut.problems) and len(whole.records) >= len(
        cut.records
    ):
        cut.records = whole.records[: len(cut.records)]
        cut.base_offset = cut.records[0].offset
        cut.problems = tuple(problem for problem in cut.problems if problem.at != "offsets")


def settle_offsets(batch: Batch, after: int | None) -> None:
    """Count the offsets of a batch that has lost the message that they are relative to from the last one before it, ``after``.
    Where that cannot be, the batch has no records."""
    if not batch.records or all(problem.at != "offsets" for problem in batch.problems):
        return
    shift = 0 if after is None else after + 1 - batch.records[0].offset
    if after is None or batch.records[-1].offset + shift > batch.last_offset:
        batch.records = []
        return
    batch.records = [r._replace(offset=r.offset + shift) for r in batch.records]
    batch.base_offset = batch.records[0].offset
