"""Copies of damaged segments in which flipped bits are repaired, so that a rewrite reads them in place of the damaged ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kafka_log.logs.incomplete_tails import separate_unfinished_tail
from kafka_log.logs.partitions import Partition, Segment, pair_with_next_base_offset
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.header_arrays import (
    Headers,
    concatenate_headers,
    header_row,
    headers_from_block,
    headers_from_rows,
)
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.positioned_reads import (
    UnreadableError,
    open_segment,
    read_what_there_is,
    size_of,
)
from kafka_log.segment.repair.batch_repair import NoRepair, Repair
from kafka_log.segment.repair.segment_repair import apply_repairs, find_repairs
from kafka_log.write.output_files import open_output
from kafka_log.write.rewrite.report import ReportRow
from kafka_log.write.segment_contents import get_named_base_offset

_COPIES = ".repaired"
_COPIED = 1 << 20
"""Number of bytes that are copied at once."""


@contextmanager
def repaired_partition(
    partition: Partition, out: Path
) -> Iterator[tuple[Partition, list[ReportRow]]]:
    """Give, in a ``with`` block, a partition in which repaired copies below ``out`` replace the
    segments that can be repaired, and report rows. The rows are ``repaired``, and ``not repaired``
    for damaged batches without a repair. Other segments stay the same. The copies are removed after
    the block. Raise OSError if a copy cannot be written, or its segment is gone meanwhile.
    """
    directory = out / _COPIES
    segments, rows = [], []
    try:
        for k, (segment, next_base) in enumerate(pair_with_next_base_offset(partition.segments)):
            answers = find_segment_repairs(segment, next_base)
            rows += [describe_answer(segment, answer) for answer in answers]
            repairs = [answer for answer in answers if isinstance(answer, Repair)]
            if repairs:
                copy = directory / str(k) / segment.path.name
                copy.parent.mkdir(parents=True)
                _write_copy(segment, repairs, copy)
                segment = replace(segment, path=copy)
            segments.append(segment)
        yield replace(partition, segments=tuple(segments)), rows
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def name_original(reason: str | None, partition: Partition, out: Path) -> str | None:
    """Return a reason with the paths of segments of the partition in place of those of their copies
    below ``out``; None for None.
    """
    if reason is not None and _COPIES in reason:
        for k, segment in enumerate(partition.segments):
            copy = out / _COPIES / str(k) / segment.path.name
            reason = reason.replace(utf8(str(copy)), utf8(str(segment.path)))
    return reason


def find_segment_repairs(segment: Segment, next_base: int | None) -> list[Repair | NoRepair]:
    """Return the repairs of a segment, and why other damaged batches have none, in file order;
    ``[]`` if it has no damage, or cannot be opened. A batch with a valid checksum has a repair if its
    offset, leader epoch or version contradicts the batches around and these leave one value. An
    incomplete tail that cannot be repaired is no damage. ``next_base`` (None: unknown) is the base
    offset of the next segment, which bounds its offsets.

    Args:
        segment: The segment.
        next_base: Base offset of the next segment. None: unknown.
    """
    try:
        headers, lost, tail = _read_headers(segment, next_base)
        with open_segment(segment.path, is_listed=True) as file:
            size = size_of(file)

            def read(position: int, n: int) -> bytes:
                return read_what_there_is(file, position, min(n, size - position), 0)

            base = get_named_base_offset(segment)
            name = str(segment.path)
            found = find_repairs(read, headers, [*lost, *tail], size, base, next_base, name)
        begin = min((one.start for one in tail), default=segment.size)
        return [one for one in found if isinstance(one, Repair) or one.position < begin]
    except UnreadableError:
        return []


def _read_headers(
    segment: Segment, next_base: int | None
) -> tuple[Headers, Sequence[Lost], Sequence[Lost]]:
    """Return the headers of the batches of a segment with valid checksums, the ranges of bytes that
    are no such batches, and the incomplete tail. The tail is a sequence of one range, or empty.
    Damage and an unreadable file do not raise.
    """
    reader = BlockReader(
        segment.path,
        policy=Policy.SALVAGE,
        records=False,
        size=segment.size,
        salvage_records=False,
        next_base=next_base,
    )
    parts = [headers_from_rows([])]
    for item in reader.items():
        if isinstance(item, Block):
            parts.append(headers_from_block(item))
        else:
            parts.append(headers_from_rows([header_row(item)]))
    lost, unfinished = separate_unfinished_tail(segment, reader.end)
    tail = () if unfinished is None else (unfinished,)
    ranges = [tuple(one.up_to(next_base) for one in some) for some in (lost, tail)]
    return concatenate_headers(parts), ranges[0], ranges[1]


def _write_copy(segment: Segment, repairs: Sequence[Repair], copy: Path) -> None:
    """Write the bytes of a segment with repairs to ``copy``, which is replaced if it exists;
    unreadable bytes become zeros. Raise OSError if it cannot be written, or the segment cannot be
    opened.
    """
    with open_segment(segment.path, is_listed=True) as source, open_output(copy) as target:
        size = size_of(source)
        for position in range(0, size, _COPIED):
            count = min(_COPIED, size - position)
            data = read_what_there_is(source, position, count, 0)
            target.write(apply_repairs(data, position, repairs))


def describe_answer(segment: Segment, answer: Repair | NoRepair) -> ReportRow:
    """Return the report row of a repair, or of a damaged batch without one. A repair is
    ``repaired``, with its batch's records, bytes and offsets; the other is ``not repaired``, with
    the reason, and its bytes are None if unknown.
    """
    name = utf8(segment.path.name)
    if isinstance(answer, NoRepair):
        return ReportRow(
            name,
            "not repaired",
            byte=answer.position,
            bytes=answer.size or None,
            reason=answer.reason,
        )
    row = ReportRow(
        name,
        "repaired",
        batches=1,
        byte=answer.position,
        bytes=answer.size,
        first_offset=answer.first_offset,
        last_offset=answer.last_offset,
        reason=answer.describe(),
    )
    row.count_records(answer.records, answer.is_control)
    return row
