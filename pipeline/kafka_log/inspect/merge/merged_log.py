"""Writing of a merged log: its batches, the files that a broker keeps beside segments, and the check of what was written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from codecgen.runtime.errors import Where
from kafka_log.inspect.merge.plan import MergePlan
from kafka_log.inspect.merge.replica import Replica
from kafka_log.logs.partitions import Segment, pair_with_next_base_offset
from kafka_log.segment.header_arrays import concatenate_headers, headers_from_rows
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.write.log_writer import LogWriter, write_batches
from kafka_log.write.rewrite.partition_writer import finish
from kafka_log.write.segment_contents import read_contents
from kafka_log.write.verification import DEFECT, WrittenError

_VERIFIED = ("first", "last", "size", "magic", "crc", "leader_epoch", "count")


@dataclass(frozen=True, slots=True)
class _Run:
    """Batches of one segment of a replica that are written one after the other.

    Attributes:
        replica: The replica.
        rows: Indexes of the batches among the whole batches of the replica.
        begins: Whether a segment begins with them.
        base: Base offset of that segment. None: the first offset of the run.
    """

    replica: Replica
    rows: Any
    begins: bool
    base: int | None


def write_merged(plan: MergePlan, out: Path) -> list[Segment]:
    """Write the batches of a plan into the empty directory ``out``, with indexes, producer
    snapshots, leader epochs and topic id, and return the segments. Their bytes are compared with
    their sources, and all batches are decoded again. Raise OSError if reading or writing fails;
    WrittenError (a CodecError) if what was written differs.
    """
    with LogWriter(out) as log:
        for run in _list_runs(plan):
            k = int(run.replica.segment[run.rows[0]])
            found = replace(
                run.replica.contents[k],
                headers=run.replica.headers.take(run.rows),
                rows=run.replica.rows[run.rows],
            )
            every = np.ones(len(run.rows), np.bool_)
            write_batches(
                *(log, found, every, ~every, ~every, run.base),
                begins=run.begins,
                keep_damaged=False,
                constants={},
            )
        if _needs_empty_segment(plan, log):
            log.begin(plan.end)
    epochs = _list_epochs(plan)
    segments = finish(plan.leader.partition, out, log.segments, epochs, plan.end)
    _verify(plan, segments)
    return segments


def _needs_empty_segment(plan: MergePlan, log: LogWriter) -> bool:
    """Return whether an empty segment ends the log: nothing was written, the last offsets are lost,
    so that new records must not get them, or the last segment of a replica is empty. For a plan
    that ``is_part``, only the first of these counts.
    """
    if not log.segments:
        return True
    if plan.is_part:
        return False
    last = int(plan.batches.last[-1])
    return plan.end > last + 1 or (plan.end in plan.base_offsets and plan.end > log.base_offset)


def _list_runs(plan: MergePlan) -> Iterator[_Run]:
    """Yield the batches of a plan in runs, by offset. A segment begins where one of a replica begins,
    if no batch lies across.
    """
    batches, bases = plan.batches, np.array([-1, *plan.base_offsets])
    if not len(batches):
        return
    segment = np.zeros(len(batches), np.int64)
    for one in plan.replicas:
        own = batches.replica == one.number
        segment[own] = one.segment[batches.index[own]]
    base = bases[np.searchsorted(bases, batches.first, side="right") - 1]
    begins = np.append(True, (base[1:] > batches.last[:-1]) & (base[1:] != base[:-1]))
    is_other = (np.diff(batches.replica) != 0) | (np.diff(segment) != 0)
    is_other |= np.diff(batches.index) != 1
    cuts = np.flatnonzero(np.append(True, is_other) | begins)
    for low, high in zip(cuts, np.append(cuts[1:], len(batches)), strict=True):
        name = int(base[low])
        is_name = name >= 0 and int(batches.last[low]) - name <= MAX_RELATIVE
        is_name &= not plan.is_part or name == batches.first[low]
        yield _Run(
            plan.replicas[int(batches.replica[low])],
            batches.index[low:high],
            bool(begins[low]),
            name if is_name else None,
        )


def _list_epochs(plan: MergePlan) -> list[tuple[int, int]]:
    """Return the leader epochs of the batches of a plan, each with its first offset, ascending.
    Negative epochs, and epochs that are not above all before them, are left out.
    """
    epoch = plan.batches.gather(plan.replicas, "leader_epoch")
    highest = np.maximum.accumulate(np.append(-1, epoch))
    new = np.flatnonzero(highest[1:] > highest[:-1])
    return [(int(epoch[i]), int(plan.batches.first[i])) for i in new]


def _verify(plan: MergePlan, segments: Sequence[Segment]) -> None:
    """Raise WrittenError if the written segments do not read as the batches of the plan, all whole."""
    parts, rows = [headers_from_rows([])], [np.empty(0, np.int64)]
    for segment, next_base in pair_with_next_base_offset(segments):
        found = read_contents(segment, next_base)
        if found.lost or found.troubles or found.unfinished:
            raise WrittenError(
                f"a merged segment is damaged; {DEFECT}", Where(file=str(segment.path))
            )
        parts.append(found.headers)
        rows.append(found.rows)
    headers = concatenate_headers(parts)
    pairs = [(getattr(headers, n), plan.batches.gather(plan.replicas, n)) for n in _VERIFIED]
    pairs.append((np.concatenate(rows), plan.batches.records))
    for found_values, expected in pairs:
        if not np.array_equal(found_values, expected):
            where = Where(file=str(plan.leader.partition.directory))
            raise WrittenError(
                f"the merged segments have other batches than the replicas; {DEFECT}", where
            )
