"""Rows of the report of a merge: what is written from which replica, what is lost, and what was decided."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kafka_log.inspect.merge.candidates import Candidates
from kafka_log.inspect.merge.plan import LostRange, MergePlan
from kafka_log.inspect.merge.replica import DamagedRange, Replica
from kafka_log.segment.arrow_text import utf8
from kafka_log.write.rewrite.report import ReportRow

_ABSENT = (
    "this replica lacks records there, though it is whole: compaction removed them, or they are missing;"
    " those of the other replicas are written"
)
_OTHER_EPOCHS = "another replica has the same bytes with another leader epoch, which no checksum covers: that one is written"


def list_merge_rows(plan: MergePlan) -> list[ReportRow]:
    """Return the report rows of a plan: ``kept`` for the batches of each segment, ``replaced`` for
    damage whose offsets other replicas have, ``absent``, ``unfinished`` for incomplete tails,
    ``twice``, ``left out``, ``diverged``, and ``lost``, in this order. Without batches one row
    ``kept`` with 0 batches names the leader's directory. Files are paths, because several replicas
    have segments of the same name.
    """
    rows = list(sum_by_file(plan, "kept", plan.batches))
    if not rows:
        rows = [ReportRow(path_text(plan.leader.partition.directory), "kept", 0, 0, 0)]
    rows += [describe_damage("replaced", one) for one in plan.replaced]
    rows += _list_absent(plan)
    rows += _list_unfinished(plan)
    rows += [describe_damage("twice", one) for one in plan.misnumbered]
    if plan.below_start is not None:
        reason = f"below the log start offset {plan.log_start}: DeleteRecords deleted them"
        rows += sum_by_file(plan, "left out", plan.below_start, reason)
    if plan.removed is not None and plan.compacted is not None:
        rows += sum_by_file(plan, "left out", plan.removed, _describe_removed(plan.compacted))
    for divergence, batches in plan.diverged.values():
        reason = (
            f"the log of {path_text(plan.leader.partition.directory)} continues in leader epoch"
            f" {divergence.leader_epoch} from offset {divergence.offset} on, which is later: Kafka truncates this replica there"
        )
        rows += sum_by_file(plan, "diverged", batches, reason)
    if plan.other_epochs is not None:
        rows += sum_by_file(plan, "diverged", plan.other_epochs, _OTHER_EPOCHS)
    rows += [_describe_lost(plan, one) for one in plan.lost]
    return rows


def _list_absent(plan: MergePlan) -> Iterator[ReportRow]:
    """Yield a row for each replica that lacks merged batches inside its log, and for each that
    begins after the first merged batch.
    """
    for number, batches in plan.absent.items():
        directory = plan.replicas[number].partition.directory
        yield ReportRow(
            path_text(directory),
            "absent",
            len(batches),
            first_offset=int(batches.first[0]),
            last_offset=int(batches.last[-1]),
            reason=_ABSENT,
        )
    for one in plan.replicas:
        if one.start is not None and len(plan.batches) and one.start > plan.batches.first[0]:
            before = plan.batches.take(plan.batches.first < one.start)
            reason = (
                f"this replica begins at offset {one.start}: retention deleted what is before, or its first segments are missing;"
                " the batches of the other replicas are written"
            )
            yield ReportRow(
                path_text(one.partition.directory),
                "absent",
                len(before),
                first_offset=int(before.first[0]),
                last_offset=min(int(before.last[-1]), one.start - 1),
                reason=reason,
            )


def _list_unfinished(plan: MergePlan) -> Iterator[ReportRow]:
    """Yield a row for each incomplete tail at the end of the merged log, or of unknown offset; none
    for tails after which another replica goes on.
    """
    for one in plan.replicas:
        for found in one.contents:
            tail = found.unfinished
            if tail is not None and (
                tail.after_offset is None or tail.after_offset + 1 >= plan.end
            ):
                row = ReportRow(path_text(found.segment.path), "unfinished", byte=tail.start)
                row.bytes, row.reason = tail.end - tail.start, utf8(tail.reason)
                yield row


def _describe_removed(compacted: Replica) -> str:
    """Return why batches are left out that a compacted replica lacks."""
    return (
        f"{path_text(compacted.partition.directory)}, which was compacted further, has no such records, and offsets after them are lost:"
        " newer records of their keys, or tombstones, may have been there"
    )


def sum_by_file(
    plan: MergePlan, what: str, batches: Candidates, reason: str | None = None
) -> Iterator[ReportRow]:
    """Yield one row ``what`` for the batches of each segment: their number, records, bytes and
    offsets, with ``reason``. ``byte`` is the position of the first one if all adjoin, else None.
    """
    for one in plan.replicas:
        own = batches.take(batches.replica == one.number)
        of_segment = one.segment[own.index]
        for k in np.unique(of_segment).tolist():
            these = own.take(of_segment == k)
            headers = one.headers.take(these.index)
            size = int(headers.size.sum())
            start, end = headers.position.min(), (headers.position + headers.size).max()
            row = ReportRow(
                path_text(one.partition.segments[k].path),
                what,
                len(these),
                byte=int(start) if int(end - start) == size else None,
                bytes=size,
                first_offset=int(these.first.min()),
                last_offset=int(these.last.max()),
                reason=reason,
            )
            row.count_records(these.records, headers.is_control)
            yield row


def describe_damage(what: str, found: DamagedRange) -> ReportRow:
    """Return the row ``what`` about a damaged range, with its file, bytes, offsets and reason."""
    size = found.end - found.start
    return ReportRow(
        path_text(found.path),
        what,
        byte=found.start if size else None,
        bytes=size or None,
        first_offset=found.first,
        last_offset=found.last,
        reason=utf8(found.reason),
    )


def _describe_lost(plan: MergePlan, one: LostRange) -> ReportRow:
    """Return the row of a lost range: the place of its first damage, and what is wrong in each
    replica; without damage the directory of the leader, and the reason of the range.
    """
    row = ReportRow(path_text(plan.leader.partition.directory), "lost", reason=one.reason)
    if one.damage:
        first, *others = one.damage
        row = describe_damage("lost", first)
        more = [f"; {path_text(d.path)} byte {d.start}: {utf8(d.reason)}" for d in others]
        row.reason = f"no replica has these offsets whole: {utf8(first.reason)}{''.join(more)}"
    row.first_offset, row.last_offset = one.first, one.last
    return row


def path_text(path: Path) -> str:
    """Return a path as text."""
    return utf8(os.fspath(path))
