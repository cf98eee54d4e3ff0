"""The contents of a segment that is written again: its batches, their problems, and lost ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafka_log.logs.incomplete_tails import separate_unfinished_tail
from kafka_log.logs.partitions import Segment
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import COUNTED, Block
from kafka_log.segment.header_arrays import (
    Headers,
    concatenate_headers,
    header_row,
    headers_from_block,
    headers_from_rows,
)
from kafka_log.segment.model import Batch, Lost, Policy, may_lack_records
from kafka_log.segment.placement import find_outside_segment, find_placed
from kafka_log.segment.reader import damage
from kafka_log.segment.row_damage import crc_ok
from kafka_log.segment.scanner import Scanner
from kafka_log.segment.versions import VERSIONS, have_field


@dataclass(frozen=True, slots=True)
class BatchProblem:
    """Why a batch cannot be copied. ``sound`` is the number of its readable records whose checksum is not wrong."""

    reason: str
    sound: int


@dataclass(frozen=True, slots=True)
class SegmentContents:
    """The batches of a segment in file order.

    Attributes:
        segment: The segment.
        headers: The batch headers. The last offset of a batch with a problem is that of its last readable record.
        rows: The number of readable records of each batch.
        troubles: The batches with problems, by their index.
        lost: Ranges of bytes that are not batches, and batches with unreadable records.
        unfinished: The incomplete tail that the broker had not written to its end. None: there is none.
    """

    segment: Segment
    headers: Headers
    rows: Any
    troubles: Mapping[int, BatchProblem]
    lost: tuple[Lost, ...]
    unfinished: Lost | None

    def is_unfinished(self, i: int) -> bool:
        """Return whether a batch, by its index, lies in the incomplete tail."""
        return self.unfinished is not None and self.headers.position[i] >= self.unfinished.start

    def has_records(self, i: int, keep_damaged: bool) -> bool:
        """Return whether a batch with a problem, by its index, has readable records: without a wrong
        checksum, unless ``keep_damaged``.
        """
        return bool(self.rows[i] if keep_damaged else self.troubles[i].sound)

    @property
    def is_good(self) -> Any:
        """Return a mask of the batches without problems."""
        found = np.ones(len(self.headers), np.bool_)
        found[list(self.troubles)] = False
        return found


def read_contents(segment: Segment, next_base: int | None = None) -> SegmentContents:
    """Return the batches, damage, lost ranges and incomplete tail of a segment, read under
    ``salvage``. ``next_base``, the base offset of the next segment, helps to reject wrong offsets.
    Batches with a wrong checksum, unreadable records, an unknown version or a last offset below the
    first one have a problem, as has a wrapper whose offset, where brokers continue, is not that of
    its last message. Never raise for damage or an unreadable file: bytes that cannot be decoded or
    read become lost ranges, the whole segment if it cannot be opened.

    Args:
        segment: The segment.
        next_base: The base offset of the next segment. None: it is not known.
    """
    reader = BlockReader(
        segment.path,
        policy=Policy.SALVAGE,
        tail=segment.tail,
        size=segment.size,
        salvage_records=True,
        next_base=next_base,
    )
    parts: list[Headers] = []
    rows: list[Any] = [np.empty(0, np.int64)]
    ends: list[Any] = [np.empty(0, np.int64)]
    single: list[tuple[Any, ...]] = []
    troubles: dict[int, BatchProblem] = {}
    count = 0
    for item in reader.items((*COUNTED, "offset")):
        if isinstance(item, Block):
            parts += [headers_from_rows(single), headers_from_block(item)]
            single = []
            rows.append(np.diff(item.starts()))
            ends.append(_last_offsets(item, parts[-1], rows[-1]))
            count += item.entries
            continue
        reason = next(map(str, damage(item)), None)
        if reason is not None:
            sound = sum(crc_ok(item, record) is not False for record in item.records)
            if item.magic not in VERSIONS and may_lack_records(item):
                sound = 0
            troubles[count] = BatchProblem(reason, sound)
        single.append(header_row(item) if reason is None else _row_of_damaged(item))
        rows.append(np.array([len(item.records)]))
        ends.append(np.array([item.records[-1].offset if item.records else item.last_offset]))
        count += 1
    headers = concatenate_headers([*parts, headers_from_rows(single)])
    row_counts, of_records = np.concatenate(rows), np.concatenate(ends)
    wrong = (of_records != headers.last) & ~have_field(headers.magic, "record_count")
    for i in np.flatnonzero(wrong).tolist():
        if i not in troubles:
            reason = (
                f"its offset is {headers.last[i]}, but that of its last message is {of_records[i]}"
            )
            troubles[i] = BatchProblem(reason, int(row_counts[i]))
            headers.last[i] = headers.offset_bound[i] = of_records[i]
    reversed_ = [
        i for i in np.flatnonzero(headers.last < headers.first).tolist() if i not in troubles
    ]
    if reversed_:
        for i, (last, sound) in zip(
            reversed_, _read_ends(segment, headers, reversed_), strict=True
        ):
            headers.last[i] = last
            troubles[i] = BatchProblem(REVERSED, sound)
    lost, unfinished = separate_unfinished_tail(segment, reader.end)
    return SegmentContents(segment, headers, row_counts, troubles, lost, unfinished)


def _last_offsets(block: Block, headers: Headers, counts: Any) -> Any:
    """Return the offset of the last record of each batch of a block, by its records; that of the
    header for a batch without records.
    """
    offsets = block.batch.column("offset").to_numpy()
    found = headers.last.copy()
    has_rows = counts > 0
    found[has_rows] = offsets[block.starts()[1:][has_rows] - 1]
    return found


REVERSED = "its header has a last offset before its first one"


def _read_ends(segment: Segment, headers: Headers, batches: list[int]) -> list[tuple[int, int]]:
    """Return the largest offset and the number of the readable records of each of ``batches``
    (indexes). The headers of these batches state a last offset before the first one. A batch
    without readable records has the last offset of its header and 0.
    """
    positions = headers.position[batches]
    scanner = Scanner(
        segment.path,
        ["position", "offset"],
        Policy.SALVAGE,
        tail=segment.tail,
        size=segment.size,
    )
    ends = [(int(headers.last[i]), 0) for i in batches]
    for rows in scanner:
        at = rows.column("position").to_numpy()
        for k in np.flatnonzero(np.isin(positions, at)).tolist():
            offsets = rows.column("offset").to_numpy()[at == positions[k]]
            before = ends[k]
            last = int(offsets.max())
            ends[k] = (max(before[0], last) if before[1] else last, before[1] + len(offsets))
    return ends


def _row_of_damaged(batch: Batch) -> tuple[Any, ...]:
    """Return the header of a batch with problems: it ends with its last readable record."""
    if batch.records:
        batch = replace(batch, last_offset=batch.records[-1].offset)
    return header_row(batch)


def get_named_base_offset(segment: Segment) -> int | None:
    """Return the base offset in the name of a segment file, live or not, or None if the name has none."""
    return segment.base_offset if segment.has_offset_in_name else None


def choose_batches(
    found: SegmentContents, next_base: int | None, after: int, keep_damaged: bool
) -> Any:
    """Return a NumPy mask of the batches to write: those whose offsets ascend from ``after``
    (excluded) and, if the name of the file has a base offset, lie between that and ``next_base``
    (excluded). Batches with problems are chosen after the others, only if they fit between them and
    have records to write: records with a wrong checksum count only with ``keep_damaged``, those
    whose checksum cannot be verified always.

    Args:
        found: The contents of a segment.
        next_base: The base offset of the next segment. None: offsets have no bound.
        after: The last offset that was written before.
        keep_damaged: Whether records whose checksum is wrong are written.
    """
    inside = mark_inside(found, next_base) & (found.headers.first > after)
    taken = choose_intact(found, next_base, inside)
    return add_damaged(found, taken, inside, keep_damaged)


def mark_inside(found: SegmentContents, next_base: int | None) -> Any:
    """Return a mask of the batches whose offsets belong to the segment by the names of this file
    and of the next one, with base offset ``next_base`` (None: no bound). All are True if the name of
    this file has no base offset; a batch whose last offset is below its first always is.
    """
    headers, base = found.headers, get_named_base_offset(found.segment)
    return ~find_outside_segment(headers.first, headers.last, base, next_base)


def choose_intact(found: SegmentContents, next_base: int | None, inside: Any) -> Any:
    """Return a mask of the batches of the mask ``inside`` without problems whose offsets ascend,
    so that the fewest are left out (:func:`find_placed`). ``next_base`` is the base offset of the
    next segment, None without one.
    """
    headers, base = found.headers, get_named_base_offset(found.segment)
    excluded = ~inside | ~found.is_good
    return find_placed(headers.first, headers.last, excluded, (base or 0, next_base))


def add_damaged(found: SegmentContents, taken: Any, inside: Any, keep_damaged: bool) -> Any:
    """Return a copy of the mask ``taken`` with the batches of the mask ``inside`` that have
    problems added. They must have records to write, and fit between their neighbors in ``taken``.
    Records with a wrong checksum count only with ``keep_damaged``.
    """
    headers = found.headers
    taken = taken.copy()
    before = -1
    # The first offset of the next intact batch that is taken, for each batch.
    bound = np.full(len(headers) + 1, np.iinfo(np.int64).max)
    bound[:-1][taken] = headers.first[taken]
    following = np.minimum.accumulate(bound[::-1])[::-1]
    at = 0
    for i in sorted(found.troubles):
        between = headers.last[at:i][taken[at:i]]
        before = max(before, int(between.max(initial=-1)))
        at = i
        first, last = int(headers.first[i]), int(headers.last[i])
        if (
            found.has_records(i, keep_damaged)
            and inside[i]
            and before < first <= last < following[i]
        ):
            taken[i] = True
            before = last
    return taken
