"""Batches of one replica that another one lacks, or has with other records, written as a log of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.inspect.diff.record_comparison import RecordComparison
from kafka_log.inspect.merge.candidates import Candidates, list_candidates
from kafka_log.inspect.merge.merge_report import describe_damage, path_text, sum_by_file
from kafka_log.inspect.merge.merged_log import write_merged
from kafka_log.inspect.merge.merging import join_replicas
from kafka_log.inspect.merge.overlaps import COMPARED_BYTES, read_batch_records
from kafka_log.inspect.merge.plan import MergePlan
from kafka_log.inspect.merge.replica import Replica, read_replica
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import Partition
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.row_masks import numbers
from kafka_log.write.rewrite.commands import run_job
from kafka_log.write.rewrite.partition_writer import open_transactions
from kafka_log.write.rewrite.report import REPORT_SCHEMA, ReportRow, as_rows
from kafka_log.write.staged_output import find_log_start

Advance = Callable[[int], None]
Pair = tuple[Partition | None, Partition | None]


def write_unshared(
    pairs: Sequence[Pair], out: Path, inputs: Sequence[Path], advance: Advance = lambda _: None
) -> pa.Table:
    """Write the whole batches of the first partition of each pair that have a record which the
    second one lacks, or has with other values, below ``out`` for a broker to load, and return the
    report. Nothing is created if there are none. Damage of the first one is a row ``lost``, a
    missing second one a row ``left out``; a pair without a first one is skipped. Raise OutputError
    or OutputLockedError if ``out`` must not be written to, as inside ``inputs``; OSError if writing
    fails, or a segment disappears; CodecError if a batch changes while batches are compared.

    Args:
        pairs: Partitions with the same topic and number; None for a side that lacks it.
        out: The output directory.
        inputs: Paths that are read.
        advance: Called with the number of bytes of segments that are done.
    """
    plans: dict[tuple[str, int], tuple[MergePlan, list[ReportRow]]] = {}
    sources: dict[tuple[str, int], Partition] = {}
    joined: list[Partition] = []
    rows: list[dict[str, Any]] = []
    for one, other in pairs:
        if one is None:
            continue
        if other is None:
            reason = "the other side has no replica of this partition"
            said = [ReportRow(path_text(one.directory), "left out", reason=reason)]
            rows += as_rows(utf8(one.topic), one.partition, said)
            continue
        plan, said = _plan_pair(read_replica(0, one), read_replica(1, other))
        advance(one.size + other.size)
        if len(plan.batches):
            plans[one.key], sources[one.key] = (plan, said), one
            joined.append(join_replicas([one, other]))
        else:
            rows += as_rows(utf8(one.topic), one.partition, said)

    def work(partition: Partition, directory: Path, _: Advance) -> list[ReportRow]:
        plan, said = plans[partition.key]
        return [*said, *open_transactions(write_merged(plan, directory))]

    def find_start(starts: LogStarts, partition: Partition) -> int | None:
        return find_log_start(starts, sources[partition.key])

    if joined:
        options = {"only": True}
        table = run_job("diff", joined, out, inputs, options, work, find_start=find_start)
        rows = [*table.to_pylist(), *rows]
    return pa.Table.from_pylist(rows, REPORT_SCHEMA)


def _plan_pair(one: Replica, other: Replica) -> tuple[MergePlan, list[ReportRow]]:
    """Return the batches of ``one`` with a record that ``other`` lacks or has with other values,
    and the report rows: ``kept`` for each reason and file, ``lost`` for each damaged range of
    ``one``. Nothing is written. Raise CodecError for a batch that can no longer be read or has
    changed.
    """
    every = list_candidates([one, other])
    own = every.take(every.replica == one.number)
    shared = np.unique(every.content[every.replica == other.number])
    own = own.take(~np.isin(own.content, shared))
    alone, differ = _count_alone(own, one, other)
    batches, is_other = own.take(alone > 0), differ[alone > 0] > 0
    plan = MergePlan([one], one, batches, is_part=True)
    rows: list[ReportRow] = []
    for reason, which in _list_reasons(batches, is_other, one, other):
        rows += sum_by_file(plan, "kept", batches.take(which), reason)
    for found in one.damage:
        row = describe_damage("lost", found)
        row.reason = f"it is not known whether the other side has these records: {row.reason}"
        rows.append(row)
    return plan, rows


def _count_alone(own: Candidates, one: Replica, other: Replica) -> tuple[Any, Any]:
    """Return two arrays for the batches ``own`` of a replica, which the other one does not have
    byte for byte: the number of records that the other one lacks or has with other values, and of
    those with other values. A batch whose offsets the other one lacks is not decoded: the record
    count of its header counts. Batches that cannot be decoded count as without records. Raise
    CodecError for one that can no longer be read or has changed.
    """
    alone, differ = own.records.copy(), np.zeros(len(own), np.int64)
    low = np.searchsorted(other.headers.last, own.first)
    high = np.searchsorted(other.headers.first, own.last, side="right")
    overlaps = np.flatnonzero(high > low)
    sizes = np.cumsum(own.gather([one], "size")[overlaps])
    for group in np.split(overlaps, np.flatnonzero(np.diff(sizes // COMPARED_BYTES)) + 1):
        if not len(group):
            continue
        theirs = np.unique(np.concatenate([np.arange(low[i], high[i]) for i in group]))
        mine = read_batch_records(one, own.index[group])
        found = RecordComparison(mine, read_batch_records(other, theirs))
        differing = np.asarray(found.differ)
        missing = np.sort(np.append(numbers(found.only_a, "offset"), differing))
        for offsets, counts in ((missing, alone), (differing, differ)):
            begin = np.searchsorted(offsets, own.first[group])
            counts[group] = np.searchsorted(offsets, own.last[group], side="right") - begin
    return alone, differ


def _list_reasons(
    batches: Candidates, is_other: Any, one: Replica, other: Replica
) -> Iterator[tuple[str, Any]]:
    """Yield why batches are written, each reason with a mask of its batches; none is in two masks.
    First come other records there (``is_other``), one reason for each pair of leader epochs. Then
    the other log ends before, begins after, is damaged or has no such records; these four come
    always, also if no batch has the reason.
    """
    there = path_text(other.partition.directory)
    at = np.searchsorted(other.headers.last, batches.first)
    epochs = np.full(len(batches), -1)
    inside = is_other & (at < len(other.headers))
    epochs[inside] = other.headers.leader_epoch[at[inside]]
    mine = batches.gather([one], "leader_epoch")
    for a, b in sorted({*zip(mine[is_other].tolist(), epochs[is_other].tolist(), strict=True)}):
        reason = f"{there} has other records at these offsets, in leader epoch {b}; this one has epoch {a}"
        yield reason, is_other & (mine == a) & (epochs == b)
    rest = ~is_other
    after = rest & (batches.first >= other.end)
    before = rest & ~after & (batches.last < (other.start or 0))
    whole = rest & ~after & ~before & other.is_whole(batches.first, batches.last)
    yield f"{there} ends before offset {other.end}", after
    yield f"{there} begins at offset {other.start}", before
    yield f"{there} is damaged at these offsets", rest & ~after & ~before & ~whole
    yield f"{there} has no such records at these offsets", whole
