"""What a segment holds, to be written again: its batches, which of them are good, and what is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafka_log.logs.incomplete_tails import separate_incomplete_tail
from kafka_log.logs.partitions import Segment
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.blocks import Block
from kafka_log.segment.header_arrays import Headers, joined, of_block, of_rows, row_of
from kafka_log.segment.model import Batch, Lost, Policy
from kafka_log.segment.placement import in_order, outside
from kafka_log.segment.reader import damage
from kafka_log.segment.row_damage import crc_ok
from kafka_log.segment.versions import VERSIONS


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a batch is not good. ``sound`` is how many of its records that can be read have no wrong checksum."""

    reason: str
    sound: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The batches of a segment, in the order of the file. ``rows`` is how many records of each can be read. ``troubles`` has those that
    are not good, by their number in that order; the last offsets of these are those of their last records that can be read.

    ``lost`` are runs of bytes that are no batches, and batches of which not all records can be read, but for what is ``unfinished``.
    """

    segment: Segment
    headers: Headers
    rows: Any
    troubles: Mapping[int, Trouble]
    lost: tuple[Lost, ...]
    unfinished: Lost | None

    def is_unfinished(self, i: int) -> bool:
        """Whether a batch, by its number, is one that its broker has not written to its end."""
        return self.unfinished is not None and self.headers.position[i] >= self.unfinished.start

    @property
    def is_good(self) -> Any:
        """For each batch, whether nothing is wrong with it."""
        found = np.ones(len(self.headers), np.bool_)
        found[list(self.troubles)] = False
        return found


def contents(segment: Segment, next_base: int | None = None) -> Contents:
    """Read a segment. What the system does not give of it is lost. ``next_base`` is the first offset of the next one, None where nobody
    says it."""
    reader = BlockReader(
        segment.path,
        policy=Policy.SALVAGE,
        tail=segment.tail,
        size=segment.size,
        rescue=True,
        next_base=next_base,
    )
    parts: list[Headers] = []
    rows: list[Any] = [np.empty(0, np.int64)]
    single: list[tuple[Any, ...]] = []
    troubles: dict[int, Trouble] = {}
    count = 0
    for item in reader.parts():
        if isinstance(item, Block):
            parts += [of_rows(single), of_block(item)]
            single = []
            rows.append(np.diff(item.starts()))
            count += item.entries
            continue
        reason = _wrong(item)
        if reason is not None:
            sound = sum(crc_ok(item, record) is not False for record in item.records)
            troubles[count] = Trouble(reason, sound)
        single.append(row_of(item) if reason is None else _ending_early(item))
        rows.append(np.array([len(item.records)]))
        count += 1
    headers = joined([*parts, of_rows(single)])
    lost, unfinished = separate_incomplete_tail(segment, reader.end)
    return Contents(segment, headers, np.concatenate(rows), troubles, lost, unfinished)


def _wrong(batch: Batch) -> str | None:
    """Why a batch cannot stay as it is."""
    if batch.magic not in VERSIONS:
        return f"no version of the format is {batch.magic}"
    return next(map(str, damage(batch)), None)


def _ending_early(batch: Batch) -> tuple[Any, ...]:
    """The header of a batch that is written anew: it ends with its last record that can be read."""
    if batch.records:
        batch = replace(batch, last_offset=batch.records[-1].offset)
    return row_of(batch)


def base_of(segment: Segment) -> int | None:
    """The offset in the name of a segment, also of one that is not live; None where the name is another one."""
    return segment.base_offset if segment.has_offset_in_name else None


def placed(found: Contents, next_base: int | None, after: int, keep_damaged: bool) -> Any:
    """Which batches to take so that offsets rise from ``after`` on and stay below ``next_base``, if that is not None. Those that are
    good come first: one that is not is taken where it fits between these, and something of it is to be written."""
    headers, base = found.headers, base_of(found.segment)
    out = outside(headers.first, headers.last, base, next_base)
    out |= headers.first <= after
    good = found.is_good
    taken = in_order(headers.first, headers.last, out | ~good)
    before = after
    # The first offset of the next good batch that is taken, for each batch.
    bound = np.full(len(headers) + 1, np.iinfo(np.int64).max)
    bound[:-1][taken] = headers.first[taken]
    following = np.minimum.accumulate(bound[::-1])[::-1]
    at = 0
    for i in sorted(found.troubles):
        between = np.flatnonzero(taken[at:i])
        if len(between):
            before = max(before, int(headers.last[at + between[-1]]))
        at = i
        trouble = found.troubles[i]
        first, last = int(headers.first[i]), int(headers.last[i])
        some = found.rows[i] if keep_damaged else trouble.sound
        if some and not out[i] and before < first <= last < following[i]:
            taken[i] = True
            before = last
    return taken
